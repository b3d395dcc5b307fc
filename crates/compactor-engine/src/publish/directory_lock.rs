//! Lock on a directory while runs claim it or clean it up.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::input::existing::if_exists;

/// Waits until no other run is claiming or cleaning up this directory, which takes a short time. The lock is
/// released when the file is dropped or the process ends. `None` if the directory has been removed or
/// exchanged meanwhile.
///
/// # Errors
/// A directory that cannot be opened, or that another program keeps locked.
pub fn lock_directory(directory: &Path) -> Result<Option<File>> {
    const PATIENCE: Duration = Duration::from_secs(30);
    let opened = if_exists(File::open(directory));
    let Some(file) = opened.map_err(Error::file("open directory", directory))? else {
        return Ok(None);
    };
    let started = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if started.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(Error::InvalidInput(format!(
                    "{}: another program has locked this directory (flock). End it, or choose another \
                     directory",
                    directory.display()
                )));
            }
            Err(TryLockError::Error(e)) => return Err(Error::file("lock directory", directory)(e)),
        }
    }
    Ok(is_same_directory(directory, &file)?.then_some(file))
}

/// Whether the directory of this name is still the opened one.
pub(crate) fn is_same_directory(directory: &Path, opened: &File) -> Result<bool> {
    let own = opened
        .metadata()
        .map_err(Error::file("look up", directory))?;
    let named = fs::metadata(directory);
    Ok(named.is_ok_and(|named| (named.dev(), named.ino()) == (own.dev(), own.ino())))
}

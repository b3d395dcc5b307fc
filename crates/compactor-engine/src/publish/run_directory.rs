//! The hidden directory that a run keeps what it has not published in.
//!
//! ```text
//! .compactor-<process id>-<microseconds since 1970>-<number>/lock
//! ```
//!
//! Its run holds the lock. A directory of exactly such a name with a lock file that nobody holds was left by a
//! run that was killed, and is removed with all in it; a directory that lacks either is not ours, and stays.
//! So the lock file is the first to be made and the last to be removed.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{Error, Result};

/// How their names begin; hidden, so that nothing takes them for a backup or an index.
const PREFIX: &str = ".compactor-";
/// How they begin until their lock is held: not yet to be taken for stale.
const UNLOCKED_PREFIX: &str = ".starting-compactor-";
/// Name of the lock file.
const LOCK: &str = "lock";

/// A run's own directory, locked. Removed on drop.
#[derive(Debug)]
pub(crate) struct RunDirectory {
    path: PathBuf,
    /// `None` once it is to stay.
    lock: Option<File>,
}

/// What a directory holds of a run.
#[derive(Debug)]
pub(crate) enum Found {
    /// The run is at work.
    Active(PathBuf),
    /// The run was killed. Its lock is ours while this lives.
    Stale(StaleDirectory),
}

/// The directory of a run that was killed.
#[derive(Debug)]
pub(crate) struct StaleDirectory {
    path: PathBuf,
    _lock: File,
}

impl RunDirectory {
    /// Makes a directory inside this one, which has its final name only once its lock is held. Names are
    /// never used again, so that removing a stale one cannot hit a new one.
    ///
    /// # Errors
    /// A failed file operation.
    pub(crate) fn create(inside: &Path) -> Result<RunDirectory> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let started = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        for _ in 0..1000 {
            let made = MADE.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{}-{made}", std::process::id(), started.as_micros());
            let unlocked = inside.join(format!("{UNLOCKED_PREFIX}{name}"));
            match fs::create_dir(&unlocked) {
                Ok(()) => {}
                Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
                Err(e) => return Err(Error::file("create directory", unlocked)(e)),
            }
            let path = inside.join(format!("{PREFIX}{name}"));
            match lock_and_rename(&unlocked, &path) {
                Ok(Some(lock)) => {
                    return Ok(RunDirectory {
                        path,
                        lock: Some(lock),
                    });
                }
                Ok(None) => {}
                Err(error) => {
                    let _ = remove_all(&unlocked);
                    return Err(error);
                }
            }
        }
        Err(Error::InvalidInput(format!(
            "{}: too many staging directories ({PREFIX}*); remove them",
            inside.display()
        )))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the directory to the next run: something in it says what is to be taken back.
    pub(crate) fn leave(&mut self) {
        self.lock = None;
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        // Closed before: a run that failed for want of descriptors has one then to list the directory with.
        if self.lock.take().is_some() {
            let _ = remove_all(&self.path);
        }
    }
}

impl StaleDirectory {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it with all in it.
    ///
    /// # Errors
    /// A failed removal. The lock file is still there then.
    pub(crate) fn remove(self) -> Result<()> {
        remove_all(&self.path).map_err(Error::file("remove stale", &self.path))
    }
}

/// Whether this is the name of a run's directory.
pub fn is_run_directory(name: &str) -> bool {
    let numbers = name
        .strip_prefix(PREFIX)
        .or_else(|| name.strip_prefix(UNLOCKED_PREFIX));
    let mut numbers = numbers.unwrap_or_default().split('-');
    let is_number = |text: &str| text.parse::<u64>().is_ok_and(|n| n.to_string() == text);
    let mut three = || numbers.by_ref().next().is_some_and(is_number);
    three() && three() && three() && numbers.next().is_none()
}

/// Whether this directory is a run's: it has such a name, and its lock file.
pub(crate) fn is_of_run(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    // What is no file might be waited for without end.
    name.is_some_and(is_run_directory)
        && fs::symlink_metadata(path.join(LOCK)).is_ok_and(|lock| lock.is_file())
}

/// Whether nothing is in this directory but its lock and, perhaps, a file of this name.
pub(crate) fn has_only(directory: &Path, file: &str) -> bool {
    let Ok(mut entries) = compactor_io::read_dir(directory) else {
        return false;
    };
    entries.all(|entry| {
        entry.is_ok_and(|entry| entry.file_name() == LOCK || entry.file_name() == file)
    })
}

/// The wanted ones among the runs' directories in this one. An empty one, left by a run that was killed before it had made a lock
/// file or after it had removed it, is removed.
///
/// # Errors
/// The directory cannot be listed.
pub(crate) fn find_in(directory: &Path, is_wanted: impl Fn(&Path) -> bool) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    for entry in compactor_io::read_dir(directory).map_err(Error::file("list", directory))? {
        let entry = entry.map_err(Error::file("list", directory))?;
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_directory || !entry.file_name().to_str().is_some_and(is_run_directory) {
            continue;
        }
        let path = entry.path();
        if !is_of_run(&path) {
            // Does nothing unless it is empty.
            let _ = fs::remove_dir(&path);
            continue;
        }
        if !is_wanted(&path) {
            continue;
        }
        let Ok(lock) = File::open(path.join(LOCK)) else {
            continue;
        };
        match lock.try_lock() {
            Ok(()) => found.push(Found::Stale(StaleDirectory { path, _lock: lock })),
            Err(TryLockError::WouldBlock) => found.push(Found::Active(path)),
            Err(TryLockError::Error(_)) => {}
        }
    }
    Ok(found)
}

/// Removes a run's directory, its lock file last. One that somebody else is removing as well is no error.
fn remove_all(directory: &Path) -> std::io::Result<()> {
    let entries = match compactor_io::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => return remove_unlisted(directory, error),
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name() == LOCK {
            continue;
        }
        let removed = entry.file_type().and_then(|kind| match kind.is_dir() {
            true => compactor_io::remove_dir_all(entry.path()),
            false => fs::remove_file(entry.path()),
        });
        if_still_there(removed)?;
    }
    if_still_there(fs::remove_file(directory.join(LOCK)))?;
    if_still_there(fs::remove_dir(directory))
}

/// Removes a run's directory that cannot be listed, if nothing but its lock file is in it, as where a run has
/// ended for want of descriptors and has removed what it knew by name. Without its lock file it would
/// stay for ever.
fn remove_unlisted(directory: &Path, error: std::io::Error) -> std::io::Result<()> {
    let lock = directory.join(LOCK);
    let mut aside = directory.as_os_str().to_owned();
    aside.push("-lock");
    if_still_there(fs::rename(&lock, &aside))?;
    match fs::remove_dir(directory) {
        Err(e) if e.kind() != ErrorKind::NotFound => {
            fs::rename(aside, lock)?;
            Err(error)
        }
        _ => if_still_there(fs::remove_file(aside)),
    }
}

fn if_still_there(removed: std::io::Result<()>) -> std::io::Result<()> {
    match removed {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// `None` if that name is taken, or if another run, which saw no lock held, has taken the directory
/// for stale.
fn lock_and_rename(unlocked: &Path, directory: &Path) -> Result<Option<File>> {
    let path = unlocked.join(LOCK);
    let lock = match File::create(&path) {
        Ok(lock) => lock,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::file("create", path)(e)),
    };
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(e)) => return Err(Error::file("lock", path)(e)),
    }
    // An empty directory of that name would be replaced, which harms nobody; one in use has a lock
    // file in it and is left alone.
    match fs::rename(unlocked, directory) {
        Ok(()) => Ok(Some(lock)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e)
            if matches!(
                e.kind(),
                ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists
            ) =>
        {
            remove_all(unlocked).map_err(Error::file("remove", unlocked))?;
            Ok(None)
        }
        Err(e) => Err(Error::file("rename", unlocked)(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_names_are_those_of_runs() {
        for name in [
            ".compactor-1-1700000000000000-0",
            ".starting-compactor-7-8-9",
        ] {
            assert!(is_run_directory(name), "{name}");
        }
        for name in [
            ".compactor-notes",
            ".compactor-",
            ".compactor-1-2",
            ".compactor-1-2-",
            ".compactor-1-2-3-4",
            ".compactor-01-2-3",
            ".compactor-+1-2-3",
            ".compactor-1-2-x",
            ".starting-compactor-notes",
            "compactor-1-2-3",
            ".compactor-1-2-3.bak",
        ] {
            assert!(!is_run_directory(name), "{name}");
        }
    }

    /// Without its lock file a directory that could not be removed would stay for ever.
    #[test]
    fn what_cannot_be_listed_keeps_its_lock_unless_it_goes() {
        let temp = tempfile::tempdir().unwrap();
        let directory = temp.path().join(".compactor-1-2-3");
        let lock = directory.join(LOCK);
        let refused = || std::io::Error::from(ErrorKind::ResourceBusy);
        fs::create_dir(&directory).unwrap();
        fs::write(&lock, "").unwrap();
        fs::write(directory.join("more"), "").unwrap();
        let error = remove_unlisted(&directory, refused()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ResourceBusy);
        assert!(lock.exists());
        fs::remove_file(directory.join("more")).unwrap();
        remove_unlisted(&directory, refused()).unwrap();
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
        remove_unlisted(&directory, refused()).unwrap();
    }

    #[test]
    fn what_is_found_is_what_has_a_lock_file() {
        let temp = tempfile::tempdir().unwrap();
        let place = |name: &str| temp.path().join(name);
        let make = |name: &str, files: &[&str]| {
            fs::create_dir(place(name)).unwrap();
            for file in files {
                fs::write(place(name).join(file), "x").unwrap();
            }
        };
        make(".compactor-1-2-3", &[LOCK, "oa-7-big-Data.db"]);
        make(".compactor-1-2-4", &["oa-7-big-Data.db"]);
        make(".compactor-1-2-5", &[]);
        make(".compactor-notes", &[LOCK, "mine"]);
        fs::create_dir_all(place(".compactor-1-2-6").join(LOCK)).unwrap();
        fs::write(place(".compactor-1-2-7"), "x").unwrap();
        let own = RunDirectory::create(temp.path()).unwrap();
        let mut found = find_in(temp.path(), |_| true).unwrap();
        found.sort_by_key(|found| matches!(found, Found::Active(_)));
        let [Found::Stale(left), Found::Active(at_work)] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!(left.path(), place(".compactor-1-2-3"));
        assert_eq!(at_work, own.path());
        let Some(Found::Stale(left)) = found.into_iter().next() else {
            panic!();
        };
        left.remove().unwrap();
        assert!(!place(".compactor-1-2-3").exists());
        assert!(!place(".compactor-1-2-5").exists(), "an empty one goes");
        for stays in [4, 6, 7] {
            assert!(
                place(&format!(".compactor-1-2-{stays}")).exists(),
                "{stays}"
            );
        }
        assert!(place(".compactor-notes/mine").exists());
        let path = own.path().to_owned();
        fs::create_dir_all(path.join("inside/deep")).unwrap();
        drop(own);
        assert!(!path.exists());
    }
}

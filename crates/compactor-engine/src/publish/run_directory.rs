//! Hidden directory in which a run keeps its unpublished files.
//!
//! ```text
//! .compactor-<process id>-<microseconds since 1970>-<number>/lock
//! ```
//!
//! The run holds the lock. A directory of exactly this form of name whose lock file is not locked was left by
//! a killed run, and is removed with its contents. A directory with another name, or without a lock file,
//! belongs to another program and is kept. So the lock file is created first and removed last. The directories are
//! hidden so that they are not taken for backups or indexes.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use compactor_io::RUN_DIRECTORY_PREFIX as PREFIX;

use crate::error::{Error, Result};
use crate::input::existing::{if_exists, list};

/// Prefix until the lock is held: such a directory must not be taken for stale.
const UNLOCKED_PREFIX: &str = ".starting-compactor-";
/// Name of the lock file.
const LOCK: &str = "lock";

/// A run's own directory, locked. Removed on drop.
#[derive(Debug)]
pub(crate) struct RunDirectory {
    path: PathBuf,
    /// Taken on drop.
    lock: Option<File>,
    is_kept: AtomicBool,
}

/// A run's directory that was found.
#[derive(Debug)]
pub(crate) struct FoundRun {
    pub(crate) path: PathBuf,
    /// Lock on the directory of a run that was killed, held until this is dropped; `None` if the run is active.
    lock: Option<File>,
}

impl RunDirectory {
    /// Creates a directory in this one. It gets its final name only once its lock is held. Names are never
    /// reused, so that removing a stale directory cannot affect a new one.
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
                        is_kept: AtomicBool::new(false),
                    });
                }
                Ok(None) => {}
                Err(error) => {
                    let _ = remove_all(&unlocked, None);
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

    /// Leaves the directory to the next run: it records what must be undone.
    pub(crate) fn leave(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        // Closed first: a run that failed because no descriptors were left then has one to list the directory
        // with.
        drop(self.lock.take());
        if !*self.is_kept.get_mut() {
            let _ = remove_all(&self.path, None);
        }
    }
}

impl FoundRun {
    pub(crate) fn is_active(&self) -> bool {
        self.lock.is_none()
    }

    /// Removes the directory of a killed run with its contents.
    ///
    /// # Errors
    /// A failed removal. The lock file still exists then.
    pub(crate) fn remove(self) -> Result<()> {
        remove_all(&self.path, self.lock).map_err(Error::file("remove stale", &self.path))
    }
}

/// Whether the name is that of a run's directory.
pub fn is_run_directory(name: &str) -> bool {
    let numbers = name
        .strip_prefix(PREFIX)
        .or_else(|| name.strip_prefix(UNLOCKED_PREFIX));
    let numbers: Vec<&str> = numbers.unwrap_or_default().split('-').collect();
    let is_number = |text: &&str| text.parse::<u64>().is_ok_and(|n| n.to_string() == **text);
    numbers.len() == 3 && numbers.iter().all(is_number)
}

/// Whether this directory is a run's: it has such a name and a lock file.
pub(crate) fn is_of_run(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    // Opening another kind of file might block forever.
    name.is_some_and(is_run_directory)
        && fs::symlink_metadata(path.join(LOCK)).is_ok_and(|lock| lock.is_file())
}

/// Whether this directory contains nothing but its lock and, optionally, files of these names.
pub(crate) fn has_only(directory: &Path, files: &[&str]) -> bool {
    let Ok(mut entries) = compactor_io::read_dir(directory) else {
        return false;
    };
    entries.all(|entry| {
        entry.is_ok_and(|entry| {
            let name = entry.file_name();
            name == LOCK || files.iter().any(|file| name == *file)
        })
    })
}

/// Returns the wanted ones among the runs' directories in this one. An empty one, left by a run that was
/// killed before it had created its lock file or after it had removed it, is removed.
///
/// # Errors
/// The directory cannot be listed.
pub(crate) fn find_in(
    directory: &Path,
    is_wanted: impl Fn(&Path) -> bool,
) -> Result<Vec<FoundRun>> {
    let mut found = Vec::new();
    for entry in list(directory)? {
        let entry = entry?;
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_directory || !entry.file_name().to_str().is_some_and(is_run_directory) {
            continue;
        }
        let path = entry.path();
        if !is_of_run(&path) {
            // Fails unless the directory is empty.
            let _ = fs::remove_dir(&path);
            continue;
        }
        if !is_wanted(&path) {
            continue;
        }
        // NFS locks only files that are open for writing. Another user's may be open for reading only.
        let file = path.join(LOCK);
        let opened = File::options().read(true).write(true).open(&file);
        let Ok(lock) = opened.or_else(|_| File::open(&file)) else {
            continue;
        };
        let lock = match lock.try_lock() {
            Ok(()) => Some(lock),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Error(_)) => continue,
        };
        found.push(FoundRun { path, lock });
    }
    Ok(found)
}

/// Removes a run's directory, its lock file last. A concurrent removal by another process is not an error.
fn remove_all(directory: &Path, lock: Option<File>) -> std::io::Result<()> {
    let entries = match compactor_io::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => return remove_unlisted(directory, error),
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name() == LOCK {
            continue;
        }
        let removed = entry.file_type().and_then(|kind| {
            if kind.is_dir() {
                compactor_io::remove_dir_all(entry.path())
            } else {
                fs::remove_file(entry.path())
            }
        });
        if_exists(removed)?;
    }
    if_exists(fs::remove_file(directory.join(LOCK)))?;
    // NFS and FUSE keep an open file that is removed under another name in its directory, which is not empty then.
    drop(lock);
    if_exists(fs::remove_dir(directory)).map(drop)
}

/// Removes a run's directory that cannot be listed if it contains nothing but its lock file. A run that
/// failed because no descriptors were left has already removed the files that it knew by name. Without its
/// lock file the directory would never be removed.
fn remove_unlisted(directory: &Path, error: std::io::Error) -> std::io::Result<()> {
    let lock = directory.join(LOCK);
    let mut aside = directory.as_os_str().to_owned();
    aside.push("-lock");
    if_exists(fs::rename(&lock, &aside))?;
    match fs::remove_dir(directory) {
        Err(e) if e.kind() != ErrorKind::NotFound => {
            fs::rename(aside, lock)?;
            Err(error)
        }
        _ => if_exists(fs::remove_file(aside)).map(drop),
    }
}

/// Returns `None` if the name is taken, or if another run took the unlocked directory for stale.
fn lock_and_rename(unlocked: &Path, directory: &Path) -> Result<Option<File>> {
    let path = unlocked.join(LOCK);
    let created = if_exists(File::create(&path));
    let Some(lock) = created.map_err(Error::file("create", &path))? else {
        return Ok(None);
    };
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(e)) => return Err(Error::file("lock", path)(e)),
    }
    // Btrfs does not write new names with the next sync of any file, as ext4 and xfs do: after a power failure a
    // directory of synced outputs without this file would be kept forever.
    lock.sync_all().map_err(Error::file("sync", &path))?;
    // An empty directory of that name is replaced, which is harmless; one in use contains a lock file and is
    // not.
    match fs::rename(unlocked, directory) {
        Ok(()) => Ok(Some(lock)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e)
            if matches!(
                e.kind(),
                ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists
            ) =>
        {
            remove_all(unlocked, Some(lock)).map_err(Error::file("remove", unlocked))?;
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

    /// Without its lock file a directory that could not be removed would be kept forever.
    #[test]
    fn unlistable_directories_keep_their_lock_unless_removed() {
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
    fn only_directories_with_a_lock_file_are_found() {
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
        found.sort_by_key(FoundRun::is_active);
        let states: Vec<_> = found.iter().map(|f| (&*f.path, f.is_active())).collect();
        let left = place(".compactor-1-2-3");
        assert_eq!(states, [(&*left, false), (own.path(), true)]);
        found.swap_remove(0).remove().unwrap();
        assert!(!place(".compactor-1-2-3").exists());
        assert!(
            !place(".compactor-1-2-5").exists(),
            "an empty one is removed"
        );
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

//! A directory for the time of a command: removed at its end, or by the next one if this one was killed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use compactor::Error;

use crate::watcher::{Watcher, note};

/// A directory that is removed when this is dropped.
#[derive(Debug)]
pub struct Scratch {
    directory: OutputDirectory,
    /// Held for as long as this process lives: while it is, the directory is in use.
    _lock: File,
}

impl Scratch {
    /// Makes a directory in `parent`, after removing those that killed processes left there for the same
    /// purpose, a word.
    ///
    /// # Errors
    /// If none can be made there.
    pub fn create(parent: &Path, purpose: &str) -> Result<Scratch, Error> {
        let prefix = format!("compactor-{purpose}-");
        // A file that is made once the directory is locked. A directory of such a name without it is not ours.
        let mark = format!(".compactor-{purpose}");
        remove_left_over(parent, &prefix, &mark);
        let directory = tempfile::Builder::new()
            .prefix(&prefix)
            .tempdir_in(parent)
            .map_err(Error::file("create a directory in", parent))?;
        let path = directory.path();
        let lock = File::open(path).map_err(Error::file("open directory", path))?;
        lock.lock().map_err(Error::file("lock directory", path))?;
        File::create(path.join(mark)).map_err(Error::file("create a file in", path))?;
        Ok(Scratch {
            // From here on not by `TempDir`, which panics if the directory cannot be closed.
            directory: OutputDirectory {
                path: directory.keep(),
            },
            _lock: lock,
        })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.directory.path
    }

    /// Removes the directory.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(self) -> Result<(), Error> {
        self.directory.remove()
    }

    /// Removes the directory. If it cannot be removed, a note has the reason: the results are worth more.
    pub(crate) fn remove_or_note(self, watcher: &dyn Watcher) {
        if let Err(error) = self.remove() {
            note(watcher, &error.to_string());
        }
    }
}

/// A directory, such as that of a run's output, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct OutputDirectory {
    pub(crate) path: PathBuf,
}

impl OutputDirectory {
    /// Creates the directory.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn create(path: PathBuf) -> Result<OutputDirectory, Error> {
        fs::create_dir(&path).map_err(Error::file("create directory", &path))?;
        Ok(OutputDirectory { path })
    }

    /// Removes the directory.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        compactor_io::remove_dir_all(&self.path).map_err(Error::file("remove", &self.path))
    }
}

impl Drop for OutputDirectory {
    fn drop(&mut self) {
        // Gone by now, unless something failed.
        let _ = compactor_io::remove_dir_all(&self.path);
    }
}

/// Removes directories that have our mark and are not locked: their process is dead. What cannot be
/// removed stays, and takes space.
fn remove_left_over(parent: &Path, prefix: &str, mark: &str) {
    let Ok(entries) = compactor_io::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_directory || !entry.file_name().to_string_lossy().starts_with(prefix) {
            continue;
        }
        let path = entry.path();
        let is_marked = fs::symlink_metadata(path.join(mark)).is_ok_and(|mark| mark.is_file());
        if let (true, Ok(directory)) = (is_marked, File::open(&path))
            && directory.try_lock().is_ok()
        {
            let _ = compactor_io::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn only_directories_of_dead_processes_are_removed() {
        let parent = TempDir::new().unwrap();
        let directory = |name: &str, is_marked: bool| {
            let path = parent.path().join(name);
            fs::create_dir_all(path.join("data")).unwrap();
            if is_marked {
                fs::write(path.join(".compactor-demo"), "").unwrap();
            }
            path
        };
        let dead = directory("compactor-demo-dead", true);
        let of_a_user = directory("compactor-demo-notes", false);
        let other = directory("other", true);
        let alive = Scratch::create(parent.path(), "demo").unwrap();
        assert!(!dead.exists());
        let second = Scratch::create(parent.path(), "demo").unwrap();
        assert!(alive.path().exists() && second.path().exists());
        assert!(of_a_user.join("data").exists() && other.exists());
        second.remove().unwrap();
        let path = alive.path().to_owned();
        drop(alive);
        assert!(!path.exists());
    }
}

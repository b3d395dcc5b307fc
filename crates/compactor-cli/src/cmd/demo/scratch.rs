//! The demonstration's directory: removed at its end, or by the next one if this one was killed.

use std::fs::{self, File};
use std::path::Path;

use compactor::Error;
use tempfile::TempDir;

const PREFIX: &str = "compactor-demo-";
/// Made once the directory is locked. A directory of such a name without it is somebody's own.
const MARK: &str = ".compactor-demo";

/// A directory that is removed when this is dropped.
#[derive(Debug)]
pub struct Scratch {
    directory: TempDir,
    /// Held for as long as this process lives: while it is, the directory is in use.
    _lock: File,
}

impl Scratch {
    /// Makes a directory in `parent`, after removing those that killed demonstrations left there.
    ///
    /// # Errors
    /// If none can be made there.
    pub fn create(parent: &Path) -> Result<Scratch, Error> {
        remove_left_over(parent);
        let directory = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(parent)
            .map_err(Error::file("create a directory in", parent))?;
        let lock = File::open(directory.path())
            .map_err(Error::file("open directory", directory.path()))?;
        lock.lock()
            .map_err(Error::file("lock directory", directory.path()))?;
        File::create(directory.path().join(MARK))
            .map_err(Error::file("create a file in", directory.path()))?;
        Ok(Scratch {
            directory,
            _lock: lock,
        })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Removes the directory.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(self) -> Result<(), Error> {
        let path = self.path().to_owned();
        self.directory.close().map_err(Error::file("remove", path))
    }
}

/// Removes directories that have our mark and are not locked: who made them is dead. What cannot be
/// removed stays; it is nobody's harm but the disk's.
fn remove_left_over(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_directory || !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let path = entry.path();
        let is_marked = fs::symlink_metadata(path.join(MARK)).is_ok_and(|mark| mark.is_file());
        if let (true, Ok(directory)) = (is_marked, File::open(&path))
            && directory.try_lock().is_ok()
        {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_dead_left_goes_and_nothing_else() {
        let parent = TempDir::new().unwrap();
        let directory = |name: &str, is_marked: bool| {
            let path = parent.path().join(name);
            fs::create_dir_all(path.join("data")).unwrap();
            if is_marked {
                fs::write(path.join(MARK), "").unwrap();
            }
            path
        };
        let dead = directory("compactor-demo-dead", true);
        let of_a_person = directory("compactor-demo-notes", false);
        let other = directory("other", true);
        let alive = Scratch::create(parent.path()).unwrap();
        assert!(!dead.exists());
        let second = Scratch::create(parent.path()).unwrap();
        assert!(alive.path().exists() && second.path().exists());
        assert!(of_a_person.join("data").exists() && other.exists());
        second.remove().unwrap();
        let path = alive.path().to_owned();
        drop(alive);
        assert!(!path.exists());
    }
}

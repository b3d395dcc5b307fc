//! Directories of inputs that have not changed since they were listed, so that thousands of merges in one
//! directory do not list it each.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use compactor_io::lock;

use crate::error::{Error, Result};

/// Time since a directory's last modification after which another one has another time: longer than the
/// resolution of any file system's times.
const SETTLED: Duration = Duration::from_secs(3);

/// Directories in which a check of all entries succeeded, shared by the merges of a table.
#[derive(Clone, Debug, Default)]
pub struct QuietDirectories {
    seen: Arc<Mutex<HashMap<PathBuf, Seen>>>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Time of the last modification, seconds and nanoseconds since 1970.
    modified: (i64, i64),
    /// When that time was first seen.
    since: Instant,
    /// Whether the check succeeded when the time had settled.
    is_checked: bool,
}

impl QuietDirectories {
    /// Runs `check`, which lists the directory, unless it succeeded before and no entry has been added or
    /// removed since.
    ///
    /// # Errors
    /// A directory that cannot be looked up, or those of `check`.
    pub(crate) fn check(&self, directory: &Path, check: impl FnOnce() -> Result<()>) -> Result<()> {
        let metadata = fs::metadata(directory).map_err(Error::file("look up", directory))?;
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        let now = Instant::now();
        let known = lock(&self.seen).get(directory).copied();
        let mut seen = known
            .filter(|seen| seen.modified == modified)
            .unwrap_or(Seen {
                modified,
                since: now,
                is_checked: false,
            });
        if !seen.is_checked {
            check()?;
            seen.is_checked = now.duration_since(seen.since) >= SETTLED;
            lock(&self.seen).insert(directory.to_owned(), seen);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_listed_again_once_it_has_changed() {
        let temp = tempfile::tempdir().unwrap();
        let quiet = QuietDirectories::default();
        let mut checks = 0;
        let mut look = |quiet: &QuietDirectories| {
            let check = || {
                checks += 1;
                Ok(())
            };
            quiet.check(temp.path(), check).unwrap();
            checks
        };
        assert_eq!((look(&quiet), look(&quiet)), (1, 2), "not settled yet");
        for seen in lock(&quiet.seen).values_mut() {
            seen.since -= SETTLED;
        }
        assert_eq!((look(&quiet), look(&quiet.clone())), (3, 3));
        fs::write(temp.path().join("file"), "").unwrap();
        assert_eq!(look(&quiet), 4);
        assert_eq!(look(&quiet), 5);
    }

    #[test]
    fn a_failed_check_is_repeated() {
        let temp = tempfile::tempdir().unwrap();
        let quiet = QuietDirectories::default();
        for _ in 0..2 {
            let failed = quiet.check(temp.path(), || Err(Error::Cancelled));
            assert!(matches!(failed, Err(Error::Cancelled)));
        }
    }
}

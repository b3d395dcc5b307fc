//! A transaction log that this program writes: created, appended to and removed durably.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use compactor_io::sync_directory;

use crate::error::{Error, Result};

/// A log whose lines are on disk before a call returns.
#[derive(Debug)]
pub struct TransactionFile {
    path: PathBuf,
    file: File,
}

impl TransactionFile {
    /// Creates the log `name` in `directory` with these lines. The lines and the name are durable when this
    /// returns.
    ///
    /// # Errors
    /// A failed file operation, or a file of that name. No log is left then.
    pub fn create(directory: &Path, name: &str, lines: &str) -> Result<TransactionFile> {
        let path = directory.join(name);
        let file = File::create_new(&path).map_err(Error::file("create", &path))?;
        let mut log = TransactionFile { path, file };
        let written = log
            .append(lines)
            .and_then(|()| Ok(sync_directory(directory)?));
        if let Err(error) = written {
            log.remove();
            return Err(error);
        }
        Ok(log)
    }

    /// Appends lines and syncs them.
    ///
    /// # Errors
    /// The system's.
    pub fn append(&mut self, lines: &str) -> Result<()> {
        self.file
            .write_all(lines.as_bytes())
            .and_then(|()| self.file.sync_all())
            .map_err(Error::file("write", &self.path))
    }

    /// Path of the log.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the log; one that stays is cleaned up by whoever finds it.
    pub fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

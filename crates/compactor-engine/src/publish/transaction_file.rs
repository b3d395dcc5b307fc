//! A transaction log that this program writes: created, appended to and removed durably.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use compactor_io::sync_directory;

use crate::error::{Error, Result};

/// A log whose lines are on disk when a call returns.
#[derive(Debug)]
pub struct TransactionFile {
    path: PathBuf,
    file: File,
    /// Number of bytes known to be on disk.
    len: u64,
    is_in_doubt: bool,
}

impl TransactionFile {
    /// Creates the log `name` in `directory` with these lines. `own` sets its owner and mode before lines are
    /// written. Lines and name are durable when this returns.
    ///
    /// # Errors
    /// A failed file operation, or an existing file of that name. No log is left then.
    pub fn create(
        directory: &Path,
        name: &str,
        lines: &str,
        own: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<TransactionFile> {
        let path = directory.join(name);
        let file = File::create_new(&path).map_err(Error::file("create", &path))?;
        let mut log = TransactionFile {
            path,
            file,
            len: 0,
            is_in_doubt: false,
        };
        let written = own(&log.path)
            .map_err(Error::file("set owner and mode of", &log.path))
            .and_then(|()| log.append(lines))
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
    /// A failed system call. The log is unchanged then, also on disk, unless it [is in
    /// doubt](Self::is_in_doubt).
    pub fn append(&mut self, lines: &str) -> Result<()> {
        let written = self
            .file
            .write_all_at(lines.as_bytes(), self.len)
            .and_then(|()| self.file.sync_all());
        if written.is_ok() {
            self.len += lines.len() as u64;
        } else {
            // Lines that could not be synced may reach the disk later, when what they record is no longer
            // true.
            let cut = self.file.set_len(self.len);
            self.is_in_doubt |= cut.and_then(|()| self.file.sync_all()).is_err();
        }
        written.map_err(Error::file("write", &self.path))
    }

    /// Whether lines that could not be appended may still be on disk. The files that they name must not be
    /// removed then.
    pub fn is_in_doubt(&self) -> bool {
        self.is_in_doubt
    }

    /// Makes the content of a log that was found durable before it is acted on: after a failed sync it may be
    /// in the page cache only.
    ///
    /// # Errors
    /// A failed system call.
    pub fn make_durable(path: &Path, bytes: &[u8]) -> Result<()> {
        File::options()
            .write(true)
            .open(path)
            .and_then(|file| {
                // Pages whose write-back has failed count as clean: a sync alone would not write them again.
                file.write_all_at(bytes, 0)?;
                file.sync_all()
            })
            .map_err(Error::file("write", path))
    }

    /// Path of the log.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the log. Returns false if it could not be removed; the next run that finds it does so.
    pub fn remove(&self) -> bool {
        fs::remove_file(&self.path).is_ok()
    }
}

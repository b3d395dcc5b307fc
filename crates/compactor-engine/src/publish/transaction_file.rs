//! A transaction log that this program writes: created, appended to and removed durably.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use compactor_io::{remove_if_exists, sync_directory};

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
    /// Creates the log `name` in `directory`, without lines.
    ///
    /// # Errors
    /// A failed file operation, or an existing file of that name. No log was created then.
    pub fn create(directory: &Path, name: &str) -> Result<TransactionFile> {
        let path = directory.join(name);
        let file = File::create_new(&path).map_err(Error::file("create", &path))?;
        Ok(TransactionFile {
            path,
            file,
            len: 0,
            is_in_doubt: false,
        })
    }

    /// Writes the first lines. `own` sets owner and mode of the log before. Lines and name are durable when this
    /// returns.
    ///
    /// # Errors
    /// A failed file operation. The log is still there then, as after [`append`](Self::append).
    pub fn begin(&mut self, lines: &str, own: impl FnOnce(&Path) -> io::Result<()>) -> Result<()> {
        own(&self.path).map_err(Error::file("set owner and mode of", &self.path))?;
        self.append(lines)?;
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        Ok(sync_directory(directory)?)
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

    /// Removes the log.
    ///
    /// # Errors
    /// A failed removal: what says whose log it is must stay then, for the next run to remove it.
    pub fn remove(&self) -> Result<()> {
        Ok(remove_if_exists(&self.path)?)
    }
}

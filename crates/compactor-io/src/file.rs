//! Opening of files.

use std::fs::File;
use std::path::Path;

use rustix::fs::FileType;

use crate::error::{IoError, IoErrorKind, IoOperation};

/// Opens a regular file for reading; symbolic links are followed.
///
/// # Errors
///
/// A failed system call; [`Unsupported`](IoErrorKind::Unsupported) for a file that is not regular, which is
/// not opened: opening a FIFO would wait for a writer, and a device might react to it.
pub fn open_regular(path: &Path) -> Result<File, IoError> {
    let failed = |error| IoError::system(IoOperation::Open, path, error);
    // Not `std::fs::metadata`, which uses statx: some sandboxes refuse it.
    let found = rustix::fs::stat(path).map_err(|errno| failed(errno.into()))?;
    let kind = FileType::from_raw_mode(found.st_mode);
    if kind != FileType::RegularFile {
        let reason = format!("it is {}, not a regular file", name_of(kind));
        let kind = IoErrorKind::Unsupported;
        return Err(IoError::found(IoOperation::Open, kind, path, reason));
    }
    File::open(path).map_err(failed)
}

fn name_of(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "a directory",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        _ => "a device",
    }
}

//! Open files as seen by the backends.

use std::fmt;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::FileType;

use crate::backend::IoBackend;
use crate::error::{IoError, IoErrorKind, IoOperation};
use crate::mode::BackendKind;

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

/// An open file and the backend for its operations. Operations in flight share it, so the descriptor stays
/// open until the last of them has completed.
pub struct FileHandle {
    file: File,
    path: PathBuf,
    id: u64,
    backend: Arc<dyn IoBackend>,
    /// Whether an operation on it was queued for a ring's thread.
    is_queued: AtomicBool,
}

impl FileHandle {
    pub(crate) fn new(file: File, path: &Path, backend: Arc<dyn IoBackend>) -> Arc<FileHandle> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        Arc::new(FileHandle {
            file,
            path: path.to_owned(),
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            backend,
            is_queued: AtomicBool::new(false),
        })
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Path with which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number that is unique among all handles of this process, past and future.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Marks the file as known to a ring's thread, which must then be notified when the file is dropped.
    pub(crate) fn set_queued(&self) {
        self.is_queued.store(true, Ordering::Relaxed);
    }

    pub(crate) fn backend(&self) -> &dyn IoBackend {
        &*self.backend
    }
}

impl AsFd for FileHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for FileHandle {
    fn drop(&mut self) {
        // A small file that was read only by a waiting thread is unknown to rings, so none is woken.
        if *self.is_queued.get_mut() || self.backend.kind() != BackendKind::TokioUring {
            self.backend.forget(self.id);
        }
    }
}

impl fmt::Debug for FileHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileHandle")
            .field("path", &self.path)
            .field("id", &self.id)
            .finish()
    }
}

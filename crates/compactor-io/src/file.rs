//! An open file as the backends see it.

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
/// The system's; [`Unsupported`](IoErrorKind::Unsupported) for anything but a regular file. Such a
/// thing is not even opened: a FIFO would wait for a writer, and a device may act on it.
pub fn open_regular(path: &Path) -> Result<File, IoError> {
    let failed = |error| IoError::system(IoOperation::Open, path, error);
    // Not by `std::fs::metadata`, which wants statx: there are sandboxes that refuse it.
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

/// An open file and the backend that its operations go to. Operations in flight share it, so the
/// descriptor stays open until the last of them has completed.
pub struct FileHandle {
    file: File,
    path: PathBuf,
    id: u64,
    backend: Arc<dyn IoBackend>,
    /// An operation on it was queued for a ring's thread.
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

    /// The path that it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A number that no other handle of this process has, ever.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// A ring's thread will hear of it, and has to hear when it goes.
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
        // Of a small file that was read by who waited for it no ring knows: none is woken for it.
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

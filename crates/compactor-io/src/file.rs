//! An open file as the backends see it.

use std::fmt;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::backend::IoBackend;

/// An open file and the backend that its operations go to. Operations in flight share it, so the
/// descriptor stays open until the last of them has completed.
pub struct FileHandle {
    file: File,
    path: PathBuf,
    id: u64,
    backend: Arc<dyn IoBackend>,
}

impl FileHandle {
    pub(crate) fn new(file: File, path: &Path, backend: Arc<dyn IoBackend>) -> Arc<FileHandle> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        Arc::new(FileHandle {
            file,
            path: path.to_owned(),
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            backend,
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
        self.backend.forget(self.id);
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

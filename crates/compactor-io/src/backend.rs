//! Interface of the backends, which perform reads and writes.
//!
//! A backend performs single operations: one read, one write, one sync, each possibly short. Loops over short
//! reads and writes, retries and errors are implemented above it, so that every backend (including a test's
//! that injects faults) needs only the plain operation.
//!
//! Ownership: from `submit` until its completion has run, an operation owns its buffer and shares its file.
//! It cannot be cancelled; if the caller drops its side, the result is not used.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use rustix::io::ReadWriteFlags;

use crate::buffer::AlignedBuffer;
use crate::mode::BackendKind;
use crate::pool::BufferPool;

pub(crate) mod threads;
pub(crate) mod tokio_uring;
pub(crate) mod uring;
pub(crate) mod watched;

/// Maximum number of operations in flight per ring, whose completion queue has room for twice as many. The
/// kernel's own limit on entries is 32768.
pub(crate) const QUEUE_DEPTH_MAX: usize = 1024;

/// Backend, which performs operations on its own threads.
pub trait IoBackend: Send + Sync + fmt::Debug {
    /// Kind of the backend; never [`BackendKind::Auto`].
    fn kind(&self) -> BackendKind;

    /// Queues an operation without waiting. Its completion runs on a thread of the backend, in any order
    /// relative to others.
    fn submit(&self, operation: Operation);

    /// As [`submit`](Self::submit), for a caller that will wait for the completion, which may run on the
    /// calling thread before this returns. For a small read that costs less than waking another thread.
    fn submit_awaited(&self, operation: Operation) {
        self.submit(operation);
    }

    /// Called when the last owner of a file has been dropped: no operation on it will follow.
    fn forget(&self, _file_id: u64) {}
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

    /// Queues an operation on the file; `end` is called at its end.
    pub(crate) fn submit(
        self: &Arc<FileHandle>,
        request: Request,
        end: impl FnOnce(Outcome) + Send + 'static,
    ) {
        self.backend.submit(self.operation(request, end));
    }

    pub(crate) fn operation(
        self: &Arc<FileHandle>,
        request: Request,
        end: impl FnOnce(Outcome) + Send + 'static,
    ) -> Operation {
        Operation {
            file: Arc::clone(self),
            request,
            completion: Completion::new(end),
        }
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

/// One operation on one file.
pub struct Operation {
    /// The file.
    pub file: Arc<FileHandle>,
    /// Type of the operation.
    pub request: Request,
    /// Called at its end.
    pub completion: Completion,
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation")
            .field("file", &self.file)
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

/// Type of an operation. The caller aligns offsets and lengths if the file's mode requires it.
pub enum Request {
    /// One `pread`: may return fewer bytes.
    Read {
        /// Destination.
        target: ReadTarget,
        /// File offset.
        offset: u64,
        /// Flags for `preadv2`; empty except on backends that support them.
        flags: ReadWriteFlags,
    },
    /// One `pwrite` of `source[start..end]`: may write fewer bytes.
    Write {
        /// Buffer that contains the bytes.
        source: AlignedBuffer,
        /// Index of the first byte to write.
        start: usize,
        /// End of the bytes to write, exclusive.
        end: usize,
        /// File offset.
        offset: u64,
        /// Flags for `pwritev2`; empty except on backends that support them.
        flags: ReadWriteFlags,
    },
    /// `fdatasync`.
    SyncData,
    /// A call that may block, for a thread that may be blocked.
    Call(BlockingCall),
    /// No operation: only the completion runs.
    Nothing,
}

/// A blocking call on a file that is not one of the plain operations.
pub type BlockingCall = Box<dyn FnOnce(&FileHandle) -> io::Result<()> + Send>;

/// Destination of a read.
pub enum ReadTarget {
    /// A buffer taken from a pool when the operation starts, not when it is queued: thousands of queued reads
    /// take no memory.
    Fresh {
        /// The pool.
        pool: BufferPool,
        /// Number of bytes to read.
        len: usize,
    },
    /// `buffer[start..end]`, to continue a short read.
    Rest {
        /// The buffer.
        buffer: AlignedBuffer,
        /// Index at which to continue.
        start: usize,
        /// End of the bytes to read, exclusive.
        end: usize,
    },
}

impl ReadTarget {
    /// Returns the buffer, after taking it from the pool if that has not been done, and the range to read
    /// into.
    pub fn into_buffer(self) -> (AlignedBuffer, usize, usize) {
        match self {
            ReadTarget::Fresh { pool, len } => (pool.take(len), 0, len),
            ReadTarget::Rest { buffer, start, end } => (buffer, start, end),
        }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Read { target, offset, .. } => {
                let len = match target {
                    ReadTarget::Fresh { len, .. } => *len,
                    ReadTarget::Rest { start, end, .. } => end - start,
                };
                write!(f, "Read {{ offset: {offset}, len: {len} }}")
            }
            Request::Write {
                start, end, offset, ..
            } => {
                write!(f, "Write {{ offset: {offset}, len: {} }}", end - start)
            }
            Request::SyncData => f.write_str("SyncData"),
            Request::Call(_) => f.write_str("Call"),
            Request::Nothing => f.write_str("Nothing"),
        }
    }
}

impl fmt::Debug for ReadTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadTarget::Fresh { len, .. } => write!(f, "Fresh({len})"),
            ReadTarget::Rest { start, end, .. } => write!(f, "Rest({start}..{end})"),
        }
    }
}

/// Result of an operation.
#[derive(Debug)]
pub struct Outcome {
    /// Number of bytes read or written (0 for operations without any), or the system's error.
    pub result: io::Result<usize>,
    /// The operation's buffer, whatever the result. `None` if the operation had none, or was lost with its
    /// backend.
    pub buffer: Option<AlignedBuffer>,
}

impl Outcome {
    pub(crate) fn new(result: io::Result<usize>, buffer: Option<AlignedBuffer>) -> Outcome {
        Outcome { result, buffer }
    }
}

/// Callback that ends an operation, called exactly once. If a backend loses the operation (its thread died),
/// the callback is called with an error.
pub struct Completion(Option<Box<dyn FnOnce(Outcome) + Send>>);

impl Completion {
    /// Creates a completion that calls `callback`.
    pub fn new(callback: impl FnOnce(Outcome) + Send + 'static) -> Completion {
        Completion(Some(Box::new(callback)))
    }

    /// Ends the operation. A panic of the callback is caught: it must not end an I/O thread that has other
    /// operations in flight.
    pub fn run(mut self, outcome: Outcome) {
        self.call(outcome);
    }

    fn call(&mut self, outcome: Outcome) {
        if let Some(callback) = self.0.take() {
            // The panic hook has already reported it; the owner of the callback sees its own state.
            let call = std::panic::AssertUnwindSafe(|| callback(outcome));
            drop(std::panic::catch_unwind(call));
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        self.call(Outcome::new(
            Err(io::Error::other(
                "the I/O thread ended before the operation did",
            )),
            None,
        ));
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Completion")
    }
}

thread_local! {
    static ON_IO_THREAD: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Marks the current thread as one that runs completions.
pub(crate) fn enter_io_thread() {
    ON_IO_THREAD.set(true);
}

/// Waits for the end of a thread whose work has been ended. The last owner of a backend may be a completion: a
/// thread does not wait for itself.
pub(crate) fn join(thread: JoinHandle<()>) {
    if thread.thread().id() != thread::current().id() {
        // A panic of the thread has been reported; there is nothing left to clean up.
        drop(thread.join());
    }
}

/// Whether the current thread runs completions.
pub(crate) fn on_io_thread() -> bool {
    ON_IO_THREAD.get()
}

/// Panics on a thread that runs completions, which must not block: it might wait for itself.
pub(crate) fn assert_may_block(what: &str) {
    assert!(
        !on_io_thread(),
        "{what} blocks and was called from a completion, on an I/O thread; pass the work to another \
         thread"
    );
}

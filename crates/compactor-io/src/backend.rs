//! The seam between what is to be read or written and what carries it out.
//!
//! A backend performs single operations: one read, one write, one sync, each possibly short. Loops
//! over short reads and writes, retries and errors live above it, so that every backend (also a
//! test's that injects faults) needs only the plain operation.
//!
//! Ownership: an operation owns its buffer and shares its file from `submit` until its completion
//! runs. Nothing cancels it; dropping the caller's side only makes the completion's result unused.

use std::fmt;
use std::io;
use std::sync::Arc;

use rustix::io::ReadWriteFlags;

use crate::buffer::AlignedBuffer;
use crate::file::FileHandle;
use crate::mode::BackendKind;
use crate::pool::BufferPool;

pub(crate) mod threads;
pub(crate) mod tokio_uring;
pub(crate) mod uring;
pub(crate) mod watched;

/// The most operations in flight per ring, whose completion queue has room for twice as many. The
/// kernel's own limit on entries is 32768.
pub(crate) const QUEUE_DEPTH_MAX: usize = 1024;

/// Something that carries out operations on its own threads.
pub trait IoBackend: Send + Sync + fmt::Debug {
    /// Which backend this is; never [`BackendKind::Auto`].
    fn kind(&self) -> BackendKind;

    /// Queues an operation without waiting for anything. Its completion runs on a thread of the
    /// backend, in any order with respect to others.
    fn submit(&self, operation: Operation);

    /// As [`submit`](Self::submit), by a thread that will wait for the completion: it may run on that very
    /// thread, before this returns. A small read costs less than to wake another thread for it.
    fn submit_awaited(&self, operation: Operation) {
        self.submit(operation);
    }

    /// Called when the last owner of a file is gone: no operation on it will follow.
    fn forget(&self, _file_id: u64) {}
}

/// One operation on one file.
pub struct Operation {
    /// The file.
    pub file: Arc<FileHandle>,
    /// What to do.
    pub request: Request,
    /// Whom to tell.
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

/// What an operation does. Offsets and lengths are aligned by the caller where the file's mode
/// needs it.
pub enum Request {
    /// One `pread`: may return fewer bytes.
    Read {
        /// Where to.
        target: ReadTarget,
        /// From which file offset.
        offset: u64,
        /// Flags for `preadv2`; empty except on backends that can pass them.
        flags: ReadWriteFlags,
    },
    /// One `pwrite` of `source[start..end]`: may write fewer bytes.
    Write {
        /// The bytes, among others.
        source: AlignedBuffer,
        /// First byte to write.
        start: usize,
        /// End of the bytes to write, exclusive.
        end: usize,
        /// To which file offset.
        offset: u64,
        /// Flags for `pwritev2`; empty except on backends that can pass them.
        flags: ReadWriteFlags,
    },
    /// `fdatasync`.
    SyncData,
    /// A call that may block, for a thread that may be blocked.
    Call(BlockingCall),
    /// Nothing but the completion.
    Nothing,
}

/// A blocking call on a file that is not one of the plain operations.
pub type BlockingCall = Box<dyn FnOnce(&FileHandle) -> io::Result<()> + Send>;

/// Where a read puts its bytes.
pub enum ReadTarget {
    /// Into a buffer taken from a pool when the operation starts, not when it is queued: thousands
    /// of queued reads cost no memory.
    Fresh {
        /// The pool.
        pool: BufferPool,
        /// Bytes to read.
        len: usize,
    },
    /// Into `buffer[start..end]`, to continue a short read.
    Rest {
        /// The buffer.
        buffer: AlignedBuffer,
        /// Where to continue.
        start: usize,
        /// End of the bytes to read, exclusive.
        end: usize,
    },
}

impl ReadTarget {
    /// Takes the buffer if that has not happened: the buffer and the range to read into.
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

/// What became of an operation.
#[derive(Debug)]
pub struct Outcome {
    /// Bytes read or written (0 for operations without any), or the system's error.
    pub result: io::Result<usize>,
    /// The operation's buffer, whatever the result. `None` when the operation had none, or was
    /// lost with its backend.
    pub buffer: Option<AlignedBuffer>,
}

/// The one call that ends an operation. If a backend loses the operation (its thread died), the
/// completion still runs, with an error.
pub struct Completion(Option<Box<dyn FnOnce(Outcome) + Send>>);

impl Completion {
    /// A completion that calls `callback`, once.
    pub fn new(callback: impl FnOnce(Outcome) + Send + 'static) -> Completion {
        Completion(Some(Box::new(callback)))
    }

    /// Ends the operation. A panic of the callback stays in here: it must not take an I/O thread
    /// with it, on which other operations are in flight.
    pub fn run(mut self, outcome: Outcome) {
        self.call(outcome);
    }

    fn call(&mut self, outcome: Outcome) {
        if let Some(callback) = self.0.take() {
            // The panic hook has reported it already; the callback's owner sees its own state.
            let call = std::panic::AssertUnwindSafe(|| callback(outcome));
            drop(std::panic::catch_unwind(call));
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        self.call(Outcome {
            result: Err(io::Error::other(
                "the I/O thread ended before the operation did",
            )),
            buffer: None,
        });
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

/// Whether the current thread runs completions.
pub(crate) fn on_io_thread() -> bool {
    ON_IO_THREAD.get()
}

/// Refuses to block a thread that completions run on: the wait might be for itself.
pub(crate) fn assert_may_block(what: &str) {
    assert!(
        !on_io_thread(),
        "{what} blocks and was called from a completion, on an I/O thread; hand the work to a \
         thread of your own"
    );
}

//! Files open for reading, at any position, by any number of readers.

use std::path::Path;
use std::sync::Arc;

use crossbeam_channel::{Receiver, bounded};
use rustix::fs::{Advice, fadvise};

use crate::align::DEFAULT_ALIGNMENT_U64;
use crate::backend::assert_may_block;
use crate::error::{IoError, IoErrorKind, IoOperation};
use crate::extent::Extent;
use crate::mode::{BackendKind, Mode, ReadMode};
use crate::open_input::OpenInput;
use crate::read_transfer::{ReadDone, ReadTransfer};

/// Maximum length of a read that is performed by the waiting thread.
pub(crate) const SMALL_READ_BYTES: usize = 64 << 10;

/// A read that was queued.
#[derive(Debug)]
pub(crate) struct PendingRead {
    offset: u64,
    len: usize,
    result: Receiver<Result<Extent, IoError>>,
}

impl PendingRead {
    /// Waits for the bytes. Every read returns a result, even if its I/O thread has ended.
    pub(crate) fn wait(self, input: &InputFile) -> Result<Extent, IoError> {
        self.result.recv().unwrap_or_else(|_| {
            let reason = "the read ended without a result".to_owned();
            let (operation, kind) = (IoOperation::Read, IoErrorKind::Failed);
            Err(IoError::found(operation, kind, input.path(), reason)
                .at(self.offset, self.len as u64)
                .in_mode(Mode::Read(input.mode())))
        })
    }
}

/// A file open for reading. Clones share it.
///
/// Its length is determined when it is opened: inputs are files that no longer change. If the file has become
/// shorter since, reading the missing bytes fails with [`UnexpectedEof`](IoErrorKind::UnexpectedEof);
/// appended bytes are not visible.
#[derive(Debug, Clone)]
pub struct InputFile {
    shared: Arc<OpenInput>,
}

impl InputFile {
    pub(crate) fn new(shared: OpenInput) -> InputFile {
        InputFile {
            shared: Arc::new(shared),
        }
    }

    /// Length of the file when it was opened, bytes.
    #[expect(clippy::len_without_is_empty, reason = "a file is not a collection")]
    pub fn len(&self) -> u64 {
        self.shared.len
    }

    /// Path with which it was opened.
    pub fn path(&self) -> &Path {
        self.shared.path()
    }

    /// Actual mode, never [`ReadMode::Auto`].
    pub fn mode(&self) -> ReadMode {
        self.shared.mode
    }

    /// Backend of its reads, never [`BackendKind::Auto`].
    pub fn backend(&self) -> BackendKind {
        self.shared.handle.backend().kind()
    }

    /// Preferred alignment of requests: callers that use multiples of it avoid copies and repeated reads. In
    /// modes without requirements it is the page size.
    pub fn alignment(&self) -> u64 {
        self.shared.alignment.unwrap_or(DEFAULT_ALIGNMENT_U64)
    }

    /// Queues a read of `len` bytes at `offset` and returns immediately. Offset and length are arbitrary: the
    /// request is widened to aligned bounds if the mode requires it. `done` is called once, on an I/O thread,
    /// with exactly the requested bytes; it must not block, in particular not on another read. Short reads
    /// are continued; reads complete in any order.
    ///
    /// The buffer is taken from the pool when the read starts, not when it is queued.
    ///
    /// # Errors
    ///
    /// Passed to `done`: [`UnexpectedEof`](IoErrorKind::UnexpectedEof) if the file ends before `offset +
    /// len`, or a failed system call.
    pub fn submit_read(&self, offset: u64, len: usize, done: ReadDone) {
        ReadTransfer::submit(Arc::clone(&self.shared), offset, len, false, done);
    }

    /// Reads `len` bytes at `offset`, both arbitrary, and waits for them.
    ///
    /// # Errors
    ///
    /// As [`submit_read`](Self::submit_read).
    ///
    /// # Panics
    ///
    /// If called from a completion, on an I/O thread.
    pub fn read_at(&self, offset: u64, len: usize) -> Result<Extent, IoError> {
        assert_may_block("read_at");
        self.start_read(offset, len, len <= SMALL_READ_BYTES)
            .wait(self)
    }

    /// Queues a read whose result is waited for, immediately if `is_awaited`.
    pub(crate) fn start_read(&self, offset: u64, len: usize, is_awaited: bool) -> PendingRead {
        let (sender, result) = bounded(1);
        // Fails if nobody waits any more; the extent then returns to its pool.
        let done = Box::new(move |result| drop(sender.send(result)));
        ReadTransfer::submit(Arc::clone(&self.shared), offset, len, is_awaited, done);
        PendingRead {
            offset,
            len,
            result,
        }
    }

    /// Advises the kernel that the file is read sequentially, so that it reads further ahead. Has an effect
    /// only in [`ReadMode::Buffered`]: the other modes do not use the kernel's readahead.
    pub fn advise_sequential(&self) {
        if self.mode() == ReadMode::Buffered {
            // Only advice: a file system that refuses it can still be read.
            let _ = fadvise(&self.shared.handle, 0, None, Advice::Sequential);
        }
    }

    /// Drops the pages that this file's reads left in the page cache, in mode [`ReadMode::DontNeed`], in
    /// which most of them have already been dropped behind the reader. Does nothing in other modes.
    ///
    /// Must be called when no read is in flight. Pages that other readers use are dropped as well, and dirty
    /// pages are written back. A failure is not reported: remaining pages are visible in
    /// [`residency`](crate::residency). Dropping the last clone also evicts.
    pub fn evict(&self) {
        if let Some(evictor) = &self.shared.evictor {
            evictor.evict(&self.shared.handle);
        }
    }
}

//! A file open for reading, at any place, by any number of readers.

use std::path::Path;
use std::sync::Arc;

use crossbeam_channel::bounded;
use rustix::fs::{Advice, fadvise};
use rustix::io::ReadWriteFlags;

use crate::align::{Alignment, DEFAULT_ALIGNMENT_U64};
use crate::backend::assert_may_block;
use crate::error::{IoError, IoErrorKind, IoOperation};
use crate::evict::ReadEvictor;
use crate::extent::Extent;
use crate::file::FileHandle;
use crate::mode::{BackendKind, Mode, ReadMode};
use crate::pool::BufferPool;
use crate::read_transfer::{ReadDone, ReadTransfer};
use crate::reader::{ReadaheadOptions, SequentialReader};

/// What is read at a time by the thread that waits for it, at most.
const SMALL_READ_BYTES: usize = 64 << 10;

/// A file open for reading. Clones share it.
///
/// Its length is taken when it is opened: inputs are files that nobody changes any more. If the
/// file has become shorter since, a read of what is missing gives
/// [`UnexpectedEof`](IoErrorKind::UnexpectedEof); what was appended is not seen.
#[derive(Debug, Clone)]
pub struct InputFile {
    shared: Arc<InputShared>,
}

#[derive(Debug)]
pub(crate) struct InputShared {
    pub(crate) handle: Arc<FileHandle>,
    pub(crate) pool: BufferPool,
    pub(crate) len: u64,
    /// Never `Auto`.
    pub(crate) mode: ReadMode,
    /// With mode `direct`.
    pub(crate) alignment: Option<Alignment>,
    pub(crate) flags: ReadWriteFlags,
    /// With mode `dontneed`.
    pub(crate) evictor: Option<ReadEvictor>,
}

impl InputShared {
    pub(crate) fn path(&self) -> &Path {
        self.handle.path()
    }

    /// Requests start and end at multiples of this: as direct I/O must, or 1 where nothing must.
    pub(crate) fn step(&self) -> u64 {
        self.alignment.map_or(1, |alignment| alignment.offset)
    }
}

impl Drop for InputShared {
    fn drop(&mut self) {
        if let Some(evictor) = &self.evictor {
            // Usually done before, by `InputFile::evict`.
            evictor.evict(&self.handle);
        }
    }
}

impl InputFile {
    pub(crate) fn new(shared: InputShared) -> InputFile {
        InputFile {
            shared: Arc::new(shared),
        }
    }

    /// The file's length in bytes when it was opened.
    #[expect(clippy::len_without_is_empty, reason = "a file is not a collection")]
    pub fn len(&self) -> u64 {
        self.shared.len
    }

    /// The path that it was opened by.
    pub fn path(&self) -> &Path {
        self.shared.path()
    }

    /// The mode that is really used, never [`ReadMode::Auto`].
    pub fn mode(&self) -> ReadMode {
        self.shared.mode
    }

    /// The backend that its reads go to, never [`BackendKind::Auto`].
    pub fn backend(&self) -> BackendKind {
        self.shared.handle.backend().kind()
    }

    /// What requests are aligned to: callers that can choose save copies and repeated reads by
    /// keeping to multiples of it. In modes without requirements it is the page size.
    pub fn alignment(&self) -> u64 {
        self.shared
            .alignment
            .map_or(DEFAULT_ALIGNMENT_U64, |alignment| alignment.offset)
    }

    /// Queues a read of `len` bytes at `offset` and returns at once. *Any* offset and length: the
    /// request is widened to aligned bounds where the mode needs that. `done` is called once, on
    /// an I/O thread, with exactly the bytes asked for; it must not block, above all not on
    /// another read. Short reads are continued; reads complete in any order.
    ///
    /// The buffer is taken from the pool when the read starts, not when it is queued.
    ///
    /// # Errors
    ///
    /// To `done`: [`UnexpectedEof`](IoErrorKind::UnexpectedEof) where the file ends before
    /// `offset + len`, else what the system reports.
    pub fn submit_read(&self, offset: u64, len: usize, done: ReadDone) {
        ReadTransfer::submit(Arc::clone(&self.shared), offset, len, done);
    }

    /// Reads `len` bytes at `offset`, *any* of both, and waits for them.
    ///
    /// # Errors
    ///
    /// As [`submit_read`](Self::submit_read).
    ///
    /// # Panics
    ///
    /// When called from a completion, on an I/O thread.
    pub fn read_at(&self, offset: u64, len: usize) -> Result<Extent, IoError> {
        assert_may_block("read_at");
        let (sender, receiver) = bounded(1);
        let done = Box::new(move |result| {
            // Fails only if the receiver is gone, and it waits below.
            drop(sender.send(result));
        });
        let input = Arc::clone(&self.shared);
        match len <= SMALL_READ_BYTES {
            true => ReadTransfer::submit_awaited(input, offset, len, done),
            false => ReadTransfer::submit(input, offset, len, done),
        }
        receiver
            .recv()
            .unwrap_or_else(|_| Err(self.lost_read(offset, len)))
    }

    pub(crate) fn lost_read(&self, offset: u64, len: usize) -> IoError {
        let reason = "the read ended without an answer".to_owned();
        IoError::found(IoOperation::Read, IoErrorKind::Failed, self.path(), reason)
            .at(offset, len as u64)
            .in_mode(Mode::Read(self.mode()))
    }

    /// Reads the whole file, in large requests, and waits for it.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](IoErrorKind::TooLarge) if the file is longer than `limit_bytes`; else as
    /// [`submit_read`](Self::submit_read).
    ///
    /// # Panics
    ///
    /// When called from a completion, on an I/O thread.
    pub fn read_all(&self, limit_bytes: u64) -> Result<Vec<u8>, IoError> {
        let len = self.len();
        if len > limit_bytes {
            let reason = format!("the file has {len} bytes, at most {limit_bytes} are accepted");
            let kind = IoErrorKind::TooLarge;
            return Err(IoError::found(IoOperation::Read, kind, self.path(), reason));
        }
        if len <= SMALL_READ_BYTES as u64 {
            return Ok(self.read_at(0, len as usize)?.to_vec());
        }
        // As long as the file itself is, and within the caller's limit.
        let mut bytes = Vec::with_capacity(len as usize);
        let mut reader = SequentialReader::new(self.clone(), 0..len, ReadaheadOptions::default());
        while let Some(extent) = reader.next()? {
            bytes.extend_from_slice(&extent);
        }
        Ok(bytes)
    }

    /// Tells the kernel that the file is read from front to back, so that it reads ahead further.
    /// Does something in [`ReadMode::Buffered`] only: the other modes do without its readahead.
    pub fn advise_sequential(&self) {
        if self.mode() == ReadMode::Buffered {
            // An advice: a file system that refuses it still reads.
            let _ = fadvise(&self.shared.handle, 0, None, Advice::Sequential);
        }
    }

    /// Drops the pages that this file's reads left in the page cache; for
    /// [`ReadMode::DontNeed`], where a lagging window has dropped most of them already. Other
    /// modes leave the cache alone.
    ///
    /// Call it when no read is in flight. It drops pages that other readers had made hot, too, and
    /// writes back pages that are dirty. A failure is not reported: what is left in the cache can
    /// be seen with [`residency`](crate::residency). Dropping the last clone evicts, too.
    pub fn evict(&self) {
        if let Some(evictor) = &self.shared.evictor {
            evictor.evict(&self.shared.handle);
        }
    }
}

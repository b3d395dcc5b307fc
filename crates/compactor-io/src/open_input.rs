//! State of an open input.

use std::path::Path;
use std::sync::Arc;

use rustix::io::ReadWriteFlags;

use crate::backend::FileHandle;
use crate::evict::ReadEvictor;
use crate::mode::ReadMode;
use crate::pool::BufferPool;

/// State that an input shares with its reads in flight.
#[derive(Debug)]
pub(crate) struct OpenInput {
    pub(crate) handle: Arc<FileHandle>,
    pub(crate) pool: BufferPool,
    pub(crate) len: u64,
    /// Never `Auto`.
    pub(crate) mode: ReadMode,
    /// Alignment of offsets and lengths in mode `direct`.
    pub(crate) alignment: Option<u64>,
    pub(crate) flags: ReadWriteFlags,
    /// Evictor in mode `dontneed`.
    pub(crate) evictor: Option<ReadEvictor>,
}

impl OpenInput {
    pub(crate) fn path(&self) -> &Path {
        self.handle.path()
    }

    /// Alignment of requests: that of direct I/O, or 1 if none is required.
    pub(crate) fn step(&self) -> u64 {
        self.alignment.unwrap_or(1)
    }
}

impl Drop for OpenInput {
    fn drop(&mut self) {
        if let Some(evictor) = &self.evictor {
            // Usually done before, by `InputFile::evict`.
            evictor.evict(&self.handle);
        }
    }
}

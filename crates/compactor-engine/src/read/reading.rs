//! Settings of reading.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::read::rate_limiter::RateLimiter;
use crate::read::workers::WorkerQueue;

/// Readahead settings.
#[derive(Clone, Copy, Debug)]
pub struct DecodeOptions {
    /// Uncompressed bytes per block, rounded to whole chunks (at least one).
    pub block_len: usize,
    /// Maximum number of blocks being read, decoded or waiting, per input (at least one), in addition to the
    /// one in use.
    pub depth: usize,
    /// Maximum number of them that are decoded before they are needed.
    pub decoded: usize,
    /// Spare bytes before each block's data.
    pub headroom: usize,
}

/// Settings of reading one or more files, and what their readers share.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Readahead.
    pub decode: DecodeOptions,
    /// Queue for blocks to be decoded ahead.
    pub queue: WorkerQueue,
    /// Ends all reads with [`Error::Cancelled`](crate::error::Error::Cancelled) once it is true.
    pub cancelled: Arc<AtomicBool>,
    /// Limit on the read rate. Reads ahead of it are bounded by the readahead.
    pub limiter: Option<Arc<RateLimiter>>,
}

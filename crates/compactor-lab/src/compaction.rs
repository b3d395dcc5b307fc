//! The compaction beside the reads.

use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;

use compactor::io::{BackendKind, IoOptions, ReadMode, WriteMode};
use compactor::{InputCheck, MergeReport, MergeRequest, Observer, RateLimiter, Result};

use crate::table::Table;

/// How it goes about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompactionSettings {
    pub(crate) read: ReadMode,
    pub(crate) write: WriteMode,
    pub(crate) threads: usize,
    pub(crate) memory_bytes: usize,
    /// Stored bytes of `Data.db`.
    pub(crate) throughput_bytes_per_s: Option<NonZeroU64>,
    pub(crate) backend: BackendKind,
    /// See [`InterferenceOptions::may_fall_back`](crate::options::InterferenceOptions).
    pub(crate) may_fall_back: bool,
}

impl CompactionSettings {
    /// Compacts a table into a directory.
    ///
    /// # Errors
    /// A mode that is not to be had, damage, a failed read or write, or cancellation: then nothing is
    /// written.
    pub(crate) fn compact(
        &self,
        table: &Table,
        output: &Path,
        observer: &mut dyn Observer,
    ) -> Result<MergeReport> {
        let mut request = MergeRequest::new(table.data_paths.clone(), output);
        request.read_mode = match self.read {
            ReadMode::Direct if self.may_fall_back => ReadMode::Auto,
            read => read,
        };
        request.write_mode = match self.write {
            WriteMode::Direct if self.may_fall_back => WriteMode::Auto,
            write => write,
        };
        request.threads = self.threads;
        request.memory_bytes = self.memory_bytes;
        let rate = self.throughput_bytes_per_s;
        request.rate_limiter = rate.map(|rate| Arc::new(RateLimiter::new(rate)));
        let options = IoOptions {
            backend: self.backend,
            ..IoOptions::default()
        };
        let job = compactor::open_merge(options, request)?;
        compactor::run_merge(job, InputCheck::DataOnly, observer)
    }
}

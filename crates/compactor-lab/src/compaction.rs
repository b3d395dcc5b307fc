//! Repeated compactions of the same SSTables during the reads.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use compactor::{Error, InputCheck, MergeReport, MergeRequest, RateLimiter, Result};
use compactor_io::IoOptions;

use crate::arm::IoPair;
use crate::options::Setup;
use crate::table::Table;
use crate::watcher::Following;

/// Compactions of one table, one after the other.
pub(crate) struct Compactions<'a> {
    /// Threads, memory, rate and backend.
    pub(crate) setup: &'a Setup,
    pub(crate) modes: IoPair,
    pub(crate) table: &'a Table,
    /// Directory for their outputs, each in a directory of its own.
    pub(crate) directory: &'a Path,
    /// Whether an output stays until the next is published; otherwise it is removed at once.
    pub(crate) keeps_last: bool,
    /// Uncompressed bytes read by all of them.
    pub(crate) read_bytes: &'a AtomicU64,
    /// Whether to stop the one that is running.
    pub(crate) is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl Compactions<'_> {
    /// Compacts until `after_each` returns true.
    ///
    /// # Errors
    /// A mode that does not work, damage, a failed read or write, or cancellation.
    pub(crate) fn run(
        &self,
        before_each: impl Fn() -> Result<()>,
        mut after_each: impl FnMut(MergeReport) -> bool,
    ) -> Result<()> {
        let mut previous: Option<PathBuf> = None;
        for round in 0u32.. {
            before_each()?;
            let output = self.directory.join(round.to_string());
            let report = self.once(&output)?;
            let removed = if self.keeps_last {
                previous.replace(output)
            } else {
                Some(output)
            };
            if let Some(path) = removed {
                compactor_io::remove_dir_all(&path).map_err(Error::file("remove", &path))?;
            }
            if after_each(report) {
                break;
            }
        }
        Ok(())
    }

    fn once(&self, output: &Path) -> Result<MergeReport> {
        let setup = self.setup;
        let mut request = MergeRequest::new(self.table.data_paths.clone(), output);
        request.read_mode = self.modes.read;
        request.write_mode = self.modes.write;
        request.threads = setup.compaction_threads;
        request.memory_bytes = setup.compaction_memory_bytes;
        let rate = setup.throughput_bytes_per_s;
        request.rate_limiter = rate.map(|rate| Arc::new(RateLimiter::new(rate)));
        let options = IoOptions {
            backend: setup.backend,
            ..IoOptions::default()
        };
        let job = compactor::merge::open_merge(options, request)?;
        let before = self.read_bytes.load(Ordering::Relaxed);
        let mut observer = Following {
            is_cancelled: self.is_cancelled,
            progress: |read| {
                self.read_bytes.fetch_max(before + read, Ordering::Relaxed);
            },
        };
        compactor::merge::run_merge(job, InputCheck::DataOnly, &mut observer)
    }
}

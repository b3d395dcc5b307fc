//! I/O modes and limits on the resources of a run.

use std::sync::Arc;

use compactor_engine::read::RateLimiter;
use compactor_io::{BackendKind, Io, IoOptions, ReadMode, WriteMode};

use crate::MergeRequest;
use crate::Result;

/// Maximum number of threads of a run: more than a few per processor only take memory, and the system soon refuses them.
pub const MAX_THREADS: usize = 1024;

/// I/O modes, threads and memory of a run. The default: modes chosen by the file system, one thread per
/// processor, 64 MiB. The program itself takes some 16 MiB more.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Resources {
    /// How inputs are read.
    pub read_mode: ReadMode,
    /// How outputs are written.
    pub write_mode: WriteMode,
    /// I/O backend.
    pub backend: BackendKind,
    /// Threads that do the work, at most [`MAX_THREADS`]: a larger number counts as that. Outputs are the same to the byte
    /// for any number of them.
    pub threads: usize,
    /// Bytes for buffers and for metadata of the inputs.
    pub memory_bytes: usize,
    /// Bytes read ahead per input; `None` for what the memory allows, up to 4 MiB.
    pub readahead_bytes: Option<usize>,
    /// Limits stored bytes of `Data.db` read per second, over all inputs; `None` for no limit.
    pub rate_limiter: Option<Arc<RateLimiter>>,
}

impl Default for Resources {
    fn default() -> Resources {
        let request = MergeRequest::new(Vec::new(), "");
        Resources {
            read_mode: request.read_mode,
            write_mode: request.write_mode,
            backend: BackendKind::default(),
            threads: request.threads,
            memory_bytes: request.memory_bytes,
            readahead_bytes: request.readahead_bytes,
            rate_limiter: None,
        }
    }
}

impl Resources {
    /// Sets up the I/O layer.
    ///
    /// # Errors
    /// A backend that does not work here.
    pub fn io(&self) -> Result<Io> {
        Ok(Io::new(self.io_options())?)
    }

    /// Options of the I/O layer.
    pub fn io_options(&self) -> IoOptions {
        IoOptions {
            backend: self.backend,
            ..IoOptions::default()
        }
    }

    /// Number of threads, within its limits.
    pub(crate) fn threads(&self) -> usize {
        self.threads.clamp(1, MAX_THREADS)
    }

    pub(super) fn apply(&self, request: &mut MergeRequest) {
        request.read_mode = self.read_mode;
        request.write_mode = self.write_mode;
        request.threads = self.threads();
        request.memory_bytes = self.memory_bytes;
        request.readahead_bytes = self.readahead_bytes;
        request.rate_limiter.clone_from(&self.rate_limiter);
    }
}

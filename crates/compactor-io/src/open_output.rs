//! State of an open output.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::io::ReadWriteFlags;

use crate::backend::FileHandle;
use crate::error::IoError;
use crate::lock;
use crate::mode::WriteMode;
use crate::range_set::RangeSet;

/// State that the writer shares with its writes in flight.
#[derive(Debug)]
pub(crate) struct OpenOutput {
    pub(crate) handle: Arc<FileHandle>,
    pub(crate) mode: WriteMode,
    /// Alignment of offsets and lengths in mode `direct`.
    pub(crate) alignment: Option<u64>,
    pub(crate) flags: ReadWriteFlags,
    pub(crate) state: Mutex<WriteState>,
    pub(crate) changed: Condvar,
}

/// Progress of the writes.
#[derive(Debug, Default)]
pub(crate) struct WriteState {
    pub(crate) writes_in_flight: usize,
    /// Whether a step of forced write-back is in progress.
    pub(crate) writeback_in_flight: bool,
    /// The first failure reported.
    pub(crate) error: Option<IoError>,
    pub(crate) written: RangeSet,
}

impl OpenOutput {
    pub(crate) fn path(&self) -> &Path {
        self.handle.path()
    }

    /// Ends a write of `start..end`, whose buffer has been returned to the pool.
    pub(crate) fn end_write(&self, start: u64, end: u64, result: Result<(), IoError>) {
        let mut state = lock(&self.state);
        state.writes_in_flight -= 1;
        match result {
            Ok(()) => state.written.insert(start, end),
            Err(error) => state.keep_error(error),
        }
        drop(state);
        self.changed.notify_all();
    }

    pub(crate) fn wait<'a>(&self, state: MutexGuard<'a, WriteState>) -> MutexGuard<'a, WriteState> {
        self.changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl WriteState {
    /// Keeps the first failure reported, so that it does not change.
    pub(crate) fn keep_error(&mut self, error: IoError) {
        self.error.get_or_insert(error);
    }

    pub(crate) fn check(&self) -> Result<(), IoError> {
        match &self.error {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }
}

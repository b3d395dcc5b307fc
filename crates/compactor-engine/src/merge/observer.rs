//! Observer of a merge.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::read::input_trace::InputTrace;
use crate::read::key_position_checksum::KeyPositionChecksum;
use crate::read::row_counts::RowCounts;

/// Observer of a merge, which may cancel it.
pub trait Observer: Send {
    /// Whether the merge should stop. Called every few hundred partitions or few thousand rows.
    fn is_cancelled(&self) -> bool;

    /// Progress so far: uncompressed bytes read from all inputs, and rows and partitions written.
    fn progress(&mut self, read_bytes: u64, rows: u64, partitions: u64);

    /// Called with a message for the user, such as damage that was found.
    fn message(&mut self, text: &str) {
        let _ = text;
    }

    /// Called with the path of the complete output's `Data.db` in its staging directory.
    ///
    /// # Errors
    /// An error stops the merge; nothing is published then.
    fn before_publish(&mut self, data_path: &Path) -> Result<()> {
        let _ = data_path;
        Ok(())
    }

    /// Called before the `Data.db` of an input is read. Returns a listener for its content, with which its other
    /// components are validated, if one is needed. Only the observer that a [`MergeJob`](crate::job::MergeJob) runs
    /// with is asked.
    fn trace(&mut self, data_path: &Path) -> Option<Box<dyn InputTrace>> {
        let _ = data_path;
        None
    }

    /// Called when every input has been read to its end, with the results of reading: like `trace`, only of the
    /// observer that a job runs with.
    ///
    /// # Errors
    /// An error stops the merge; nothing is published then.
    fn inputs_read(&mut self, inputs: &[InputRead]) -> Result<()> {
        let _ = inputs;
        Ok(())
    }
}

/// Observer that ignores all events and never stops a merge.
#[derive(Clone, Copy, Debug)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn is_cancelled(&self) -> bool {
        false
    }

    fn progress(&mut self, _read_bytes: u64, _rows: u64, _partitions: u64) {}
}

/// Results of reading an input to its end, with which its other components are validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputRead {
    /// Path of its `Data.db`.
    pub data_path: PathBuf,
    /// Checksum over keys and positions of its partitions.
    pub places: KeyPositionChecksum,
    /// Row counts.
    pub rows: RowCounts,
    /// CRC32 of the stored file.
    pub digest: u32,
}

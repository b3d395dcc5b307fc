//! Who watches a merge, and what it is told.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::read::data_trace::DataTrace;
use crate::read::key_position_checksum::KeyPositionChecksum;
use crate::read::row_counts::RowCounts;

/// Watches a merge, and may stop it.
pub trait Observer {
    /// True asks the merge to stop. Asked every few hundred partitions or few thousand rows.
    fn is_cancelled(&self) -> bool;
    /// Uncompressed bytes read of all inputs so far, and rows and partitions written.
    fn progress(&mut self, read_bytes: u64, rows: u64, partitions: u64);
    /// Called with a line for the person who runs it, such as damage that was found.
    fn message(&mut self, text: &str) {
        let _ = text;
    }
    /// Called before the `Data.db` of an input is read: what is to be told of its content.
    fn trace(&mut self, data_path: &Path) -> Option<Box<dyn DataTrace>> {
        let _ = data_path;
        None
    }
    /// Called when every input has been read to its end, with what was found on the way.
    ///
    /// # Errors
    /// An error stops the merge; nothing is published then.
    fn inputs_read(&mut self, inputs: &[InputRead]) -> Result<()> {
        let _ = inputs;
        Ok(())
    }
    /// Called with the path of the complete output's `Data.db`, still in its staging directory.
    ///
    /// # Errors
    /// An error stops the merge; nothing is published then.
    fn before_publish(&mut self, data_path: &Path) -> Result<()> {
        let _ = data_path;
        Ok(())
    }
}

/// What reading an input to its end told of it, to be held against its other components.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputRead {
    /// Its `Data.db`.
    pub data_path: PathBuf,
    /// Hash over keys and positions of its partitions.
    pub places: KeyPositionChecksum,
    /// Its rows.
    pub rows: RowCounts,
    /// CRC32 of the file as stored.
    pub digest: u32,
}

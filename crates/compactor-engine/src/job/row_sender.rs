//! Sender of the blocks of a merge that is read row by row.

use crossbeam_channel::Sender;

use crate::error::{Error, Result};

/// Sends blocks to [`RowBlocks`](crate::job::merged_rows::RowBlocks).
#[derive(Debug)]
pub(crate) struct RowSender(Sender<Result<Vec<u8>>>);

impl RowSender {
    pub(crate) fn new(sender: Sender<Result<Vec<u8>>>) -> RowSender {
        RowSender(sender)
    }

    /// Sends the next block, once there is room.
    ///
    /// # Errors
    /// The consumer has been dropped.
    pub(crate) fn send(&self, block: Vec<u8>) -> Result<()> {
        if block.is_empty() {
            Ok(())
        } else {
            self.0.send(Ok(block)).map_err(|_| Error::Cancelled)
        }
    }
}

//! Output that keeps nothing: only positions and statistics of what is written are of interest.

use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;

use crate::error::Result;
use crate::write::partition_sink::{IndexedPartition, PartitionSink};

/// Discards blocks and index entries.
#[derive(Debug)]
pub struct DiscardOutput {
    block_len: usize,
    spare: Vec<u8>,
}

impl DiscardOutput {
    /// Creates an output that takes blocks of `block_len` bytes.
    pub fn new(block_len: usize) -> DiscardOutput {
        DiscardOutput {
            block_len,
            spare: Vec::new(),
        }
    }
}

impl PartitionSink for DiscardOutput {
    fn block_len(&self) -> usize {
        self.block_len
    }

    fn take_buffer(&mut self) -> Result<Vec<u8>> {
        Ok(std::mem::take(&mut self.spare))
    }

    fn put_block(&mut self, mut block: Vec<u8>) {
        block.clear();
        self.spare = block;
    }

    fn add_unfiltered(
        &mut self,
        _start: u64,
        _end: u64,
        _kind: Kind,
        _body: &[u8],
        _open_marker: &DeletionTime,
    ) -> Result<u64> {
        Ok(u64::MAX)
    }

    fn add_partition(&mut self, _partition: &IndexedPartition<'_>) -> Result<bool> {
        Ok(false)
    }
}

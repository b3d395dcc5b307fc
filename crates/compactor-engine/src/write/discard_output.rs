//! Output that keeps nothing: only positions and statistics of what is written are of interest.

use compactor_sstable::statistics::MetadataCollector;

use crate::error::Result;
use crate::read::batch::Batch;
use crate::write::index_part::IndexPart;
use crate::write::partition_sink::PartitionSink;

/// Discards blocks.
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

    fn put_block(
        &mut self,
        mut block: Vec<u8>,
        _index: Batch<IndexPart>,
        _collector: &mut MetadataCollector,
    ) {
        block.clear();
        self.spare = block;
    }
}

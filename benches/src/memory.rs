//! Output of the pipeline in memory.

use compactor_engine::Result;
use compactor_engine::read::Batch;
use compactor_engine::write::{IndexPart, PartitionSink};
use compactor_sstable::statistics::MetadataCollector;

/// Length of a block, as files are written.
const BLOCK_LEN: usize = 256 << 10;

/// Takes blocks and parts of an index, and keeps the bytes of blocks on request.
#[derive(Debug, Default)]
pub struct MemoryOutput {
    /// All blocks so far, if they are kept.
    pub kept: Option<Vec<u8>>,
    spare: Vec<Vec<u8>>,
}

impl MemoryOutput {
    /// Keeps all bytes.
    pub fn keeping() -> MemoryOutput {
        MemoryOutput {
            kept: Some(Vec::new()),
            ..MemoryOutput::default()
        }
    }

    /// Keeps nothing: what is timed is the writing of rows, not the growth of one long vector.
    pub fn discarding() -> MemoryOutput {
        MemoryOutput::default()
    }
}

impl PartitionSink for MemoryOutput {
    fn block_len(&self) -> usize {
        BLOCK_LEN
    }

    fn take_buffer(&mut self) -> Result<Vec<u8>> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.reserve(BLOCK_LEN + BLOCK_LEN / 8);
        Ok(buffer)
    }

    fn put_block(
        &mut self,
        block: Vec<u8>,
        _index: Batch<IndexPart>,
        _collector: &mut MetadataCollector,
    ) {
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(&block);
        }
        self.spare.push(block);
    }
}

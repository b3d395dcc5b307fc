//! Ends of the pipeline in memory.

use compactor_engine::Result;
use compactor_engine::partition_writer::{BlockOutput, IndexOutput};
use compactor_sstable::partitioner::KeyHash;

/// Length of a block, as files are written.
const BLOCK_LEN: usize = 256 << 10;

/// Takes blocks, counts their bytes, and keeps them if asked to.
#[derive(Debug, Default)]
pub struct MemoryBlocks {
    /// Everything so far, if it is kept.
    pub kept: Option<Vec<u8>>,
    /// Bytes so far.
    pub len: u64,
    spare: Vec<Vec<u8>>,
}

impl MemoryBlocks {
    /// Keeps all bytes.
    pub fn keeping() -> MemoryBlocks {
        MemoryBlocks {
            kept: Some(Vec::new()),
            ..MemoryBlocks::default()
        }
    }

    /// Only counts: what is timed is the writing of rows, not the growth of one long vector.
    pub fn counting() -> MemoryBlocks {
        MemoryBlocks::default()
    }
}

impl BlockOutput for MemoryBlocks {
    fn block_len(&self) -> usize {
        BLOCK_LEN
    }

    fn take_buffer(&mut self) -> Result<Vec<u8>> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.reserve(BLOCK_LEN + BLOCK_LEN / 8);
        Ok(buffer)
    }

    fn put_block(&mut self, block: Vec<u8>) {
        self.len += block.len() as u64;
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(&block);
        }
        self.spare.push(block);
    }
}

/// Takes index entries and keeps their number and size.
#[derive(Debug, Default)]
pub struct MemoryIndex {
    /// Entries, one per partition.
    pub entries: u64,
    /// Bytes of promoted indexes.
    pub promoted_bytes: u64,
}

impl IndexOutput for MemoryIndex {
    fn add(&mut self, _key: &[u8], _hash: KeyHash, _position: u64, promoted: &[u8]) -> Result<()> {
        self.entries += 1;
        self.promoted_bytes += promoted.len() as u64;
        Ok(())
    }
}

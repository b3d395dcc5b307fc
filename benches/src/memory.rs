//! Output of the pipeline in memory.

use compactor_engine::Result;
use compactor_engine::write::{IndexedPartition, PartitionSink};
use compactor_sstable::Version;
use compactor_sstable::big::index_info::{DEFAULT_COLUMN_INDEX_SIZE, PromotedIndexBuilder};
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;

/// Length of a block, as files are written.
const BLOCK_LEN: usize = 256 << 10;

/// Takes blocks and entries of a BIG index, counts their bytes, and keeps those of blocks on request.
#[derive(Debug)]
pub struct MemoryOutput {
    /// All blocks so far, if they are kept.
    pub kept: Option<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    promoted: PromotedIndexBuilder,
    /// Index entries, one per partition.
    pub entries: u64,
    /// Bytes of promoted indexes.
    pub promoted_bytes: u64,
}

impl MemoryOutput {
    /// Keeps all bytes of an SSTable of this version.
    pub fn keeping(version: Version) -> MemoryOutput {
        MemoryOutput {
            kept: Some(Vec::new()),
            ..MemoryOutput::counting(version)
        }
    }

    /// Only counts: what is timed is the writing of rows, not the growth of one long vector.
    pub fn counting(version: Version) -> MemoryOutput {
        MemoryOutput {
            kept: None,
            spare: Vec::new(),
            promoted: PromotedIndexBuilder::new(version, DEFAULT_COLUMN_INDEX_SIZE),
            entries: 0,
            promoted_bytes: 0,
        }
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

    fn put_block(&mut self, block: Vec<u8>) {
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(&block);
        }
        self.spare.push(block);
    }

    #[inline]
    fn add_unfiltered(
        &mut self,
        start: u64,
        end: u64,
        kind: Kind,
        body: &[u8],
        open_marker: &DeletionTime,
    ) -> Result<u64> {
        Ok(self
            .promoted
            .add_unfiltered(start, end, kind, body, open_marker))
    }

    fn add_partition(&mut self, partition: &IndexedPartition<'_>) -> Result<bool> {
        let promoted = self
            .promoted
            .finish(partition.header_len, &partition.deletion)?;
        self.entries += 1;
        self.promoted_bytes += promoted.len() as u64;
        Ok(!promoted.is_empty())
    }
}

//! Output of partitions to the files of an SSTable.

use compactor_sstable::bti::rows::SeparatedBlock;
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;

use crate::error::Result;
use crate::write::data_output::DataOutput;
use crate::write::format_index::FormatIndex;
use crate::write::partition_sink::{IndexedPartition, PartitionSink};
use crate::write::row_index_builder::RowIndexBuilder;

/// `Data.db` and index of an SSTable being written.
#[derive(Debug)]
pub struct FileOutput {
    pub(crate) data: DataOutput,
    pub(crate) index: FormatIndex,
    pub(crate) rows: RowIndexBuilder,
}

impl PartitionSink for FileOutput {
    fn block_len(&self) -> usize {
        self.data.block_len()
    }

    fn take_buffer(&mut self) -> Result<Vec<u8>> {
        self.index.write_blocks()?;
        self.data.take_buffer()
    }

    fn put_block(&mut self, block: Vec<u8>) {
        self.data.append_block(block);
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
        let emit = |block: SeparatedBlock<'_>| self.index.add_block(block);
        self.rows
            .add_unfiltered(start, end, kind, body, open_marker, emit)
    }

    fn add_partition(&mut self, partition: &IndexedPartition<'_>) -> Result<bool> {
        let emit = |block: SeparatedBlock<'_>| self.index.add_block(block);
        let (promoted, blocks) = self.rows.finish(partition, emit)?;
        let IndexedPartition { key, position, .. } = *partition;
        let (hash, deletion) = (&partition.hash, &partition.deletion);
        self.index
            .add_entry(key, hash, position, deletion, promoted, blocks)?;
        Ok(!promoted.is_empty() || blocks >= 2)
    }
}

//! Output of partitions to the files of an SSTable.

use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;

use crate::error::Result;
use crate::write::data_output::DataOutput;
use crate::write::format_index::FormatIndex;
use crate::write::partition_sink::{IndexedPartition, PartitionSink};

/// `Data.db` and index of an SSTable being written.
#[derive(Debug)]
pub struct FileOutput {
    /// `Data.db`.
    pub data: DataOutput,
    /// Index and Bloom filter.
    pub index: FormatIndex,
}

impl PartitionSink for FileOutput {
    fn block_len(&self) -> usize {
        self.data.block_len()
    }

    fn take_buffer(&mut self) -> Result<Vec<u8>> {
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
        self.index
            .add_unfiltered(start, end, kind, body, open_marker)
    }

    fn add_partition(&mut self, partition: &IndexedPartition<'_>) -> Result<bool> {
        self.index.add_partition(partition)
    }
}

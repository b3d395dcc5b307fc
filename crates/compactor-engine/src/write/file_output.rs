//! Output of partitions to the files of an SSTable.

use compactor_sstable::statistics::MetadataCollector;

use crate::error::Result;
use crate::read::batch::Batch;
use crate::write::data_output::DataOutput;
use crate::write::index_output::IndexOutput;
use crate::write::index_part::IndexPart;
use crate::write::partition_sink::PartitionSink;

/// `Data.db` and index of an SSTable being written.
#[derive(Debug)]
pub struct FileOutput {
    pub(crate) data: DataOutput,
    pub(crate) index: IndexOutput,
}

impl PartitionSink for FileOutput {
    fn block_len(&self) -> usize {
        self.data.block_len()
    }

    fn take_buffer(&mut self) -> Result<Vec<u8>> {
        self.index.check()?;
        self.data.take_buffer()
    }

    fn put_block(
        &mut self,
        block: Vec<u8>,
        index: Batch<IndexPart>,
        _collector: &mut MetadataCollector,
    ) {
        self.data.append_block(block);
        self.index.submit(index, 0);
    }
}

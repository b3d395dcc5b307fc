//! Writing an SSTable: `partition_writer` serializes partitions and collects index entries and statistics,
//! `data_output` compresses blocks, and `sstable_writer` writes the other components.

pub(crate) mod big_index_output;
pub(crate) mod bti_index_output;
pub(crate) mod data_output;
pub(crate) mod filter_output;
pub(crate) mod format_index;
pub(crate) mod output_blocks;
pub(crate) mod outputs;
pub(crate) mod partition_writer;
pub(crate) mod pending;
pub(crate) mod sstable_index;
pub(crate) mod sstable_writer;

pub use output_blocks::OutputBlocks;
pub use partition_writer::{BlockOutput, PartitionWriter};
pub use sstable_index::{IndexedPartition, SstableIndex, default_column_index_size};
pub use sstable_writer::{
    FilePartitionWriter, SstableSettings, SstableWriter, StagedSstable, WriteSettings,
    WrittenSstable, publish_together,
};

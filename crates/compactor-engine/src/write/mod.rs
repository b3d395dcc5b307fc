//! Writing an SSTable: `partition_writer` serializes partitions and collects index entries and statistics,
//! `data_output` compresses blocks, and `sstable_writer` writes the other components.

pub(crate) mod big_index_output;
pub(crate) mod bti_index_output;
pub(crate) mod data_output;
pub(crate) mod discard_output;
pub(crate) mod file_output;
pub(crate) mod finished_index;
pub(crate) mod format_index;
pub(crate) mod index_builder;
pub(crate) mod index_output;
pub(crate) mod index_part;
pub(crate) mod output_blocks;
pub(crate) mod outputs;
pub(crate) mod partition_sink;
pub(crate) mod partition_writer;
pub(crate) mod pending;
pub(crate) mod sstable_settings;
pub(crate) mod sstable_writer;

pub use discard_output::DiscardOutput;
pub use format_index::default_column_index_size;
pub use index_builder::IndexBuilder;
pub use index_part::IndexPart;
pub use output_blocks::OutputBlocks;
pub use partition_sink::PartitionSink;
pub use partition_writer::PartitionWriter;
pub use sstable_settings::SstableSettings;
pub use sstable_writer::{
    FilePartitionWriter, SstableWriter, StagedSstable, WriteSettings, WrittenSstable,
    publish_together,
};

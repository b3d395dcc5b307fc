//! Index of an output, whose format is chosen at run time.

use compactor_io::SequentialWriter;
use compactor_sstable::big::index_info;
use compactor_sstable::bloom_filter::{BloomFilter, FilterBuilder};
use compactor_sstable::bti::rows::{self, SeparatedBlock};
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::partitioner::KeyHash;
use compactor_sstable::{Component, Error as FormatError, Format};

use crate::error::Result;
use crate::write::big_index_output::BigIndexOutput;
use crate::write::bti_index_output::BtiIndexOutput;
use crate::write::finished_index::FinishedIndex;

/// Cassandra's default number of bytes after which a block of the row index ends
/// (`DatabaseDescriptor.getColumnIndexSize`).
pub fn default_column_index_size(format: Format) -> u64 {
    match format {
        Format::Big => index_info::DEFAULT_COLUMN_INDEX_SIZE,
        Format::Bti => rows::DEFAULT_COLUMN_INDEX_SIZE,
    }
}

/// Index of an output, whose format is chosen at run time, and the Bloom filter over its keys.
#[derive(Debug)]
pub struct FormatIndex {
    /// `None` at a false positive chance of 1.
    filter: Option<FilterBuilder>,
    entries: IndexEntries,
}

/// The files of either format.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one per output")]
enum IndexEntries {
    /// BIG.
    Big(BigIndexOutput),
    /// BTI.
    Bti(BtiIndexOutput),
}

impl FormatIndex {
    /// Creates the index files of a format with `create`. Keys are also added to `filter`.
    ///
    /// # Errors
    /// Those of `create`.
    pub fn create(
        format: Format,
        min_index_interval: u32,
        filter: Option<BloomFilter>,
        create: impl Fn(Component) -> Result<SequentialWriter>,
    ) -> Result<FormatIndex> {
        let entries = match format {
            Format::Big => IndexEntries::Big(BigIndexOutput::new(
                create(Component::Index)?,
                min_index_interval,
            )),
            Format::Bti => IndexEntries::Bti(BtiIndexOutput::new(
                create(Component::Partitions)?,
                create(Component::Rows)?,
            )),
        };
        let filter = filter.map(FilterBuilder::new);
        Ok(FormatIndex { filter, entries })
    }

    /// Syncs and closes the files.
    ///
    /// # Errors
    /// A failed write or sync.
    pub fn finish(self) -> Result<FinishedIndex> {
        let filter = self.filter.map(FilterBuilder::finish);
        let finished = match self.entries {
            IndexEntries::Big(index) => index.finish()?,
            IndexEntries::Bti(index) => index.finish()?,
        };
        Ok(FinishedIndex { filter, ..finished })
    }

    /// Adds a block of the current partition's rows to a BTI index.
    ///
    /// # Errors
    /// A block that the format cannot represent.
    pub(crate) fn add_block(&mut self, block: SeparatedBlock<'_>) -> Result<(), FormatError> {
        match &mut self.entries {
            IndexEntries::Big(_) => Ok(()),
            IndexEntries::Bti(index) => index.add_block(block),
        }
    }

    /// Writes what the blocks added so far have made, if it is long enough: a partition may have any number of them.
    ///
    /// # Errors
    /// A failed write.
    pub(crate) fn write_blocks(&mut self) -> Result<()> {
        match &mut self.entries {
            IndexEntries::Big(_) => Ok(()),
            IndexEntries::Bti(index) => index.write_blocks(),
        }
    }

    /// Adds the entry of a partition with this promoted index, or this number of blocks.
    ///
    /// # Errors
    /// A failed write.
    pub(crate) fn add_entry(
        &mut self,
        key: &[u8],
        hash: &KeyHash,
        position: u64,
        deletion: &DeletionTime,
        promoted: &[u8],
        blocks: u32,
    ) -> Result<()> {
        if let Some(filter) = &mut self.filter {
            filter.add_key(hash);
        }
        match &mut self.entries {
            IndexEntries::Big(index) => index.add_entry(key, position, promoted),
            IndexEntries::Bti(index) => index.add_entry(key, hash, position, deletion, blocks),
        }
    }
}

//! Index of an output, whose format is chosen at run time.

use compactor_io::SequentialWriter;
use compactor_sstable::big::index_info::{self, PromotedIndexBuilder};
use compactor_sstable::bloom_filter::BloomFilter;
use compactor_sstable::bti::rows;
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::{Component, Format};

use crate::error::Result;
use crate::read::workers::WorkerQueue;
use crate::write::big_index_output::BigIndexOutput;
use crate::write::bti_index_output::BtiIndexOutput;
use crate::write::filter_output::FilterOutput;
use crate::write::finished_index::FinishedIndex;
use crate::write::partition_sink::IndexedPartition;
use crate::write::sstable_settings::SstableSettings;

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
    pub(crate) filter: Option<FilterOutput>,
    pub(crate) entries: IndexEntries,
}

/// The files of either format.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one per output")]
pub(crate) enum IndexEntries {
    /// BIG.
    Big(BigIndexOutput),
    /// BTI.
    Bti(BtiIndexOutput),
}

impl FormatIndex {
    /// Creates the index files of the version's format with `create`. Keys are also added to `filter`, by
    /// tasks of `queue`.
    ///
    /// # Errors
    /// Clustering types that the format cannot index, or those of `create`.
    pub fn create(
        settings: &SstableSettings,
        filter: Option<BloomFilter>,
        queue: WorkerQueue,
        create: impl Fn(Component) -> Result<SequentialWriter>,
    ) -> Result<FormatIndex> {
        let version = settings.descriptor.version;
        let entries = match version.format() {
            Format::Big => IndexEntries::Big(BigIndexOutput::new(
                create(Component::Index)?,
                PromotedIndexBuilder::new(version, settings.column_index_size),
                settings.min_index_interval,
            )),
            Format::Bti => IndexEntries::Bti(BtiIndexOutput::new(
                create(Component::Partitions)?,
                create(Component::Rows)?,
                &settings.clustering_types(),
                settings.column_index_size,
            )?),
        };
        let filter = filter.map(|filter| FilterOutput::new(filter, queue));
        Ok(FormatIndex { filter, entries })
    }

    /// Syncs and closes the files.
    ///
    /// # Errors
    /// A failed write or sync.
    pub fn finish(self) -> Result<FinishedIndex> {
        let filter = self.filter.map(FilterOutput::finish).transpose()?;
        let finished = match self.entries {
            IndexEntries::Big(index) => index.finish()?,
            IndexEntries::Bti(index) => index.finish()?,
        };
        Ok(FinishedIndex { filter, ..finished })
    }

    /// As [`PartitionSink::add_unfiltered`](crate::write::PartitionSink::add_unfiltered).
    #[inline]
    pub fn add_unfiltered(
        &mut self,
        start: u64,
        end: u64,
        kind: Kind,
        body: &[u8],
        open_marker: &DeletionTime,
    ) -> Result<u64> {
        match &mut self.entries {
            IndexEntries::Big(index) => index.add_unfiltered(start, end, kind, body, open_marker),
            IndexEntries::Bti(index) => index.add_unfiltered(start, end, kind, body, open_marker),
        }
    }

    /// As [`PartitionSink::add_partition`](crate::write::PartitionSink::add_partition).
    pub fn add_partition(&mut self, partition: &IndexedPartition<'_>) -> Result<bool> {
        if let Some(filter) = &mut self.filter {
            filter.add_key(&partition.hash);
        }
        match &mut self.entries {
            IndexEntries::Big(index) => index.add_partition(partition),
            IndexEntries::Bti(index) => index.add_partition(partition),
        }
    }
}

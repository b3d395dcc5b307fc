//! Index of an output, whose format is chosen at run time.

use compactor_io::SequentialWriter;
use compactor_sstable::big::index_info::PromotedIndexBuilder;
use compactor_sstable::big::summary::Summary;
use compactor_sstable::bloom_filter::BloomFilter;
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::statistics::SerializationHeader;
use compactor_sstable::types::CqlType;
use compactor_sstable::{Component, Format, Version};

use crate::error::Result;
use crate::read::workers::WorkerQueue;
use crate::write::big_index_output::BigIndexOutput;
use crate::write::bti_index_output::BtiIndexOutput;
use crate::write::filter_output::FilterOutput;
use crate::write::sstable_index::{IndexedPartition, SstableIndex};

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

/// Settings of an index.
#[derive(Clone, Copy, Debug)]
pub struct IndexSettings<'a> {
    /// Version of the SSTable, which determines the format.
    pub version: Version,
    /// Header of the SSTable.
    pub header: &'a SerializationHeader,
    /// Bytes after which a block of the row index ends.
    pub column_index_size: u64,
    /// Number of keys per entry of the summary.
    pub min_index_interval: u32,
}

/// A complete index of either format.
#[derive(Debug)]
pub struct FinishedFormatIndex {
    /// The files, synced, and their lengths.
    pub files: Vec<(Component, u64)>,
    /// Bloom filter of all keys; `None` at a false positive chance of 1.
    pub filter: Option<BloomFilter>,
    /// Summary of a BIG index, still to be written.
    pub summary: Option<Summary>,
    /// First partition key.
    pub first_key: Vec<u8>,
    /// Last partition key.
    pub last_key: Vec<u8>,
}

impl FormatIndex {
    /// Creates the index files of the version's format with `create`. Keys are also added to `filter`, by
    /// tasks of `queue`.
    ///
    /// # Errors
    /// Clustering types that the format cannot index, or those of `create`.
    pub fn create(
        settings: &IndexSettings<'_>,
        filter: Option<BloomFilter>,
        queue: WorkerQueue,
        create: impl Fn(Component) -> Result<SequentialWriter>,
    ) -> Result<FormatIndex> {
        let entries = match settings.version.format() {
            Format::Big => IndexEntries::Big(BigIndexOutput::new(
                create(Component::Index)?,
                PromotedIndexBuilder::new(settings.version, settings.column_index_size),
                settings.min_index_interval,
            )),
            Format::Bti => {
                let types = settings.header.clustering_types.iter();
                let types: Vec<CqlType> = types.map(|t| t.cql_type.clone()).collect();
                IndexEntries::Bti(BtiIndexOutput::new(
                    create(Component::Partitions)?,
                    create(Component::Rows)?,
                    &types,
                    settings.column_index_size,
                )?)
            }
        };
        let filter = filter.map(|filter| FilterOutput::new(filter, queue));
        Ok(FormatIndex { filter, entries })
    }

    /// Syncs and closes the files.
    ///
    /// # Errors
    /// A failed write or sync.
    pub fn finish(self) -> Result<FinishedFormatIndex> {
        let filter = self.filter.map(FilterOutput::finish).transpose()?;
        match self.entries {
            IndexEntries::Big(index) => {
                let finished = index.finish()?;
                Ok(FinishedFormatIndex {
                    files: vec![(Component::Index, finished.file.len)],
                    filter,
                    summary: Some(finished.summary),
                    first_key: finished.first_key,
                    last_key: finished.last_key,
                })
            }
            IndexEntries::Bti(index) => {
                let finished = index.finish()?;
                Ok(FinishedFormatIndex {
                    files: vec![
                        (Component::Partitions, finished.partitions.len),
                        (Component::Rows, finished.rows.len),
                    ],
                    filter,
                    summary: None,
                    first_key: finished.first_key,
                    last_key: finished.last_key,
                })
            }
        }
    }
}

impl SstableIndex for FormatIndex {
    #[inline]
    fn add_unfiltered(
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

    fn add_partition(&mut self, partition: &IndexedPartition<'_>) -> Result<bool> {
        if let Some(filter) = &mut self.filter {
            filter.add_key(&partition.hash);
        }
        match &mut self.entries {
            IndexEntries::Big(index) => index.add_partition(partition),
            IndexEntries::Bti(index) => index.add_partition(partition),
        }
    }
}

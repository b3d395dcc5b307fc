//! Index of a partition's rows, built while they are written.

use compactor_sstable::big::index_info::PromotedIndexBuilder;
use compactor_sstable::bti::rows::{RowBlocks, SeparatedBlock};
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::{Error as FormatError, Format};

use crate::error::Result;
use crate::write::partition_sink::IndexedPartition;
use crate::write::sstable_settings::SstableSettings;

/// Builder of the row index of one partition after the other, in the format of the output. BIG has a promoted index,
/// which is complete at the end of the partition; BTI has blocks, each of which is emitted when it is complete.
#[derive(Debug)]
pub(crate) enum RowIndexBuilder {
    Big(PromotedIndexBuilder),
    Bti(Box<RowBlocks>),
}

impl RowIndexBuilder {
    /// Creates a builder for an SSTable with these settings.
    ///
    /// # Errors
    /// Clustering types that the format cannot index.
    pub(crate) fn new(settings: &SstableSettings) -> Result<RowIndexBuilder> {
        let (version, size) = (settings.descriptor.version, settings.column_index_size);
        Ok(match version.format() {
            Format::Big => RowIndexBuilder::Big(PromotedIndexBuilder::new(version, size)),
            Format::Bti => {
                let blocks = RowBlocks::new(&settings.clustering_types(), size)?;
                RowIndexBuilder::Bti(Box::new(blocks))
            }
        })
    }

    /// As [`PartitionSink::add_unfiltered`](crate::write::PartitionSink::add_unfiltered); calls `emit` with a block that
    /// ends.
    #[inline]
    pub(crate) fn add_unfiltered(
        &mut self,
        start: u64,
        end: u64,
        kind: Kind,
        body: &[u8],
        open_marker: &DeletionTime,
        emit: impl FnOnce(SeparatedBlock<'_>) -> Result<(), FormatError>,
    ) -> Result<u64> {
        Ok(match self {
            RowIndexBuilder::Big(promoted) => {
                promoted.add_unfiltered(start, end, kind, body, open_marker)
            }
            RowIndexBuilder::Bti(rows) => {
                rows.add_unfiltered(start, end, kind, body, open_marker, emit)?
            }
        })
    }

    /// Ends a partition. Calls `emit` with the remaining blocks, and returns the promoted index and the number of all
    /// blocks.
    ///
    /// # Errors
    /// A partition that the format cannot index, or those of `emit`.
    pub(crate) fn finish(
        &mut self,
        partition: &IndexedPartition<'_>,
        emit: impl FnMut(SeparatedBlock<'_>) -> Result<(), FormatError>,
    ) -> Result<(&[u8], u32)> {
        Ok(match self {
            RowIndexBuilder::Big(promoted) => {
                let promoted = promoted.finish(partition.header_len, &partition.deletion)?;
                (promoted, 0)
            }
            RowIndexBuilder::Bti(rows) => (&[], rows.finish(emit)?),
        })
    }
}

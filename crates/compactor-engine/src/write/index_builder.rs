//! Index of an output's partitions and their rows, built while they are written.

use compactor_sstable::big::index_info::PromotedIndexBuilder;
use compactor_sstable::bti::rows::{RowBlocks, SeparatedBlock};
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::partitioner::KeyHash;
use compactor_sstable::statistics::HyperLogLogPlus;
use compactor_sstable::{Error as FormatError, Format, Version};

use crate::error::Result;
use crate::read::batch::Batch;
use crate::write::index_part::IndexPart;
use crate::write::sstable_settings::SstableSettings;

/// Builder of the index of one partition after the other, in the format of the output. What it has built is taken
/// with each block of the output.
#[derive(Debug)]
pub struct IndexBuilder {
    rows: RowIndex,
    parts: Batch<IndexPart>,
}

/// Index of the rows of the current partition.
#[derive(Debug)]
enum RowIndex {
    /// Neither rows nor partitions are indexed.
    None,
    /// A promoted index, which is complete at the end of the partition.
    Big(PromotedIndexBuilder),
    /// Blocks, each of which is added to the parts when it is complete.
    Bti(Box<RowBlocks>),
}

impl IndexBuilder {
    fn new(rows: RowIndex) -> IndexBuilder {
        IndexBuilder {
            rows,
            parts: Batch::default(),
        }
    }

    /// Builds nothing.
    pub fn none() -> IndexBuilder {
        IndexBuilder::new(RowIndex::None)
    }

    /// Builds a BIG index, in which a block of rows ends after this number of bytes.
    pub fn big(version: Version, column_index_size: u64) -> IndexBuilder {
        let promoted = PromotedIndexBuilder::new(version, column_index_size);
        IndexBuilder::new(RowIndex::Big(promoted))
    }

    /// Builds the index of an SSTable with these settings.
    ///
    /// # Errors
    /// Clustering types that the format cannot index.
    pub(crate) fn of(settings: &SstableSettings) -> Result<IndexBuilder> {
        let (version, size) = (settings.descriptor.version, settings.column_index_size);
        Ok(match version.format() {
            Format::Big => IndexBuilder::big(version, size),
            Format::Bti => {
                let types = settings.header.clustering_types.iter();
                let types: Vec<_> = types.map(|t| t.cql_type.clone()).collect();
                let blocks = RowBlocks::new(&types, size)?;
                IndexBuilder::new(RowIndex::Bti(Box::new(blocks)))
            }
        })
    }

    /// Adds a row or marker that occupies `start..end` of the current partition.
    ///
    /// Its clustering is `kind` and `body`, the bytes that follow the kind in a serialized prefix: for a row,
    /// the clustering values as in Data.db; for a marker, count and values. `open_marker` is the deletion
    /// that is open after it, or [`DeletionTime::LIVE`].
    ///
    /// Returns a position in the partition: unfiltereds that end before it need not be added, except for the
    /// last one of the partition.
    ///
    /// # Errors
    /// A clustering that the format cannot index.
    #[inline]
    pub(crate) fn add_unfiltered(
        &mut self,
        start: u64,
        end: u64,
        kind: Kind,
        body: &[u8],
        open_marker: &DeletionTime,
    ) -> Result<u64> {
        let parts = &mut self.parts;
        Ok(match &mut self.rows {
            RowIndex::None => u64::MAX,
            RowIndex::Big(promoted) => promoted.add_unfiltered(start, end, kind, body, open_marker),
            RowIndex::Bti(rows) => {
                rows.add_unfiltered(start, end, kind, body, open_marker, add_block_to(parts))?
            }
        })
    }

    /// Ends the current partition, of `len` bytes at `position`, of which `header_len` are those of key, deletion and
    /// static row. Returns true if it is long enough for its rows to be indexed.
    ///
    /// # Errors
    /// A partition that the format cannot index.
    pub(crate) fn end_partition(
        &mut self,
        (key, hash): (&[u8], KeyHash),
        (position, len): (u64, u64),
        header_len: u64,
        deletion: DeletionTime,
    ) -> Result<bool> {
        let parts = &mut self.parts;
        let (promoted, blocks) = match &mut self.rows {
            RowIndex::None => return Ok(false),
            RowIndex::Big(promoted) => (promoted.finish(header_len, &deletion)?, 0),
            RowIndex::Bti(rows) => (&[][..], rows.finish(add_block_to(parts))?),
        };
        let part = IndexPart::Partition {
            hash,
            cardinality_hash: HyperLogLogPlus::hash(key),
            position,
            len,
            deletion,
            promoted_len: promoted.len(),
            blocks,
        };
        parts.add([promoted, key], part);
        Ok(!promoted.is_empty() || blocks >= 2)
    }

    /// Takes what has been built since the last call.
    pub(crate) fn take(&mut self) -> Batch<IndexPart> {
        self.parts.take()
    }
}

/// Returns a function that adds a complete block of a partition's rows.
fn add_block_to(
    parts: &mut Batch<IndexPart>,
) -> impl FnMut(SeparatedBlock<'_>) -> Result<(), FormatError> {
    |block| {
        let SeparatedBlock { offset, open, .. } = block;
        parts.add([block.separator], IndexPart::Block { offset, open });
        Ok(())
    }
}

//! The index files of either format on their way out, fed row by row.
//!
//! BIG collects a partition's blocks and writes them with its entry once the partition is complete.
//! BTI writes to `Rows.db` while the partition goes on and refers to it in `Partitions.db`. So that one
//! writer of partitions serves both, an [`SstableIndex`] is told of each row and marker, and then of
//! the partition.

use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::partitioner::KeyHash;

use crate::big_index_output::BigIndexOutput;
use crate::bti_index_output::BtiIndexOutput;
use crate::error::Result;

/// A partition that has been written.
#[derive(Clone, Copy, Debug)]
pub struct IndexedPartition<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Token and hashes of the key.
    pub hash: KeyHash,
    /// Where it begins in the uncompressed `Data.db`.
    pub position: u64,
    /// Bytes of key, deletion and static row.
    pub header_len: u64,
    /// Its own deletion.
    pub deletion: DeletionTime,
}

/// The index of an SSTable being written.
pub trait SstableIndex {
    /// Adds a row or marker that occupies `start..end` of the current partition.
    ///
    /// Its name is `kind` and `body`, the bytes that follow the kind in a serialized prefix: of a
    /// row, the clustering values as Data.db has them; of a marker, count and values. `open_marker`
    /// is the deletion that is open behind it, or [`DeletionTime::LIVE`].
    ///
    /// # Errors
    /// A failed write, or a clustering that the format cannot index.
    fn add_unfiltered(
        &mut self,
        start: u64,
        end: u64,
        kind: Kind,
        body: &[u8],
        open_marker: &DeletionTime,
    ) -> Result<()>;

    /// Ends the current partition. Returns true if it is so long that its rows are indexed.
    ///
    /// # Errors
    /// A failed write, or a partition that the format cannot index.
    fn add_partition(&mut self, partition: &IndexedPartition<'_>) -> Result<bool>;
}

/// The index of an output whose format is chosen at run time.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one per output")]
pub enum FormatIndex {
    /// BIG.
    Big(BigIndexOutput),
    /// BTI.
    Bti(BtiIndexOutput),
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
    ) -> Result<()> {
        match self {
            FormatIndex::Big(index) => index.add_unfiltered(start, end, kind, body, open_marker),
            FormatIndex::Bti(index) => index.add_unfiltered(start, end, kind, body, open_marker),
        }
    }

    fn add_partition(&mut self, partition: &IndexedPartition<'_>) -> Result<bool> {
        match self {
            FormatIndex::Big(index) => index.add_partition(partition),
            FormatIndex::Bti(index) => index.add_partition(partition),
        }
    }
}

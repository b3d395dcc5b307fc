//! Interface of the index of an SSTable being written.
//!
//! BIG collects a partition's blocks and writes them with its entry once the partition is complete. BTI
//! writes to `Rows.db` during the partition and refers to it in `Partitions.db`. To serve both, the writer of
//! partitions passes an [`SstableIndex`] the rows and markers that may begin or end a block, and then the
//! partition.

use compactor_sstable::Format;
use compactor_sstable::big::index_info;
use compactor_sstable::bti::rows;
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::partitioner::KeyHash;

use crate::error::Result;

/// Cassandra's default number of bytes after which a block of the row index ends
/// (`DatabaseDescriptor.getColumnIndexSize`).
pub fn default_column_index_size(format: Format) -> u64 {
    match format {
        Format::Big => index_info::DEFAULT_COLUMN_INDEX_SIZE,
        Format::Bti => rows::DEFAULT_COLUMN_INDEX_SIZE,
    }
}

/// A written partition.
#[derive(Clone, Copy, Debug)]
pub struct IndexedPartition<'a> {
    /// Partition key.
    pub key: &'a [u8],
    /// Token and hashes of the key.
    pub hash: KeyHash,
    /// Position in the uncompressed `Data.db`.
    pub position: u64,
    /// Length of the partition, bytes.
    pub len: u64,
    /// Length of key, deletion and static row, bytes.
    pub header_len: u64,
    /// Partition deletion.
    pub deletion: DeletionTime,
}

/// The index of an SSTable being written.
pub trait SstableIndex {
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
    /// A failed write, or a clustering that the format cannot index.
    fn add_unfiltered(
        &mut self,
        start: u64,
        end: u64,
        kind: Kind,
        body: &[u8],
        open_marker: &DeletionTime,
    ) -> Result<u64>;

    /// Ends the current partition. Returns true if it is long enough for its rows to be indexed.
    ///
    /// # Errors
    /// A failed write, or a partition that the format cannot index.
    fn add_partition(&mut self, partition: &IndexedPartition<'_>) -> Result<bool>;
}

//! What an index is told of the partitions of an SSTable that is written.
//!
//! BIG collects a partition's blocks and writes them with its entry once the partition is complete.
//! BTI writes to `Rows.db` while the partition goes on and refers to it in `Partitions.db`. So that one
//! writer of partitions serves both, an [`SstableIndex`] is told of the rows and markers that may begin or
//! end a block, and then of the partition.

use compactor_sstable::Format;
use compactor_sstable::big::index_info;
use compactor_sstable::bti::rows;
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::partitioner::KeyHash;

use crate::error::Result;

/// Bytes after which a block of the row index ends where nobody says otherwise
/// (`DatabaseDescriptor.getColumnIndexSize`).
pub fn default_column_index_size(format: Format) -> u64 {
    match format {
        Format::Big => index_info::DEFAULT_COLUMN_INDEX_SIZE,
        Format::Bti => rows::DEFAULT_COLUMN_INDEX_SIZE,
    }
}

/// A partition that has been written.
#[derive(Clone, Copy, Debug)]
pub struct IndexedPartition<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Token and hashes of the key.
    pub hash: KeyHash,
    /// Where it begins in the uncompressed `Data.db`.
    pub position: u64,
    /// All its bytes.
    pub len: u64,
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
    /// Returns a place in the partition: what ends before it need not be added, but for the last of the
    /// partition.
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

    /// Ends the current partition. Returns true if it is so long that its rows are indexed.
    ///
    /// # Errors
    /// A failed write, or a partition that the format cannot index.
    fn add_partition(&mut self, partition: &IndexedPartition<'_>) -> Result<bool>;
}

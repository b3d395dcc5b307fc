//! Interface between the writer of partitions and what receives them: uncompressed blocks and index entries.
//!
//! Blocks go to a file, to the range of a merge, or nowhere. BIG collects the index blocks of a partition and
//! writes them with its entry once the partition is complete. BTI writes to `Rows.db` during the partition and
//! refers to it in `Partitions.db`. To serve both, the writer passes the rows and markers that may begin or end
//! a block, and then the partition.

use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::partitioner::KeyHash;
use compactor_sstable::statistics::MetadataCollector;

use crate::error::Result;

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

/// Receiver of partitions: uncompressed blocks in file order, and their index.
pub trait PartitionSink {
    /// Length of every block but the last: a multiple of the chunk length.
    fn block_len(&self) -> usize;

    /// Returns an empty buffer for the next block; waits while too many blocks are pending.
    ///
    /// # Errors
    /// A failure of an earlier block, a failed write to the index, or cancellation.
    fn take_buffer(&mut self) -> Result<Vec<u8>>;

    /// Takes ownership of a filled block.
    fn put_block(&mut self, block: Vec<u8>);

    /// Called before a block is submitted, with the statistics of its content and all before it.
    fn before_block(&mut self, collector: &mut MetadataCollector) {
        let _ = collector;
    }

    /// Adds a row or marker that occupies `start..end` of the current partition to the index.
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

//! Listener for the partitions and rows that a cursor reads.

use std::ops::Range;

use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::partitioner::KeyHash;

/// Listener for everything that a cursor reads. Validates an index that holds no whole keys or clusterings,
/// and so can be checked only against the data.
pub trait DataTrace: std::fmt::Debug + Send {
    /// The next partition: key, position in the uncompressed data, and partition deletion. Returns false if
    /// its rows need not be reported.
    fn partition(
        &mut self,
        key: &[u8],
        hash: KeyHash,
        position: u64,
        deletion: DeletionTime,
    ) -> bool;

    /// A row or marker at the bytes `at` of the partition. `name` is its serialized prefix without the kind;
    /// `open` is the deletion that is open after it. Returns a position in the partition: unfiltereds that
    /// end before it need not be reported.
    fn unfiltered(&mut self, at: Range<u64>, kind: Kind, name: &[u8], open: DeletionTime) -> u64;

    /// The partition ends with its end byte at `end`.
    fn end_partition(&mut self, end: u64);

    /// There are no more partitions.
    fn end(&mut self);
}

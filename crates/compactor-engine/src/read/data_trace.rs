//! Who is told of everything that a cursor comes to.

use std::ops::Range;

use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::partitioner::KeyHash;

/// Is told of everything that a cursor comes to, to hold it against an index that can only be checked
/// with the data at hand.
pub trait DataTrace: std::fmt::Debug + Send {
    /// The next partition, where it begins in the uncompressed data, and its own deletion. False if
    /// what is in it need not be told.
    fn partition(
        &mut self,
        key: &[u8],
        hash: KeyHash,
        position: u64,
        deletion: DeletionTime,
    ) -> bool;

    /// A row or marker that takes the bytes `at` of the partition; `name` is its serialized prefix
    /// without the kind, `open` the deletion that is open behind it. Returns a place in the partition:
    /// what ends before it need not be told.
    fn unfiltered(&mut self, at: Range<u64>, kind: Kind, name: &[u8], open: DeletionTime) -> u64;

    /// The partition's end byte is at `end` of the partition.
    fn end_partition(&mut self, end: u64);

    /// There are no more partitions.
    fn end(&mut self);

    /// What is told of the partitions that begin at these positions, while others are told of those before
    /// and behind them. `None` if it is to be told of all in their order.
    fn of_part(&mut self, positions: Range<u64>) -> Option<Box<dyn DataTrace>> {
        let _ = positions;
        None
    }
}

//! What is known of partitions before they are read.

use compactor_sstable::partitioner::Position;

/// What the statistics say of an SSTable's partitions. A `Statistics.db` of another SSTable would
/// decode every time wrongly, and this tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedPartitions {
    /// Number of partitions.
    pub count: u64,
    /// First partition key, where the version has it.
    pub first_key: Option<Vec<u8>>,
    /// Last partition key, where the version has it.
    pub last_key: Option<Vec<u8>>,
}

/// Part of an SSTable, from a partition on and up to another, as its index says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorRange {
    /// Where the first of its partitions is in the uncompressed data.
    pub start: u64,
    /// Partitions stand at this or behind it; `None` for the first range.
    pub from: Option<Position>,
    /// Partitions stand before this; `None` for the last range.
    pub below: Option<Position>,
}

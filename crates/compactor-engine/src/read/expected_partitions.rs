//! Facts about partitions that are known before they are read.

use compactor_sstable::partitioner::Position;

/// Partitions of an SSTable according to its `Statistics.db`. Delta-encoded times would be decoded wrongly
/// with the `Statistics.db` of another SSTable; comparing these detects it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedPartitions {
    /// Number of partitions.
    pub count: u64,
    /// First partition key, if the version stores it.
    pub first_key: Option<Vec<u8>>,
    /// Last partition key, if the version stores it.
    pub last_key: Option<Vec<u8>>,
}

/// Range of an SSTable's partitions, according to its index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorRange {
    /// Position of the first partition in the uncompressed data.
    pub start: u64,
    /// Lower bound of the partitions, inclusive; `None` for the first range.
    pub from: Option<Position>,
    /// Upper bound of the partitions, exclusive; `None` for the last range.
    pub below: Option<Position>,
}

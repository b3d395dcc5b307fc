//! An SSTable as the strategies see it.

use crate::droppable::DroppableTombstones;
use crate::key_estimate::KeyEstimate;
use crate::token::Position;

/// Identifier of an SSTable, unique within its table. Where Cassandra orders SSTables by id, the smaller
/// number is first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SstableId(pub u64);

/// Repair session of a pending SSTable (`StatsMetadata.pendingRepair`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session(pub u128);

/// Repair state of an SSTable. SSTables of different states are never compacted together. In the order of
/// `CompactionStrategyManager.holders`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RepairState {
    /// Data of a pending repair on a transient replica.
    Transient(Session),
    /// Part of an incremental repair that has not ended.
    Pending(Session),
    /// Repaired.
    Repaired,
    /// Not repaired.
    #[default]
    Unrepaired,
}

/// Sizes, bounds and statistics of an SSTable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sstable {
    /// Identifier.
    pub id: SstableId,
    /// Stored length of `Data.db`, bytes (`onDiskLength`).
    pub data_bytes: u64,
    /// Length of all components, bytes (`bytesOnDisk`).
    pub bytes_on_disk: u64,
    /// First partition.
    pub first: Position,
    /// Last partition.
    pub last: Position,
    /// Minimum timestamp of its cells and deletions.
    pub min_timestamp: i64,
    /// Maximum timestamp of its cells and deletions.
    pub max_timestamp: i64,
    /// Maximum local deletion time, seconds since 1970; `i64::MAX` if some data never expires.
    pub max_local_deletion_time: i64,
    /// Level in its statistics.
    pub level: u32,
    /// Repair state.
    pub repair: RepairState,
    /// Index of its data directory.
    pub directory: usize,
    /// Whether it is damaged, and so not compacted (`isMarkedSuspect`).
    pub is_suspect: bool,
    /// Time when its `Data.db` was last written, milliseconds since 1970.
    pub created_ms: i64,
    /// Fraction of the ring that it covers, by its statistics; `None` before version `oa`
    /// (`StatsMetadata.tokenSpaceCoverage`).
    pub token_space_coverage: Option<f64>,
    /// Tombstones by drop time.
    pub tombstones: DroppableTombstones,
    /// Number of partitions and their distribution.
    pub keys: KeyEstimate,
}

impl Sstable {
    /// An SSTable with this length of `Data.db` between two partitions, that never expires.
    pub fn new(
        id: SstableId,
        data_bytes: u64,
        first: impl Into<Position>,
        last: impl Into<Position>,
    ) -> Sstable {
        Sstable {
            id,
            data_bytes,
            bytes_on_disk: data_bytes,
            first: first.into(),
            last: last.into(),
            max_local_deletion_time: i64::MAX,
            ..Sstable::default()
        }
    }

    /// Whether both have partitions between the same tokens (`Bounds.intersects`).
    pub(crate) fn overlaps_tokens(&self, other: &Sstable) -> bool {
        self.first.token <= other.last.token && other.first.token <= self.last.token
    }
}

/// Sum of the stored lengths (`SSTableReader.getTotalBytes`).
pub(crate) fn total_bytes<'a>(
    sstables: impl IntoIterator<Item = &'a std::sync::Arc<Sstable>>,
) -> u64 {
    sstables.into_iter().map(|sstable| sstable.data_bytes).sum()
}

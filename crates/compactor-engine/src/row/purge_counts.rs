//! What a merge left out, counted.

/// Tombstones and expired data that a merge left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PurgeCounts {
    /// Partition deletions.
    pub partition_deletions: u64,
    /// Row deletions.
    pub row_deletions: u64,
    /// Deletions of complex columns.
    pub complex_deletions: u64,
    /// Cell tombstones.
    pub cell_tombstones: u64,
    /// Cells and row livenesses that had expired.
    pub expired: u64,
    /// Range tombstone bounds, a boundary counting as two.
    pub range_bounds: u64,
    /// Cells, and deletions of complex columns, that were dropped with their column. These are no
    /// tombstones, and not in [`total`](PurgeCounts::total).
    pub of_dropped_columns: u64,
    /// Cells, row livenesses and deletions that SSTables which are not merged shadow; bounds of range
    /// tombstones are not counted. Not in [`total`](PurgeCounts::total) either.
    pub shadowed: u64,
}

impl PurgeCounts {
    /// All tombstones and expired data.
    pub fn total(&self) -> u64 {
        self.partition_deletions
            + self.row_deletions
            + self.complex_deletions
            + self.cell_tombstones
            + self.expired
            + self.range_bounds
    }
}

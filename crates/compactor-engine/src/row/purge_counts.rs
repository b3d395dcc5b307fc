//! Counts of what a merge purged.

/// Counts of tombstones and expired data that a merge purged.
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
    /// Expired cells and row livenesses.
    pub expired: u64,
    /// Range tombstone bounds; a boundary counts as two.
    pub range_bounds: u64,
    /// Cells, and deletions of complex columns, removed because their column was dropped. They are not
    /// tombstones, and not included in [`total`](PurgeCounts::total).
    pub of_dropped_columns: u64,
    /// Cells, row livenesses and deletions shadowed by SSTables that are not merged; bounds of range
    /// tombstones are not counted. Not included in [`total`](PurgeCounts::total).
    pub shadowed: u64,
    /// Rows of a view dropped with their cells because they had no liveness left. Not included in
    /// [`total`](PurgeCounts::total).
    pub without_liveness: u64,
    /// Cells whose TTL was removed, in the inputs: versions of one cell count separately. Not included in
    /// [`total`](PurgeCounts::total).
    pub stripped_cells: u64,
    /// Row livenesses whose TTL was removed, counted like cells.
    pub stripped_rows: u64,
}

impl PurgeCounts {
    /// Number of tombstones and expired items.
    pub fn total(&self) -> u64 {
        self.partition_deletions
            + self.row_deletions
            + self.complex_deletions
            + self.cell_tombstones
            + self.expired
            + self.range_bounds
    }
}

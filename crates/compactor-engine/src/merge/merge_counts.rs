//! Counts of a merge.

use crate::row::purge_counts::PurgeCounts;

/// Counts of a merge.
#[derive(Clone, Debug, Default)]
pub struct MergeCounts {
    /// Number of partitions by the number of inputs that had them: index 0 for one input. Empty if unknown
    /// because some inputs were merged in earlier passes.
    pub partitions_by_inputs: Vec<u64>,
    /// Number of partitions in all inputs.
    pub partitions_read: u64,
    /// Number of rows in all inputs, including static rows that are not empty.
    pub rows_read: u64,
    /// Number of range tombstone markers in all inputs.
    pub markers_read: u64,
    /// Purged tombstones and data.
    pub purged: PurgeCounts,
}

impl MergeCounts {
    /// Adds the counts of another range of the same inputs, or of an earlier pass over some of the inputs, which
    /// purges only data of dropped columns, and removes TTLs.
    pub(crate) fn add(&mut self, other: &MergeCounts) {
        let len = self.partitions_by_inputs.len();
        let longer = len.max(other.partitions_by_inputs.len());
        self.partitions_by_inputs.resize(longer, 0);
        for (sum, count) in self
            .partitions_by_inputs
            .iter_mut()
            .zip(&other.partitions_by_inputs)
        {
            *sum += count;
        }
        self.partitions_read += other.partitions_read;
        self.rows_read += other.rows_read;
        self.markers_read += other.markers_read;
        let PurgeCounts {
            partition_deletions,
            row_deletions,
            complex_deletions,
            cell_tombstones,
            expired,
            range_bounds,
            of_dropped_columns,
            shadowed,
            stripped_cells,
            stripped_rows,
            without_liveness,
        } = other.purged;
        self.purged.partition_deletions += partition_deletions;
        self.purged.row_deletions += row_deletions;
        self.purged.complex_deletions += complex_deletions;
        self.purged.cell_tombstones += cell_tombstones;
        self.purged.expired += expired;
        self.purged.range_bounds += range_bounds;
        self.purged.of_dropped_columns += of_dropped_columns;
        self.purged.shadowed += shadowed;
        self.purged.stripped_cells += stripped_cells;
        self.purged.stripped_rows += stripped_rows;
        self.purged.without_liveness += without_liveness;
    }
}

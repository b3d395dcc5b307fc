//! What a merge counts.

use crate::row::purge_counts::PurgeCounts;

/// What a merge counted.
#[derive(Clone, Debug, Default)]
pub struct MergeCounts {
    /// Partitions by the number of inputs they came from: index 0 stands for one input. Empty where that is not
    /// known, since some inputs were merged before others.
    pub partitions_by_inputs: Vec<u64>,
    /// Partitions of all inputs.
    pub partitions_read: u64,
    /// Rows of all inputs, static rows that are not empty included.
    pub rows_read: u64,
    /// Range tombstone markers of all inputs.
    pub markers_read: u64,
    /// What was left out.
    pub purged: PurgeCounts,
}

impl MergeCounts {
    /// Adds what an earlier pass over some of the inputs counted. It purges nothing but what was dropped.
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
        self.rows_read += other.rows_read;
        self.markers_read += other.markers_read;
        self.purged.of_dropped_columns += other.purged.of_dropped_columns;
    }

    /// Adds what was counted in another range of the partitions of the same inputs.
    pub(crate) fn add_range(&mut self, range: &MergeCounts) {
        self.add(range);
        let PurgeCounts {
            partition_deletions,
            row_deletions,
            complex_deletions,
            cell_tombstones,
            expired,
            range_bounds,
            of_dropped_columns: _,
            shadowed,
        } = range.purged;
        self.purged.partition_deletions += partition_deletions;
        self.purged.row_deletions += row_deletions;
        self.purged.complex_deletions += complex_deletions;
        self.purged.cell_tombstones += cell_tombstones;
        self.purged.expired += expired;
        self.purged.range_bounds += range_bounds;
        self.purged.shadowed += shadowed;
    }
}

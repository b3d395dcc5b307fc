//! Rows with deletions, for dumps of tombstones only.

use compactor_sstable::data::cell::Cell;
use compactor_sstable::data::row::RowContent;

/// True if the row, its columns or its cells are deleted, or any of them had expired by `now_s`.
///
/// Source: `Row.hasDeletion`, `BTreeRow.minDeletionTime`.
pub(super) fn has_deletion(row: &RowContent, now_s: i64) -> bool {
    let start = &row.start;
    let is_deleted = |cell: &Cell| cell.is_tombstone() || cell.local_deletion_time <= now_s;
    !start.deletion.is_live()
        || start.liveness.is_expiring() && start.liveness.local_expiration_time <= now_s
        || row
            .columns()
            .any(|column| !column.deletion.is_live() || column.cells.iter().any(is_deleted))
}

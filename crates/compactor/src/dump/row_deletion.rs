//! Whether a row holds a deletion, which decides about it when only tombstones are wanted.

use compactor_engine::cursor::RowRef;
use compactor_sstable::Error as FormatError;

/// True if the row, its columns or its cells are deleted, or any of them had expired by `now_s`.
///
/// Source: `Row.hasDeletion`, `BTreeRow.minDeletionTime`.
pub(super) fn has_deletion(row: &RowRef<'_>, now_s: i64) -> Result<bool, FormatError> {
    let mut body = row.body()?;
    if !body.deletion.is_live() {
        return Ok(true);
    }
    if body.liveness.is_expiring() && body.liveness.local_expiration_time <= now_s {
        return Ok(true);
    }
    while let Some(index) = body.next_column()? {
        let column = body.column(index);
        if !column.is_complex {
            let cell = body.simple_cell(column)?;
            if cell.is_some_and(|cell| cell.is_tombstone() || cell.local_deletion_time <= now_s) {
                return Ok(true);
            }
            continue;
        }
        let (deletion, count) = body.complex_header()?;
        if !deletion.is_live() {
            return Ok(true);
        }
        for _ in 0..count {
            let cell = body.complex_cell()?;
            if cell.is_some_and(|cell| cell.is_tombstone() || cell.local_deletion_time <= now_s) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

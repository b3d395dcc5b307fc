//! What is left of a merged row beside the tombstones, and the newer cells, of SSTables that are not
//! merged. What shadows it is not written.
//!
//! Source: `CompactionIterator.GarbageSkippingUnfilteredRowIterator.garbageFilterRow`,
//! `BTreeRow.filter`, `Rows.removeShadowedCells`, `Cells.addNonShadowed`.

use compactor_sstable::Result;
use compactor_sstable::data::cell::{CellView, Liveness};
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::layout::ColumnLayout;

use crate::counter_merge::{Contexts, CounterCell};
use crate::reconcile::reconcile;
use crate::row_merge::{MergedColumn, MergedRow};

/// What lies over a row.
#[derive(Clone, Copy, Debug)]
pub enum RowShadow<'c> {
    /// The newest deletion of the partition, a range or the row; and by its index whether a column of the
    /// row below is none of the table's any more (`BTreeRow.filter`), or nothing if all are.
    Deletion(DeletionTime, &'c [bool]),
    /// A row that is looked at cell by cell.
    Row {
        /// The newest deletion of the partition or a range.
        deletion: DeletionTime,
        /// The row; `None` for an empty one.
        row: Option<&'c MergedRow<'c>>,
        /// Index of its columns by those of the row below.
        columns: &'c [u32],
    },
}

/// Deletes whatever there is.
const EVERYTHING: DeletionTime = DeletionTime {
    marked_for_delete_at: i64::MAX,
    local_deletion_time: i64::MAX,
};

/// What lies over the cells of a row.
#[derive(Clone, Copy, Debug)]
pub struct CellShadow<'c> {
    deletion: DeletionTime,
    /// Deletions of complex columns too go if they are not newer, unless only rows are looked at.
    is_by_cell: bool,
    gone: &'c [bool],
    row: Option<(&'c MergedRow<'c>, &'c [u32])>,
}

/// What lies over the cells of a complex column.
#[derive(Clone, Copy, Debug)]
pub struct ComplexShadow<'c> {
    deletion: DeletionTime,
    cells: &'c [CellView<'c>],
}

impl<'c> RowShadow<'c> {
    /// What is left of liveness and deletion of a row, and what lies over its cells: `None` for nothing.
    pub fn over(
        self,
        mut liveness: Liveness,
        mut deletion: DeletionTime,
    ) -> (Liveness, DeletionTime, Option<CellShadow<'c>>) {
        let shadow = match self {
            RowShadow::Deletion(over, gone) => {
                let mut shadow = CellShadow {
                    deletion: over,
                    is_by_cell: false,
                    gone,
                    row: None,
                };
                if over.is_live() || deletion.supersedes(&over) {
                    shadow.deletion = DeletionTime::LIVE;
                    return (liveness, deletion, (!gone.is_empty()).then_some(shadow));
                }
                deletion = DeletionTime::LIVE;
                shadow
            }
            RowShadow::Row {
                deletion: over,
                row,
                columns,
            } => {
                let over = row.map_or(over, |row| over.max(row.deletion));
                if over.supersedes(&deletion) {
                    deletion = DeletionTime::LIVE;
                }
                CellShadow {
                    deletion: over,
                    is_by_cell: true,
                    gone: &[],
                    row: row.map(|row| (row, columns)),
                }
            }
        };
        if shadow.deletion.deletes(liveness.timestamp) {
            liveness = Liveness::EMPTY;
        }
        (liveness, deletion, Some(shadow))
    }
}

impl<'c> CellShadow<'c> {
    /// The column of the row above that is at this index in the row below.
    fn column(&self, index: u32) -> Option<(&'c MergedRow<'c>, &'c MergedColumn)> {
        let (row, columns) = self.row?;
        let index = columns.get(index as usize)?;
        let place = row.columns.binary_search_by_key(index, |c| c.index).ok()?;
        Some((row, row.columns.get(place)?))
    }

    fn is_gone(&self, index: u32) -> bool {
        self.gone.get(index as usize).is_some_and(|gone| *gone)
    }

    /// Whether a cell of a simple column is left.
    pub fn leaves(&self, index: u32, cell: &CellView<'_>) -> bool {
        if self.is_gone(index) || self.deletion.deletes(cell.timestamp) {
            return false;
        }
        match self.column(index) {
            Some((row, column)) => row
                .cells
                .get(column.first_cell)
                .is_none_or(|over| is_newer(cell, over)),
            None => true,
        }
    }

    /// Whether a counter is left. Values are in the contexts of the row below.
    ///
    /// # Errors
    /// Corruption if a value is no context.
    pub fn leaves_counter<'a>(
        &self,
        index: u32,
        cell: &CounterCell<'a>,
        contexts: &mut Contexts,
    ) -> Result<bool>
    where
        'c: 'a,
    {
        if self.is_gone(index) || self.deletion.deletes(cell.timestamp()) {
            return Ok(false);
        }
        let Some((row, column)) = self.column(index) else {
            return Ok(true);
        };
        let Some(over) = row.cell(column.first_cell) else {
            return Ok(true);
        };
        let over = contexts.read(over)?;
        Ok(!contexts.gives_right(cell, &over)?)
    }

    /// What is left of the deletion of a complex column, and what lies over its cells.
    pub fn over_complex(
        &self,
        index: u32,
        deletion: DeletionTime,
    ) -> (DeletionTime, ComplexShadow<'c>) {
        if self.is_gone(index) {
            let shadow = ComplexShadow {
                deletion: EVERYTHING,
                cells: &[],
            };
            return (DeletionTime::LIVE, shadow);
        }
        if !self.is_by_cell {
            let left = match self.deletion.supersedes(&deletion) {
                true => DeletionTime::LIVE,
                false => deletion,
            };
            let shadow = ComplexShadow {
                deletion: self.deletion,
                cells: &[],
            };
            return (left, shadow);
        }
        let mut shadow = ComplexShadow {
            deletion: self.deletion,
            cells: &[],
        };
        if let Some((row, column)) = self.column(index) {
            shadow.deletion = shadow.deletion.max(column.deletion);
            let cells = column.first_cell..column.first_cell + column.cell_count;
            shadow.cells = row.cells.get(cells).unwrap_or_default();
        }
        if deletion.supersedes(&shadow.deletion) {
            shadow.deletion = deletion;
            (deletion, shadow)
        } else {
            (DeletionTime::LIVE, shadow)
        }
    }
}

impl ComplexShadow<'_> {
    /// Whether a cell of the column is left.
    pub fn leaves(&self, column: &ColumnLayout, cell: &CellView<'_>) -> bool {
        if self.deletion.deletes(cell.timestamp) {
            return false;
        }
        let at = self
            .cells
            .binary_search_by(|over| column.cql_type.compare_paths(over.path, cell.path));
        match at.ok().and_then(|at| self.cells.get(at)) {
            Some(over) => is_newer(cell, over),
            None => true,
        }
    }
}

/// Of two that are the same the one below stays.
fn is_newer(cell: &CellView<'_>, over: &CellView<'_>) -> bool {
    // Paths that compare equal may differ in their bytes, which say nothing here.
    let over = CellView {
        path: cell.path,
        ..*over
    };
    reconcile(*cell, over) == *cell
}

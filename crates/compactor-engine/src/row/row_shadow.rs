//! Removal of data in a merged row that tombstones or newer cells of overlapping SSTables shadow. Those
//! SSTables are not merged, and what they shadow is not written.
//!
//! Source: `CompactionIterator.GarbageSkippingUnfilteredRowIterator.garbageFilterRow`,
//! `BTreeRow.filter`, `Rows.removeShadowedCells`, `Cells.addNonShadowed`.

use compactor_sstable::Result;
use compactor_sstable::data::cell::{Cell, Liveness};
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::layout::ColumnLayout;

use crate::row::counter_merge::{Contexts, MERGED_VALUE};
use crate::row::merged_row::MergedRow;
use crate::row::reconcile::{CellInRow, first_wins};
use crate::row::row_version::{Version, row_bytes};

/// Data of overlapping SSTables that may shadow a row.
#[derive(Clone, Debug)]
pub struct RowShadow<'c> {
    /// The newest deletion of the partition, a range or the row.
    deletion: DeletionTime,
    /// Whether the row is compared cell by cell. Then deletions of complex columns are removed unless they are newer,
    /// and otherwise if they are older.
    is_by_cell: bool,
    /// By index, whether the table no longer has a column of the merged row (`BTreeRow.filter`); empty if it has all.
    removed: &'c [bool],
    row: Option<ShadowingRow<'c>>,
}

/// A row that shadows the merged row.
#[derive(Clone, Debug)]
pub struct ShadowingRow<'c> {
    /// The row.
    pub row: &'c MergedRow,
    /// Its versions, which contain its cells.
    pub versions: Vec<Version<'c>>,
    /// Index of its columns by those of the merged row.
    pub columns: &'c [u32],
}

impl ShadowingRow<'_> {
    /// Returns a cell with the bytes that contain its path and value.
    fn in_row<'a>(&'a self, cell: &'a Cell) -> CellInRow<'a> {
        let row = match cell.version {
            MERGED_VALUE => self.row.made(),
            number => row_bytes(&self.versions, number),
        };
        (cell, row)
    }

    fn index(&self, index: u32) -> Option<u32> {
        self.columns.get(index as usize).copied()
    }
}

/// Deletion that covers everything.
const EVERYTHING: DeletionTime = DeletionTime {
    marked_for_delete_at: i64::MAX,
    local_deletion_time: i64::MAX,
};

/// Data that may shadow the cells of a complex column.
#[derive(Clone, Copy, Debug)]
pub struct ComplexShadow<'c> {
    deletion: DeletionTime,
    /// Cells of the column in the shadowing row.
    above: Option<(&'c ShadowingRow<'c>, &'c [Cell])>,
}

impl<'c> RowShadow<'c> {
    /// A deletion of the partition, a range or the row, and columns that are removed.
    pub fn of_deletion(deletion: DeletionTime, removed: &'c [bool]) -> RowShadow<'c> {
        RowShadow {
            deletion,
            is_by_cell: false,
            removed,
            row: None,
        }
    }

    /// A deletion of the partition or a range, and a row to compare with cell by cell, if it is not empty.
    pub fn by_cell(deletion: DeletionTime, row: Option<ShadowingRow<'c>>) -> RowShadow<'c> {
        let of_row = row.as_ref().map(|above| above.row.deletion);
        RowShadow {
            deletion: of_row.map_or(deletion, |of_row| deletion.max(of_row)),
            is_by_cell: true,
            removed: &[],
            row,
        }
    }

    /// Whether a row with this deletion keeps it. Then nothing else in it is deleted, unless it is compared cell by
    /// cell.
    fn keeps_deletion(&self, deletion: &DeletionTime) -> bool {
        if self.is_by_cell {
            !self.deletion.supersedes(deletion)
        } else {
            self.deletion.is_live() || deletion.supersedes(&self.deletion)
        }
    }

    fn shadowing_simple(&self, index: u32) -> Option<CellInRow<'_>> {
        let above = self.row.as_ref()?;
        Some(above.in_row(above.row.simple(above.index(index)?)?))
    }

    fn is_removed(&self, index: u32) -> bool {
        self.removed
            .get(index as usize)
            .is_some_and(|removed| *removed)
    }

    /// Whether a cell of a simple column remains under this deletion.
    fn keeps(&self, deletion: DeletionTime, index: u32, cell: CellInRow<'_>) -> bool {
        if self.is_removed(index) || deletion.deletes(cell.0.timestamp) {
            return false;
        }
        let over = self.shadowing_simple(index);
        over.is_none_or(|over| first_wins(cell, over))
    }

    /// Whether a counter remains under this deletion. `contexts` are those of the merged row.
    ///
    /// # Errors
    /// Corruption if a value is not a context.
    fn keeps_counter(
        &self,
        deletion: DeletionTime,
        index: u32,
        cell: CellInRow<'_>,
        contexts: &mut Contexts,
    ) -> Result<bool> {
        if self.is_removed(index) || deletion.deletes(cell.0.timestamp) {
            return Ok(false);
        }
        let Some((over, over_row)) = self.shadowing_simple(index) else {
            return Ok(true);
        };
        // A merged value is in the contexts of the shadowing row.
        let mut over = Cell {
            version: 0,
            ..*over
        };
        contexts.clear_local(&mut over, over_row)?;
        Ok(!contexts.gives_right(cell, (&over, over_row))?)
    }

    /// Returns the remaining deletion of a complex column under the deletion `over`, and the data that may shadow its
    /// cells.
    fn complex_shadow(
        &self,
        over: DeletionTime,
        index: u32,
        deletion: DeletionTime,
    ) -> (DeletionTime, ComplexShadow<'_>) {
        let mut shadow = ComplexShadow {
            deletion: over,
            above: None,
        };
        if self.is_removed(index) {
            shadow.deletion = EVERYTHING;
            return (DeletionTime::LIVE, shadow);
        }
        if !self.is_by_cell {
            let left = if over.supersedes(&deletion) {
                DeletionTime::LIVE
            } else {
                deletion
            };
            return (left, shadow);
        }
        if let Some(above) = &self.row
            && let Some(column) = above
                .index(index)
                .and_then(|index| above.row.complex_of(index))
        {
            shadow.deletion = shadow.deletion.max(column.deletion);
            shadow.above = Some((above, above.row.cells_of(column)));
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
    /// Whether a cell of the column remains. `contexts` are those of the merged row.
    ///
    /// # Errors
    /// Corruption if the value of a counter is not a context.
    fn keeps(
        &self,
        column: &ColumnLayout,
        (cell, row): CellInRow<'_>,
        contexts: &Contexts,
    ) -> Result<bool> {
        if self.deletion.deletes(cell.timestamp) {
            return Ok(false);
        }
        let Some((above, cells)) = self.above else {
            return Ok(true);
        };
        let row = contexts.row_of(cell, row);
        let path = cell.path.of(row);
        let at = cells.binary_search_by(|over| {
            let (over, over_row) = above.in_row(over);
            column.cql_type.compare_paths(over.path.of(over_row), path)
        });
        let Some(over) = at.ok().and_then(|at| cells.get(at)) else {
            return Ok(true);
        };
        let (over, over_row) = above.in_row(over);
        if !column.is_counter {
            return Ok(first_wins((cell, row), (over, over_row)));
        }
        let over = Cell {
            version: 0,
            ..*over
        };
        Ok(!contexts.gives_right((cell, row), (&over, over_row))?)
    }
}

impl MergedRow {
    /// Removes cells that are shadowed outside the merge. Returns the number of removed items.
    ///
    /// # Errors
    /// Corruption if the value of a counter is not a context.
    pub(crate) fn shadow(
        &mut self,
        shadow: &RowShadow<'_>,
        columns: &[ColumnLayout],
        versions: &[Version<'_>],
    ) -> Result<u64> {
        let shadowed = std::cell::Cell::new(0);
        let count = |is_shadowed: bool| shadowed.set(shadowed.get() + u64::from(is_shadowed));
        let mut over = shadow.deletion;
        if !shadow.keeps_deletion(&self.deletion) {
            count(!self.deletion.is_live());
            self.deletion = DeletionTime::LIVE;
        } else if !shadow.is_by_cell {
            if shadow.removed.is_empty() {
                return Ok(0);
            }
            over = DeletionTime::LIVE;
        }
        if over.deletes(self.liveness.timestamp) {
            count(!self.liveness.is_empty());
            self.liveness = Liveness::EMPTY;
        }
        let mut contexts = std::mem::take(&mut self.contexts);
        let mut result = Ok(());
        self.filter(
            |index, deletion| {
                let (left, over) = shadow.complex_shadow(over, index, *deletion);
                count(left != *deletion);
                *deletion = left;
                over
            },
            |index, complex_shadow, cell| {
                let column = columns.get(index as usize);
                let row = row_bytes(versions, cell.version);
                let is_left = match (complex_shadow, column) {
                    (Some(over), Some(column)) => over.keeps(column, (cell, row), &contexts),
                    (_, Some(column)) if column.is_counter => {
                        shadow.keeps_counter(over, index, (cell, row), &mut contexts)
                    }
                    _ => Ok(shadow.keeps(over, index, (cell, row))),
                };
                let is_left = is_left.unwrap_or_else(|error| {
                    result = Err(error);
                    true
                });
                count(!is_left);
                is_left
            },
        );
        self.contexts = contexts;
        result.map(|()| shadowed.get())
    }
}

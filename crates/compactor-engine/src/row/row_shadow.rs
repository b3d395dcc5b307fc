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
use crate::row::merged_row::{ComplexColumn, MergedRow};
use crate::row::reconcile::{CellInRow, first_wins};
use crate::row::row_version::{Version, row_bytes};

/// Data of overlapping SSTables that may shadow a row.
#[derive(Clone, Copy, Debug)]
pub enum RowShadow<'c> {
    /// The newest deletion of the partition, a range or the row, and by index whether the table no longer has
    /// a column of the merged row (`BTreeRow.filter`); empty if it has all.
    Deletion(DeletionTime, &'c [bool]),
    /// A row to compare with cell by cell.
    Row {
        /// The newest deletion of the partition or a range.
        deletion: DeletionTime,
        /// The shadowing row; `None` for an empty one.
        row: Option<ShadowingRow<'c>>,
        /// Index of its columns by those of the merged row.
        columns: &'c [u32],
    },
}

/// A row that shadows the merged row, and the versions that contain its cells.
#[derive(Clone, Copy, Debug)]
pub struct ShadowingRow<'c> {
    /// The row.
    pub row: &'c MergedRow,
    /// Its versions.
    pub versions: &'c [Version<'c>],
}

impl<'c> ShadowingRow<'c> {
    /// Returns a cell with the bytes that contain its path and value.
    fn in_row(&self, cell: &'c Cell) -> CellInRow<'c> {
        let row = match cell.version {
            MERGED_VALUE => self.row.made(),
            number => row_bytes(self.versions, number),
        };
        (cell, row)
    }
}

/// Deletion that covers everything.
const EVERYTHING: DeletionTime = DeletionTime {
    marked_for_delete_at: i64::MAX,
    local_deletion_time: i64::MAX,
};

/// Data that may shadow the cells of a row.
#[derive(Clone, Copy, Debug)]
pub struct CellShadow<'c> {
    deletion: DeletionTime,
    /// Whether deletions of complex columns are removed if they are not newer, which they are not if only
    /// rows are compared.
    is_by_cell: bool,
    removed: &'c [bool],
    row: Option<(ShadowingRow<'c>, &'c [u32])>,
}

/// Data that may shadow the cells of a complex column.
#[derive(Clone, Copy, Debug)]
pub struct ComplexShadow<'c> {
    deletion: DeletionTime,
    /// Cells of the column in the shadowing row.
    above: Option<(ShadowingRow<'c>, &'c [Cell])>,
}

impl<'c> RowShadow<'c> {
    /// Returns the remaining liveness and deletion of a row, and the data that may shadow its cells: `None`
    /// if nothing does.
    pub fn apply(
        self,
        mut liveness: Liveness,
        mut deletion: DeletionTime,
    ) -> (Liveness, DeletionTime, Option<CellShadow<'c>>) {
        let shadow = match self {
            RowShadow::Deletion(over, removed) => {
                let mut shadow = CellShadow {
                    deletion: over,
                    is_by_cell: false,
                    removed,
                    row: None,
                };
                if over.is_live() || deletion.supersedes(&over) {
                    shadow.deletion = DeletionTime::LIVE;
                    return (liveness, deletion, (!removed.is_empty()).then_some(shadow));
                }
                deletion = DeletionTime::LIVE;
                shadow
            }
            RowShadow::Row {
                deletion: over,
                row,
                columns,
            } => {
                let over = row.map_or(over, |above| over.max(above.row.deletion));
                if over.supersedes(&deletion) {
                    deletion = DeletionTime::LIVE;
                }
                CellShadow {
                    deletion: over,
                    is_by_cell: true,
                    removed: &[],
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
    /// Index in the shadowing row of a column of the merged row.
    fn shadowing_index(&self, index: u32) -> Option<(ShadowingRow<'c>, u32)> {
        let (above, columns) = self.row?;
        Some((above, *columns.get(index as usize)?))
    }

    fn shadowing_simple(&self, index: u32) -> Option<CellInRow<'c>> {
        let (above, index) = self.shadowing_index(index)?;
        Some(above.in_row(above.row.simple(index)?))
    }

    fn shadowing_complex(&self, index: u32) -> Option<(ShadowingRow<'c>, &'c ComplexColumn)> {
        let (above, index) = self.shadowing_index(index)?;
        Some((above, above.row.complex_of(index)?))
    }

    fn is_removed(&self, index: u32) -> bool {
        self.removed
            .get(index as usize)
            .is_some_and(|removed| *removed)
    }

    /// Whether a cell of a simple column remains.
    fn keeps(&self, index: u32, cell: CellInRow<'_>) -> bool {
        if self.is_removed(index) || self.deletion.deletes(cell.0.timestamp) {
            return false;
        }
        let over = self.shadowing_simple(index);
        over.is_none_or(|over| first_wins(cell, over))
    }

    /// Whether a counter remains. `contexts` are those of the merged row.
    ///
    /// # Errors
    /// Corruption if a value is not a context.
    fn keeps_counter(
        &self,
        index: u32,
        cell: CellInRow<'_>,
        contexts: &mut Contexts,
    ) -> Result<bool> {
        if self.is_removed(index) || self.deletion.deletes(cell.0.timestamp) {
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

    /// Returns the remaining deletion of a complex column, and the data that may shadow its cells.
    fn complex_shadow(
        &self,
        index: u32,
        deletion: DeletionTime,
    ) -> (DeletionTime, ComplexShadow<'c>) {
        let mut shadow = ComplexShadow {
            deletion: self.deletion,
            above: None,
        };
        if self.is_removed(index) {
            shadow.deletion = EVERYTHING;
            return (DeletionTime::LIVE, shadow);
        }
        if !self.is_by_cell {
            let left = if self.deletion.supersedes(&deletion) {
                DeletionTime::LIVE
            } else {
                deletion
            };
            return (left, shadow);
        }
        if let Some((above, column)) = self.shadowing_complex(index) {
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
    /// Whether a cell of the column remains.
    fn keeps(&self, column: &ColumnLayout, (cell, row): CellInRow<'_>) -> bool {
        if self.deletion.deletes(cell.timestamp) {
            return false;
        }
        let Some((above, cells)) = self.above else {
            return true;
        };
        let path = cell.path.of(row);
        let at = cells.binary_search_by(|over| {
            let (over, over_row) = above.in_row(over);
            column.cql_type.compare_paths(over.path.of(over_row), path)
        });
        match at.ok().and_then(|at| cells.get(at)) {
            Some(over) => first_wins((cell, row), above.in_row(over)),
            None => true,
        }
    }
}

impl MergedRow {
    /// Removes cells that are shadowed outside the merge. Returns the number of removed items.
    ///
    /// # Errors
    /// Corruption if the value of a counter is not a context.
    pub(crate) fn shadow(
        &mut self,
        over: RowShadow<'_>,
        columns: &[ColumnLayout],
        versions: &[Version<'_>],
    ) -> Result<u64> {
        let (liveness, deletion, shadow) = over.apply(self.liveness, self.deletion);
        let shadowed = std::cell::Cell::new(0);
        let count = |is_shadowed: bool| shadowed.set(shadowed.get() + u64::from(is_shadowed));
        count(liveness != self.liveness);
        count(deletion != self.deletion);
        self.liveness = liveness;
        self.deletion = deletion;
        let Some(shadow) = shadow else {
            return Ok(shadowed.get());
        };
        let mut contexts = std::mem::take(&mut self.contexts);
        let mut result = Ok(());
        self.filter(
            |index, deletion| {
                let (left, over) = shadow.complex_shadow(index, *deletion);
                count(left != *deletion);
                *deletion = left;
                over
            },
            |index, complex_shadow, cell| {
                let column = columns.get(index as usize);
                let row = row_bytes(versions, cell.version);
                let is_left = match (complex_shadow, column) {
                    (Some(over), Some(column)) => over.keeps(column, (cell, row)),
                    (_, Some(column)) if column.is_counter => {
                        let is_left = shadow.keeps_counter(index, (cell, row), &mut contexts);
                        is_left.unwrap_or_else(|error| {
                            result = Err(error);
                            true
                        })
                    }
                    _ => shadow.keeps(index, (cell, row)),
                };
                count(!is_left);
                is_left
            },
        );
        self.contexts = contexts;
        result.map(|()| shadowed.get())
    }
}

//! A row as it will be written.

use compactor_sstable::data::cell::{Cell, Liveness, NO_TTL, Span};
use compactor_sstable::data::columns::ColumnSet;
use compactor_sstable::data::deletion_time::{DeletionTime, NO_DELETION_TIME};

use crate::row::counter_merge::Contexts;
use crate::row::purge::{PurgeOutcome, Purger};
use crate::row::purge_counts::PurgeCounts;

/// A row as it will be written. Paths and values of its cells are in the rows of its versions, or in the
/// merged counter contexts.
#[derive(Debug)]
pub struct MergedRow {
    /// Primary-key liveness.
    pub liveness: Liveness,
    /// Row deletion.
    pub deletion: DeletionTime,
    /// Whether the row deletion is shadowable.
    pub is_shadowable: bool,
    /// Present columns: simple ones, until the row is complete, then all.
    pub(super) present: ColumnSet,
    /// Cells by the index of their simple column, if it is present.
    pub(super) slots: Vec<Cell>,
    /// Present complex columns, ascending.
    pub(super) complex: Vec<ComplexColumn>,
    /// Cells of the complex columns.
    pub(super) cells: Vec<Cell>,
    pub(crate) contexts: Contexts,
    /// Whether some cell is a tombstone or has a TTL.
    pub(super) has_ttl_or_tombstones: bool,
}

/// A complex column of a row.
#[derive(Clone, Copy, Debug)]
pub struct ComplexColumn {
    /// Index in the output header.
    pub index: u32,
    /// Deletion of the column.
    pub deletion: DeletionTime,
    /// Version that a part of the column was read from; 0 once the parts are merged.
    pub(super) version: u32,
    /// Range of its cells in those of the row.
    pub(super) first: u32,
    pub(super) count: u32,
}

impl Default for MergedRow {
    fn default() -> MergedRow {
        MergedRow {
            liveness: Liveness::EMPTY,
            deletion: DeletionTime::LIVE,
            is_shadowable: false,
            present: ColumnSet::default(),
            slots: Vec::new(),
            complex: Vec::new(),
            cells: Vec::new(),
            contexts: Contexts::default(),
            has_ttl_or_tombstones: false,
        }
    }
}

impl MergedRow {
    /// Clears the row and sets its number of columns.
    #[inline(always)]
    pub fn reset(&mut self, columns: usize) {
        if self.slots.len() < columns {
            self.slots.resize(columns, Cell::default());
        }
        self.liveness = Liveness::EMPTY;
        self.deletion = DeletionTime::LIVE;
        self.is_shadowable = false;
        self.present.clear();
        self.complex.clear();
        self.cells.clear();
        self.contexts.clear();
        self.has_ttl_or_tombstones = false;
    }

    /// Records the cells stored in slots: a bit for each of the first 64 columns.
    #[inline(always)]
    pub(super) fn add_read(&mut self, present: u64, has_ttl_or_tombstones: bool) {
        self.present.insert_first(present);
        self.has_ttl_or_tombstones |= has_ttl_or_tombstones;
    }

    /// Stores the cell of a simple column in its slot.
    #[inline(always)]
    pub fn put_cell(&mut self, index: u32, cell: Cell) {
        if let Some(slot) = self.slots.get_mut(index as usize) {
            *slot = cell;
            self.present.insert(index as usize);
            self.has_ttl_or_tombstones |= cell.local_deletion_time != NO_DELETION_TIME;
        }
    }

    /// Appends a complex column; indexes must ascend.
    pub fn begin_complex(&mut self, index: u32, deletion: DeletionTime) {
        self.present.insert(index as usize);
        self.complex.push(ComplexColumn {
            index,
            deletion,
            version: 0,
            first: self.cells.len() as u32,
            count: 0,
        });
    }

    /// Appends a cell to the last complex column.
    #[inline]
    pub fn push_element(&mut self, cell: Cell) {
        if let Some(column) = self.complex.last_mut() {
            self.cells.push(cell);
            column.count += 1;
        }
    }

    /// Whether there is nothing to write.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.liveness.is_empty() && self.deletion.is_live() && self.present.is_empty()
    }

    /// Present columns.
    #[inline(always)]
    pub fn present(&self) -> &ColumnSet {
        &self.present
    }

    /// Cell of a simple column.
    #[inline(always)]
    pub fn simple(&self, index: u32) -> Option<&Cell> {
        if self.present.contains(index as usize) {
            self.slots.get(index as usize)
        } else {
            None
        }
    }

    /// Complex columns, ascending.
    #[inline(always)]
    pub fn complex(&self) -> &[ComplexColumn] {
        &self.complex
    }

    /// Complex column with this index.
    pub fn complex_of(&self, index: u32) -> Option<&ComplexColumn> {
        let place = self.complex.binary_search_by_key(&index, |c| c.index);
        self.complex.get(place.ok()?)
    }

    /// Cells of a complex column.
    #[inline(always)]
    pub fn cells_of(&self, column: &ComplexColumn) -> &[Cell] {
        let first = column.first as usize;
        let cells = self.cells.get(first..first + column.count as usize);
        cells.unwrap_or_default()
    }

    /// Merged counter contexts, which contain the values of cells of version `MERGED_VALUE`.
    #[inline]
    pub fn made(&self) -> &[u8] {
        self.contexts.bytes()
    }

    /// Replaces each cell by the result of `keep`, and each deletion of a complex column by that of
    /// `of_column`.
    pub(crate) fn filter<T>(
        &mut self,
        mut of_column: impl FnMut(u32, &mut DeletionTime) -> T,
        mut keep: impl FnMut(u32, Option<&T>, &mut Cell) -> bool,
    ) {
        let slots = &mut self.slots;
        self.present.retain(|index| {
            let slot = slots.get_mut(index);
            slot.is_some_and(|cell| keep(index as u32, None, cell))
        });
        let mut kept = 0;
        for column in &mut self.complex {
            let cells = column.first as usize..(column.first + column.count) as usize;
            let of_column = of_column(column.index, &mut column.deletion);
            column.first = kept as u32;
            for number in cells {
                let Some(cell) = self.cells.get_mut(number) else {
                    break;
                };
                if keep(column.index, Some(&of_column), cell) {
                    let cell = *cell;
                    self.cells[kept] = cell;
                    kept += 1;
                }
            }
            column.count = kept as u32 - column.first;
        }
        self.cells.truncate(kept);
    }

    /// Removes purgeable data, counts it, and completes the row.
    #[inline]
    pub(super) fn purge(&mut self, purger: &Purger, counts: &mut PurgeCounts) {
        let may_lose_liveness = purger.strict_liveness && self.has_deletion(purger.now_s);
        // Nothing is copied: loading data that was just stored in parts would wait for the stores.
        if self.liveness.is_expiring() && purger.drops_liveness(&self.liveness) {
            self.liveness = Liveness::EMPTY;
            counts.expired += 1;
        }
        if purger.drops_deletion(&self.deletion) {
            self.deletion = DeletionTime::LIVE;
            counts.row_deletions += 1;
        }
        if may_lose_liveness && self.liveness.is_empty() && self.deletion.is_live() {
            counts.without_liveness += 1;
            self.present.clear();
            self.complex.clear();
            self.cells.clear();
            return;
        }
        if self.has_ttl_or_tombstones
            || self.complex.iter().any(|column| !column.deletion.is_live())
        {
            self.purge_columns(purger, counts);
        }
        if !self.complex.is_empty() {
            let is_left = |c: &ComplexColumn| c.count > 0 || !c.deletion.is_live();
            self.complex.retain(is_left);
            for column in &self.complex {
                self.present.insert(column.index as usize);
            }
        }
    }

    /// Whether something in the row is a deletion or has expired (`Row.hasDeletion`).
    fn has_deletion(&self, now_s: i64) -> bool {
        let mut simple = self
            .present
            .iter()
            .filter_map(|index| self.slots.get(index));
        let is_deleted_or_expired = |cell: &Cell| !cell.is_live(now_s);
        !self.deletion.is_live()
            || self.liveness.is_expiring() && self.liveness.local_expiration_time <= now_s
            || self.complex.iter().any(|column| !column.deletion.is_live())
            || simple.any(is_deleted_or_expired)
            || self.cells.iter().any(is_deleted_or_expired)
    }

    fn purge_columns(&mut self, purger: &Purger, counts: &mut PurgeCounts) {
        let (mut complex_deletions, mut expired, mut cell_tombstones) = (0, 0, 0);
        self.filter(
            |_, deletion| {
                let kept = purger.purge_deletion(*deletion);
                complex_deletions += u64::from(kept != *deletion);
                *deletion = kept;
            },
            |_, _, cell| match purger.purge_times(
                cell.timestamp,
                cell.local_deletion_time,
                cell.ttl,
            ) {
                PurgeOutcome::Kept => true,
                PurgeOutcome::Converted {
                    local_deletion_time,
                } => {
                    cell.local_deletion_time = local_deletion_time;
                    cell.ttl = NO_TTL;
                    cell.value = Span::EMPTY;
                    true
                }
                PurgeOutcome::Dropped => {
                    if cell.is_expiring() {
                        expired += 1
                    } else {
                        cell_tombstones += 1
                    }
                    false
                }
            },
        );
        counts.complex_deletions += complex_deletions;
        counts.expired += expired;
        counts.cell_tombstones += cell_tombstones;
    }
}

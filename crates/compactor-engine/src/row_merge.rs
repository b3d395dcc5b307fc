//! Versions of one row, from any number of inputs, become one: shadowed, reconciled, purged.
//!
//! The order matters: shadowing uses deletions as they were read, purging comes afterwards.
//!
//! 1. Best liveness and best row deletion of all versions.
//! 2. A shadowable deletion goes when the liveness is newer.
//! 3. The row deletion counts only if it supersedes what is already active (partition deletion or
//!    open range tombstone); then it is what is active for the cells.
//! 4. Liveness that the active deletion covers is emptied.
//! 5. Simple columns: the versions not covered are reconciled.
//! 6. Complex columns: the best complex deletion counts if it supersedes the active one; cells of one
//!    path are reconciled.
//! 7. Purging, item by item; a row with nothing left is not written.
//!
//! Nothing is allocated per row: views and their lists are reused.
//!
//! Source: `Row.Merger`, `Row.Merger.ColumnDataReducer`, `BTreeRow.purge`.

use std::cmp::Ordering;
use std::ops::Range;

use compactor_sstable::Error as FormatError;
use compactor_sstable::data::cell::{CellView, Liveness};
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::layout::{ColumnLayout, Layout};
use compactor_sstable::data::row::RowBody;

use crate::counter_merge::{Contexts, CounterCell};
use crate::cursor::RowRef;
use crate::dropped_columns::{ColumnDrop, DropTimes};
use crate::purge::{Purged, Purger};
use crate::reconcile::{reconcile, reconcile_in_order};
use crate::row_shadow::{CellShadow, RowShadow};

mod visits;

use visits::VisitOrder;
pub use visits::Visits;

/// A row as it will be written.
#[derive(Debug)]
pub struct MergedRow<'a> {
    /// Primary-key liveness.
    pub liveness: Liveness,
    /// Row deletion.
    pub deletion: DeletionTime,
    /// The row deletion is shadowable.
    pub is_shadowable: bool,
    /// Columns present, in output header order.
    pub columns: Vec<MergedColumn>,
    /// Cells of all columns, in that order.
    pub cells: Vec<CellView<'a>>,
    /// Index in `cells` of counters whose value a merge made, ascending, and which context it is.
    pub made_counters: Vec<(usize, Range<usize>)>,
    /// Values that merges of counters made.
    pub contexts: Contexts,
}

/// One column of a [`MergedRow`].
#[derive(Clone, Copy, Debug)]
pub struct MergedColumn {
    /// Index in the output header.
    pub index: u32,
    /// Deletion of a complex column.
    pub deletion: DeletionTime,
    /// First of its cells in [`MergedRow::cells`].
    pub first_cell: usize,
    /// Number of its cells: 1 for a simple column.
    pub cell_count: usize,
}

impl MergedRow<'_> {
    /// A cell, with its value also where a merge of counters made it.
    pub fn cell(&self, index: usize) -> Option<CellView<'_>> {
        let mut cell = *self.cells.get(index)?;
        let made = &self.made_counters;
        if let Ok(place) = made.binary_search_by_key(&index, |(made, _)| *made)
            && let Some((_, range)) = made.get(place)
        {
            cell.value = self.contexts.get(range);
        }
        Some(cell)
    }

    fn empty() -> Self {
        MergedRow {
            liveness: Liveness::EMPTY,
            deletion: DeletionTime::LIVE,
            is_shadowable: false,
            columns: Vec::new(),
            cells: Vec::new(),
            made_counters: Vec::new(),
            contexts: Contexts::default(),
        }
    }

    /// Nothing to write.
    pub fn is_empty(&self) -> bool {
        self.liveness.is_empty() && self.deletion.is_live() && self.columns.is_empty()
    }

    /// Empties the row and frees it of its lifetime; the vectors keep their memory, since a vector
    /// collected from its own `IntoIter` is the same allocation.
    fn recycle<'b>(mut self) -> MergedRow<'b> {
        self.columns.clear();
        self.cells.clear();
        self.made_counters.clear();
        self.contexts.clear();
        MergedRow {
            columns: self.columns,
            made_counters: self.made_counters,
            contexts: self.contexts,
            cells: self.cells.into_iter().map(|_| unreachable!()).collect(),
            ..MergedRow::empty()
        }
    }
}

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

/// One version of the row.
#[derive(Debug)]
struct Version<'a> {
    body: RowBody<'a>,
    /// Index of each input column in the output header.
    map: &'a [u32],
    /// Which of the versions handed in, to place an error.
    number: usize,
    /// The column that comes next: index in the input header, and in the output header.
    column: Option<(usize, u32)>,
    /// The current cell of the complex column being merged.
    cell: Option<CellView<'a>>,
    /// Cells not yet read behind it.
    cells_left: usize,
}

/// What was wrong with which of the versions.
#[derive(Debug)]
pub struct VersionError {
    /// Index in the slice of versions.
    pub number: usize,
    /// Offsets relative to that version's row.
    pub error: FormatError,
}

/// Merges rows, keeping its memory from one to the next.
#[derive(Debug)]
pub struct RowMerger {
    row: MergedRow<'static>,
    versions: Vec<Version<'static>>,
    visit_order: VisitOrder,
}

impl Default for RowMerger {
    fn default() -> Self {
        RowMerger {
            row: MergedRow::empty(),
            versions: Vec::new(),
            visit_order: VisitOrder::default(),
        }
    }
}

/// What the versions of a row meet at their clustering.
#[derive(Clone, Copy, Debug)]
pub struct RowContext<'c> {
    /// The deletion that is active there.
    pub active: DeletionTime,
    /// Inputs that take part, of which some may have no version. Cassandra counts every input of the
    /// partition for its static row and takes a row as it was read only from a single one.
    pub inputs: usize,
    /// Where versions come from, if of equal paths the bytes are to be those that Cassandra keeps.
    pub visits: Option<Visits<'c>>,
    /// What may be forgotten.
    pub purger: &'c Purger,
    /// Layout of the output.
    pub output: &'c Layout,
    /// When its columns were dropped.
    pub drops: &'c DropTimes,
    /// What lies over the row outside the merge.
    pub shadow: Option<RowShadow<'c>>,
}

impl RowMerger {
    /// Merges versions of a row (at least one) and hands the result to `write` unless nothing is
    /// left. Each version comes with the map from its columns to the output's.
    ///
    /// # Errors
    /// Damage in one of the versions.
    pub fn merge<'a>(
        &mut self,
        rows: impl Iterator<Item = (RowRef<'a>, &'a [u32])>,
        context: &RowContext<'_>,
        counts: &mut PurgeCounts,
        write: impl FnOnce(&MergedRow<'_>),
    ) -> Result<(), VersionError> {
        let mut versions = recycle_versions(std::mem::take(&mut self.versions));
        let mut row = std::mem::replace(&mut self.row, MergedRow::empty()).recycle();
        let mut is_static = false;
        for (number, (source, map)) in rows.enumerate() {
            is_static = source.head.is_static();
            versions.push(Version {
                body: source.unread_body(),
                map,
                number,
                column: None,
                cell: None,
                cells_left: 0,
            });
            if let Some(version) = versions.last_mut() {
                let read = version.body.read_start(&source.head);
                read.map_err(|error| VersionError { number, error })?;
            }
        }
        let RowContext {
            active,
            inputs,
            visits,
            purger,
            output,
            drops,
            shadow,
        } = *context;
        let columns = output.columns(is_static);
        let visits = visits.filter(|_| {
            let mut columns = columns.iter();
            versions.len() > 1 && columns.any(ColumnLayout::has_several_path_encodings)
        });
        let mut merge = Merge {
            visits: visits.map(|visits| (visits, &mut self.visit_order)),
            versions: &mut versions,
            row: &mut row,
            purger,
            drops: drops.of_kind(is_static),
            over: shadow,
            shadow: None,
            counts,
        };
        merge.run(active, inputs, columns)?;
        if !row.is_empty() {
            write(&row);
        }
        self.row = row.recycle();
        self.versions = recycle_versions(versions);
        Ok(())
    }
}

fn recycle_versions<'b>(mut versions: Vec<Version<'_>>) -> Vec<Version<'b>> {
    versions.clear();
    versions.into_iter().map(|_| unreachable!()).collect()
}

struct Merge<'m, 'a> {
    /// Where the order of visits decides something.
    visits: Option<(Visits<'m>, &'m mut VisitOrder)>,
    versions: &'m mut Vec<Version<'a>>,
    row: &'m mut MergedRow<'a>,
    purger: &'m Purger,
    /// Of the output's columns of this kind; empty if none was ever dropped.
    drops: &'m [ColumnDrop],
    /// What lies over the row outside the merge, and then over its cells.
    over: Option<RowShadow<'m>>,
    shadow: Option<CellShadow<'m>>,
    counts: &'m mut PurgeCounts,
}

impl<'a> Merge<'_, 'a> {
    fn run(
        &mut self,
        mut active: DeletionTime,
        inputs: usize,
        columns: &[ColumnLayout],
    ) -> Result<(), VersionError> {
        // One version with nothing over it is taken as it was read.
        let is_alone = inputs == 1 && active.is_live();
        let (liveness, deletion) = if is_alone {
            self.as_read()
        } else {
            self.shadow(&mut active)
        };
        let (liveness, deletion) = self.outshadow(liveness, deletion);
        self.purge_row(liveness, deletion);
        for version in self.versions.iter_mut() {
            version.next_column()?;
        }
        if let Some((visits, order)) = &mut self.visits {
            order.start_row(*visits, self.versions);
        }
        while let Some(index) = self
            .versions
            .iter()
            .filter_map(|v| v.column.map(|(_, output)| output))
            .min()
        {
            // The map leads to columns of this header only.
            let Some(column) = columns.get(index as usize) else {
                break;
            };
            if let Some((_, order)) = &mut self.visits {
                order.visit_column();
            }
            if column.is_complex {
                self.complex_column(index, column, active, is_alone)?;
            } else if column.is_counter {
                self.counter_column(index, active, is_alone)?;
            } else {
                self.simple_column(index, active, is_alone)?;
            }
            if let Some((_, order)) = &mut self.visits {
                order.next_column(self.versions);
            }
        }
        Ok(())
    }

    fn as_read(&mut self) -> (Liveness, DeletionTime) {
        let Some(version) = self.versions.first() else {
            return (Liveness::EMPTY, DeletionTime::LIVE);
        };
        self.row.is_shadowable = version.body.is_shadowable;
        (version.body.liveness, version.body.deletion)
    }

    /// Steps 1 to 4.
    fn shadow(&mut self, active: &mut DeletionTime) -> (Liveness, DeletionTime) {
        let mut liveness = Liveness::EMPTY;
        let mut deletion = DeletionTime::LIVE;
        let mut is_shadowable = false;
        for Version { body, .. } in self.versions.iter() {
            if body.liveness.supersedes(&liveness) {
                liveness = body.liveness;
            }
            if body.deletion.supersedes(&deletion) {
                deletion = body.deletion;
                is_shadowable = body.is_shadowable;
            } else if body.deletion == deletion {
                // Cassandra keeps whichever its inputs' order gives first. Here the one that lasts
                // wins, so that the order does not matter and nothing deleted comes back.
                is_shadowable &= body.is_shadowable;
            }
        }
        if is_shadowable && liveness.timestamp > deletion.marked_for_delete_at {
            deletion = DeletionTime::LIVE;
        }
        if deletion.supersedes(active) {
            *active = deletion;
        } else {
            deletion = DeletionTime::LIVE;
        }
        if active.deletes(liveness.timestamp) {
            liveness = Liveness::EMPTY;
        }
        self.row.is_shadowable = is_shadowable;
        (liveness, deletion)
    }

    /// Leaves out what is shadowed outside the merge.
    fn outshadow(
        &mut self,
        liveness: Liveness,
        deletion: DeletionTime,
    ) -> (Liveness, DeletionTime) {
        let Some(over) = self.over else {
            return (liveness, deletion);
        };
        let (left, left_deletion, shadow) = over.over(liveness, deletion);
        self.shadow = shadow;
        self.counts.shadowed += u64::from(left != liveness) + u64::from(left_deletion != deletion);
        (left, left_deletion)
    }

    /// Whether nothing outside the merge shadows a cell of a simple column.
    #[inline]
    fn is_left(&mut self, index: u32, cell: &CellView<'a>) -> bool {
        let is_left = (self.shadow).is_none_or(|shadow| shadow.leaves(index, cell));
        self.counts.shadowed += u64::from(!is_left);
        is_left
    }

    fn purge_row(&mut self, liveness: Liveness, deletion: DeletionTime) {
        self.row.liveness = self.purger.purge_liveness(liveness);
        if self.row.liveness != liveness {
            self.counts.expired += 1;
        }
        self.row.deletion = self.purger.purge_deletion(deletion);
        if self.row.deletion != deletion {
            self.counts.row_deletions += 1;
        }
    }

    /// When a column was dropped.
    #[inline]
    fn drop_of(&self, index: u32) -> ColumnDrop {
        self.drops.get(index as usize).copied().unwrap_or_default()
    }

    fn simple_column(
        &mut self,
        index: u32,
        active: DeletionTime,
        is_alone: bool,
    ) -> Result<(), VersionError> {
        let dropped = self.drop_of(index);
        let mut merged: Option<CellView<'a>> = None;
        for version in self.versions.iter_mut() {
            let Some((column, output)) = version.column else {
                continue;
            };
            if output != index {
                continue;
            }
            let cell = version.simple_cell(column, dropped, self.counts)?;
            version.next_column()?;
            if let Some(cell) = cell
                && (is_alone || !active.deletes(cell.timestamp))
            {
                merged = Some(merged.map_or(cell, |best| reconcile(best, cell)));
            }
        }
        if let Some(cell) = merged
            && self.is_left(index, &cell)
            && self.purge_into_row(cell)
        {
            self.push_simple_column(index);
        }
        Ok(())
    }

    fn counter_column(
        &mut self,
        index: u32,
        active: DeletionTime,
        is_alone: bool,
    ) -> Result<(), VersionError> {
        let dropped = self.drop_of(index);
        let mut merged: Option<CounterCell<'a>> = None;
        for version in self.versions.iter_mut() {
            let Some((column, output)) = version.column else {
                continue;
            };
            if output != index {
                continue;
            }
            let cell = version.simple_cell(column, dropped, self.counts)?;
            version.next_column()?;
            let Some(cell) = cell.filter(|c| is_alone || !active.deletes(c.timestamp)) else {
                continue;
            };
            let contexts = &mut self.row.contexts;
            let cell = contexts.read(cell).map_err(version.fail())?;
            merged = Some(match merged {
                None => cell,
                Some(best) => contexts.reconcile(best, cell).map_err(version.fail())?,
            });
        }
        if let (Some(cell), Some(shadow)) = (&merged, &self.shadow) {
            let is_left = shadow.leaves_counter(index, cell, &mut self.row.contexts);
            if !is_left.map_err(|error| VersionError { number: 0, error })? {
                self.counts.shadowed += 1;
                return Ok(());
            }
        }
        let Some((cell, made)) = merged.map(CounterCell::into_parts) else {
            return Ok(());
        };
        if self.purge_into_row(cell) {
            if let Some(range) = made {
                self.row
                    .made_counters
                    .push((self.row.cells.len() - 1, range));
            }
            self.push_simple_column(index);
        }
        Ok(())
    }

    /// Adds the column of the last cell.
    fn push_simple_column(&mut self, index: u32) {
        self.row.columns.push(MergedColumn {
            index,
            deletion: DeletionTime::LIVE,
            first_cell: self.row.cells.len() - 1,
            cell_count: 1,
        });
    }

    fn complex_column(
        &mut self,
        index: u32,
        column: &ColumnLayout,
        mut active: DeletionTime,
        is_alone: bool,
    ) -> Result<(), VersionError> {
        let dropped = self.drop_of(index);
        let mut deletion = DeletionTime::LIVE;
        for version in self.versions.iter_mut() {
            if version.column.is_some_and(|(_, output)| output == index) {
                let own = version.complex_header()?;
                if !dropped.covers(own.marked_for_delete_at) {
                    deletion = deletion.max(own);
                } else if !own.is_live() {
                    self.counts.of_dropped_columns += 1;
                }
                version.next_cell(column, dropped, self.counts)?;
            }
        }
        if is_alone {
            // Nothing else can cover its cells; what its own deletion covers is gone already.
        } else if deletion.supersedes(&active) {
            active = deletion;
        } else {
            deletion = DeletionTime::LIVE;
        }
        let over = (self.shadow).map(|shadow| shadow.over_complex(index, deletion));
        if let Some((left, _)) = over {
            self.counts.shadowed += u64::from(left != deletion);
            deletion = left;
        }
        if let Some((_, order)) = &mut self.visits {
            order.start_cells(column, self.versions);
        }
        let first_cell = self.row.cells.len();
        while let Some(cell) = self.next_merged_cell(index, column, active, is_alone)? {
            let Some(cell) = cell else { continue };
            match over {
                Some((_, shadow)) if !shadow.leaves(column, &cell) => self.counts.shadowed += 1,
                _ => {
                    self.purge_into_row(cell);
                }
            }
        }
        for version in self.versions.iter_mut() {
            if version.column.is_some_and(|(_, output)| output == index) {
                version.next_column()?;
            }
        }
        let kept = self.purger.purge_deletion(deletion);
        if kept != deletion {
            self.counts.complex_deletions += 1;
        }
        let cell_count = self.row.cells.len() - first_cell;
        if cell_count > 0 || !kept.is_live() {
            self.row.columns.push(MergedColumn {
                index,
                deletion: kept,
                first_cell,
                cell_count,
            });
        }
        Ok(())
    }

    /// Reconciles the cells of the least path; the inner `None` means that all were covered.
    fn next_merged_cell(
        &mut self,
        index: u32,
        column: &ColumnLayout,
        active: DeletionTime,
        is_alone: bool,
    ) -> Result<Option<Option<CellView<'a>>>, VersionError> {
        let dropped = self.drop_of(index);
        if let Some((_, order)) = &mut self.visits {
            order.visit_cell();
            let mut merged: Option<CellView<'a>> = None;
            for &number in &order.versions {
                let version = &mut self.versions[number as usize];
                let Some(cell) = version.cell else { continue };
                version.next_cell(column, dropped, self.counts)?;
                if is_alone || !active.deletes(cell.timestamp) {
                    merged = Some(merged.map_or(cell, |best| reconcile_in_order(best, cell)));
                }
            }
            let is_any = !order.versions.is_empty();
            order.next_cell(column, self.versions);
            return Ok(is_any.then_some(merged));
        }
        let takes_part = |v: &Version<'a>| v.column.is_some_and(|(_, output)| output == index);
        let mut least: Option<&'a [u8]> = None;
        for version in self.versions.iter().filter(|v| takes_part(v)) {
            if let Some(cell) = &version.cell
                && least.is_none_or(|path| {
                    column.cql_type.compare_paths(cell.path, path) == Ordering::Less
                })
            {
                least = Some(cell.path);
            }
        }
        let Some(path) = least else { return Ok(None) };
        let mut merged: Option<CellView<'a>> = None;
        for version in self.versions.iter_mut().filter(|v| takes_part(v)) {
            let Some(cell) = version.cell else { continue };
            if column.cql_type.compare_paths(cell.path, path) != Ordering::Equal {
                continue;
            }
            version.next_cell(column, dropped, self.counts)?;
            if is_alone || !active.deletes(cell.timestamp) {
                merged = Some(merged.map_or(cell, |best| reconcile(best, cell)));
            }
        }
        Ok(Some(merged))
    }

    /// Adds what purging leaves of `cell`; true if something.
    fn purge_into_row(&mut self, cell: CellView<'a>) -> bool {
        match self.purger.purge_cell(cell) {
            Purged::Kept(cell) | Purged::Converted(cell) => {
                self.row.cells.push(cell);
                true
            }
            Purged::Dropped => {
                if cell.is_expiring() {
                    self.counts.expired += 1;
                } else {
                    self.counts.cell_tombstones += 1;
                }
                false
            }
        }
    }
}

impl<'a> Version<'a> {
    fn fail(&self) -> impl Fn(FormatError) -> VersionError + use<> {
        let number = self.number;
        move |error| VersionError { number, error }
    }

    #[inline]
    fn next_column(&mut self) -> Result<(), VersionError> {
        let next = self.body.next_column().map_err(self.fail())?;
        self.column = match next {
            None => None,
            Some(column) => self.map.get(column).map(|output| (column, *output)),
        };
        Ok(())
    }

    #[inline]
    fn simple_cell(
        &mut self,
        column: usize,
        dropped: ColumnDrop,
        counts: &mut PurgeCounts,
    ) -> Result<Option<CellView<'a>>, VersionError> {
        let layout = self.body.column(column);
        let cell = self.body.simple_cell(layout).map_err(self.fail())?;
        if cell.is_some_and(|cell| dropped.covers(cell.timestamp)) {
            counts.of_dropped_columns += 1;
            return Ok(None);
        }
        Ok(cell)
    }

    fn complex_header(&mut self) -> Result<DeletionTime, VersionError> {
        let (deletion, count) = self.body.complex_header().map_err(self.fail())?;
        self.cells_left = count;
        self.cell = None;
        Ok(deletion)
    }

    /// Moves to the next cell that neither a deletion of its own row covers nor the drop of the
    /// column.
    fn next_cell(
        &mut self,
        column: &ColumnLayout,
        dropped: ColumnDrop,
        counts: &mut PurgeCounts,
    ) -> Result<(), VersionError> {
        let previous = self.cell.take();
        while self.cells_left > 0 {
            self.cells_left -= 1;
            let Some(cell) = self.body.complex_cell().map_err(self.fail())? else {
                continue;
            };
            if let Some(previous) = previous
                && column.cql_type.compare_paths(previous.path, cell.path) != Ordering::Less
            {
                return Err(self.fail()(FormatError::corrupt(
                    "row.cell.path",
                    0,
                    "paths of a complex column in ascending order",
                    format!(
                        "{} behind {} in column {:?}",
                        crate::cursor::hex(cell.path),
                        crate::cursor::hex(previous.path),
                        String::from_utf8_lossy(&column.name)
                    ),
                )));
            }
            if dropped.covers(cell.timestamp) {
                counts.of_dropped_columns += 1;
                continue;
            }
            self.cell = Some(cell);
            return Ok(());
        }
        Ok(())
    }
}

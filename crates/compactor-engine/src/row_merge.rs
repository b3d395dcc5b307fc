//! Versions of one row, from any number of inputs, become one: shadowed, reconciled, purged.
//!
//! The order matters: shadowing uses deletions as they were read, purging comes afterwards.
//!
//! 1. Best liveness and best row deletion of all versions.
//! 2. A shadowable deletion goes when the liveness is newer.
//! 3. The row deletion counts only if it supersedes what is already active (partition deletion or
//!    open range tombstone); then it is what is active for the cells.
//! 4. Liveness that the active deletion covers is emptied.
//! 5. Simple columns: of the cells not covered the newest is in the place of its column
//!    ([`MergedRow`]), into which each version is read once from its start to its end.
//! 6. Complex columns and counters: their cells are collected first, then those of one path reconciled
//!    ([`column_parts`]).
//! 7. What SSTables beside the merge shadow goes ([`row_shadow`](crate::row_shadow)).
//! 8. Purging, item by item; a row with nothing left is not written.
//!
//! Nothing is allocated per row: cells are offsets, and their lists are reused.
//!
//! Source: `Row.Merger`, `Row.Merger.ColumnDataReducer`, `BTreeRow.purge`.

use compactor_sstable::Error as FormatError;
use compactor_sstable::data::cell::{Cell, Liveness};
use compactor_sstable::data::deletion_time::{DeletionTime, NO_DELETION_TIME};
use compactor_sstable::data::layout::{ColumnLayout, Layout};
use compactor_sstable::data::row::{CellSink, RowRef, RowStart};
use compactor_sstable::data::row_fault::RowFault;

use crate::dropped_columns::{ColumnDrop, DropTimes};
use crate::purge::Purger;
use crate::reconcile::left_wins;
use crate::row_shadow::RowShadow;

mod column_parts;
mod merged_row;
mod purge_counts;
mod visits;

use column_parts::ColumnParts;
pub use merged_row::{ComplexColumn, MergedRow};
pub use purge_counts::PurgeCounts;
pub use visits::Visits;

/// One version of a row.
#[derive(Clone, Copy, Debug)]
pub struct Version<'a> {
    /// The row.
    pub row: RowRef<'a>,
    /// Index of each of its columns in the output header.
    pub map: &'a [u32],
}

/// The bytes of a version's row, from its first one on.
#[inline(always)]
pub(crate) fn row_bytes<'a>(versions: &[Version<'a>], number: u32) -> &'a [u8] {
    let version = versions.get(number as usize);
    version.map_or(&[], |version| version.row.bytes)
}

/// What was wrong with which of the versions.
#[derive(Debug)]
pub struct VersionError {
    /// Number of the version.
    pub number: usize,
    /// Offsets relative to that version's row.
    pub error: FormatError,
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
    /// What its columns are like.
    pub kind: RowKind,
}

/// What is decided about static or regular columns once per table.
#[derive(Clone, Copy, Debug)]
pub struct RowKind {
    /// The static row.
    pub is_static: bool,
    /// Some column is a counter.
    pub has_counters: bool,
    /// Of some column equal paths may be different bytes.
    pub has_several_path_encodings: bool,
}

impl RowKind {
    /// Rows of an output.
    pub fn of(output: &Layout, is_static: bool) -> RowKind {
        let columns = output.columns(is_static);
        RowKind {
            is_static,
            has_counters: columns.iter().any(|column| column.is_counter),
            has_several_path_encodings: columns
                .iter()
                .any(ColumnLayout::has_several_path_encodings),
        }
    }
}

impl<'c> RowContext<'c> {
    /// Where versions come from, if that decides something.
    fn decisive_visits(&self) -> Option<Visits<'c>> {
        self.visits.filter(|_| self.kind.has_several_path_encodings)
    }
}

/// Merges rows, keeping its memory from one to the next.
#[derive(Debug, Default)]
pub struct RowMerger {
    row: MergedRow,
    starts: Vec<RowStart>,
    parts: ColumnParts,
}

impl RowMerger {
    /// Merges versions of a row (at least one). What is left may be empty.
    ///
    /// # Errors
    /// Damage in one of the versions.
    #[inline]
    pub fn merge(
        &mut self,
        versions: &[Version<'_>],
        context: &RowContext<'_>,
        counts: &mut PurgeCounts,
    ) -> Result<&MergedRow, VersionError> {
        let columns = context.output.columns(context.kind.is_static);
        self.row.reset(columns.len());
        self.parts.clear();
        // One version with nothing over it is taken as it was read.
        let is_alone = context.inputs == 1 && context.active.is_live();
        let active = match is_alone {
            true => {
                self.read_only(versions, context, counts)?;
                DeletionTime::LIVE
            }
            false => self.read_all(versions, context, counts)?,
        };
        if !self.parts.is_empty() {
            let (parts, row) = (&mut self.parts, &mut self.row);
            parts.merge_into(row, versions, context, active, is_alone)?;
        }
        if let Some(shadow) = context.shadow {
            let shadowed = self.row.shadow(shadow, columns, versions);
            counts.shadowed += shadowed.map_err(|error| VersionError { number: 0, error })?;
        }
        self.row.purge(context.purger, counts);
        Ok(&self.row)
    }

    /// Reads the only version.
    #[inline(always)]
    fn read_only(
        &mut self,
        versions: &[Version<'_>],
        context: &RowContext<'_>,
        counts: &mut PurgeCounts,
    ) -> Result<(), VersionError> {
        let Some(only) = versions.first() else {
            return Ok(());
        };
        let only = only.row;
        let mut start = RowStart::EMPTY;
        let read = only.read_start(&mut start);
        read.map_err(|fault| describe(0, &only, fault))?;
        let row = &mut self.row;
        row.liveness = start.liveness;
        row.deletion = start.deletion;
        row.is_shadowable = start.is_shadowable;
        let active = DeletionTime::LIVE;
        let parts = &mut self.parts;
        let mut sink = sink::<true>(row, parts, versions, 0, context, active, counts);
        let read = only.read_cells(&start, 0, &mut sink);
        read.map_err(|fault| describe(0, &only, fault))
    }

    /// Reads all versions, and returns the deletion that is active for their cells.
    fn read_all(
        &mut self,
        versions: &[Version<'_>],
        context: &RowContext<'_>,
        counts: &mut PurgeCounts,
    ) -> Result<DeletionTime, VersionError> {
        let count = versions.len();
        if self.starts.len() < count {
            self.starts.resize(count, RowStart::EMPTY);
        }
        let RowMerger { row, starts, parts } = self;
        let starts = &mut starts[..count];
        for (number, (start, version)) in starts.iter_mut().zip(versions).enumerate() {
            let read = version.row.read_start(start);
            read.map_err(|fault| describe(number, &version.row, fault))?;
        }
        let mut active = context.active;
        newest(starts, &mut active, row);
        for (number, (start, version)) in starts.iter().zip(versions).enumerate() {
            let version = &version.row;
            let mut sink = sink::<false>(row, parts, versions, number, context, active, counts);
            let read = version.read_cells(start, number as u32, &mut sink);
            read.map_err(|fault| describe(number, version, fault))?;
        }
        Ok(active)
    }
}

/// Steps 1 to 4.
#[inline(always)]
fn newest(starts: &[RowStart], active: &mut DeletionTime, row: &mut MergedRow) {
    let mut liveness = Liveness::EMPTY;
    let mut deletion = DeletionTime::LIVE;
    let mut is_shadowable = false;
    for start in starts {
        if start.liveness.supersedes(&liveness) {
            liveness = start.liveness;
        }
        if start.deletion.supersedes(&deletion) {
            deletion = start.deletion;
            is_shadowable = start.is_shadowable;
        } else if start.deletion == deletion {
            // Cassandra keeps whichever its inputs' order gives first. Here the one that lasts
            // wins, so that the order does not matter and nothing deleted comes back.
            is_shadowable &= start.is_shadowable;
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
    row.liveness = liveness;
    row.deletion = deletion;
    row.is_shadowable = is_shadowable;
}

#[inline(always)]
fn sink<'m, 'c, const IS_ALONE: bool>(
    row: &'m mut MergedRow,
    parts: &'m mut ColumnParts,
    versions: &'m [Version<'m>],
    number: usize,
    context: &RowContext<'m>,
    active: DeletionTime,
    counts: &'c mut PurgeCounts,
) -> VersionSink<'m, 'c, IS_ALONE> {
    let drops = context.drops.of_kind(context.kind.is_static);
    let has_visits = !IS_ALONE && context.decisive_visits().is_some();
    VersionSink {
        row,
        parts,
        map: versions.get(number).map_or(&[], |version| version.map),
        version: number as u32,
        versions,
        active,
        drops,
        dropped: ColumnDrop::default(),
        has_visits,
        has_counters: context.kind.has_counters,
        needs_care: !drops.is_empty() || context.kind.has_counters || has_visits,
        counts,
    }
}

#[cold]
#[inline(never)]
fn describe(number: usize, row: &RowRef<'_>, fault: RowFault) -> VersionError {
    VersionError {
        number,
        error: fault.describe(row),
    }
}

/// Takes the cells of one version.
struct VersionSink<'m, 'c, const IS_ALONE: bool> {
    row: &'m mut MergedRow,
    parts: &'m mut ColumnParts,
    /// Index of each of its columns in the output header.
    map: &'m [u32],
    version: u32,
    versions: &'m [Version<'m>],
    active: DeletionTime,
    /// Of the output's columns; empty if none was ever dropped.
    drops: &'m [ColumnDrop],
    /// Of the complex column that is being read.
    dropped: ColumnDrop,
    has_visits: bool,
    has_counters: bool,
    /// Something about the table that most have not.
    needs_care: bool,
    counts: &'c mut PurgeCounts,
}

impl<const IS_ALONE: bool> CellSink for VersionSink<'_, '_, IS_ALONE> {
    #[inline(always)]
    fn simple(&mut self, column: usize, cell: Cell) {
        let Some(&index) = self.map.get(column) else {
            return;
        };
        if self.needs_care && !self.takes(index, cell) {
            return;
        }
        if !IS_ALONE {
            if self.active.deletes(cell.timestamp) {
                return;
            }
            if let Some(other) = self.row.simple(index)
                && (other.timestamp > cell.timestamp
                    || other.timestamp == cell.timestamp && self.keeps(other, cell))
            {
                return;
            }
        }
        self.row.put_cell(index, cell);
    }

    #[inline]
    fn complex(&mut self, column: usize, deletion: DeletionTime) {
        let Some(&index) = self.map.get(column) else {
            return;
        };
        self.dropped = self.drops.get(index as usize).copied().unwrap_or_default();
        let deletion = match self.dropped.covers(deletion.marked_for_delete_at) {
            true => {
                self.counts.of_dropped_columns += u64::from(!deletion.is_live());
                DeletionTime::LIVE
            }
            false => deletion,
        };
        self.parts.begin(index, self.version, deletion);
    }

    #[inline(always)]
    fn element(&mut self, cell: Cell) {
        if self.dropped.covers(cell.timestamp) {
            self.counts.of_dropped_columns += 1;
            return;
        }
        self.row.has_mortal |= cell.local_deletion_time != NO_DELETION_TIME;
        self.parts.push(cell);
    }
}

impl<const IS_ALONE: bool> VersionSink<'_, '_, IS_ALONE> {
    /// Whether a cell of a simple column goes to its place: it may have been dropped, or be a counter.
    #[cold]
    fn takes(&mut self, index: u32, cell: Cell) -> bool {
        let dropped = self.drops.get(index as usize).copied().unwrap_or_default();
        if dropped.covers(cell.timestamp) {
            self.counts.of_dropped_columns += 1;
            return false;
        }
        if self.has_counters {
            self.row.has_mortal |= cell.local_deletion_time != NO_DELETION_TIME;
            self.parts.begin(index, self.version, DeletionTime::LIVE);
            self.parts.push(cell);
            return false;
        }
        if self.has_visits {
            self.parts.note_simple(self.version, index);
        }
        true
    }

    /// Whether the cell that is there stays, of two of one timestamp.
    #[cold]
    fn keeps(&self, other: &Cell, cell: Cell) -> bool {
        let other_row = row_bytes(self.versions, other.version);
        left_wins(
            (other, other_row),
            (&cell, row_bytes(self.versions, self.version)),
        )
    }
}

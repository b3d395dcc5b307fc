//! Merge of the versions of one row from any number of inputs: shadowing, reconciliation and purging.
//!
//! The order matters: shadowing uses deletions as they were read, and purging comes last. TTLs are removed
//! as versions are read, if at all ([`strip_ttl`](crate::row::strip_ttl)).
//!
//! 1. The newest liveness and the newest row deletion of all versions are chosen.
//! 2. A shadowable deletion is removed if the liveness is newer.
//! 3. The row deletion counts only if it supersedes the active deletion (partition deletion or open range
//!    tombstone); then it is the active deletion for the cells.
//! 4. A liveness that the active deletion covers is emptied.
//! 5. Simple columns: each version is read once from start to end, and the newest cell that is not covered, or
//!    the sum of counters, is stored in the slot of its column ([`MergedRow`]).
//! 6. Complex columns: their cells are collected first, then reconciled, or added up, by path (`column_parts.rs`).
//! 7. Cells shadowed by overlapping SSTables are removed ([`row_shadow`](crate::row::row_shadow)).
//! 8. Each item is purged; a row with nothing left is not written.
//!
//! Nothing is allocated per row: cells are offsets, and their lists are reused. Rows that have columns of which the
//! order of visits matters are the exception (`visits.rs`).
//!
//! Source: `Row.Merger`, `Row.Merger.ColumnDataReducer`, `BTreeRow.purge`.

use std::sync::Arc;

use compactor_sstable::Error as FormatError;
use compactor_sstable::data::cell::{Cell, Liveness};
use compactor_sstable::data::columns::ColumnSet;
use compactor_sstable::data::counter::Context;
use compactor_sstable::data::deletion_time::{DeletionTime, NO_DELETION_TIME};
use compactor_sstable::data::layout::{ColumnLayout, Layout};
use compactor_sstable::data::row::{CellSink, RowStart};
use compactor_sstable::data::row_fault::RowFault;
use compactor_sstable::types::CqlType;

use crate::row::counter_merge::Contexts;
use crate::row::dropped_columns::{ColumnDrop, DropTimes};
use crate::row::merged_row::MergedRow;
use crate::row::purge::Purger;
use crate::row::purge_counts::PurgeCounts;
use crate::row::reconcile::left_wins;
use crate::row::row_shadow::RowShadow;
use crate::row::row_version::{Version, VersionError, row_bytes};
use crate::row::strip_ttl::{strip_cell, strip_liveness};

mod column_parts;
mod visits;

use column_parts::ColumnParts;
pub use visits::Visits;

/// State of the partition at the clustering of a row.
#[derive(Clone, Debug)]
pub struct RowContext<'c> {
    /// Whether the row is the static row.
    pub is_static: bool,
    /// Active deletion: that of the partition or of the open range tombstone.
    pub active: DeletionTime,
    /// Number of inputs that have the row; of a static row, those that have the partition: Cassandra counts them
    /// all, and returns a row unmerged only if there is a single one.
    pub inputs: usize,
    /// Sources of the versions, if of cells with equal paths the bytes that Cassandra keeps are to be
    /// written.
    pub visits: Option<Visits<'c>>,
    /// Purge decisions.
    pub purger: &'c Purger,
    /// Shadowing of the row by SSTables outside the merge.
    pub shadow: Option<RowShadow<'c>>,
}

/// Merger of rows. Its memory is reused from row to row.
#[derive(Debug)]
pub struct RowMerger {
    output: Arc<Layout>,
    static_columns: ColumnsOfKind,
    regular_columns: ColumnsOfKind,
    row: MergedRow,
    starts: Vec<RowStart>,
    parts: ColumnParts,
}

/// Properties of the static or the regular columns, known before any row is read.
#[derive(Debug)]
struct ColumnsOfKind {
    /// Drop times; empty if no column was dropped.
    drops: Vec<ColumnDrop>,
    /// Which columns are counters; empty if none is.
    counters: Vec<bool>,
    /// Whether some column has paths that compare equal but differ in their bytes.
    has_several_path_encodings: bool,
    /// Whether cells and rows lose their TTL.
    strips_ttl: bool,
}

impl ColumnsOfKind {
    fn of(columns: &[ColumnLayout]) -> ColumnsOfKind {
        let mut paths = columns.iter().filter_map(|c| c.cql_type.path_type());
        let counters: Vec<bool> = columns.iter().map(|column| column.is_counter).collect();
        ColumnsOfKind {
            drops: Vec::new(),
            counters: if counters.contains(&true) {
                counters
            } else {
                Vec::new()
            },
            has_several_path_encodings: paths.any(CqlType::has_several_encodings),
            strips_ttl: false,
        }
    }

    /// Whether cells are dropped, stripped of their TTL or added up, which is so for few tables.
    fn needs_care(&self) -> bool {
        !self.drops.is_empty() || !self.counters.is_empty() || self.strips_ttl
    }

    #[inline(always)]
    fn drop_of(&self, index: u32) -> ColumnDrop {
        self.drops.get(index as usize).copied().unwrap_or_default()
    }

    #[inline(always)]
    fn is_counter(&self, index: u32) -> bool {
        self.counters
            .get(index as usize)
            .copied()
            .unwrap_or_default()
    }
}

impl RowMerger {
    /// Creates a merger of rows of this layout, none of whose columns was dropped.
    pub fn new(output: Arc<Layout>) -> RowMerger {
        RowMerger {
            static_columns: ColumnsOfKind::of(output.columns(true)),
            regular_columns: ColumnsOfKind::of(output.columns(false)),
            output,
            row: MergedRow::default(),
            starts: Vec::new(),
            parts: ColumnParts::default(),
        }
    }

    /// Sets the times at which columns were dropped.
    #[must_use]
    pub fn with_drops(mut self, drops: &DropTimes) -> RowMerger {
        self.static_columns.drops = drops.of_kind(true).to_vec();
        self.regular_columns.drops = drops.of_kind(false).to_vec();
        self
    }

    /// Sets whether cells and rows lose their TTL before they are reconciled.
    #[must_use]
    pub fn stripping_ttl(mut self, strips_ttl: bool) -> RowMerger {
        self.static_columns.strips_ttl = strips_ttl;
        self.regular_columns.strips_ttl = strips_ttl;
        self
    }

    /// Whether some column of rows other than static ones was dropped.
    pub(crate) fn has_dropped_columns(&self) -> bool {
        !self.regular_columns.drops.is_empty()
    }

    /// Whether a version of a row contains anything but data of dropped columns, which is counted.
    ///
    /// # Errors
    /// Damage in the version.
    pub(crate) fn is_anything_left(
        &mut self,
        is_static: bool,
        version: Version<'_>,
        counts: &mut PurgeCounts,
    ) -> Result<bool, FormatError> {
        let start = version.row.start();
        let start = start.map_err(|fault| fault.describe(&version.row))?;
        if !start.liveness.is_empty() || !start.deletion.is_live() {
            return Ok(true);
        }
        let context = RowContext {
            is_static,
            active: DeletionTime::LIVE,
            inputs: 1,
            visits: None,
            purger: &Purger::KEEP_ALL,
            shadow: None,
        };
        let merged = self.merge(&[version], &context, counts);
        merged
            .map(|row| !row.is_empty())
            .map_err(|VersionError { error, .. }| error)
    }

    /// Merges the versions of a row (at least one). The result may be empty.
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
        let RowMerger {
            output,
            static_columns,
            regular_columns,
            row,
            starts,
            parts,
        } = self;
        let columns = output.columns(context.is_static);
        let kind = if context.is_static {
            &*static_columns
        } else {
            &*regular_columns
        };
        row.reset(columns.len());
        parts.clear();
        // A single version that nothing shadows is returned as it was read.
        let is_single = context.inputs == 1 && context.active.is_live() && versions.len() == 1;
        if starts.len() < versions.len() {
            starts.resize(versions.len(), RowStart::EMPTY);
        }
        for (number, (start, version)) in starts.iter_mut().zip(versions).enumerate() {
            let read = version.row.read_start(start);
            read.map_err(|fault| describe(number, version, fault))?;
            if kind.strips_ttl {
                strip_liveness(&mut start.liveness, counts);
            }
        }
        let starts = &starts[..versions.len()];
        let active = if is_single {
            DeletionTime::LIVE
        } else {
            newest(starts, context.active, row)
        };
        let visits = context
            .visits
            .filter(|_| !is_single && kind.has_several_path_encodings);
        let has_visits = visits.is_some();
        let (mut error, mut addend) = (None, Cell::default());
        let mut sink = VersionSink {
            slots: &mut row.slots,
            further: &mut row.present,
            contexts: &mut row.contexts,
            addend: &mut addend,
            present: 0,
            has_ttl_or_tombstones: false,
            parts,
            versions,
            version: 0,
            map: &[],
            is_single,
            active,
            kind,
            dropped: ColumnDrop::default(),
            has_counters: false,
            has_visits,
            needs_care: has_visits || kind.needs_care(),
            counts,
            error: &mut error,
        };
        for (number, (start, version)) in starts.iter().zip(versions).enumerate() {
            sink.version = number as u32;
            sink.map = version.map;
            let read = version.row.read_cells(start, number as u32, &mut sink);
            read.map_err(|fault| describe(number, version, fault))?;
        }
        let (present, has_ttl_or_tombstones) = (sink.present, sink.has_ttl_or_tombstones);
        row.add_read(present, has_ttl_or_tombstones);
        if let Some(error) = error {
            return Err(error);
        }
        // After the cells: `starts` was written field by field, and copying it right away would stall (store forwarding).
        if let [only] = starts
            && is_single
        {
            row.liveness = only.liveness;
            row.deletion = only.deletion;
            row.is_shadowable = only.is_shadowable;
        }
        if !parts.is_empty() {
            if is_single {
                parts.take_as_read(row);
            } else {
                parts.merge_paths(row, versions, columns, active, visits)?;
            }
        }
        if let Some(shadow) = &context.shadow {
            let shadowed = row.shadow(shadow, columns, versions);
            counts.shadowed += shadowed.map_err(|error| VersionError { number: 0, error })?;
        }
        row.purge(context.purger, counts);
        Ok(row)
    }
}

/// Steps 1 to 4. Returns the active deletion for the cells.
#[inline(always)]
fn newest(starts: &[RowStart], active: DeletionTime, row: &mut MergedRow) -> DeletionTime {
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
            // Cassandra keeps the one that comes first in the order of its inputs. Here the deletion that is
            // not shadowable wins, so that the order does not matter and no deleted data reappears.
            is_shadowable &= start.is_shadowable;
        }
    }
    if is_shadowable && liveness.timestamp > deletion.marked_for_delete_at {
        deletion = DeletionTime::LIVE;
    }
    let mut active = active;
    if deletion.supersedes(&active) {
        active = deletion;
    } else {
        deletion = DeletionTime::LIVE;
    }
    if active.deletes(liveness.timestamp) {
        liveness = Liveness::EMPTY;
    }
    row.liveness = liveness;
    row.deletion = deletion;
    row.is_shadowable = is_shadowable;
    active
}

#[cold]
#[inline(never)]
fn describe(number: usize, version: &Version<'_>, fault: RowFault) -> VersionError {
    VersionError {
        number,
        error: fault.describe(&version.row),
    }
}

/// Receiver of the versions' cells. Fields that change with each cell are stored in the struct itself, and no
/// function that is not inlined gets a reference to it, so that they stay in registers.
struct VersionSink<'m> {
    /// Slots of simple columns, and the set of columns with a cell beyond those in `present`.
    slots: &'m mut [Cell],
    further: &'m mut ColumnSet,
    contexts: &'m mut Contexts,
    /// The counter to be added to the one in its slot.
    addend: &'m mut Cell,
    /// Bit set of the first 64 columns that have a cell.
    present: u64,
    /// Whether some cell is a tombstone or has a TTL.
    has_ttl_or_tombstones: bool,
    parts: &'m mut ColumnParts,
    versions: &'m [Version<'m>],
    /// Number of the version being read, and index of each of its columns in the output header.
    version: u32,
    map: &'m [u32],
    /// Whether there is one version, and nothing shadows it.
    is_single: bool,
    active: DeletionTime,
    kind: &'m ColumnsOfKind,
    /// Drop time of the complex column being read.
    dropped: ColumnDrop,
    /// Whether the cells of that column are counters.
    has_counters: bool,
    has_visits: bool,
    /// Whether cells are dropped, stripped of their TTL or added up, or the order of visits matters.
    needs_care: bool,
    counts: &'m mut PurgeCounts,
    /// First error in the value of a counter. Outside the struct, which is not dropped then.
    error: &'m mut Option<VersionError>,
}

impl VersionSink<'_> {
    #[inline(always)]
    fn has_cell(&self, index: u32) -> bool {
        if index < 64 {
            self.present & (1 << index) != 0
        } else {
            self.further.contains(index as usize)
        }
    }

    #[inline(always)]
    fn set_present(&mut self, index: u32) {
        if index < 64 {
            self.present |= 1 << index
        } else {
            self.further.insert(index as usize)
        }
    }
}

impl CellSink for VersionSink<'_> {
    #[inline(always)]
    fn simple(&mut self, column: usize, cell: Cell) {
        let Some(&index) = self.map.get(column) else {
            return;
        };
        let mut cell = cell;
        if self.needs_care {
            if self.kind.drop_of(index).covers(cell.timestamp) {
                self.counts.of_dropped_columns += 1;
                return;
            }
            if self.kind.strips_ttl {
                cell = strip_cell(cell, self.counts);
            }
            if self.has_visits {
                self.parts.note_simple(cell.version, index);
            }
        }
        let has_cell = self.has_cell(index);
        let Some(slot) = self.slots.get_mut(index as usize) else {
            return;
        };
        if !self.is_single && self.active.deletes(cell.timestamp) {
            return;
        }
        if self.needs_care && self.kind.is_counter(index) {
            // Passing `cell` by reference would force it into memory, and copying it from there would stall (store
            // forwarding).
            let added = if has_cell {
                *self.addend = cell;
                add_counter(self.contexts, self.versions, slot, self.addend)
            } else {
                *slot = cell;
                clear_local(self.contexts, self.versions, slot)
            };
            if let Err(error) = added {
                self.error.get_or_insert(error);
                return;
            }
            self.has_ttl_or_tombstones |= slot.local_deletion_time != NO_DELETION_TIME;
            self.set_present(index);
            return;
        }
        if has_cell
            && (slot.timestamp > cell.timestamp
                || slot.timestamp == cell.timestamp && keeps(self.versions, slot, cell))
        {
            return;
        }
        *slot = cell;
        self.has_ttl_or_tombstones |= cell.local_deletion_time != NO_DELETION_TIME;
        self.set_present(index);
    }

    #[inline(always)]
    fn complex(&mut self, column: usize, deletion: DeletionTime) {
        let Some(&index) = self.map.get(column) else {
            return;
        };
        self.dropped = self.kind.drop_of(index);
        self.has_counters = self.kind.is_counter(index);
        let deletion = if self.dropped.covers(deletion.marked_for_delete_at) {
            self.counts.of_dropped_columns += u64::from(!deletion.is_live());
            DeletionTime::LIVE
        } else {
            deletion
        };
        self.parts.begin(index, self.version, deletion);
    }

    #[inline(always)]
    fn element(&mut self, cell: Cell) {
        let mut cell = cell;
        if self.needs_care {
            if self.dropped.covers(cell.timestamp) {
                self.counts.of_dropped_columns += 1;
                return;
            }
            if self.kind.strips_ttl {
                cell = strip_cell(cell, self.counts);
            }
            if self.has_counters
                && let Err(error) = check_counter(self.versions, cell)
            {
                self.error.get_or_insert(error);
                return;
            }
        }
        self.has_ttl_or_tombstones |= cell.local_deletion_time != NO_DELETION_TIME;
        self.parts.push(cell);
    }
}

/// Makes the local shards of a counter remote, if its context asks for it.
///
/// # Errors
/// Corruption if the value is not a context.
#[inline(never)]
fn clear_local(
    contexts: &mut Contexts,
    versions: &[Version<'_>],
    cell: &mut Cell,
) -> Result<(), VersionError> {
    let number = cell.version;
    let cleared = contexts.clear_local(cell, row_bytes(versions, number));
    cleared.map_err(|error| VersionError {
        number: number as usize,
        error,
    })
}

/// Checks the counter of a complex column, which may be written as it is.
///
/// # Errors
/// Corruption if the value is not a context.
#[inline(never)]
fn check_counter(versions: &[Version<'_>], cell: Cell) -> Result<(), VersionError> {
    if cell.local_deletion_time != NO_DELETION_TIME || cell.value.is_empty() {
        return Ok(());
    }
    let context = Context::parse(cell.value.of(row_bytes(versions, cell.version)));
    context.map(|_| ()).map_err(|error| VersionError {
        number: cell.version as usize,
        error,
    })
}

/// Adds a counter to the one of the versions before.
///
/// # Errors
/// Corruption if a value is not a context.
#[inline(never)]
fn add_counter(
    contexts: &mut Contexts,
    versions: &[Version<'_>],
    stored: &mut Cell,
    cell: &mut Cell,
) -> Result<(), VersionError> {
    let number = cell.version;
    clear_local(contexts, versions, cell)?;
    let stored_bytes = row_bytes(versions, stored.version);
    let added = contexts.add((stored, stored_bytes), (cell, row_bytes(versions, number)));
    added.map_err(|error| VersionError {
        number: number as usize,
        error,
    })
}

/// Whether `other`, the stored one of two cells with equal timestamps, stays.
#[cold]
#[inline(never)]
fn keeps(versions: &[Version<'_>], other: &Cell, cell: Cell) -> bool {
    let other_row = row_bytes(versions, other.version);
    left_wins(
        (other, other_row),
        (&cell, row_bytes(versions, cell.version)),
    )
}

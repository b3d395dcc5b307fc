//! Versions of one row that have simple columns alone, merged in one go.
//!
//! The steps and their order are those of [`row_merge`](crate::row_merge), which merges any rows, and a
//! property test holds the two to the same outcome. Each column has a place, and each version is read
//! once from its start to its end, cell by cell into these places: no lists of versions and columns, no
//! error that has to be passed on.

use compactor_sstable::data::cell::{CellView, Liveness, NO_TTL};
use compactor_sstable::data::columns::LIST_FORM_FROM;
use compactor_sstable::data::deletion_time::{DeletionTime, NO_DELETION_TIME};
use compactor_sstable::data::layout::Layout;
use compactor_sstable::data::simple_row::{SimpleCell, SimpleRow};

use crate::purge::{PurgedTimes, Purger};
use crate::reconcile::left_wins;
use crate::row_merge::PurgeCounts;

/// Versions that are merged here at most.
pub(crate) const MOST_VERSIONS: usize = 16;

/// One version of the row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimpleVersion<'a> {
    pub(crate) row: SimpleRow<'a>,
    /// Of its SSTable.
    pub(crate) layout: &'a Layout,
    /// Index of each of its columns in the output.
    pub(crate) map: &'a [u32],
}

/// What is left of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimpleRemains {
    pub(crate) liveness: Liveness,
    pub(crate) deletion: DeletionTime,
    /// Columns of the output that have a cell, a bit each.
    pub(crate) present: u64,
}

impl SimpleRemains {
    /// Nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        self.liveness.is_empty() && self.deletion.is_live() && self.present == 0
    }
}

/// A cell, and which of the versions it is of.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    cell: SimpleCell,
    version: u32,
}

/// Merges simple rows, keeping its memory from one to the next.
#[derive(Debug)]
pub(crate) struct SimpleMerger {
    /// Of each column of the output.
    places: Vec<Place>,
    /// Some cell of the row is a tombstone or expires.
    has_mortal: bool,
}

impl SimpleMerger {
    /// Rows of so many columns; `None` if these are too many for [`SimpleRow`].
    pub(crate) fn new(columns: usize) -> Option<SimpleMerger> {
        (columns < LIST_FORM_FROM).then(|| SimpleMerger {
            places: vec![Place::default(); columns],
            has_mortal: false,
        })
    }

    /// Merges versions under the deletion that is active at their clustering. `None`, with nothing counted,
    /// where a version is damaged, or has columns that the output has not.
    #[inline(always)]
    pub(crate) fn merge(
        &mut self,
        versions: &[SimpleVersion<'_>],
        mut active: DeletionTime,
        purger: &Purger,
        counts: &mut PurgeCounts,
    ) -> Option<SimpleRemains> {
        let (liveness, deletion, present) = match versions {
            // One version with nothing over it is taken as it was read.
            [only] if active.is_live() => {
                let present = self.cells_of(only)?;
                (only.row.liveness, only.row.deletion, present)
            }
            _ => {
                let (liveness, deletion) = newest(versions, &mut active);
                let present = self.newest_cells(versions, active)?;
                (liveness, deletion, present)
            }
        };
        let kept = SimpleRemains {
            liveness: purger.purge_liveness(liveness),
            deletion: purger.purge_deletion(deletion),
            present: match self.has_mortal {
                true => self.purge(present, purger, counts),
                false => present,
            },
        };
        counts.expired += u64::from(kept.liveness != liveness);
        counts.row_deletions += u64::from(kept.deletion != deletion);
        Some(kept)
    }

    /// Puts all cells of a version into their places. Returns which have one.
    #[inline(always)]
    fn cells_of(&mut self, version: &SimpleVersion<'_>) -> Option<u64> {
        let mut present = 0u64;
        let mut has_mortal = false;
        let mut cells = version.row.cells();
        while let Some((column, cell)) = cells.next(version.layout)? {
            let index = *version.map.get(column)?;
            *self.places.get_mut(index as usize)? = Place { cell, version: 0 };
            present |= 1 << index;
            has_mortal |= cell.local_deletion_time != NO_DELETION_TIME;
        }
        self.has_mortal = has_mortal;
        Some(present)
    }

    /// Puts the newest cell of each column that `active` leaves into its place. Returns which have one.
    #[inline(always)]
    fn newest_cells(
        &mut self,
        versions: &[SimpleVersion<'_>],
        active: DeletionTime,
    ) -> Option<u64> {
        let mut present = 0u64;
        let mut has_mortal = false;
        for (number, version) in (0..).zip(versions) {
            let mut cells = version.row.cells();
            while let Some((column, cell)) = cells.next(version.layout)? {
                let index = *version.map.get(column)?;
                let place = self.places.get_mut(index as usize)?;
                if active.deletes(cell.timestamp) {
                    continue;
                }
                let bit = 1 << index;
                if present & bit == 0 || !keeps(place, versions, &cell, version.row.bytes) {
                    *place = Place {
                        cell,
                        version: number,
                    };
                }
                present |= bit;
                has_mortal |= cell.local_deletion_time != NO_DELETION_TIME;
            }
        }
        self.has_mortal = has_mortal;
        Some(present)
    }

    /// Purges the cells of these columns. Returns which are left.
    fn purge(&mut self, mut present: u64, purger: &Purger, counts: &mut PurgeCounts) -> u64 {
        let mut left = present;
        while left != 0 {
            let index = left.trailing_zeros() as usize;
            left &= left - 1;
            let Some(Place { cell, .. }) = self.places.get_mut(index) else {
                continue;
            };
            match purger.purge_times(cell.timestamp, cell.local_deletion_time, cell.ttl) {
                PurgedTimes::Kept => {}
                PurgedTimes::Converted {
                    local_deletion_time,
                } => {
                    cell.local_deletion_time = local_deletion_time;
                    cell.ttl = NO_TTL;
                    cell.value_len = 0;
                }
                PurgedTimes::Dropped => {
                    present &= !(1 << index);
                    match cell.ttl {
                        NO_TTL => counts.cell_tombstones += 1,
                        _ => counts.expired += 1,
                    }
                }
            }
        }
        present
    }

    /// The cell of a column that is present, and the bytes of its row, which is one of `versions`.
    #[inline(always)]
    pub(crate) fn cell<'a>(
        &self,
        column: usize,
        versions: &[SimpleVersion<'a>],
    ) -> Option<(SimpleCell, &'a [u8])> {
        let place = self.places.get(column)?;
        let version = versions.get(place.version as usize)?;
        Some((place.cell, version.row.bytes))
    }
}

/// The newest liveness and row deletion of several versions, or of one under a deletion, beside what is
/// active, which the row's own deletion may become.
#[inline(always)]
fn newest(versions: &[SimpleVersion<'_>], active: &mut DeletionTime) -> (Liveness, DeletionTime) {
    let mut liveness = Liveness::EMPTY;
    let mut deletion = DeletionTime::LIVE;
    for SimpleVersion { row, .. } in versions {
        if row.liveness.supersedes(&liveness) {
            liveness = row.liveness;
        }
        if row.deletion.supersedes(&deletion) {
            deletion = row.deletion;
        }
    }
    if deletion.supersedes(active) {
        *active = deletion;
    } else {
        deletion = DeletionTime::LIVE;
    }
    if active.deletes(liveness.timestamp) {
        liveness = Liveness::EMPTY;
    }
    (liveness, deletion)
}

/// Whether the cell that is there stays, and not another one of the row whose bytes these are.
#[inline(always)]
fn keeps(place: &Place, versions: &[SimpleVersion<'_>], cell: &SimpleCell, row: &[u8]) -> bool {
    if place.cell.timestamp != cell.timestamp {
        return place.cell.timestamp > cell.timestamp;
    }
    let Some(version) = versions.get(place.version as usize) else {
        return false;
    };
    let (left, right): (CellView<'_>, CellView<'_>) =
        (place.cell.view(version.row.bytes), cell.view(row));
    left_wins(&left, &right)
}

#[cfg(test)]
mod tests;

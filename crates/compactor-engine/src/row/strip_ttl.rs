//! Removal of TTLs: a cell or row liveness that expires becomes a live one with the same timestamp and value,
//! as if it had been written without a TTL.
//!
//! It happens as a version of a row is read, before anything is reconciled, shadowed or judged expired: of two
//! cells with equal timestamps an expiring one would win over a live one, whatever their values.
//!
//! Tombstones stay, including those that expired cells were converted to, whose values are lost. So does a
//! liveness that a materialized view has marked as expired, since it acts as a tombstone of the row.
//!
//! Source: `Cells.resolveRegular`, `LivenessInfo.supersedes`, `LivenessInfo.ExpiredLivenessInfo`,
//! `AbstractCell.purge`.

use compactor_sstable::data::cell::{Cell, Liveness, NO_TTL};
use compactor_sstable::data::deletion_time::NO_DELETION_TIME;

use crate::row::purge_counts::PurgeCounts;

/// Removes the TTL of a cell, and counts it.
#[inline(always)]
pub(super) fn strip_cell(mut cell: Cell, counts: &mut PurgeCounts) -> Cell {
    if cell.is_expiring() {
        cell.ttl = NO_TTL;
        cell.local_deletion_time = NO_DELETION_TIME;
        counts.stripped_cells += 1;
    }
    cell
}

/// Removes the TTL of a row liveness, and counts it.
#[inline(always)]
pub(super) fn strip_liveness(liveness: &mut Liveness, counts: &mut PurgeCounts) {
    if liveness.is_expiring() && !liveness.is_expired() {
        *liveness = Liveness::new(liveness.timestamp, NO_TTL, NO_DELETION_TIME);
        counts.stripped_rows += 1;
    }
}

#[cfg(test)]
mod tests {
    use compactor_sstable::data::cell::{EXPIRED_LIVENESS_TTL, Span};

    use super::*;

    fn cell(ttl: i32, local_deletion_time: i64) -> Cell {
        Cell {
            timestamp: 7,
            local_deletion_time,
            ttl,
            path: Span::new(1, 2),
            value: Span::new(3, 4),
            version: 5,
        }
    }

    #[test]
    fn cells() {
        let mut counts = PurgeCounts::default();
        let live = cell(NO_TTL, NO_DELETION_TIME);
        let tombstone = cell(NO_TTL, 100);
        for unchanged in [live, tombstone] {
            assert_eq!(strip_cell(unchanged, &mut counts), unchanged);
        }
        assert_eq!(counts, PurgeCounts::default());
        assert_eq!(strip_cell(cell(10, 100), &mut counts), live);
        assert_eq!(counts.stripped_cells, 1);
        assert_eq!(counts.total(), 0);
    }

    #[test]
    fn livenesses() {
        let mut counts = PurgeCounts::default();
        let live = Liveness::new(7, NO_TTL, NO_DELETION_TIME);
        let expired_by_a_view = Liveness::new(7, EXPIRED_LIVENESS_TTL, 100);
        for mut unchanged in [Liveness::EMPTY, live, expired_by_a_view] {
            let before = unchanged;
            strip_liveness(&mut unchanged, &mut counts);
            assert_eq!(unchanged, before);
        }
        assert_eq!(counts, PurgeCounts::default());
        let mut expiring = Liveness::new(7, 10, 100);
        strip_liveness(&mut expiring, &mut counts);
        assert_eq!((expiring, counts.stripped_rows), (live, 1));
    }
}

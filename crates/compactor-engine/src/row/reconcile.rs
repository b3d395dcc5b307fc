//! Reconciliation of two versions of a regular cell. Counters are added up instead (`counter_merge.rs`).
//!
//! The clock is never consulted and values are compared as raw bytes, so that every replica gets the same
//! result at any time. TTLs that are to be removed are removed before (`strip_ttl.rs`). A plain row that is
//! newer than all others is copied without reconciliation: if cells are ever to be reconciled by other rules,
//! `MergeInput::new` must not have the cursor find plain rows of them.
//!
//! Source: `Cells.resolveRegular`.

use std::cmp::Ordering;

use compactor_sstable::data::cell::Cell;
use compactor_sstable::data::deletion_time::NO_DELETION_TIME;

/// A cell and the bytes of its row.
pub type CellInRow<'a> = (&'a Cell, &'a [u8]);

/// Whether the first of two versions of a regular cell survives; also true if they are equal.
///
/// If nothing else differs, the smaller path bytes win: paths that compare equal (decimals, varints) may
/// differ in their bytes, and the result must not depend on the order.
#[inline]
pub fn left_wins(left: CellInRow<'_>, right: CellInRow<'_>) -> bool {
    by_content(left, right).then_with(|| right.0.path.of(right.1).cmp(left.0.path.of(left.1)))
        != Ordering::Less
}

/// As [`left_wins`], but of two cells that differ only in the bytes of their paths the first survives, as in
/// Cassandra.
#[inline]
pub fn first_wins(first: CellInRow<'_>, next: CellInRow<'_>) -> bool {
    by_content(first, next) != Ordering::Less
}

/// Orders two cells by which survives, the greater one; equal if they differ at most in their paths.
#[inline]
fn by_content((left, left_row): CellInRow<'_>, (right, right_row): CellInRow<'_>) -> Ordering {
    match left.timestamp.cmp(&right.timestamp) {
        Ordering::Equal => at_one_timestamp((left, left_row), (right, right_row)),
        order => order,
    }
}

fn at_one_timestamp(
    (left, left_row): CellInRow<'_>,
    (right, right_row): CellInRow<'_>,
) -> Ordering {
    let can_die = |cell: &Cell| cell.local_deletion_time != NO_DELETION_TIME;
    let order = can_die(left).cmp(&can_die(right));
    let order = if can_die(left) && can_die(right) {
        // A tombstone wins over an expiring cell, expired or not. Of two cells with the same expiration time,
        // the one with the lower TTL was written later.
        (right.is_expiring().cmp(&left.is_expiring()))
            .then(left.local_deletion_time.cmp(&right.local_deletion_time))
            .then(right.ttl.cmp(&left.ttl))
    } else {
        order
    };
    order.then_with(|| left.value.of(left_row).cmp(right.value.of(right_row)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use compactor_sstable::data::cell::Span;

    const LIVE: i64 = NO_DELETION_TIME;

    /// A cell whose value consists of all the bytes.
    fn cell(timestamp: i64, ttl: i32, seconds: i64, value: &[u8]) -> (Cell, &[u8]) {
        let cell = Cell {
            timestamp,
            local_deletion_time: seconds,
            ttl,
            value: Span::new(0, value.len() as u32),
            ..Cell::default()
        };
        (cell, value)
    }

    /// Each cell wins over all cells before it.
    #[test]
    fn ranking_at_one_timestamp() {
        let ranked = [
            cell(4, 0, LIVE, b"zzz"),
            cell(5, 0, LIVE, b""),
            cell(5, 0, LIVE, b"a"),
            cell(5, 0, LIVE, b"b"),
            cell(5, 20, 100, b"z"),
            cell(5, 10, 100, b"a"),
            cell(5, 10, 100, b"b"),
            cell(5, 30, 101, b"a"),
            cell(5, 0, 50, b""),
            cell(5, 0, 51, b""),
            cell(6, 0, LIVE, b""),
        ];
        for (i, (low, low_row)) in ranked.iter().enumerate() {
            for (j, (high, high_row)) in ranked.iter().enumerate().skip(i) {
                assert!(left_wins((high, high_row), (low, low_row)));
                assert_eq!(left_wins((low, low_row), (high, high_row)), i == j);
                assert_eq!(first_wins((low, low_row), (high, high_row)), i == j);
            }
        }
    }

    /// Paths decide only if nothing else does.
    #[test]
    fn least_path() {
        let at = |start| Cell {
            path: Span::new(start, 1),
            ..Cell::default()
        };
        let (least, other) = (at(0), at(1));
        let row = &b"ab"[..];
        assert!(left_wins((&least, row), (&other, row)));
        assert!(!left_wins((&other, row), (&least, row)));
        assert!(first_wins((&other, row), (&least, row)));
    }
}

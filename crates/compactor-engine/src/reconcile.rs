//! Which of two versions of a cell wins.
//!
//! The clock is never consulted and values are compared as raw bytes, so that every replica comes to
//! the same answer at any time.
//!
//! Source: `Cells.resolveRegular`.

use compactor_sstable::data::cell::CellView;
use compactor_sstable::data::deletion_time::NO_DELETION_TIME;

/// The surviving version of a regular cell; `left` where they are the same.
#[inline]
pub fn reconcile<'a>(left: CellView<'a>, right: CellView<'a>) -> CellView<'a> {
    if left_wins(&left, &right) {
        left
    } else {
        right
    }
}

/// As [`reconcile`], but of two cells that differ in nothing but the bytes of their paths the first one
/// survives, as in Cassandra.
#[inline]
pub fn reconcile_in_order<'a>(first: CellView<'a>, next: CellView<'a>) -> CellView<'a> {
    let with_same_path = CellView {
        path: first.path,
        ..next
    };
    if left_wins(&first, &with_same_path) {
        first
    } else {
        next
    }
}

/// Whether [`reconcile`] keeps `left`.
#[inline]
pub(crate) fn left_wins(left: &CellView<'_>, right: &CellView<'_>) -> bool {
    if left.timestamp != right.timestamp {
        return left.timestamp > right.timestamp;
    }
    let left_can_die = left.local_deletion_time != NO_DELETION_TIME;
    let right_can_die = right.local_deletion_time != NO_DELETION_TIME;
    if left_can_die != right_can_die {
        return left_can_die;
    }
    if left_can_die {
        if left.is_expiring() != right.is_expiring() {
            // A tombstone beats an expiring cell, expired or not.
            return !left.is_expiring();
        }
        if left.local_deletion_time != right.local_deletion_time {
            return left.local_deletion_time > right.local_deletion_time;
        }
        if left.ttl != right.ttl {
            // Same expiration from a lower TTL: written later.
            return left.ttl < right.ttl;
        }
    }
    if left.value != right.value {
        return left.value > right.value;
    }
    // Nothing is left to tell them apart but the bytes of paths that compare equal (decimals,
    // varints): take the same ones whatever the order.
    left.path <= right.path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(timestamp: i64, ttl: i32, seconds: i64, value: &[u8]) -> CellView<'_> {
        CellView {
            timestamp,
            local_deletion_time: seconds,
            ttl,
            path: &[],
            value,
        }
    }

    const LIVE: i64 = NO_DELETION_TIME;

    /// Each later one beats each earlier one.
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
        for (i, low) in ranked.iter().enumerate() {
            for high in &ranked[i..] {
                assert_eq!(reconcile(*low, *high), *high);
                assert_eq!(reconcile(*high, *low), *high);
            }
        }
    }
}

//! Cells and primary-key liveness: values with their times.
//!
//! Source: `Cell`, `AbstractCell`, `LivenessInfo`.

use crate::data::deletion_time::{INVALID_DELETION_TIME, NO_DELETION_TIME, from_unsigned};
use crate::version::Version;

/// Timestamp of an empty [`Liveness`].
pub const NO_TIMESTAMP: i64 = i64::MIN;
/// TTL of data that does not expire.
pub const NO_TTL: i32 = 0;
/// TTL that marks a row liveness as expired (written by materialized views).
pub const EXPIRED_LIVENESS_TTL: i32 = i32::MAX;

/// Position and length of bytes in a row, relative to its first byte.
///
/// A single number, which stays in a register: two numbers that are stored separately and loaded together
/// would make the load wait for the stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span(u64);

impl Span {
    /// An empty span.
    pub const EMPTY: Span = Span(0);

    /// Creates a span of `len` bytes from `start` on.
    #[inline(always)]
    pub fn new(start: u32, len: u32) -> Span {
        Span(u64::from(len) << 32 | u64::from(start))
    }

    /// Index of the first byte.
    #[inline(always)]
    pub fn start(self) -> usize {
        self.0 as u32 as usize
    }

    /// Number of bytes.
    #[inline(always)]
    pub fn len(self) -> usize {
        (self.0 >> 32) as usize
    }

    /// Returns the bytes; `row` begins with the row.
    #[inline(always)]
    pub fn of(self, row: &[u8]) -> &[u8] {
        let start = self.start();
        row.get(start..start + self.len()).unwrap_or_default()
    }

    /// Whether the span is empty.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// A cell. Path and value are in the bytes of its row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Timestamp: microseconds since 1970 by convention, but any i64 is valid.
    pub timestamp: i64,
    /// Local deletion time, seconds since 1970; [`NO_DELETION_TIME`] for a live cell that does not expire.
    pub local_deletion_time: i64,
    /// TTL, seconds; [`NO_TTL`] for a cell that does not expire.
    pub ttl: i32,
    /// Path in a complex column; empty for simple ones.
    pub path: Span,
    /// Raw value; empty for tombstones, and validly empty for some live cells.
    pub value: Span,
    /// Number of the row version that contains it.
    pub version: u32,
}

impl Cell {
    /// Whether the cell is a tombstone.
    #[inline]
    pub fn is_tombstone(&self) -> bool {
        self.local_deletion_time != NO_DELETION_TIME && self.ttl == NO_TTL
    }

    /// Whether the cell was written with a TTL, expired or not.
    #[inline]
    pub fn is_expiring(&self) -> bool {
        self.ttl != NO_TTL
    }

    /// Whether the cell is neither deleted nor expired at `now_s`.
    #[inline]
    pub fn is_live(&self, now_s: i64) -> bool {
        self.local_deletion_time == NO_DELETION_TIME
            || (self.ttl != NO_TTL && now_s < self.local_deletion_time)
    }
}

/// Primary-key liveness: existence of a row independently of its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Liveness {
    /// Timestamp; [`NO_TIMESTAMP`] if empty.
    pub timestamp: i64,
    /// TTL, seconds; [`NO_TTL`] if not expiring, [`EXPIRED_LIVENESS_TTL`] if expired by a view.
    pub ttl: i32,
    /// Expiration time, seconds since 1970; [`NO_DELETION_TIME`] if not expiring.
    pub local_expiration_time: i64,
}

impl Liveness {
    /// Liveness of a row that exists only through its cells.
    pub const EMPTY: Liveness = Liveness {
        timestamp: NO_TIMESTAMP,
        ttl: NO_TTL,
        local_expiration_time: NO_DELETION_TIME,
    };

    /// Creates a liveness. Without a TTL the expiration time is ignored (`LivenessInfo.withExpirationTime`).
    #[inline]
    pub fn new(timestamp: i64, ttl: i32, local_expiration_time: i64) -> Liveness {
        let local_expiration_time = if ttl == NO_TTL {
            NO_DELETION_TIME
        } else {
            local_expiration_time
        };
        Liveness {
            timestamp,
            ttl,
            local_expiration_time,
        }
    }

    /// Whether this is [`Liveness::EMPTY`].
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.timestamp == NO_TIMESTAMP
    }

    /// Whether it has a TTL, which includes the marker of views for an expired liveness.
    #[inline]
    pub fn is_expiring(&self) -> bool {
        self.ttl != NO_TTL
    }

    /// Whether it was marked as expired by a materialized view.
    #[inline]
    pub fn is_expired(&self) -> bool {
        self.ttl == EXPIRED_LIVENESS_TTL
    }

    /// Whether it is live at `now_s`. An empty liveness, for which Cassandra never evaluates this, counts as
    /// live.
    #[inline]
    pub fn is_live(&self, now_s: i64) -> bool {
        !self.is_expiring() || (!self.is_expired() && now_s < self.local_expiration_time)
    }

    /// Whether this one of two livenesses of a row wins (`LivenessInfo.supersedes`).
    #[inline]
    pub fn supersedes(&self, other: &Liveness) -> bool {
        if self.timestamp != other.timestamp {
            return self.timestamp > other.timestamp;
        }
        if self.is_expired() != other.is_expired() {
            return self.is_expired();
        }
        if self.is_expiring() != other.is_expiring() {
            return self.is_expiring();
        }
        if self.local_expiration_time != other.local_expiration_time {
            return self.local_expiration_time > other.local_expiration_time;
        }
        self.is_expiring() && self.ttl < other.ttl
    }
}

/// Decodes the seconds read for a cell or a liveness (`Cell.decodeLocalDeletionTime`).
#[inline]
pub fn decode_local_deletion_time(value: i64, ttl: i32, version: Version) -> i64 {
    if value >= i64::from(ttl) {
        return value;
    }
    overflowed_local_deletion_time(value, ttl, version)
}

#[cold]
fn overflowed_local_deletion_time(value: i64, ttl: i32, version: Version) -> i64 {
    if value < 0 {
        if version.has_uint_deletion_time() {
            from_unsigned(value as u32)
        } else {
            INVALID_DELETION_TIME
        }
    } else if ttl == EXPIRED_LIVENESS_TTL {
        value
    } else {
        INVALID_DELETION_TIME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn liveness_order() {
        let plain = Liveness::new(5, 0, 0);
        let expiring = Liveness::new(5, 10, 100);
        let later = Liveness::new(5, 10, 101);
        let lower_ttl = Liveness::new(5, 9, 100);
        let expired = Liveness::new(5, EXPIRED_LIVENESS_TTL, 50);
        assert!(Liveness::new(6, 0, 0).supersedes(&expired));
        assert!(expiring.supersedes(&plain) && !plain.supersedes(&expiring));
        assert!(later.supersedes(&expiring) && !expiring.supersedes(&later));
        assert!(lower_ttl.supersedes(&expiring) && !expiring.supersedes(&lower_ttl));
        assert!(expired.supersedes(&later) && !later.supersedes(&expired));
        assert!(!expiring.supersedes(&expiring) && !plain.supersedes(&plain));
        assert!(plain.supersedes(&Liveness::EMPTY));
    }

    #[test]
    fn overflowed_seconds() {
        assert_eq!(
            decode_local_deletion_time(-1, 0, Version::Oa),
            NO_DELETION_TIME
        );
        assert_eq!(
            decode_local_deletion_time(-2, 0, Version::Oa),
            INVALID_DELETION_TIME
        );
        assert_eq!(
            decode_local_deletion_time(-3, 0, Version::Oa),
            4_294_967_293
        );
        assert_eq!(
            decode_local_deletion_time(-3, 0, Version::Nb),
            INVALID_DELETION_TIME
        );
        assert_eq!(
            decode_local_deletion_time(5, 10, Version::Oa),
            INVALID_DELETION_TIME
        );
        assert_eq!(
            decode_local_deletion_time(5, EXPIRED_LIVENESS_TTL, Version::Oa),
            5
        );
        assert_eq!(decode_local_deletion_time(10, 10, Version::Oa), 10);
    }
}

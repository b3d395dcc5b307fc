//! What may be forgotten: tombstones past their grace whose victims cannot come back.
//!
//! A deletion is purgeable if its local deletion time is before gc before *and* nothing outside the
//! inputs may hold data that it still shadows.
//!
//! A rule that keeps more has to be known also where whole inputs are dropped unread (`job/fully_expired.rs`), and
//! one that forgets more where an input is known to have nothing to forget (`MergeInput::nothing_to_purge`): both
//! compare with gc before on their own.
//!
//! Source: `PurgeFunction`, `DeletionPurger`, `CompactionController`, `AbstractCell.purge`.

use compactor_sstable::data::cell::{Liveness, NO_TTL};
use compactor_sstable::data::deletion_time::{DeletionTime, NO_DELETION_TIME};
use compactor_sstable::partitioner::KeyHash;

/// Up to which timestamp deletions of the current partition may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeLimit {
    /// Nothing outside the inputs can hold this partition.
    Unlimited,
    /// Something outside may hold data of this timestamp or later: only deletions before it go.
    Before(i64),
    /// Keep everything.
    KeepAll,
}

/// Decides how far a partition's deletions may be purged.
pub trait PurgeLimits {
    /// The limit for the partition with this key.
    fn limit(&self, key: &[u8], hash: KeyHash) -> PurgeLimit;
}

/// Decides about deletions of one partition at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Purger {
    /// The moment, in seconds, that expiry is judged at: one for the whole job.
    pub now_s: i64,
    /// Deletions with a local deletion time strictly before this many seconds are past their grace.
    pub gc_before_s: i64,
    /// What else may hold the partition.
    pub limit: PurgeLimit,
}

/// What became of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purged {
    /// It stays as it was.
    Kept,
    /// It had expired and is now a tombstone without a TTL or value.
    Converted {
        /// The tombstone's, seconds.
        local_deletion_time: i64,
    },
    /// It is gone.
    Dropped,
}

impl Purger {
    /// A deletion of this timestamp and local deletion time may go.
    #[inline]
    pub fn is_purgeable(&self, timestamp: i64, local_deletion_time: i64) -> bool {
        local_deletion_time < self.gc_before_s
            && match self.limit {
                PurgeLimit::Unlimited => true,
                PurgeLimit::Before(limit) => timestamp < limit,
                PurgeLimit::KeepAll => false,
            }
    }

    /// The deletion, or live if it may go.
    #[inline]
    pub fn purge_deletion(&self, deletion: DeletionTime) -> DeletionTime {
        match self.drops_deletion(&deletion) {
            true => DeletionTime::LIVE,
            false => deletion,
        }
    }

    /// Whether a deletion may go.
    #[inline]
    pub fn drops_deletion(&self, deletion: &DeletionTime) -> bool {
        !deletion.is_live()
            && self.is_purgeable(deletion.marked_for_delete_at, deletion.local_deletion_time)
    }

    /// Whether a liveness has expired and may go. An expired one that may not go is kept as it is.
    #[inline]
    pub fn drops_liveness(&self, liveness: &Liveness) -> bool {
        !liveness.is_live(self.now_s)
            && self.is_purgeable(liveness.timestamp, liveness.local_expiration_time)
    }

    /// What remains of a cell with these times. An expired cell that may not go yet becomes a tombstone whose
    /// local deletion time is when it was written, and is asked again.
    #[inline]
    pub fn purge_times(&self, timestamp: i64, local_deletion_time: i64, ttl: i32) -> Purged {
        let is_expiring = ttl != NO_TTL;
        if local_deletion_time == NO_DELETION_TIME
            || (is_expiring && self.now_s < local_deletion_time)
        {
            return Purged::Kept;
        }
        if self.is_purgeable(timestamp, local_deletion_time) {
            return Purged::Dropped;
        }
        if !is_expiring {
            return Purged::Kept;
        }
        let local_deletion_time = local_deletion_time - i64::from(ttl);
        if self.is_purgeable(timestamp, local_deletion_time) {
            return Purged::Dropped;
        }
        Purged::Converted {
            local_deletion_time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PURGER: Purger = Purger {
        now_s: 1000,
        gc_before_s: 900,
        limit: PurgeLimit::Unlimited,
    };

    #[test]
    fn grace_is_strict() {
        assert!(PURGER.is_purgeable(7, 899));
        assert!(!PURGER.is_purgeable(7, 900));
        let before = Purger {
            limit: PurgeLimit::Before(7),
            ..PURGER
        };
        assert!(!before.is_purgeable(7, 0) && before.is_purgeable(6, 0));
        let nothing = Purger {
            limit: PurgeLimit::KeepAll,
            ..PURGER
        };
        assert!(!nothing.is_purgeable(i64::MIN, 0));
    }

    #[test]
    fn cells() {
        let purged = |ttl, seconds| PURGER.purge_times(7, seconds, ttl);
        assert_eq!(purged(0, NO_DELETION_TIME), Purged::Kept);
        assert_eq!(purged(10, 1001), Purged::Kept);
        assert_eq!(purged(10, 899), Purged::Dropped);
        // Expired at `now` itself, within grace: a tombstone from when it was written.
        let tombstone = Purged::Converted {
            local_deletion_time: 990,
        };
        assert_eq!(purged(10, 1000), tombstone);
        // Written before gc before, so the tombstone goes at once.
        assert_eq!(purged(200, 1000), Purged::Dropped);
        assert_eq!(purged(0, 899), Purged::Dropped);
        assert_eq!(purged(0, 900), Purged::Kept);
    }

    #[test]
    fn expired_liveness_is_not_converted() {
        let expired = Liveness::new(7, 200, 1000);
        assert!(!PURGER.drops_liveness(&expired));
        assert!(PURGER.drops_liveness(&Liveness::new(7, 200, 899)));
        assert!(!PURGER.drops_liveness(&Liveness::EMPTY));
        assert!(!PURGER.drops_liveness(&Liveness::new(7, 0, 0)));
    }
}

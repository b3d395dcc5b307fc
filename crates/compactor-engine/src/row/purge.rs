//! Purging: which tombstones are past their grace period and no longer shadow anything.
//!
//! A deletion is purgeable if its local deletion time is before `gc_before_s` *and* no SSTable outside the
//! inputs may hold data that it still shadows.
//!
//! Two other places compare with `gc_before_s` on their own: a rule that keeps more must also be added where
//! inputs are dropped without being read (`job/fully_expired.rs`), and a rule that purges more where an input
//! is known to have nothing to purge (`MergeInput::has_nothing_to_purge`). Data whose TTL is removed (`strip_ttl.rs`)
//! is live here, and so must its SSTable be there.
//!
//! Source: `PurgeFunction`, `DeletionPurger`, `CompactionController`, `AbstractCell.purge`.

use compactor_sstable::data::cell::{Liveness, NO_TTL};
use compactor_sstable::data::deletion_time::{DeletionTime, NO_DELETION_TIME};
use compactor_sstable::partitioner::KeyHash;

/// Upper bound on the timestamps of deletions that may be purged in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeLimit {
    /// No bound: no SSTable outside the inputs can hold this partition.
    Unlimited,
    /// Only deletions before this timestamp are purged: an SSTable outside the inputs may hold data of this
    /// timestamp or later.
    Before(i64),
    /// No deletion is purged.
    KeepAll,
}

/// Source of the purge limit of each partition.
pub trait PurgeLimits {
    /// Returns the limit for the partition with this key.
    fn limit(&self, key: &[u8], hash: KeyHash) -> PurgeLimit;
}

/// Purge decisions for one partition at one point in time.
#[derive(Clone, Copy, Debug)]
pub struct Purger {
    /// Time at which TTL expiry is evaluated, seconds since 1970: the same for the whole job.
    pub now_s: i64,
    /// Deletions with a local deletion time strictly before this, seconds since 1970, are past their grace
    /// period.
    pub gc_before_s: i64,
    /// Limit by SSTables outside the inputs.
    pub limit: PurgeLimit,
    /// Whether a row that had a deletion or something expired, and has neither liveness nor deletion left, is dropped
    /// with its cells (`View.enforceStrictLiveness`).
    pub strict_liveness: bool,
}

/// Result of purging a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeOutcome {
    /// Unchanged.
    Kept,
    /// Expired; the cell is now a tombstone without TTL and value.
    Converted {
        /// Local deletion time of the tombstone, seconds since 1970.
        local_deletion_time: i64,
    },
    /// Purged.
    Dropped,
}

impl Purger {
    /// Keeps everything, expired or not.
    pub(crate) const KEEP_ALL: Purger = Purger {
        now_s: i64::MIN,
        gc_before_s: i64::MIN,
        limit: PurgeLimit::KeepAll,
        strict_liveness: false,
    };

    /// Whether a deletion with this timestamp and local deletion time may be purged.
    #[inline]
    pub fn is_purgeable(&self, timestamp: i64, local_deletion_time: i64) -> bool {
        local_deletion_time < self.gc_before_s
            && match self.limit {
                PurgeLimit::Unlimited => true,
                PurgeLimit::Before(limit) => timestamp < limit,
                PurgeLimit::KeepAll => false,
            }
    }

    /// Returns the deletion, or a live one if it may be purged.
    #[inline]
    pub fn purge_deletion(&self, deletion: DeletionTime) -> DeletionTime {
        if self.drops_deletion(&deletion) {
            DeletionTime::LIVE
        } else {
            deletion
        }
    }

    /// Whether a deletion may be purged.
    #[inline]
    pub fn drops_deletion(&self, deletion: &DeletionTime) -> bool {
        !deletion.is_live()
            && self.is_purgeable(deletion.marked_for_delete_at, deletion.local_deletion_time)
    }

    /// Whether a liveness has expired and may be purged. An expired one that may not be purged is kept
    /// unchanged.
    #[inline]
    pub fn drops_liveness(&self, liveness: &Liveness) -> bool {
        !liveness.is_live(self.now_s)
            && self.is_purgeable(liveness.timestamp, liveness.local_expiration_time)
    }

    /// Purges a cell with these times. An expired cell that may not be purged yet is converted to a tombstone
    /// whose local deletion time is that of the write, which is then checked again.
    #[inline]
    pub fn purge_times(&self, timestamp: i64, local_deletion_time: i64, ttl: i32) -> PurgeOutcome {
        let is_expiring = ttl != NO_TTL;
        if local_deletion_time == NO_DELETION_TIME
            || (is_expiring && self.now_s < local_deletion_time)
        {
            return PurgeOutcome::Kept;
        }
        if self.is_purgeable(timestamp, local_deletion_time) {
            return PurgeOutcome::Dropped;
        }
        if !is_expiring {
            return PurgeOutcome::Kept;
        }
        let local_deletion_time = local_deletion_time - i64::from(ttl);
        if self.is_purgeable(timestamp, local_deletion_time) {
            return PurgeOutcome::Dropped;
        }
        PurgeOutcome::Converted {
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
        strict_liveness: false,
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
        assert_eq!(purged(0, NO_DELETION_TIME), PurgeOutcome::Kept);
        assert_eq!(purged(10, 1001), PurgeOutcome::Kept);
        assert_eq!(purged(10, 899), PurgeOutcome::Dropped);
        // Expired exactly at `now`, within the grace period: converted to a tombstone with the time of the
        // write.
        let tombstone = PurgeOutcome::Converted {
            local_deletion_time: 990,
        };
        assert_eq!(purged(10, 1000), tombstone);
        // Written before `gc_before_s`, so the tombstone is purged as well.
        assert_eq!(purged(200, 1000), PurgeOutcome::Dropped);
        assert_eq!(purged(0, 899), PurgeOutcome::Dropped);
        assert_eq!(purged(0, 900), PurgeOutcome::Kept);
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

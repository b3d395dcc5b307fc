//! Extremes that `Statistics.db` states, as bounds of what is read.
//!
//! A compaction takes the base of its deltas from them (`SerializationHeader.make`), and reads skip
//! SSTables by them: a value outside is damage.

use std::ops::RangeInclusive;

use crate::data::deletion_time::{MAX_DELETION_TIME, NO_DELETION_TIME};
use crate::statistics::StatsMetadata;
use crate::version::Version;

/// Bounds of TTLs and local deletion times.
#[derive(Clone, Debug)]
pub struct StatedExtremes {
    ttls: RangeInclusive<i32>,
    deletion_times: RangeInclusive<i64>,
    may_live: bool,
}

impl StatedExtremes {
    /// No bounds.
    pub const ANY: StatedExtremes = StatedExtremes {
        ttls: i32::MIN..=i32::MAX,
        deletion_times: i64::MIN..=i64::MAX,
        may_live: true,
    };

    /// Bounds from statistics of this version. Extremes that contradict one another bound nothing.
    pub fn of(stats: &StatsMetadata, version: Version) -> StatedExtremes {
        let mut extremes = StatedExtremes::ANY;
        // Writers before 4.0 are not known well enough.
        if version.has_metadata_checksum() {
            if stats.min_ttl <= stats.max_ttl {
                extremes.ttls = stats.min_ttl..=stats.max_ttl;
            }
            if stats.min_local_deletion_time <= stats.max_local_deletion_time {
                extremes.may_live = stats.max_local_deletion_time == NO_DELETION_TIME;
                // A greater one than the version holds is stated as the greatest.
                let max = match stats.max_local_deletion_time {
                    max if max >= version.max_deletion_time() => i64::MAX,
                    max => max,
                };
                extremes.deletion_times = stats.min_local_deletion_time..=max;
            }
        }
        extremes
    }

    /// True if a cell or row may expire after this TTL, seconds.
    #[inline]
    pub fn has_ttl(&self, ttl: i32) -> bool {
        ttl == 0 || self.ttls.contains(&ttl)
    }

    /// True if something may have been deleted, or expire, at this local time, seconds. Times that are
    /// invalid have a check of their own.
    #[inline]
    pub fn has_deletion_time(&self, seconds: i64) -> bool {
        !(0..=MAX_DELETION_TIME).contains(&seconds) || self.deletion_times.contains(&seconds)
    }

    /// True if something may neither expire nor be a tombstone. Where nothing may, the SSTable is
    /// dropped as a whole once all has expired.
    #[inline(always)]
    pub fn may_live(&self) -> bool {
        self.may_live
    }
}

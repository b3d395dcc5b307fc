//! Extremes in `Statistics.db`, as bounds of the data.
//!
//! A compaction takes the base of its deltas from them (`SerializationHeader.make`), and reads skip SSTables
//! by them: a value outside is damage.

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

    /// Returns the bounds of statistics of this version. Extremes that contradict one another impose no
    /// bounds.
    pub fn of(stats: &StatsMetadata, version: Version) -> StatedExtremes {
        let mut extremes = StatedExtremes::ANY;
        // The extremes of writers before 4.0 are not known well enough.
        if version.has_metadata_checksum() {
            if stats.min_ttl <= stats.max_ttl {
                extremes.ttls = stats.min_ttl..=stats.max_ttl;
            }
            if stats.min_local_deletion_time <= stats.max_local_deletion_time {
                extremes.may_live = stats.max_local_deletion_time == NO_DELETION_TIME;
                // A maximum greater than the version can represent is stored as the greatest.
                let max = match stats.max_local_deletion_time {
                    max if max >= version.max_deletion_time() => i64::MAX,
                    max => max,
                };
                extremes.deletion_times = stats.min_local_deletion_time..=max;
            }
        }
        extremes
    }

    /// Whether a cell or row may have this TTL, seconds.
    #[inline]
    pub fn has_ttl(&self, ttl: i32) -> bool {
        ttl == 0 || self.ttls.contains(&ttl)
    }

    /// Whether a deletion or expiration may have this local time, seconds since 1970. Invalid times are
    /// checked separately.
    #[inline]
    pub fn has_deletion_time(&self, seconds: i64) -> bool {
        !(0..=MAX_DELETION_TIME).contains(&seconds) || self.deletion_times.contains(&seconds)
    }

    /// Whether data may exist that neither expires nor is a tombstone. If there is none, the SSTable is
    /// dropped as a whole once all has expired.
    #[inline(always)]
    pub fn may_live(&self) -> bool {
        self.may_live
    }
}

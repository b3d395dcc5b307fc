//! Extremes that `Statistics.db` states, as bounds of what is read.
//!
//! A compaction takes the base of its deltas from them (`SerializationHeader.make`), and reads skip
//! SSTables by them: a value outside is damage.

use std::cmp::Ordering;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::data::clustering::{ClusteringComparator, Prefix};
use crate::data::deletion_time::{MAX_DELETION_TIME, NO_DELETION_TIME};
use crate::statistics::StatsMetadata;
use crate::statistics::covered_clustering::OwnedPrefix;
use crate::version::Version;

/// Bounds of TTLs, local deletion times and clusterings.
#[derive(Clone, Debug)]
pub struct StatedExtremes {
    ttls: RangeInclusive<i32>,
    deletion_times: RangeInclusive<i64>,
    may_live: bool,
    may_delete_partitions: bool,
    covered: Option<Arc<(OwnedPrefix, OwnedPrefix)>>,
}

impl StatedExtremes {
    /// No bounds.
    pub const ANY: StatedExtremes = StatedExtremes {
        ttls: i32::MIN..=i32::MAX,
        deletion_times: i64::MIN..=i64::MAX,
        may_live: true,
        may_delete_partitions: true,
        covered: None,
    };

    /// Bounds from statistics of this version. Extremes that contradict one another bound nothing.
    pub fn of(
        stats: &StatsMetadata,
        version: Version,
        comparator: &ClusteringComparator,
    ) -> StatedExtremes {
        let mut extremes = StatedExtremes::ANY;
        // Parsed as true of versions that do not state it.
        extremes.may_delete_partitions = stats.has_partition_level_deletions;
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
        let covered = &stats.covered_clustering;
        if !comparator.is_empty() {
            let start = OwnedPrefix::of_bound(comparator, &covered.start);
            let end = OwnedPrefix::of_bound(comparator, &covered.end);
            extremes.covered = start.zip(end).map(Arc::new);
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

    /// True if partitions may be deleted as a whole: reads of slices skip SSTables where none is.
    pub fn may_delete_partitions(&self) -> bool {
        self.may_delete_partitions
    }

    /// True if the covered slice does not start after the first clustering of a partition.
    pub fn starts_before(&self, comparator: &ClusteringComparator, first: Prefix<'_>) -> bool {
        let start = self.covered.as_ref().map(|covered| covered.0.prefix());
        start.is_none_or(|start| comparator.compare(start, first) != Ordering::Greater)
    }

    /// True if the covered slice does not end before the last clustering of a partition.
    pub fn ends_after(&self, comparator: &ClusteringComparator, last: Prefix<'_>) -> bool {
        let end = self.covered.as_ref().map(|covered| covered.1.prefix());
        end.is_none_or(|end| comparator.compare(end, last) != Ordering::Less)
    }
}

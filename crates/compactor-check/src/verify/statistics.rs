//! Checks of `Statistics.db` against the content.
//!
//! Cassandra skips SSTables, drops them whole and purges tombstones by these statistics. A range that is too narrow
//! therefore loses data and is damage; one that is too wide only costs time and is a note.
//!
//! Source: `MetadataCollector` for what each field should be.

use std::cmp::Ordering;

use compactor_engine::read::RowCounts;
use compactor_sstable::data::clustering::ClusteringComparator;
use compactor_sstable::data::deletion_time::NO_DELETION_TIME;
use compactor_sstable::partitioner::Partitioner;
use compactor_sstable::statistics::covered_clustering::OwnedPrefix;
use compactor_sstable::statistics::stats::{NO_COMPRESSION_RATIO, NO_TIMESTAMP};
use compactor_sstable::statistics::{
    ClusteringBound, CoveredClustering, Finish, HyperLogLogPlus, Statistics, StatsMetadata,
};
use compactor_sstable::{Version, data::clustering::Kind};

use super::content::Content;
use super::finding::{Findings, Severity};
use super::short_hex;
use super::statistics_consistency::{self, Mismatch, StatisticsConsistency};

/// Share by which an estimate of the number of keys may differ from their number.
const CARDINALITY_TOLERANCE: f64 = 0.05;
/// Number of wrong counts, of four, from which the statistics are assumed to belong to other data.
const FOREIGN_COUNTS: usize = 3;

/// Check of the statistics against the content.
pub(super) struct StatisticsCheck<'a> {
    pub(super) findings: &'a Findings,
    pub(super) version: Version,
    pub(super) statistics: &'a Statistics,
    pub(super) comparator: &'a ClusteringComparator,
    /// Compressed over uncompressed bytes, by `CompressionInfo.db`.
    pub(super) compression_ratio: Option<f64>,
    /// There is such a file.
    pub(super) is_compressed: bool,
}

impl StatisticsCheck<'_> {
    fn add(&self, severity: Severity, field: &str, expected: impl ToString, found: impl ToString) {
        let (expected, found) = (expected.to_string(), found.to_string());
        self.findings.statistics(severity, field, expected, found);
    }

    /// Reports contradictions that are visible without the content.
    pub(super) fn alone(&self) {
        statistics_consistency::consistent(self.findings, &self.statistics.stats, self.comparator);
    }

    /// First and last key, of files that name them.
    pub(super) fn ends(&self, first: &[u8], last: &[u8]) {
        let stats = &self.statistics.stats;
        let ends = [
            ("first_key", &stats.first_key, first),
            ("last_key", &stats.last_key, last),
        ];
        for (field, found, wanted) in ends {
            if let Some(found) = found
                && found != wanted
            {
                self.add(Severity::Damage, field, short_hex(wanted), short_hex(found));
            }
        }
    }

    /// Checks the statistics against the content. If only part of it was read, counts are not checked, and
    /// the extremes must include that part.
    pub(super) fn content(&self, content: Content) {
        let is_complete = content.is_complete;
        let partitions = content.partitions;
        let rows_seen = RowCounts {
            rows: content.rows + content.empty_rows,
            empty_static_rows: content.empty_static_rows,
        };
        if partitions == 0 {
            return;
        }
        let found = &self.statistics.stats;
        let seen = content.collector.finish(Finish {
            // What it was checked to be one of before anything else.
            partitioner: Partitioner::from_class_name(&self.statistics.validation.partitioner)
                .unwrap_or(Partitioner::Murmur3),
            bloom_filter_fp_chance: self.statistics.validation.bloom_filter_fp_chance,
            compression_ratio: self.compression_ratio,
            first_key: content.first_key,
            last_key: content.last_key,
            header: self.statistics.header.clone(),
        });
        let stats = &seen.stats;
        self.extremes(found, stats, content.least_ttl, is_complete);
        self.clusterings(
            &found.covered_clustering,
            &stats.covered_clustering,
            is_complete,
        );
        match (
            found.has_partition_level_deletions,
            stats.has_partition_level_deletions,
        ) {
            (false, true) => self.findings.unread_statistics(
                "has_partition_level_deletions",
                "true: a partition is deleted, which reads of slices would not see",
                "false",
            ),
            // Absent in older versions; the reader assumes the worst.
            (true, false) if is_complete && self.version.has_key_range() => self.add(
                Severity::Note,
                "has_partition_level_deletions",
                "false, since no partition is deleted",
                "true",
            ),
            _ => {}
        }
        if !is_complete {
            return;
        }
        self.counts(found, stats, partitions, rows_seen);
        self.cardinality(&seen, partitions);
    }

    fn extremes(
        &self,
        found: &StatsMetadata,
        seen: &StatsMetadata,
        least_ttl: Option<i32>,
        is_complete: bool,
    ) {
        let cap = |seconds: i64| match seconds {
            NO_DELETION_TIME => seconds,
            // Older versions hold 31 bits; a greater one is stored as the greatest.
            seconds if !self.version.has_uint_deletion_time() => {
                seconds.min(self.version.max_deletion_time())
            }
            seconds => seconds,
        };
        if seen.min_timestamp != NO_TIMESTAMP || seen.max_timestamp != i64::MAX {
            let found = (found.min_timestamp, found.max_timestamp);
            let seen = (seen.min_timestamp, seen.max_timestamp);
            self.covers(
                "timestamp",
                Severity::Damage,
                found,
                seen,
                seen,
                is_complete,
            );
        }
        let found_times = (found.min_local_deletion_time, found.max_local_deletion_time);
        let seen_times = (
            cap(seen.min_local_deletion_time),
            cap(seen.max_local_deletion_time),
        );
        // A merge bounds what it reads by the statistics of the same versions.
        let of_expirations = if statistics_consistency::has_exact_expirations(self.version) {
            Severity::Damage
        } else {
            Severity::Note
        };
        self.covers(
            "local_deletion_time",
            of_expirations,
            found_times,
            seen_times,
            seen_times,
            is_complete,
        );
        // What does not expire is stated as 0, which nothing relies on.
        let needed = (least_ttl.unwrap_or(i32::MAX).into(), seen.max_ttl.into());
        self.covers(
            "ttl",
            of_expirations,
            (found.min_ttl.into(), found.max_ttl.into()),
            needed,
            (seen.min_ttl.into(), seen.max_ttl.into()),
            is_complete,
        );
    }

    /// Minimum and maximum as stated, as they must be covered, and as Cassandra would state them. Stated ones that
    /// are too narrow are of this severity.
    fn covers(
        &self,
        what: &str,
        severity: Severity,
        found: (i64, i64),
        needed: (i64, i64),
        seen: (i64, i64),
        is_complete: bool,
    ) {
        let ends = [
            (
                "min",
                found.0,
                needed.0,
                seen.0,
                found.0 > needed.0,
                "at most",
            ),
            (
                "max",
                found.1,
                needed.1,
                seen.1,
                found.1 < needed.1,
                "at least",
            ),
        ];
        for (end, found, needed, seen, is_narrow, bound) in ends {
            let field = format!("{end}_{what}");
            if is_narrow {
                let expected = format!("{bound} {needed}, which the data has");
                self.add(severity, &field, expected, found);
            } else if is_complete && found != seen {
                let expected = format!("{seen}, as in the data");
                self.add(Severity::Note, &field, expected, found);
            }
        }
    }

    fn clusterings(&self, found: &CoveredClustering, seen: &CoveredClustering, is_complete: bool) {
        let is_empty = seen.start.values.is_empty() && seen.start.kind == Kind::ExclStartBound;
        if self.comparator.is_empty() || is_empty {
            return;
        }
        let ends = [
            ("covered_clustering.start", &found.start, &seen.start),
            ("covered_clustering.end", &found.end, &seen.end),
        ];
        for (index, (field, found, seen)) in ends.into_iter().enumerate() {
            // One with too many values is damage without the content.
            let Some(order) = compare_bounds(self.comparator, found, seen) else {
                continue;
            };
            let order = if index == 0 { order } else { order.reverse() };
            match order {
                Ordering::Greater => {
                    let expected = format!("a slice that covers {}", describe(seen));
                    (self.findings).unread_statistics(field, expected, describe(found));
                }
                // Before `oa` only values were stored, and none after a null.
                Ordering::Less
                    if is_complete
                        && self.version.has_improved_min_max()
                        && found.values != seen.values =>
                {
                    self.add(Severity::Note, field, describe(seen), describe(found));
                }
                _ => {}
            }
        }
    }

    /// Checks counts that Cassandra only uses for estimates. A single difference may come from the writer's way of
    /// counting; if hardly any is right, the statistics are those of other data.
    fn counts(
        &self,
        found: &StatsMetadata,
        seen: &StatsMetadata,
        partitions: u64,
        rows_seen: RowCounts,
    ) {
        let mut mismatches: Vec<Mismatch> =
            statistics_consistency::partition_sizes(found, &seen.partition_sizes)
                .into_iter()
                .collect();
        if found.partition_sizes.count() == seen.partition_sizes.count() {
            let ratio = self.compression_ratio.unwrap_or(NO_COMPRESSION_RATIO);
            // What is in a CompressionInfo.db that cannot be read is not known.
            let is_known = self.is_compressed == self.compression_ratio.is_some();
            let of_sums = StatisticsConsistency::of(self.version, found, ratio).check(rows_seen);
            let counts = |m: &Mismatch| is_known || m.field != "compression_ratio";
            mismatches.extend(of_sums.into_iter().filter(counts));
        }
        let mut wrong: Vec<(&str, String, String)> = Vec::new();
        let found_cells = &found.cells_per_partition;
        if *found_cells != seen.cells_per_partition.in_buckets_of(found_cells) {
            let expected = format!("{partitions} partitions by number of cells as in the data");
            let count = found_cells.count();
            wrong.push((
                "cells_per_partition",
                expected,
                format!("{count} with other numbers"),
            ));
        }
        if found.total_columns_set != seen.total_columns_set {
            let (seen, found) = (seen.total_columns_set, found.total_columns_set);
            wrong.push(("total_columns_set", seen.to_string(), found.to_string()));
        }
        let is_foreign = wrong.len() + mismatches.len() >= FOREIGN_COUNTS;
        for m in mismatches {
            match m.severity {
                Severity::Damage => self.add(m.severity, m.field, m.expected, m.found),
                Severity::Note => wrong.push((m.field, m.expected, m.found)),
            }
        }
        // A merge compares only those of which each is damage.
        for (field, expected, found) in wrong {
            if is_foreign {
                self.findings.unread_statistics(field, expected, found);
            } else {
                self.add(Severity::Note, field, expected, found);
            }
        }
        let sum = |stats: &StatsMetadata| -> i64 {
            stats
                .tombstone_drop_times
                .bins()
                .iter()
                .map(|bin| i64::from(bin.1))
                .sum()
        };
        if sum(found) != sum(seen) {
            let expected = format!("{} local deletion times", sum(seen));
            self.add(Severity::Note, "tombstone_drop_times", expected, sum(found));
        }
    }

    /// The estimator of distinct keys should have been fed these keys: together with theirs it should
    /// not estimate more than either does alone. Cassandra sizes filters by it, and nothing else.
    fn cardinality(&self, seen: &Statistics, partitions: u64) {
        let Some(found) = &self.statistics.compaction else {
            return;
        };
        let estimator = match found.cardinality() {
            Ok(estimator) => estimator,
            Err(error) => {
                // Cassandra does without it, too.
                self.add(Severity::Note, "cardinality", "an estimator", error);
                return;
            }
        };
        let Some(Ok(own)) = seen.compaction.as_ref().map(|c| c.cardinality()) else {
            return;
        };
        let tolerance = 2.0 + CARDINALITY_TOLERANCE * partitions as f64;
        let differs =
            |estimate: i64| (estimate as f64 - own.cardinality() as f64).abs() > tolerance;
        let together = HyperLogLogPlus::estimate_union([&estimator, &own]).unwrap_or_default();
        if differs(together) {
            self.add(
                Severity::Note,
                "cardinality",
                format!("an estimator fed with the {partitions} keys of the data"),
                format!("one fed with others: {together} keys together"),
            );
        } else if differs(estimator.cardinality()) {
            let found = estimator.cardinality();
            self.add(
                Severity::Note,
                "cardinality",
                format!("about {partitions} keys"),
                found,
            );
        }
    }
}

/// Order of two bounds; `None` if one has more values than there are clustering columns.
fn compare_bounds(
    comparator: &ClusteringComparator,
    a: &ClusteringBound,
    b: &ClusteringBound,
) -> Option<Ordering> {
    let a = OwnedPrefix::of_bound(comparator, a)?;
    let b = OwnedPrefix::of_bound(comparator, b)?;
    Some(comparator.compare(a.prefix(), b.prefix()))
}

fn describe(bound: &ClusteringBound) -> String {
    let values: Vec<String> = bound
        .values
        .iter()
        .map(|value| {
            value
                .as_deref()
                .map_or_else(|| "null".to_owned(), short_hex)
        })
        .collect();
    format!("{:?}({})", bound.kind, values.join(", "))
}

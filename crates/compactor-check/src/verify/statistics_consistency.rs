//! Consistency of `Statistics.db` with its `Data.db`.
//!
//! Times in the data are distances from those in the statistics' header: the statistics of another SSTable of the
//! table shift every one of them. They do not record the file that they belong to, but sizes of partitions, number of
//! rows and compression ratio are sums over it.
//!
//! No reader can tell the statistics of two SSTables apart that agree in all of these, in first and
//! last key, and whose times lie within one another's range.
//!
//! Source: `MetadataCollector.addPartitionSizeInBytes`, `.updateColumnSetPerRow`,
//! `.addCompressionRatio`.

use compactor_engine::read::RowCounts;
use compactor_sstable::Version;
use compactor_sstable::compression::info::CompressionInfo;
use compactor_sstable::data::clustering::ClusteringComparator;
use compactor_sstable::statistics::covered_clustering::OwnedPrefix;
use compactor_sstable::statistics::stats::NO_COMPRESSION_RATIO;
use compactor_sstable::statistics::{EstimatedHistogram, StatsMetadata};

use super::finding::{Findings, Severity};

/// Totals of the data stated in `Statistics.db`, and the compression ratio of its chunks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StatisticsConsistency {
    total_rows: i64,
    compression_ratio: f64,
    /// That of the chunks; `None` if the statistics need not state one.
    ratio: Option<f64>,
}

/// A field that the data contradicts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    pub(crate) severity: Severity,
    pub(crate) field: &'static str,
    pub(crate) expected: String,
    pub(crate) found: String,
}

/// Whether the writers of this version state exact extremes of TTLs and local deletion times. Those of 3.0 leave out rows
/// without cells, and overflow.
pub(crate) fn has_exact_expirations(version: Version) -> bool {
    version.has_metadata_checksum()
}

/// Returns the compression ratio that the statistics of data with these chunks should state.
pub(crate) fn ratio_of(info: Option<&CompressionInfo>) -> f64 {
    info.map_or(NO_COMPRESSION_RATIO, CompressionInfo::compression_ratio)
}

/// Checks the statistics for internal contradictions.
pub(crate) fn consistent(
    findings: &Findings,
    stats: &StatsMetadata,
    comparator: &ClusteringComparator,
) {
    let damage = |field: &str, expected: String, found: String| {
        findings.statistics(Severity::Damage, field, expected, found);
    };
    let ranges = [
        ("timestamp", stats.min_timestamp, stats.max_timestamp),
        (
            "local_deletion_time",
            stats.min_local_deletion_time,
            stats.max_local_deletion_time,
        ),
        ("ttl", stats.min_ttl.into(), stats.max_ttl.into()),
    ];
    for (what, min, max) in ranges {
        if min > max {
            let expected = format!("a minimum of at most the maximum, {max}");
            damage(&format!("min_{what}"), expected, min.to_string());
        }
    }
    for (field, value) in [
        ("total_rows", stats.total_rows),
        ("repaired_at", stats.repaired_at),
        ("level", stats.level.into()),
    ] {
        if value < 0 {
            damage(field, "0 or more".to_owned(), value.to_string());
        }
    }
    let covered = &stats.covered_clustering;
    for (field, bound) in [
        ("covered_clustering.start", &covered.start),
        ("covered_clustering.end", &covered.end),
    ] {
        if !comparator.is_empty() && OwnedPrefix::of_bound(comparator, bound).is_none() {
            let expected = format!("at most {} clustering values", comparator.len());
            findings.unread_statistics(field, expected, bound.values.len().to_string());
        }
    }
}

/// Compares partition sizes with those in the statistics.
pub(crate) fn partition_sizes(
    stats: &StatsMetadata,
    seen: &EstimatedHistogram,
) -> Option<Mismatch> {
    let found = &stats.partition_sizes;
    // Releases before 5.0 have fewer buckets, also those that write `nb` as 5.0 does.
    let seen = seen.in_buckets_of(found);
    if *found == seen {
        return None;
    }
    Some(Mismatch {
        severity: Severity::Damage,
        field: "partition_sizes",
        expected: format!("{} partitions by size as in the data", seen.count()),
        found: if found.count() == seen.count() {
            "other sizes".to_owned()
        } else {
            format!("{} partitions", found.count())
        },
    })
}

impl StatisticsConsistency {
    /// `ratio` is [`ratio_of`] the chunks.
    pub(crate) fn of(version: Version, stats: &StatsMetadata, ratio: f64) -> StatisticsConsistency {
        StatisticsConsistency {
            total_rows: stats.total_rows,
            compression_ratio: stats.compression_ratio,
            ratio: stats.has_compression_ratio(version).then_some(ratio),
        }
    }

    /// Compares the totals with the data, all of whose rows were read. The cursor compaction of 6.0-alpha2 counts empty
    /// static rows as well.
    ///
    /// A Cassandra scrub that abandons a partition midway takes back its bytes but not its counts, so it leaves too
    /// many rows and a different ratio.
    pub(crate) fn check(&self, seen: RowCounts) -> Vec<Mismatch> {
        let mut wrong = Vec::new();
        let most = seen.rows + seen.empty_static_rows;
        let stated = u64::try_from(self.total_rows).unwrap_or(0);
        let damage_if = |is_damage: bool| {
            if is_damage {
                Severity::Damage
            } else {
                Severity::Note
            }
        };
        if stated != seen.rows && stated != most {
            wrong.push(Mismatch {
                severity: damage_if(stated < most),
                field: "total_rows",
                expected: seen.rows.to_string(),
                found: self.total_rows.to_string(),
            });
        }
        if let Some(ratio) = self.ratio
            && self.compression_ratio.to_bits() != ratio.to_bits()
        {
            wrong.push(Mismatch {
                severity: damage_if(stated <= most),
                field: "compression_ratio",
                expected: ratio.to_string(),
                found: self.compression_ratio.to_string(),
            });
        }
        wrong
    }
}

//! Extremes, histograms and provenance.

use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::NO_DELETION_TIME;
use compactor_sstable::statistics::stats::NO_COMPRESSION_RATIO;
use compactor_sstable::statistics::{
    ClusteringBound, CommitLogPosition, CoveredClustering, Statistics, StatsMetadata, UuidBytes,
};
use compactor_sstable::types::CqlType;
use serde::Serialize;

use super::MetadataOptions;
use super::histogram::{DropTimes, HistogramSummary};

/// Position in the commit log of the node that wrote the SSTable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CommitLogPlace {
    /// Segment.
    pub segment_id: i64,
    /// Offset in the segment.
    pub position: i32,
}

/// Interval of that commit log whose writes are in the SSTable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CommitLogInterval {
    /// Its start.
    pub start: CommitLogPlace,
    /// Its end.
    pub end: CommitLogPlace,
}

/// Bound of the clusterings in the SSTable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BoundMetadata {
    /// False if the clustering itself is not in the SSTable.
    pub is_inclusive: bool,
    /// Values as Cassandra prints them, null where `None`; may be fewer than the clustering columns.
    pub values: Vec<Option<String>>,
}

/// Clusterings from the smallest to the greatest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CoveredClusterings {
    /// The smallest.
    pub start: BoundMetadata,
    /// The greatest.
    pub end: BoundMetadata,
}

/// Extremes, histograms and provenance.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StatsSummary {
    /// Number of partitions.
    pub partitions: i64,
    /// Number of rows, static rows that are not empty included.
    pub total_rows: i64,
    /// Simple cells and complex columns, summed over rows.
    pub total_columns_set: i64,
    /// Smallest timestamp, microseconds since 1970 by convention; -2^63 where there is none.
    pub min_timestamp: i64,
    /// Greatest one; 2^63 - 1 where there is none.
    pub max_timestamp: i64,
    /// Smallest local deletion time, seconds since 1970; `None` where nothing is deleted or expires.
    pub min_local_deletion_time: Option<i64>,
    /// Greatest one; `None` as soon as anything is neither deleted nor expires.
    pub max_local_deletion_time: Option<i64>,
    /// Smallest TTL, seconds; 0 as soon as anything does not expire.
    pub min_ttl: i32,
    /// Greatest TTL.
    pub max_ttl: i32,
    /// Compressed over uncompressed bytes as `Statistics.db` has it, without the chunks' checksums;
    /// `None` if not compressed. See [`CompressionMetadata::ratio`](super::CompressionMetadata).
    pub recorded_compression_ratio: Option<f64>,
    /// Tombstones that may be dropped by now, over all cells; `None` where cells were too many to
    /// count.
    pub estimated_droppable_tombstones: Option<f64>,
    /// Grace that this was computed with, seconds.
    pub gc_grace_seconds: i64,
    /// Level of leveled compaction.
    pub sstable_level: i32,
    /// When it was repaired, milliseconds since 1970; 0 if it was not.
    pub repaired_at: i64,
    /// Session of an incremental repair in progress.
    pub pending_repair: Option<String>,
    /// Transiently replicated.
    pub is_transient: bool,
    /// Node that wrote it.
    pub originating_host_id: Option<String>,
    /// Intervals of that node's commit log whose writes are in it.
    pub commit_log_intervals: Vec<CommitLogInterval>,
    /// Clusterings from the smallest to the greatest; `None` for all.
    pub covered_clusterings: Option<CoveredClusterings>,
    /// Some partition may have a deletion of its own.
    pub has_partition_level_deletions: bool,
    /// Has counters with local or remote shards, as written before 2.1.
    pub has_legacy_counter_shards: bool,
    /// Fraction of the node's token space that it covers; `None` if unknown.
    pub token_space_coverage: Option<f64>,
    /// Uncompressed bytes per partition.
    pub partition_sizes: HistogramSummary,
    /// Cells per partition.
    pub cells_per_partition: HistogramSummary,
    /// When tombstones and expiring values were or will be deleted.
    pub tombstone_drop_times: DropTimes,
}

impl StatsSummary {
    pub(super) fn of(statistics: &Statistics, options: &MetadataOptions) -> StatsSummary {
        let stats = &statistics.stats;
        let seconds = |time: i64| (time != NO_DELETION_TIME).then_some(time);
        StatsSummary {
            partitions: stats.partition_sizes.count(),
            total_rows: stats.total_rows,
            total_columns_set: stats.total_columns_set,
            min_timestamp: stats.min_timestamp,
            max_timestamp: stats.max_timestamp,
            min_local_deletion_time: seconds(stats.min_local_deletion_time),
            max_local_deletion_time: seconds(stats.max_local_deletion_time),
            min_ttl: stats.min_ttl,
            max_ttl: stats.max_ttl,
            recorded_compression_ratio: Some(stats.compression_ratio)
                .filter(|ratio| *ratio != NO_COMPRESSION_RATIO),
            estimated_droppable_tombstones: droppable(stats, options),
            gc_grace_seconds: options.gc_grace_s,
            sstable_level: stats.level,
            repaired_at: stats.repaired_at,
            pending_repair: stats.pending_repair.as_ref().map(uuid),
            is_transient: stats.is_transient,
            originating_host_id: stats.originating_host_id.as_ref().map(uuid),
            commit_log_intervals: intervals(stats),
            covered_clusterings: covered(statistics),
            has_partition_level_deletions: stats.has_partition_level_deletions,
            has_legacy_counter_shards: stats.has_legacy_counter_shards,
            token_space_coverage: Some(stats.token_space_coverage).filter(|part| !part.is_nan()),
            partition_sizes: HistogramSummary::of(&stats.partition_sizes),
            cells_per_partition: HistogramSummary::of(&stats.cells_per_partition),
            tombstone_drop_times: DropTimes::of(&stats.tombstone_drop_times),
        }
    }
}

/// `StatsMetadata.getEstimatedDroppableTombstoneRatio`.
fn droppable(stats: &StatsMetadata, options: &MetadataOptions) -> Option<f64> {
    let cells = &stats.cells_per_partition;
    let estimated_cells = cells.mean()?.wrapping_mul(cells.count());
    if estimated_cells <= 0 {
        return Some(0.0);
    }
    let gc_before_s = options.now_s.saturating_sub(options.gc_grace_s);
    Some(stats.tombstone_drop_times.sum(gc_before_s) / estimated_cells as f64)
}

fn intervals(stats: &StatsMetadata) -> Vec<CommitLogInterval> {
    let place = |position: &CommitLogPosition| CommitLogPlace {
        segment_id: position.segment_id,
        position: position.position,
    };
    let intervals = stats.commit_log_intervals.intervals().iter();
    intervals
        .map(|(start, end)| CommitLogInterval {
            start: place(start),
            end: place(end),
        })
        .collect()
}

fn covered(statistics: &Statistics) -> Option<CoveredClusterings> {
    let covered = &statistics.stats.covered_clustering;
    if *covered
        == (CoveredClustering {
            types: covered.types.clone(),
            ..CoveredClustering::all()
        })
    {
        return None;
    }
    let types = &statistics.header.clustering_types;
    let bound = |bound: &ClusteringBound| BoundMetadata {
        is_inclusive: matches!(bound.kind, Kind::InclStartBound | Kind::InclEndBound),
        values: bound
            .values
            .iter()
            .enumerate()
            .map(|(index, value)| {
                let cql_type = types.get(index).map_or(&CqlType::Bytes, |t| &t.cql_type);
                value.as_ref().map(|value| cql_type.describe(value))
            })
            .collect(),
    };
    Some(CoveredClusterings {
        start: bound(&covered.start),
        end: bound(&covered.end),
    })
}

/// `java.util.UUID.toString`.
fn uuid(bytes: &UuidBytes) -> String {
    CqlType::Uuid.describe(bytes)
}

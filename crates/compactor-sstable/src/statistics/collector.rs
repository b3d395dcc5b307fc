//! Collection of an output's statistics while it is written.
//!
//! Source: `MetadataCollector`; `CompactionTask` and `SortedTableWriter` for its arguments.

use std::ops::RangeInclusive;

use crate::data::clustering::{ClusteringComparator, Prefix};
use crate::data::deletion_time::{DeletionTime, NO_DELETION_TIME};
use crate::error::{Error, Result};
use crate::partitioner::Partitioner;
use crate::statistics::commit_log::IntervalSet;
use crate::statistics::covered_clustering::CoveredClusteringTracker;
use crate::statistics::estimated_histogram::EstimatedHistogram;
use crate::statistics::header::SerializationHeader;
use crate::statistics::hyper_log_log::HyperLogLogPlus;
use crate::statistics::stats::{NO_COMPRESSION_RATIO, NO_TIMESTAMP, StatsMetadata, UNREPAIRED};
use crate::statistics::tombstone_histogram::{TimeRun, TombstoneHistogramBuilder};
use crate::statistics::{CompactionMetadata, Statistics, UuidBytes, ValidationMetadata};

/// Metadata that an output inherits from its inputs or that is set by the caller.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectorSettings {
    /// Level of leveled compaction.
    pub level: i32,
    /// Time of the repair, milliseconds since 1970; 0 if it was not repaired.
    pub repaired_at: i64,
    /// Session of an incremental repair in progress.
    pub pending_repair: Option<UuidBytes>,
    /// Whether it is transiently replicated.
    pub is_transient: bool,
    /// Node whose commit log the intervals belong to.
    pub originating_host_id: Option<UuidBytes>,
    /// Commit log intervals whose data is in the output.
    pub commit_log_intervals: IntervalSet,
}

impl CollectorSettings {
    /// Returns the metadata that a merge of these inputs inherits, at level 0.
    ///
    /// The host id and the commit log intervals are kept only if every input has the same host id: claiming
    /// intervals of another node could make it skip the replay of writes that are in no SSTable. Without them
    /// Cassandra at worst replays more than necessary.
    ///
    /// # Errors
    /// Unsupported if the inputs have different repair states: sessions, transient and full, repaired and
    /// unrepaired must not be mixed (`CompactionTask.getPendingRepair`, `.getIsTransient`).
    pub fn merge(inputs: &[&StatsMetadata]) -> Result<CollectorSettings> {
        let Some(first) = inputs.first() else {
            return Ok(CollectorSettings::default());
        };
        let is_repaired = |stats: &StatsMetadata| stats.repaired_at != UNREPAIRED;
        for input in inputs {
            let difference = if input.pending_repair != first.pending_repair {
                "different pending repair sessions"
            } else if input.is_transient != first.is_transient {
                "transient and full replicas"
            } else if is_repaired(input) != is_repaired(first) {
                "repaired and unrepaired data"
            } else {
                continue;
            };
            return Err(Error::unsupported(format!(
                "merging {difference} into one SSTable"
            )));
        }
        let mut settings = CollectorSettings {
            repaired_at: inputs
                .iter()
                .map(|input| input.repaired_at)
                .min()
                .unwrap_or(UNREPAIRED),
            pending_repair: first.pending_repair,
            is_transient: first.is_transient,
            ..CollectorSettings::default()
        };
        let host_id = first.originating_host_id;
        if host_id.is_some()
            && inputs
                .iter()
                .all(|input| input.originating_host_id == host_id)
        {
            settings.originating_host_id = host_id;
            for input in inputs {
                settings
                    .commit_log_intervals
                    .add_all(&input.commit_log_intervals);
            }
        }
        Ok(settings)
    }
}

/// Metadata that is known only when the output is complete.
#[derive(Clone, Debug)]
pub struct Finish {
    /// Partitioner.
    pub partitioner: Partitioner,
    /// The table's false positive chance; 1.0 for a table without Bloom filters.
    pub bloom_filter_fp_chance: f64,
    /// Compressed over uncompressed bytes; `None` if not compressed.
    pub compression_ratio: Option<f64>,
    /// First partition key.
    pub first_key: Vec<u8>,
    /// Last partition key.
    pub last_key: Vec<u8>,
    /// Header that Data.db was written with.
    pub header: SerializationHeader,
}

/// Minimum and maximum of values.
#[derive(Clone, Copy, Debug)]
struct MinMax<T> {
    min: T,
    max: T,
}

impl<T: Copy + Ord> MinMax<T> {
    /// Of no values, where the type has values from `least` to `greatest`.
    fn none(least: T, greatest: T) -> MinMax<T> {
        MinMax {
            min: greatest,
            max: least,
        }
    }

    #[inline(always)]
    fn update(&mut self, value: T) {
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    fn merge(&mut self, other: MinMax<T>) {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    fn or(self, min: T, max: T) -> (T, T) {
        if self.min > self.max {
            (min, max)
        } else {
            (self.min, self.max)
        }
    }
}

/// Collector of statistics of all data written to an SSTable.
///
/// Per item: [`update_liveness`](Self::update_liveness) for primary key liveness and for cells,
/// [`update_deletion_time`](Self::update_deletion_time) for every other deletion. Per row:
/// [`add_row`](Self::add_row). Per partition: [`add_key`](Self::add_key),
/// [`update_partition_deletion`](Self::update_partition_deletion),
/// [`update_clustering`](Self::update_clustering) for the first and the last unfiltered,
/// [`add_partition`](Self::add_partition).
#[derive(Clone, Debug)]
pub struct MetadataCollector {
    timestamp: MinMax<i64>,
    local_deletion_time: MinMax<i64>,
    latest_deletion_time: i64,
    ttl: MinMax<i32>,
    tombstone_drop_times: TombstoneHistogramBuilder,
    cells: i64,
    total_rows: i64,
    total_columns_set: i64,
    has_partition_level_deletions: bool,
    has_legacy_counter_shards: bool,
    covered_clustering: CoveredClusteringTracker,
    partition_sizes: EstimatedHistogram,
    cells_per_partition: EstimatedHistogram,
    /// `None` for a part, whose keys are added to the whole.
    cardinality: Option<HyperLogLogPlus>,
    settings: CollectorSettings,
}

impl MetadataCollector {
    /// Creates a collector.
    pub fn new(settings: CollectorSettings) -> MetadataCollector {
        MetadataCollector {
            timestamp: MinMax::none(i64::MIN, i64::MAX),
            local_deletion_time: MinMax::none(i64::MIN, i64::MAX),
            latest_deletion_time: i64::MIN,
            ttl: MinMax::none(i32::MIN, i32::MAX),
            tombstone_drop_times: TombstoneHistogramBuilder::new(),
            cells: 0,
            total_rows: 0,
            total_columns_set: 0,
            has_partition_level_deletions: false,
            has_legacy_counter_shards: false,
            covered_clustering: CoveredClusteringTracker::new(),
            partition_sizes: EstimatedHistogram::of_partition_sizes(),
            cells_per_partition: EstimatedHistogram::of_cell_counts(),
            cardinality: Some(HyperLogLogPlus::new()),
            settings,
        }
    }

    /// Creates a collector for consecutive partitions of an SSTable, to be
    /// [appended](MetadataCollector::append) to another collector, to which their keys are added.
    pub fn for_part() -> MetadataCollector {
        MetadataCollector {
            tombstone_drop_times: TombstoneHistogramBuilder::for_part(),
            cardinality: None,
            ..MetadataCollector::new(CollectorSettings::default())
        }
    }

    /// Takes the local deletion times of a part since the last call, for [`MetadataCollector::add_times`] of
    /// the whole, in the same order: they may take too much memory to be kept until the end.
    pub fn take_times(&mut self) -> Vec<TimeRun> {
        self.tombstone_drop_times.take_runs()
    }

    /// Adds times taken from a part.
    pub fn add_times(&mut self, times: &[TimeRun]) {
        self.tombstone_drop_times.add_runs(times);
    }

    /// Adds the statistics of a part, except for its keys and the times already taken. Parts must be appended
    /// in order: the result is then that of a single collector.
    pub fn append(&mut self, mut part: MetadataCollector, comparator: &ClusteringComparator) {
        self.timestamp.merge(part.timestamp);
        self.local_deletion_time.merge(part.local_deletion_time);
        self.latest_deletion_time = self.latest_deletion_time.max(part.latest_deletion_time);
        self.ttl.merge(part.ttl);
        self.add_times(&part.take_times());
        self.total_rows += part.total_rows;
        self.total_columns_set = self.total_columns_set.wrapping_add(part.total_columns_set);
        self.has_partition_level_deletions |= part.has_partition_level_deletions;
        self.has_legacy_counter_shards |= part.has_legacy_counter_shards;
        self.covered_clustering
            .append(comparator, &part.covered_clustering);
        // All collectors have the same buckets.
        let _ = self.partition_sizes.merge(&part.partition_sizes);
        let _ = self.cells_per_partition.merge(&part.cells_per_partition);
    }

    /// Updates the extremes with a timestamp.
    #[inline(always)]
    pub fn update_timestamp(&mut self, timestamp: i64) {
        self.timestamp.update(timestamp);
    }

    /// Updates the extremes with a local deletion time. Live data has [`NO_DELETION_TIME`]: the maximum
    /// determines whether Cassandra may drop the whole SSTable as expired.
    #[inline(always)]
    pub fn update_local_deletion_time(&mut self, local_deletion_time: i64) {
        self.local_deletion_time.update(local_deletion_time);
        if local_deletion_time != NO_DELETION_TIME {
            self.tombstone_drop_times.add(local_deletion_time);
            self.latest_deletion_time = self.latest_deletion_time.max(local_deletion_time);
        }
    }

    /// Updates the extremes with a TTL, seconds; 0 for data that does not expire.
    #[inline(always)]
    pub fn update_ttl(&mut self, ttl: i32) {
        self.ttl.update(ttl);
    }

    /// Updates the extremes with a liveness that is not empty, or with a cell's times.
    #[inline(always)]
    pub fn update_liveness(&mut self, timestamp: i64, ttl: i32, local_deletion_time: i64) {
        self.update_timestamp(timestamp);
        self.update_ttl(ttl);
        self.update_local_deletion_time(local_deletion_time);
    }

    /// Updates the extremes with a cell, and counts it in the partition's cells.
    #[inline(always)]
    pub fn update_cell(&mut self, timestamp: i64, ttl: i32, local_deletion_time: i64) {
        self.cells += 1;
        self.update_liveness(timestamp, ttl, local_deletion_time);
    }

    /// Updates the extremes with the deletion of a row, of a complex column or of one side of a marker.
    #[inline(always)]
    pub fn update_deletion_time(&mut self, deletion: &DeletionTime) {
        if !deletion.is_live() {
            self.update_timestamp(deletion.marked_for_delete_at);
            self.update_local_deletion_time(deletion.local_deletion_time);
        }
    }

    /// Updates the extremes with a partition deletion.
    #[inline]
    pub fn update_partition_deletion(&mut self, deletion: &DeletionTime) {
        if !deletion.is_live() {
            self.has_partition_level_deletions = true;
        }
        self.update_deletion_time(deletion);
    }

    /// Adds to the partition's cell count, for callers that count cells themselves.
    #[inline(always)]
    pub fn add_cells(&mut self, cells: u64) {
        self.cells = self.cells.wrapping_add(cells as i64);
    }

    /// Counts a row, or a static row that is not empty. `columns_set` is the number of its simple cells plus
    /// that of complex columns with a cell.
    #[inline(always)]
    pub fn add_row(&mut self, columns_set: u64) {
        self.total_rows += 1;
        self.total_columns_set = self.total_columns_set.wrapping_add(columns_set as i64);
    }

    /// Records that a counter has local or remote shards.
    #[inline]
    pub fn set_legacy_counter_shards(&mut self) {
        self.has_legacy_counter_shards = true;
    }

    /// Updates the covered slice with the clustering of a row or the bound of a marker. The first and the
    /// last of a partition are sufficient.
    pub fn update_clustering(&mut self, comparator: &ClusteringComparator, prefix: Prefix<'_>) {
        self.covered_clustering.update(comparator, prefix);
    }

    /// Adds a partition key to the cardinality.
    #[inline]
    pub fn add_key(&mut self, key: &[u8]) {
        if let Some(cardinality) = &mut self.cardinality {
            cardinality.add(key);
        }
    }

    /// Replaces the cardinality by that of keys which were added elsewhere.
    pub fn set_cardinality(&mut self, cardinality: HyperLogLogPlus) {
        self.cardinality = Some(cardinality);
    }

    /// Ends a partition of `size` bytes, including its end byte: adds its size and the number of cells since
    /// the last one to the histograms.
    pub fn add_partition(&mut self, size: u64) {
        self.partition_sizes
            .add(i64::try_from(size).unwrap_or(i64::MAX));
        self.cells_per_partition.add(self.cells);
        self.cells = 0;
    }

    /// Maximum local deletion time of data that is deleted or expires, seconds since 1970; `i64::MIN` if
    /// there is none. Not every version can represent it:
    /// [`Version::max_deletion_time`](crate::Version::max_deletion_time).
    pub fn latest_deletion_time(&self) -> i64 {
        self.latest_deletion_time
    }

    /// From the least timestamp so far to the greatest; `None` if there is none.
    pub fn timestamps(&self) -> Option<RangeInclusive<i64>> {
        let MinMax { min, max } = self.timestamp;
        (min <= max).then_some(min..=max)
    }

    /// Number of rows so far.
    pub fn total_rows(&self) -> i64 {
        self.total_rows
    }

    /// Returns the content of Statistics.db.
    pub fn finish(self, finish: Finish) -> Statistics {
        let (min_timestamp, max_timestamp) = self.timestamp.or(NO_TIMESTAMP, i64::MAX);
        let (min_local_deletion_time, max_local_deletion_time) = self
            .local_deletion_time
            .or(NO_DELETION_TIME, NO_DELETION_TIME);
        let (min_ttl, max_ttl) = self.ttl.or(0, 0);
        let types = finish.header.clustering_types.clone();
        let settings = self.settings;
        let stats = StatsMetadata {
            partition_sizes: self.partition_sizes,
            cells_per_partition: self.cells_per_partition,
            commit_log_intervals: settings.commit_log_intervals,
            min_timestamp,
            max_timestamp,
            min_local_deletion_time,
            max_local_deletion_time,
            min_ttl,
            max_ttl,
            compression_ratio: finish.compression_ratio.unwrap_or(NO_COMPRESSION_RATIO),
            tombstone_drop_times: self.tombstone_drop_times.build(),
            level: settings.level,
            repaired_at: settings.repaired_at,
            covered_clustering: self.covered_clustering.finish(types),
            has_legacy_counter_shards: self.has_legacy_counter_shards,
            total_columns_set: self.total_columns_set,
            total_rows: self.total_rows,
            pending_repair: settings.pending_repair,
            is_transient: settings.is_transient,
            originating_host_id: settings.originating_host_id,
            has_partition_level_deletions: self.has_partition_level_deletions,
            first_key: Some(finish.first_key),
            last_key: Some(finish.last_key),
            // Of the tokens that the node owns, which no file has; the node takes the keys instead.
            token_space_coverage: f64::NAN,
        };
        Statistics {
            validation: ValidationMetadata {
                partitioner: finish.partitioner.class_name().to_owned(),
                bloom_filter_fp_chance: finish.bloom_filter_fp_chance,
            },
            compaction: Some(CompactionMetadata::of(
                &self.cardinality.unwrap_or_default(),
            )),
            stats,
            header: finish.header,
        }
    }
}

#[cfg(test)]
mod tests;

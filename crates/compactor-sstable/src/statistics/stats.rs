//! The STATS component: extremes, histograms and provenance.
//!
//! Source: `StatsMetadata`, `StatsMetadata.StatsMetadataSerializer`.

use crate::byte_reader::ByteReader;
use crate::byte_sink::ByteSink;
use crate::data::deletion_time::{NO_DELETION_TIME, from_unsigned, to_signed, to_unsigned};
use crate::error::{Error, Result};
use crate::statistics::commit_log::{CommitLogPosition, IntervalSet};
use crate::statistics::covered_clustering::CoveredClustering;
use crate::statistics::estimated_histogram::EstimatedHistogram;
use crate::statistics::tombstone_histogram::{
    COUNTED_BIN_LEN, TombstoneHistogram, UNSIGNED_BIN_LEN,
};
use crate::statistics::{UuidBytes, read_optional_uuid, write_optional_uuid};
use crate::version::Version;

pub use crate::data::cell::NO_TIMESTAMP;
/// `MetadataCollector.NO_COMPRESSION_RATIO`.
pub const NO_COMPRESSION_RATIO: f64 = -1.0;
/// `ActiveRepairService.UNREPAIRED_SSTABLE`.
pub const UNREPAIRED: i64 = 0;

/// Extremes, histograms and provenance of an SSTable.
#[derive(Clone, Debug, PartialEq)]
pub struct StatsMetadata {
    /// Uncompressed bytes per partition.
    pub partition_sizes: EstimatedHistogram,
    /// Cells per partition, tombstones included.
    pub cells_per_partition: EstimatedHistogram,
    /// Commit log intervals whose data is in this SSTable.
    pub commit_log_intervals: IntervalSet,
    /// Minimum timestamp of data or deletions; `i64::MIN` if there is none.
    pub min_timestamp: i64,
    /// Maximum timestamp; `i64::MAX` if there is none.
    pub max_timestamp: i64,
    /// Minimum local deletion time, seconds since 1970; [`NO_DELETION_TIME`] if there is none.
    pub min_local_deletion_time: i64,
    /// Maximum local deletion time; [`NO_DELETION_TIME`] if any data neither expires nor is deleted.
    pub max_local_deletion_time: i64,
    /// Minimum TTL, seconds; 0 if any data does not expire.
    pub min_ttl: i32,
    /// Maximum TTL, seconds.
    pub max_ttl: i32,
    /// Compressed over uncompressed bytes; -1.0 if not compressed.
    pub compression_ratio: f64,
    /// Local deletion times of tombstones and expiring data.
    pub tombstone_drop_times: TombstoneHistogram,
    /// Level of leveled compaction.
    pub level: i32,
    /// Time of the repair, milliseconds since 1970; 0 if it was not repaired.
    pub repaired_at: i64,
    /// Clusterings from the minimum to the maximum.
    pub covered_clustering: CoveredClustering,
    /// Whether there are counters with local or remote shards.
    pub has_legacy_counter_shards: bool,
    /// Simple cells and complex columns, summed over rows.
    pub total_columns_set: i64,
    /// Number of rows, including static rows that are not empty.
    pub total_rows: i64,
    /// Session of an incremental repair in progress.
    pub pending_repair: Option<UuidBytes>,
    /// Whether it is transiently replicated.
    pub is_transient: bool,
    /// Node that wrote it, whose commit log the intervals belong to.
    pub originating_host_id: Option<UuidBytes>,
    /// Whether some partition may have a partition deletion.
    pub has_partition_level_deletions: bool,
    /// First partition key; `None` before `oa`.
    pub first_key: Option<Vec<u8>>,
    /// Last partition key; `None` before `oa`.
    pub last_key: Option<Vec<u8>>,
    /// Fraction of the node's tokens that the SSTable spans; NaN if unknown.
    pub token_space_coverage: f64,
}

impl StatsMetadata {
    /// Whether there is a compression ratio: before 4.0 not always. 3.0.0 leaves -1, ScyllaDB a NaN.
    pub fn has_compression_ratio(&self, version: Version) -> bool {
        version.has_metadata_checksum() || self.compression_ratio >= 0.0
    }

    pub(super) fn parse(reader: &mut ByteReader<'_>, version: Version) -> Result<StatsMetadata> {
        let partition_sizes = EstimatedHistogram::parse(reader, "stats.partition_sizes")?;
        let cells_per_partition = EstimatedHistogram::parse(reader, "stats.cells_per_partition")?;
        let upper_bound = CommitLogPosition::parse(reader)?;
        let min_timestamp = reader.i64("stats.min_timestamp")?;
        let max_timestamp = reader.i64("stats.max_timestamp")?;
        let min_local_deletion_time = read_local_deletion_time(reader, version)?;
        let key = |reader: &mut ByteReader<'_>, structure| {
            if version.has_key_range() {
                reader.bytes_v(structure).map(|key| Some(key.to_vec()))
            } else {
                Ok(None)
            }
        };
        // Fields are evaluated in this order, which is that of the file.
        Ok(StatsMetadata {
            partition_sizes,
            cells_per_partition,
            min_timestamp,
            max_timestamp,
            min_local_deletion_time,
            max_local_deletion_time: read_local_deletion_time(reader, version)?,
            min_ttl: reader.i32("stats.min_ttl")?,
            max_ttl: reader.i32("stats.max_ttl")?,
            compression_ratio: reader.f64("stats.compression_ratio")?,
            tombstone_drop_times: TombstoneHistogram::parse(reader, version)?,
            level: reader.i32("stats.level")?,
            repaired_at: reader.i64("stats.repaired_at")?,
            covered_clustering: CoveredClustering::parse(reader, version)?,
            has_legacy_counter_shards: reader.bool("stats.has_legacy_counter_shards")?,
            total_columns_set: reader.i64("stats.total_columns_set")?,
            total_rows: reader.i64("stats.total_rows")?,
            commit_log_intervals: {
                let lower_bound = if version.has_commit_log_lower_bound() {
                    CommitLogPosition::parse(reader)?
                } else {
                    CommitLogPosition::NONE
                };
                if version.has_commit_log_intervals() {
                    IntervalSet::parse(reader)?
                } else {
                    IntervalSet::single(lower_bound, upper_bound)
                }
            },
            pending_repair: if version.has_pending_repair() {
                read_optional_uuid(reader, "stats.pending_repair")?
            } else {
                None
            },
            is_transient: version.has_pending_repair() && reader.bool("stats.is_transient")?,
            originating_host_id: if version.has_originating_host_id() {
                read_optional_uuid(reader, "stats.originating_host_id")?
            } else {
                None
            },
            has_partition_level_deletions: if version.has_key_range() {
                reader.bool("stats.has_partition_level_deletions")?
            } else {
                min_local_deletion_time != NO_DELETION_TIME
            },
            first_key: key(reader, "stats.first_key")?,
            last_key: key(reader, "stats.last_key")?,
            token_space_coverage: if version.has_key_range() {
                reader.f64("stats.token_space_coverage")?
            } else {
                f64::NAN
            },
        })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>, version: Version) -> Result<()> {
        self.partition_sizes.write(out);
        self.cells_per_partition.write(out);
        self.commit_log_intervals.upper_bound().write(out);
        out.put_i64(self.min_timestamp);
        out.put_i64(self.max_timestamp);
        put_local_deletion_time(out, self.min_local_deletion_time, version);
        put_local_deletion_time(out, self.max_local_deletion_time, version);
        out.put_i32(self.min_ttl);
        out.put_i32(self.max_ttl);
        out.put_f64(self.compression_ratio);
        self.tombstone_drop_times.write(out, version);
        out.put_i32(self.level);
        out.put_i64(self.repaired_at);
        let mut padding = self.covered_clustering.write(out, version)?;
        out.put_bool(self.has_legacy_counter_shards);
        out.put_i64(self.total_columns_set);
        out.put_i64(self.total_rows);
        if version.has_commit_log_lower_bound() {
            self.commit_log_intervals.lower_bound().write(out);
        }
        if version.has_commit_log_intervals() {
            self.commit_log_intervals.write(out);
        }
        if version.has_pending_repair() {
            write_optional_uuid(out, self.pending_repair.as_ref());
            out.put_bool(self.is_transient);
        }
        if version.has_originating_host_id() {
            write_optional_uuid(out, self.originating_host_id.as_ref());
        }
        if version.has_key_range() {
            out.put_bool(self.has_partition_level_deletions);
            for (name, key) in [("first", &self.first_key), ("last", &self.last_key)] {
                let key = key.as_ref().ok_or_else(|| {
                    Error::unsupported(format!("version {version} without the {name} key"))
                })?;
                out.put_bytes_v(key);
            }
            out.put_f64(self.token_space_coverage);
        }
        // Cassandra writes a buffer of the length that it computed before, which is the same for bins of both
        // forms.
        if version.has_uint_deletion_time() {
            padding +=
                (COUNTED_BIN_LEN - UNSIGNED_BIN_LEN) * self.tombstone_drop_times.bins().len();
        }
        out.resize(out.len() + padding, 0);
        Ok(())
    }
}

fn read_local_deletion_time(reader: &mut ByteReader<'_>, version: Version) -> Result<i64> {
    const NAME: &str = "stats.local_deletion_time";
    if version.has_uint_deletion_time() {
        return Ok(from_unsigned(reader.u32(NAME)?));
    }
    Ok(match reader.i32(NAME)? {
        i32::MAX => NO_DELETION_TIME,
        seconds => i64::from(seconds),
    })
}

fn put_local_deletion_time(out: &mut Vec<u8>, value: i64, version: Version) {
    if version.has_uint_deletion_time() {
        out.put_u32(to_unsigned(value));
    } else {
        out.put_i32(to_signed(value));
    }
}

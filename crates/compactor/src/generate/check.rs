//! Validation of options, before anything is written.

use compactor_engine::input::check_writable;

use super::time_series::{self, Timeline};
use super::{GenerateOptions, SECOND_US, SSTABLE_INTERVAL_US, Shape};
use crate::{Error, Result};

/// Longest value: rows are made in memory, and Cassandra takes no larger mutation by default.
const MAX_VALUE_LEN: u32 = 16 << 20;
/// Cassandra's limit of names (`SchemaConstants.NAME_LENGTH`).
const MAX_NAME_LEN: usize = 48;
/// Cassandra's limit of TTLs: 20 years (`Attributes.MAX_TTL`).
const MAX_TTL_S: u32 = 20 * 365 * 86_400;
const MAX_SSTABLES: u32 = 10_000;

/// Checks the options. A time series comes with its timeline.
pub(super) fn check(options: &GenerateOptions) -> Result<Option<Timeline>> {
    for (what, name) in [("keyspace", &options.keyspace), ("table", &options.table)] {
        let is_plain = name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if name.is_empty() || name.len() > MAX_NAME_LEN || !is_plain {
            return Err(Error::invalid(format!(
                "{what} {name:?}: a name is 1 to {MAX_NAME_LEN} of a-z, 0-9 and _"
            )));
        }
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
            return Err(Error::invalid(format!(
                "{what} {name:?}: a name begins with a letter"
            )));
        }
    }
    let shares = [
        ("overlap", options.overlap),
        ("compressibility", options.compressibility),
        ("deletions", options.deletions),
        ("range tombstones", options.range_tombstones),
        ("updates", options.updates),
        ("cell tombstones", options.cell_tombstones),
        ("expired", options.expired),
    ];
    for (what, share) in shares {
        if !(0.0..=1.0).contains(&share) {
            return Err(Error::invalid(format!(
                "{what} {share}: a share is from 0 to 1"
            )));
        }
    }
    let ranges = [
        ("number of SSTables", options.sstables, MAX_SSTABLES),
        ("value length", options.value_len, MAX_VALUE_LEN),
        (
            "rows per partition",
            options.rows_per_partition,
            i32::MAX as u32,
        ),
    ];
    for (what, value, max) in ranges {
        if value == 0 || value > max {
            return Err(Error::invalid(format!(
                "{what} {value}: expected 1 to {max}"
            )));
        }
    }
    check_writable(options.version)?;
    if let Some(params) = &options.compression {
        params.codec()?;
        let is_valid =
            params.chunk_len.is_power_of_two() && (1 << 10..=1 << 24).contains(&params.chunk_len);
        if !is_valid {
            return Err(Error::invalid(format!(
                "chunk length {}: expected a power of two from 1KiB to 16MiB",
                params.chunk_len
            )));
        }
    }
    match options.shape {
        Shape::TimeSeries => check_timeline(options).map(Some),
        Shape::KeyValue if options.rows_per_partition != 1 => Err(Error::invalid(
            "shape kv has one row per partition; the other shapes have more".to_owned(),
        )),
        _ => check_timestamps(options).map(|()| None),
    }
}

fn check_timestamps(options: &GenerateOptions) -> Result<()> {
    let places = u64::from(options.rows_per_partition) * u64::from(options.sstables);
    if places > i32::MAX as u64 {
        return Err(Error::invalid(format!(
            "{} rows per partition in {} SSTables: the clustering column has room for {} together",
            options.rows_per_partition,
            options.sstables,
            i32::MAX
        )));
    }
    let last = options
        .first_timestamp_us
        .checked_add((i64::from(options.sstables) + 1) * SSTABLE_INTERVAL_US)
        .filter(|last| last / SECOND_US <= options.version.max_deletion_time());
    if options.first_timestamp_us < 0 || last.is_none() {
        return Err(Error::invalid(format!(
            "first timestamp {}: expected microseconds since 1970 that SSTables of version {} can \
             have as deletion times",
            options.first_timestamp_us, options.version
        )));
    }
    Ok(())
}

fn check_timeline(options: &GenerateOptions) -> Result<Timeline> {
    if options.ttl_s == 0 || options.ttl_s > MAX_TTL_S {
        return Err(Error::invalid(format!(
            "TTL of {} s: expected 1 s to 20 years ({MAX_TTL_S} s)",
            options.ttl_s
        )));
    }
    // Data begins up to two TTLs before now, and expires up to one after it.
    let ttl_s = i64::from(options.ttl_s);
    let latest = options.version.max_deletion_time() - ttl_s;
    if !(2 * ttl_s..latest).contains(&options.now_s) {
        return Err(Error::invalid(format!(
            "now {} with a TTL of {ttl_s} s: expected seconds since 1970, from {} to {latest} for \
             version {}",
            options.now_s,
            2 * ttl_s,
            options.version
        )));
    }
    Timeline::new(options).ok_or_else(|| {
        Error::invalid(format!(
            "{} rows per partition in {} SSTables: a sixteenth of the TTL of {ttl_s} s, which a \
             partition spans, has too few milliseconds; choose fewer rows or a longer TTL",
            options.rows_per_partition, options.sstables
        ))
    })
}

/// Checks how many partitions come out of the amount.
pub(super) fn check_partition_count(options: &GenerateOptions, count: u64) -> Result<u64> {
    let all = count.saturating_mul(u64::from(options.sstables));
    let most = match options.shape {
        Shape::TimeSeries => time_series::MAX_PARTITIONS,
        Shape::KeyValue => i64::MAX as u64,
        // Numbers of ten digits in the keys.
        _ => 9_999_999_999,
    };
    if all > most {
        return Err(Error::invalid(format!(
            "{count} partitions in each of {} SSTables: shape {} has at most {most} in all",
            options.sstables,
            options.shape.name()
        )));
    }
    Ok(count)
}

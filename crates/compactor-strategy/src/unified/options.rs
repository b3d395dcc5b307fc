//! Options of unified compaction.
//!
//! Source: `unified.Controller`.

use super::overlaps::Inclusion;
use super::scaling::Scaling;
use super::shards::ShardCount;
use crate::expired::{AGGRESSIVE_EXPIRATION, CHECK_INTERVAL, ExpiryOptions};
use crate::options::{OptionError, Options, Thresholds, boolean, number, refuse_unknown, set};
use crate::release::Release;
use crate::size_text::{parse_bytes, parse_percent, parse_whole_bytes, print_bytes};
use crate::tombstones::TombstoneOptions;

const SCALING: &str = "scaling_parameters";
const BASE_SHARDS: &str = "base_shard_count";
const TARGET_SIZE: &str = "target_sstable_size";
const FLUSH_SIZE: &str = "flush_size_override";
const MAX_SSTABLES: &str = "max_sstables_to_compact";
const INCLUSION: &str = "overlap_inclusion_method";
const MIN_SIZE: &str = "min_sstable_size";
const GROWTH: &str = "sstable_growth";
const PARALLEL: &str = "parallelize_output_shards";

const OPTIONS: [&str; 10] = [
    SCALING,
    BASE_SHARDS,
    TARGET_SIZE,
    FLUSH_SIZE,
    MAX_SSTABLES,
    CHECK_INTERVAL,
    AGGRESSIVE_EXPIRATION,
    INCLUSION,
    MIN_SIZE,
    GROWTH,
];

/// Number of base shards from which on they are refused.
const MORE_SHARDS: u32 = (1 << 20) + 1;

/// Smallest target and flush size.
const SMALLEST_BYTES: i64 = 1 << 20;

/// Options of unified compaction.
#[derive(Clone, Debug, PartialEq)]
pub struct UnifiedOptions {
    /// Fan-outs and thresholds of levels (`scaling_parameters`).
    pub scaling: Scaling,
    /// Number of output shards (`base_shard_count`, `target_sstable_size`, `min_sstable_size`,
    /// `sstable_growth`).
    pub shards: ShardCount,
    /// Size of flushed SSTables, bytes, instead of the observed one (`flush_size_override`).
    pub flush_bytes: Option<u64>,
    /// Maximum number of overlapping SSTables per compaction (`max_sstables_to_compact`).
    pub max_sstables: usize,
    /// Options of the check for fully expired SSTables.
    pub expiry: ExpiryOptions,
    /// Neighbours that are compacted with overlapping SSTables (`overlap_inclusion_method`).
    pub inclusion: Inclusion,
    /// Whether output shards are compacted concurrently (`parallelize_output_shards`).
    pub is_parallel: bool,
    /// Whether the outputs of a major compaction are the shards of the whole density. Before 6.0,
    /// non-overlapping groups are compacted separately.
    pub(super) has_sharded_major: bool,
}

impl UnifiedOptions {
    /// Default options of a release.
    pub fn new(release: Release) -> UnifiedOptions {
        UnifiedOptions {
            scaling: Scaling::default(),
            shards: ShardCount::default(),
            flush_bytes: None,
            max_sstables: usize::MAX,
            expiry: ExpiryOptions::default(),
            inclusion: Inclusion::Transitive,
            is_parallel: release.has_parallel_shards(),
            has_sharded_major: release.has_parallel_shards(),
        }
    }

    /// Parses all options of a table.
    ///
    /// # Errors
    /// Options that this release refuses, with its messages.
    pub fn from_options(
        options: &Options,
        release: Release,
    ) -> Result<UnifiedOptions, OptionError> {
        let tombstones = TombstoneOptions::from_options(options)?;
        let mut read = UnifiedOptions::new(release);
        let (shards, expiry) = (&mut read.shards, &mut read.expiry);
        expiry.only_repaired = tombstones.only_repaired;
        set(&mut read.scaling, options, SCALING, Scaling::parse)?;
        set(&mut shards.base, options, BASE_SHARDS, base_shards)?;
        set(&mut shards.target_bytes, options, TARGET_SIZE, target_bytes)?;
        set(&mut read.flush_bytes, options, FLUSH_SIZE, |text| {
            flush_bytes(text).map(Some)
        })?;
        set(&mut read.max_sstables, options, MAX_SSTABLES, max_sstables)?;
        set(&mut expiry.interval_s, options, CHECK_INTERVAL, interval_s)?;
        // Without effect, as in a node whose system property does not allow it.
        if let Some(text) = options.get(AGGRESSIVE_EXPIRATION) {
            true_or_false(text, AGGRESSIVE_EXPIRATION)?;
        }
        let parallel: &[&str] = if release.has_parallel_shards() {
            &[PARALLEL]
        } else {
            &[]
        };
        for name in parallel {
            set(&mut read.is_parallel, options, name, |text| {
                true_or_false(text, name)
            })?;
        }
        set(&mut read.inclusion, options, INCLUSION, inclusion)?;
        let target_bytes = shards.target_bytes;
        set(&mut shards.min_bytes, options, MIN_SIZE, |text| {
            min_bytes(text, target_bytes)
        })?;
        set(&mut shards.growth, options, GROWTH, growth)?;
        refuse_unknown(options, "UnifiedCompactionStrategy", &[&OPTIONS, parallel])?;
        // It has no thresholds: the defaults are validated.
        Thresholds::from_options(options)?;
        Ok(read)
    }
}

fn not_positive(name: &str, number: i64) -> OptionError {
    OptionError(format!(
        "Invalid configuration, {name} should be positive: {number}"
    ))
}

fn base_shards(text: &str) -> Result<u32, OptionError> {
    let number: i32 = number(text, BASE_SHARDS)?;
    match u32::try_from(number) {
        // Cassandra takes it. Boundaries of all shards would take tens of gigabytes here.
        Ok(shards @ MORE_SHARDS..) => Err(OptionError(format!(
            "{BASE_SHARDS} of more than {} is not supported: {shards}",
            MORE_SHARDS - 1
        ))),
        Ok(shards @ 1..) => Ok(shards),
        _ => Err(not_positive(BASE_SHARDS, i64::from(number))),
    }
}

fn not_a_size(name: &str, text: &str, reason: &str) -> OptionError {
    OptionError(format!(
        "{name} {text} is not a valid size in bytes: {reason}"
    ))
}

fn too_small(name: &str, text: &str) -> OptionError {
    OptionError(format!(
        "{name} {text} is not acceptable, size must be at least {}",
        print_bytes(SMALLEST_BYTES)
    ))
}

fn target_bytes(text: &str) -> Result<f64, OptionError> {
    let bytes = parse_bytes(text).map_err(|reason| not_a_size(TARGET_SIZE, text, &reason))?;
    match () {
        () if bytes >= i64::MAX as f64 => Err(OptionError(format!(
            "{TARGET_SIZE} {text} is out of range of Long."
        ))),
        () if bytes < SMALLEST_BYTES as f64 => Err(too_small(TARGET_SIZE, text)),
        // A `long` in Cassandra.
        () => Ok(bytes as i64 as f64),
    }
}

fn flush_bytes(text: &str) -> Result<u64, OptionError> {
    let bytes = parse_whole_bytes(text).map_err(|reason| not_a_size(FLUSH_SIZE, text, &reason))?;
    if bytes < SMALLEST_BYTES {
        Err(too_small(FLUSH_SIZE, text))
    } else {
        Ok(bytes.unsigned_abs())
    }
}

/// Zero and less are no limit.
fn max_sstables(text: &str) -> Result<usize, OptionError> {
    let number: i32 = number(text, MAX_SSTABLES)?;
    Ok(match usize::try_from(number) {
        Ok(limit @ 1..) => limit,
        _ => usize::MAX,
    })
}

fn interval_s(text: &str) -> Result<i64, OptionError> {
    let refusal = |_| {
        OptionError(format!(
            "{text} is not a parsable long (base10) for {CHECK_INTERVAL}"
        ))
    };
    match text.parse().map_err(refusal)? {
        seconds @ 1.. => Ok(seconds),
        number => Err(not_positive(CHECK_INTERVAL, number)),
    }
}

fn true_or_false(text: &str, name: &str) -> Result<bool, OptionError> {
    boolean(text).ok_or_else(|| {
        OptionError(format!(
            "{name} should either be 'true' or 'false', not {text}"
        ))
    })
}

fn inclusion(text: &str) -> Result<Inclusion, OptionError> {
    text.to_uppercase().parse().map_err(|_| {
        OptionError(format!(
            "Invalid overlap inclusion method {text}. The valid options are [NONE, SINGLE, TRANSITIVE]."
        ))
    })
}

fn min_bytes(text: &str, target_bytes: f64) -> Result<i64, OptionError> {
    let bytes = parse_whole_bytes(text).map_err(|_| {
        OptionError(format!(
            "{text} is not a valid size in bytes for {MIN_SIZE}"
        ))
    })?;
    let limit = (target_bytes * 0.5f64.sqrt()).ceil();
    match () {
        () if bytes < 0 => Err(OptionError(format!(
            "Invalid configuration, {MIN_SIZE} should be greater than or equal to 0 (zero)"
        ))),
        () if bytes as f64 >= limit => Err(OptionError(format!(
            "Invalid configuration, {MIN_SIZE} ({}) should be less than 70% of the targetSSTableSize ({})",
            print_bytes(bytes),
            print_bytes(target_bytes as i64)
        ))),
        () => Ok(bytes),
    }
}

fn growth(text: &str) -> Result<f64, OptionError> {
    let growth = parse_percent(text).map_err(|reason| {
        OptionError(format!(
            "{GROWTH} is not a valid number between 0 and 1: {reason}"
        ))
    })?;
    if (0.0..=1.0).contains(&growth) || growth.is_nan() {
        Ok(growth)
    } else {
        Err(OptionError(format!(
            "{GROWTH} {text} must be between 0 and 1"
        )))
    }
}

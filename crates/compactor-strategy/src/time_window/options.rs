//! Options of time window compaction.
//!
//! Source: `TimeWindowCompactionStrategyOptions`.

use std::str::FromStr;

use super::windows::{Resolution, WindowSize, WindowUnit};
use crate::expired::{AGGRESSIVE_EXPIRATION, CHECK_INTERVAL, ExpiryOptions};
use crate::options::{OptionError, Options, Thresholds, boolean, number, refuse_unknown, set};
use crate::size_tiered::{BucketOptions, TIER_OPTIONS};
use crate::tombstones::TombstoneOptions;

const RESOLUTION: &str = "timestamp_resolution";
const WINDOW_UNIT: &str = "compaction_window_unit";
const WINDOW_SIZE: &str = "compaction_window_size";

const OPTIONS: [&str; 5] = [
    RESOLUTION,
    WINDOW_UNIT,
    WINDOW_SIZE,
    CHECK_INTERVAL,
    AGGRESSIVE_EXPIRATION,
];

/// Options any of which enables tombstone compactions.
const TOMBSTONE_OPTIONS: [&str; 3] = [
    "unchecked_tombstone_compaction",
    "tombstone_compaction_interval",
    "tombstone_threshold",
];

/// Options of time window compaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeWindowOptions {
    /// Length of a window (`compaction_window_unit`, `compaction_window_size`).
    pub window: WindowSize,
    /// Unit of the timestamps in the table (`timestamp_resolution`).
    pub resolution: Resolution,
    /// Options of the check for fully expired SSTables.
    pub expiry: ExpiryOptions,
    /// Number of SSTables per compaction.
    pub thresholds: Thresholds,
    /// Options of size tiers in the current window.
    pub buckets: BucketOptions,
    /// Options of single-SSTable tombstone compactions; `None` if there are none.
    pub tombstones: Option<TombstoneOptions>,
}

impl Default for TimeWindowOptions {
    fn default() -> TimeWindowOptions {
        TimeWindowOptions {
            window: WindowSize {
                unit: WindowUnit::Days,
                count: 1,
            },
            resolution: Resolution::Microseconds,
            expiry: ExpiryOptions::default(),
            thresholds: Thresholds::default(),
            buckets: BucketOptions::default(),
            tombstones: None,
        }
    }
}

impl TimeWindowOptions {
    /// Parses all options of a table.
    ///
    /// # Errors
    /// Options that Cassandra refuses, with its messages. `unsafe_aggressive_sstable_expiration` is not
    /// refused, and has no effect: a node has it only if its system property allows it.
    pub fn from_options(options: &Options) -> Result<TimeWindowOptions, OptionError> {
        let tombstones = TombstoneOptions::from_options(options)?;
        let mut read = TimeWindowOptions::default();
        set(&mut read.resolution, options, RESOLUTION, |text| {
            named(text, RESOLUTION)
        })?;
        set(&mut read.window.unit, options, WINDOW_UNIT, |text| {
            named(text, WINDOW_UNIT)
        })?;
        set(&mut read.window.count, options, WINDOW_SIZE, window_count)?;
        let expiry = &mut read.expiry;
        expiry.only_repaired = tombstones.only_repaired;
        set(&mut expiry.interval_s, options, CHECK_INTERVAL, interval_s)?;
        if let Some(text) = options.get(AGGRESSIVE_EXPIRATION) {
            aggressive_expiration(text)?;
        }
        read.buckets = BucketOptions::from_options(options)?;
        let own = [&OPTIONS[..], &TIER_OPTIONS];
        refuse_unknown(options, "TimeWindowCompactionStrategy", &own)?;
        let mut values = TOMBSTONE_OPTIONS
            .iter()
            .filter_map(|name| options.get(*name));
        let has_tombstones = values.any(|value| value != "false");
        read.tombstones = has_tombstones.then_some(tombstones);
        read.thresholds = Thresholds::from_options(options)?;
        Ok(read)
    }
}

fn named<T: FromStr>(text: &str, name: &str) -> Result<T, OptionError> {
    let refusal = |_| OptionError(format!("{text} is not valid for {name}"));
    text.parse().map_err(refusal)
}

fn window_count(text: &str) -> Result<u32, OptionError> {
    let count: i32 = number(text, WINDOW_SIZE)?;
    match u32::try_from(count) {
        Ok(positive @ 1..) => Ok(positive),
        _ => Err(OptionError(format!(
            "{count} must be greater than 1 for {WINDOW_SIZE}"
        ))),
    }
}

fn interval_s(text: &str) -> Result<i64, OptionError> {
    match number(text, CHECK_INTERVAL)? {
        negative @ ..0 => Err(OptionError(format!(
            "{CHECK_INTERVAL} must not be negative, but was {negative}"
        ))),
        seconds => Ok(seconds),
    }
}

fn aggressive_expiration(text: &str) -> Result<bool, OptionError> {
    boolean(text).ok_or_else(|| {
        OptionError(format!(
            "{AGGRESSIVE_EXPIRATION} is not 'true' or 'false' ({text})"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::of;

    fn parse(pairs: &[(&str, &str)]) -> Result<TimeWindowOptions, String> {
        TimeWindowOptions::from_options(&of(pairs)).map_err(|error| error.0)
    }

    #[test]
    fn tombstone_compactions_need_an_option() {
        let has = |pairs| parse(pairs).expect("valid options").tombstones.is_some();
        assert!(!has(&[]));
        assert!(!has(&[("unchecked_tombstone_compaction", "false")]));
        assert!(has(&[("unchecked_tombstone_compaction", "true")]));
        assert!(has(&[("tombstone_threshold", "0.2")]));
        assert!(has(&[("tombstone_compaction_interval", "86400")]));
    }

    #[test]
    fn invalid_options_are_refused_with_cassandras_messages() {
        let refused = |name, value| parse(&[(name, value)]).unwrap_err();
        assert_eq!(
            refused("compaction_window_unit", "WEEKS"),
            "WEEKS is not valid for compaction_window_unit"
        );
        assert_eq!(
            refused("compaction_window_unit", "SECONDS"),
            "SECONDS is not valid for compaction_window_unit"
        );
        assert_eq!(
            refused("timestamp_resolution", "MINUTES"),
            "MINUTES is not valid for timestamp_resolution"
        );
        assert_eq!(
            refused("compaction_window_size", "0"),
            "0 must be greater than 1 for compaction_window_size"
        );
        assert_eq!(
            refused("expired_sstable_check_frequency_seconds", "-1"),
            "expired_sstable_check_frequency_seconds must not be negative, but was -1"
        );
        assert_eq!(
            refused("unsafe_aggressive_sstable_expiration", "no"),
            "unsafe_aggressive_sstable_expiration is not 'true' or 'false' (no)"
        );
    }
}

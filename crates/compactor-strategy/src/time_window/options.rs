//! Options of time window compaction.
//!
//! Source: `TimeWindowCompactionStrategyOptions`.

use super::windows::{Resolution, WindowSize, WindowUnit};
use crate::options::{
    OptionError, Options, Thresholds, boolean, int, long, refuse_bad_overlapping_tombstones,
    refuse_unknown,
};
use crate::size_tiered::BucketOptions;
use crate::tombstones::TombstoneOptions;

const RESOLUTION: &str = "timestamp_resolution";
const WINDOW_UNIT: &str = "compaction_window_unit";
const WINDOW_SIZE: &str = "compaction_window_size";
const EXPIRED_CHECK: &str = "expired_sstable_check_frequency_seconds";
const AGGRESSIVE_EXPIRATION: &str = "unsafe_aggressive_sstable_expiration";

const OPTIONS: [&str; 10] = [
    RESOLUTION,
    WINDOW_UNIT,
    WINDOW_SIZE,
    EXPIRED_CHECK,
    AGGRESSIVE_EXPIRATION,
    "min_threshold",
    "max_threshold",
    "min_sstable_size",
    "bucket_low",
    "bucket_high",
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
    /// Interval of the check for fully expired SSTables, seconds
    /// (`expired_sstable_check_frequency_seconds`).
    pub expired_check_s: i64,
    /// Whether an expired SSTable is dropped although it may shadow data in others, if the node allows it
    /// (`unsafe_aggressive_sstable_expiration`).
    pub ignores_overlaps: bool,
    /// Number of SSTables per compaction.
    pub thresholds: Thresholds,
    /// Options of size tiers in the current window.
    pub buckets: BucketOptions,
    /// Options of single-SSTable tombstone compactions; `None` if there are none.
    pub tombstones: Option<TombstoneOptions>,
    /// Whether only repaired SSTables expire (`only_purge_repaired_tombstones`).
    pub only_repaired: bool,
}

impl Default for TimeWindowOptions {
    fn default() -> TimeWindowOptions {
        TimeWindowOptions {
            window: WindowSize {
                unit: WindowUnit::Days,
                count: 1,
            },
            resolution: Resolution::Microseconds,
            expired_check_s: 600,
            ignores_overlaps: false,
            thresholds: Thresholds::default(),
            buckets: BucketOptions::default(),
            tombstones: None,
            only_repaired: false,
        }
    }
}

impl TimeWindowOptions {
    /// Parses all options of a table.
    ///
    /// # Errors
    /// Options that Cassandra refuses, with its messages. `unsafe_aggressive_sstable_expiration` is not
    /// refused: a node has it only if its system property allows it.
    pub fn from_options(options: &Options) -> Result<TimeWindowOptions, OptionError> {
        refuse_bad_overlapping_tombstones(options)?;
        let defaults = TimeWindowOptions::default();
        let tombstones = TombstoneOptions::from_options(options)?;
        let resolution = match options.get(RESOLUTION) {
            None => defaults.resolution,
            Some(text) => Resolution::from_name(text).ok_or_else(|| invalid(text, RESOLUTION))?,
        };
        let unit = match options.get(WINDOW_UNIT) {
            None => defaults.window.unit,
            Some(text) => WindowUnit::from_name(text).ok_or_else(|| invalid(text, WINDOW_UNIT))?,
        };
        let count = window_count(options)?.unwrap_or(defaults.window.count);
        let expired_check_s = expired_check_s(options)?.unwrap_or(defaults.expired_check_s);
        let ignores_overlaps = aggressive_expiration(options)?;
        let buckets = BucketOptions::from_options(options)?;
        refuse_unknown(options, "TimeWindowCompactionStrategy", &OPTIONS)?;
        let values = TOMBSTONE_OPTIONS
            .iter()
            .filter_map(|name| options.get(*name));
        let has_tombstones = values.into_iter().any(|value| value != "false");
        Ok(TimeWindowOptions {
            window: WindowSize { unit, count },
            resolution,
            expired_check_s,
            ignores_overlaps,
            thresholds: Thresholds::from_options(options)?,
            buckets,
            tombstones: has_tombstones.then_some(tombstones),
            only_repaired: tombstones.only_repaired,
        })
    }
}

fn invalid(text: &str, name: &str) -> OptionError {
    OptionError(format!("{text} is not valid for {name}"))
}

fn not_a_number(text: &str, name: &str) -> OptionError {
    OptionError(format!("{text} is not a parsable int (base10) for {name}"))
}

fn window_count(options: &Options) -> Result<Option<u32>, OptionError> {
    let Some(text) = options.get(WINDOW_SIZE) else {
        return Ok(None);
    };
    let count = int(text).ok_or_else(|| not_a_number(text, WINDOW_SIZE))?;
    match u32::try_from(count) {
        Ok(positive @ 1..) => Ok(Some(positive)),
        _ => Err(OptionError(format!(
            "{count} must be greater than 1 for {WINDOW_SIZE}"
        ))),
    }
}

fn expired_check_s(options: &Options) -> Result<Option<i64>, OptionError> {
    let Some(text) = options.get(EXPIRED_CHECK) else {
        return Ok(None);
    };
    match long(text).ok_or_else(|| not_a_number(text, EXPIRED_CHECK))? {
        negative @ ..0 => Err(OptionError(format!(
            "{EXPIRED_CHECK} must not be negative, but was {negative}"
        ))),
        seconds => Ok(Some(seconds)),
    }
}

fn aggressive_expiration(options: &Options) -> Result<bool, OptionError> {
    let Some(text) = options.get(AGGRESSIVE_EXPIRATION) else {
        return Ok(false);
    };
    boolean(text).ok_or_else(|| {
        OptionError(format!(
            "{AGGRESSIVE_EXPIRATION} is not 'true' or 'false' ({text})"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<TimeWindowOptions, String> {
        let owned = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
        let options = pairs.iter().map(owned).collect();
        TimeWindowOptions::from_options(&options).map_err(|error| error.0)
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
    fn bad_options_are_refused_in_cassandras_words() {
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

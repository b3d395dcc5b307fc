//! Options of compaction into a fixed number of levels.

use crate::leveled::{LeveledOptions, Sizing};
use crate::options::{OptionError, Options, Thresholds, boolean, number, refuse_unknown};
use crate::release::Release;
use crate::size_tiered::{BucketOptions, TIER_OPTIONS};
use crate::tombstones::TombstoneOptions;

const LEVEL_COUNT: &str = "level_count";
const FANOUT_SIZE: &str = "fanout_size";
const MIN_SIZE: &str = "min_sstable_size_in_mb";
const MAX_SIZE: &str = "max_sstable_size_in_mb";
const SINGLE_SSTABLE_UPLEVEL: &str = "single_sstable_uplevel";

const OPTIONS: [&str; 5] = [
    LEVEL_COUNT,
    FANOUT_SIZE,
    MIN_SIZE,
    MAX_SIZE,
    SINGLE_SSTABLE_UPLEVEL,
];

/// Greatest number of levels above L0. Leveled compaction has one more, whose limit it enforces.
const MAX_LEVELS: i32 = 7;

/// Options of compaction into a fixed number of levels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelCountOptions {
    /// Number of levels, and bounds of the SSTable size (`level_count`, `fanout_size`,
    /// `min_sstable_size_in_mb`, `max_sstable_size_in_mb`).
    pub sizing: Sizing,
    /// The other options, as of leveled compaction; its sizes are those of an empty table.
    pub leveled: LeveledOptions,
}

impl Default for LevelCountOptions {
    fn default() -> LevelCountOptions {
        let sizing = Sizing::default();
        LevelCountOptions {
            sizing,
            leveled: LeveledOptions {
                sizes: sizing.sizes(0),
                ..LeveledOptions::new(Release::V6_0)
            },
        }
    }
}

impl LevelCountOptions {
    /// Parses all options of a table.
    ///
    /// # Errors
    /// Options that are unknown, out of range or contradict each other.
    pub fn from_options(options: &Options) -> Result<LevelCountOptions, OptionError> {
        let defaults = Sizing::default();
        let tombstones = TombstoneOptions::from_options(options)?;
        let levels = in_range(options, LEVEL_COUNT, 1, MAX_LEVELS)?;
        let fanout = in_range(options, FANOUT_SIZE, 2, i32::MAX)?;
        let min_mib = in_range(options, MIN_SIZE, 1, i32::MAX)?;
        let max_mib = in_range(options, MAX_SIZE, 1, i32::MAX)?;
        let sizing = Sizing {
            levels: levels.map_or(defaults.levels, |levels| levels as usize),
            fanout: fanout.map_or(defaults.fanout, f64::from),
            min_mib: min_mib.unwrap_or(defaults.min_mib),
            max_mib: max_mib.unwrap_or(defaults.max_mib),
        };
        if sizing.min_mib > sizing.max_mib {
            return Err(OptionError(format!(
                "{MIN_SIZE} ({}) cannot be greater than {MAX_SIZE} ({})",
                sizing.min_mib, sizing.max_mib
            )));
        }
        let buckets = BucketOptions::from_options(options)?;
        refuse_unknown(options, super::CLASS, &[&OPTIONS, &TIER_OPTIONS])?;
        let uplevel = options.get(SINGLE_SSTABLE_UPLEVEL);
        Ok(LevelCountOptions {
            sizing,
            leveled: LeveledOptions {
                sizes: sizing.sizes(0),
                single_sstable_uplevel: uplevel.is_none_or(|text| boolean(text).unwrap_or(false)),
                thresholds: Thresholds::from_options(options)?,
                buckets,
                tombstones,
            },
        })
    }
}

fn in_range(options: &Options, name: &str, min: i32, max: i32) -> Result<Option<u32>, OptionError> {
    let Some(text) = options.get(name) else {
        return Ok(None);
    };
    let number: i32 = number(text, name)?;
    match (min..=max).contains(&number) {
        true => Ok(Some(number.unsigned_abs())),
        false if max == i32::MAX => Err(OptionError(format!(
            "{name} must be at least {min}, but was {number}"
        ))),
        false => Err(OptionError(format!(
            "{name} must be between {min} and {max}, but was {number}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::of;

    #[test]
    fn bad_options_are_refused() {
        let refused =
            |pairs: &[(&str, &str)]| LevelCountOptions::from_options(&of(pairs)).unwrap_err().0;
        assert_eq!(
            refused(&[("level_count", "8")]),
            "level_count must be between 1 and 7, but was 8"
        );
        assert_eq!(
            refused(&[("fanout_size", "1")]),
            "fanout_size must be at least 2, but was 1"
        );
        assert_eq!(
            refused(&[
                ("min_sstable_size_in_mb", "9"),
                ("max_sstable_size_in_mb", "8")
            ]),
            "min_sstable_size_in_mb (9) cannot be greater than max_sstable_size_in_mb (8)"
        );
        assert_eq!(
            refused(&[("sstable_size_in_mb", "160")]),
            "Properties specified [sstable_size_in_mb] are not understood by LevelCountCompactionStrategy"
        );
        assert_eq!(
            refused(&[("level_count", "x")]),
            "x is not a parsable int (base10) for level_count"
        );
    }
}

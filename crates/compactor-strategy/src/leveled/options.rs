//! Options of leveled compaction.
//!
//! Source: `LeveledCompactionStrategy.validateOptions`.

use super::sizes::{LevelSizes, TOP_LEVEL};
use crate::options::{OptionError, Options, Thresholds, boolean, number, refuse_unknown};
use crate::release::Release;
use crate::size_tiered::{BucketOptions, TIER_OPTIONS};
use crate::tombstones::TombstoneOptions;

const SSTABLE_SIZE: &str = "sstable_size_in_mb";
const FANOUT_SIZE: &str = "fanout_size";
const SINGLE_SSTABLE_UPLEVEL: &str = "single_sstable_uplevel";

const OPTIONS: [&str; 3] = [SSTABLE_SIZE, FANOUT_SIZE, SINGLE_SSTABLE_UPLEVEL];

const DEFAULT_SSTABLE_MIB: i32 = 160;
const DEFAULT_FANOUT: i32 = 10;

/// Options of leveled compaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeveledOptions {
    /// SSTable size and limits of levels (`sstable_size_in_mb`, `fanout_size`).
    pub sizes: LevelSizes,
    /// Whether an SSTable that overlaps nothing in the next level only gets the new level in its statistics
    /// (`single_sstable_uplevel`).
    pub single_sstable_uplevel: bool,
    /// Thresholds, of which the maximum limits the SSTables of L0 per compaction.
    pub thresholds: Thresholds,
    /// Options of size tiers, in which L0 is compacted if it is large.
    pub buckets: BucketOptions,
    /// Options of single-SSTable tombstone compactions.
    pub tombstones: TombstoneOptions,
}

impl LeveledOptions {
    /// Default options of a release.
    pub fn new(release: Release) -> LeveledOptions {
        LeveledOptions {
            sizes: LevelSizes::new(mib(DEFAULT_SSTABLE_MIB), f64::from(DEFAULT_FANOUT)),
            single_sstable_uplevel: release.single_sstable_uplevel(),
            thresholds: Thresholds::default(),
            buckets: BucketOptions::default(),
            tombstones: TombstoneOptions::default(),
        }
    }

    /// Parses all options of a table.
    ///
    /// # Errors
    /// Options that this release refuses, with its messages.
    pub fn from_options(
        options: &Options,
        release: Release,
    ) -> Result<LeveledOptions, OptionError> {
        let tombstones = TombstoneOptions::from_options(options)?;
        let sstable_mib = positive_int(options, SSTABLE_SIZE, DEFAULT_SSTABLE_MIB)?;
        let fanout = positive_int(options, FANOUT_SIZE, DEFAULT_FANOUT)
            .map_err(|error| fanout_error(error, options, release))?;
        if release.validates_level_bytes() {
            refuse_large_levels(sstable_mib, fanout)?;
        }
        let buckets = BucketOptions::from_options(options)?;
        let own = [&OPTIONS[..], &TIER_OPTIONS];
        refuse_unknown(options, "LeveledCompactionStrategy", &own)?;
        // Neither is validated: any other text is false.
        let uplevel = options.get(SINGLE_SSTABLE_UPLEVEL);
        let uplevel = uplevel.map(|text| boolean(text).unwrap_or(false));
        Ok(LeveledOptions {
            sizes: LevelSizes::new(mib(sstable_mib), f64::from(fanout)),
            single_sstable_uplevel: uplevel.unwrap_or(release.single_sstable_uplevel()),
            thresholds: Thresholds::from_options(options)?,
            buckets,
            tombstones,
        })
    }
}

fn mib(number: i32) -> u64 {
    u64::from(number.unsigned_abs()) << 20
}

fn positive_int(options: &Options, name: &str, default: i32) -> Result<i32, OptionError> {
    match options
        .get(name)
        .map_or(Ok(default), |text| number(text, name))?
    {
        number @ ..1 => Err(OptionError(format!(
            "{name} must be larger than 0, but was {number}"
        ))),
        number => Ok(number),
    }
}

/// 5.0 quotes the SSTable size in its message about a fan-out that is not a number.
fn fanout_error(error: OptionError, options: &Options, release: Release) -> OptionError {
    let is_number = options
        .get(FANOUT_SIZE)
        .is_none_or(|text| number::<i32>(text, FANOUT_SIZE).is_ok());
    if is_number || release.validates_level_bytes() {
        return error;
    }
    let size = options.get(SSTABLE_SIZE).map_or("1", String::as_str);
    OptionError(format!(
        "{size} is not a parsable int (base10) for {FANOUT_SIZE}"
    ))
}

fn refuse_large_levels(sstable_mib: i32, fanout: i32) -> Result<(), OptionError> {
    let bytes = decimal_product(mib(sstable_mib), fanout.unsigned_abs(), TOP_LEVEL);
    let limit = i64::MAX.to_string();
    // Decimal numbers without leading zeros: the longer one is larger.
    if (bytes.len(), &bytes) <= (limit.len(), &limit) {
        return Ok(());
    }
    Err(OptionError(format!(
        "At most {limit} bytes may be in a compaction level; your maxSSTableSize must be absurdly high to \
         compute {bytes}"
    )))
}

/// `number × factor^power` in decimal digits: the largest has 305 bits.
fn decimal_product(number: u64, factor: u32, power: usize) -> String {
    const BASE: u64 = 1_000_000_000;
    let mut limbs = vec![number % BASE, number / BASE % BASE, number / BASE / BASE];
    for _ in 0..power {
        let mut carry = 0;
        for limb in &mut limbs {
            let product = *limb * u64::from(factor) + carry;
            *limb = product % BASE;
            carry = product / BASE;
        }
        limbs.extend([carry % BASE, carry / BASE]);
    }
    let digits = limbs.iter().rev().map(|limb| format!("{limb:09}"));
    let digits: String = digits.collect();
    digits.trim_start_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::of;

    fn parse(pairs: &[(&str, &str)], release: Release) -> Result<LeveledOptions, String> {
        LeveledOptions::from_options(&of(pairs), release).map_err(|error| error.0)
    }

    #[test]
    fn defaults_differ_between_releases() {
        let [five, six] = [Release::V5_0, Release::V6_0].map(|r| parse(&[], r).expect("defaults"));
        assert!(!five.single_sstable_uplevel && six.single_sstable_uplevel);
        assert_eq!(five.sizes, six.sizes);
        assert_eq!(six.sizes.sstable_bytes(), 160 << 20);
    }

    #[test]
    fn large_levels_are_refused_by_six() {
        // 10^8 × 87,961 MiB is the first above 2^63 - 1.
        let options = |size| [("sstable_size_in_mb", size)];
        assert!(parse(&options("87960"), Release::V6_0).is_ok());
        assert_eq!(
            parse(&options("87961"), Release::V6_0).unwrap_err(),
            "At most 9223372036854775807 bytes may be in a compaction level; your maxSSTableSize must be \
             absurdly high to compute 9223379353600000000"
        );
        assert!(parse(&options("87961"), Release::V5_0).is_ok());
    }

    #[test]
    fn bad_numbers_are_refused_in_cassandras_words() {
        let refused = |name, value| parse(&[(name, value)], Release::V6_0).unwrap_err();
        assert_eq!(
            refused("fanout_size", "0"),
            "fanout_size must be larger than 0, but was 0"
        );
        assert_eq!(
            refused("sstable_size_in_mb", "1.5"),
            "1.5 is not a parsable int (base10) for sstable_size_in_mb"
        );
        assert_eq!(
            refused("sstable_size", "1"),
            "Properties specified [sstable_size] are not understood by LeveledCompactionStrategy"
        );
    }

    #[test]
    fn products_in_decimal() {
        assert_eq!(decimal_product(160 << 20, 10, 8), "16777216000000000");
        assert_eq!(
            decimal_product(u64::MAX, u32::MAX, 1),
            "79228162495817593515539431425"
        );
    }
}

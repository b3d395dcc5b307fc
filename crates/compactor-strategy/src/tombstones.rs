//! Single-SSTable compactions that drop tombstones.
//!
//! Source: `AbstractCompactionStrategy.worthDroppingTombstones`.

use crate::options::{OptionError, Options, boolean, double, long};

/// Conditions of a single-SSTable tombstone compaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TombstoneOptions {
    /// Maximum ratio of droppable tombstones to cells at which an SSTable is not compacted
    /// (`tombstone_threshold`).
    pub threshold: f32,
    /// Minimum age of an SSTable, seconds (`tombstone_compaction_interval`).
    pub interval_s: i64,
    /// Whether overlapping SSTables are ignored (`unchecked_tombstone_compaction`).
    pub unchecked: bool,
}

impl Default for TombstoneOptions {
    fn default() -> TombstoneOptions {
        TombstoneOptions {
            threshold: 0.2,
            interval_s: 86_400,
            unchecked: false,
        }
    }
}

/// Tombstone statistics of an SSTable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TombstoneState {
    /// Time when its `Data.db` was last written, milliseconds since 1970.
    pub created_ms: i64,
    /// Estimated ratio of droppable tombstones to cells, from its statistics
    /// (`StatsMetadata.getEstimatedDroppableTombstoneRatio`).
    pub droppable_ratio: f64,
}

/// Overlap of an SSTable with the table's other SSTables, which may prevent dropping its tombstones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Overlap {
    /// No other SSTable has a key in its range.
    None,
    /// It is fully expired: it can be dropped as a whole.
    FullyExpired,
    /// Some SSTables overlap; this fraction of its cells is outside of them. `None` if its index is too short
    /// for an estimate (`isEstimationInformative`).
    Partial(Option<f64>),
}

impl TombstoneOptions {
    /// Parses the options.
    ///
    /// # Errors
    /// As `AbstractCompactionStrategy.validateOptions`.
    pub fn from_options(options: &Options) -> Result<TombstoneOptions, OptionError> {
        let mut read = TombstoneOptions::default();
        if let Some(text) = options.get("tombstone_threshold") {
            let Some(value) = double(text) else {
                return Err(OptionError(format!(
                    "{text} is not a parsable int (base10) for tombstone_threshold"
                )));
            };
            read.threshold = value as f32;
            if read.threshold < 0.0 {
                return Err(OptionError(format!(
                    "tombstone_threshold must be greater than 0, but was {value:.6}"
                )));
            }
        }
        if let Some(text) = options.get("tombstone_compaction_interval") {
            let Some(seconds) = long(text) else {
                return Err(OptionError(format!(
                    "{text} is not a parsable int (base10) for tombstone_compaction_interval"
                )));
            };
            read.interval_s = seconds;
            if seconds < 0 {
                return Err(OptionError(format!(
                    "tombstone_compaction_interval must be greater than 0, but was {seconds}"
                )));
            }
        }
        if let Some(text) = options.get("unchecked_tombstone_compaction") {
            read.unchecked = boolean(text).ok_or_else(|| {
                OptionError(format!(
                    "'unchecked_tombstone_compaction' should be either 'true' or 'false', not '{text}'"
                ))
            })?;
        }
        for name in ["log_all", "enabled"] {
            if let Some(text) = options.get(name).filter(|text| boolean(text).is_none()) {
                let name = if name == "log_all" { "'log_all'" } else { name };
                return Err(OptionError(format!(
                    "{name} should either be 'true' or 'false', not {text}"
                )));
            }
        }
        Ok(read)
    }

    /// Whether to compact this SSTable alone. `overlap` is called only if it matters.
    pub fn is_worth_it(
        &self,
        sstable: &TombstoneState,
        now_ms: i64,
        overlap: impl FnOnce() -> Overlap,
    ) -> bool {
        let interval_ms = self.interval_s.saturating_mul(1000);
        if now_ms < sstable.created_ms.saturating_add(interval_ms) {
            return false;
        }
        let threshold = f64::from(self.threshold);
        if sstable.droppable_ratio <= threshold {
            return false;
        }
        if self.unchecked {
            return true;
        }
        match overlap() {
            Overlap::None | Overlap::FullyExpired => true,
            Overlap::Partial(None) => false,
            Overlap::Partial(Some(remaining)) => remaining * sstable.droppable_ratio > threshold,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: i64 = 86_400_000;

    #[test]
    fn old_enough_and_full_of_tombstones() {
        let options = TombstoneOptions::default();
        let is_worth = |created_ms, droppable_ratio, overlap| {
            let state = TombstoneState {
                created_ms,
                droppable_ratio,
            };
            options.is_worth_it(&state, DAY_MS, || overlap)
        };
        assert!(is_worth(0, 0.21, Overlap::None));
        assert!(!is_worth(1, 0.21, Overlap::None));
        // The threshold is a float: 0.2f is a little more than 0.2.
        assert!(!is_worth(0, 0.2, Overlap::None));
        assert!(!is_worth(0, f64::from(0.2f32), Overlap::None));
        assert!(is_worth(0, 0.21, Overlap::FullyExpired));
        assert!(!is_worth(0, 0.9, Overlap::Partial(None)));
        assert!(is_worth(0, 0.5, Overlap::Partial(Some(0.5))));
        assert!(!is_worth(0, 0.5, Overlap::Partial(Some(0.3))));
    }

    #[test]
    fn unchecked_asks_for_no_overlap() {
        let options = TombstoneOptions {
            unchecked: true,
            ..TombstoneOptions::default()
        };
        let state = TombstoneState {
            created_ms: 0,
            droppable_ratio: 0.3,
        };
        assert!(options.is_worth_it(&state, DAY_MS, || panic!("asked")));
    }

    #[test]
    fn bad_options_are_refused_in_cassandras_words() {
        let refused = |name: &str, value: &str, words: &str| {
            let options = Options::from([(name.to_owned(), value.to_owned())]);
            let found = TombstoneOptions::from_options(&options).unwrap_err().0;
            assert_eq!(found, words);
        };
        refused(
            "tombstone_threshold",
            "-1",
            "tombstone_threshold must be greater than 0, but was -1.000000",
        );
        refused(
            "tombstone_threshold",
            "x",
            "x is not a parsable int (base10) for tombstone_threshold",
        );
        refused(
            "tombstone_compaction_interval",
            "-5",
            "tombstone_compaction_interval must be greater than 0, but was -5",
        );
        refused(
            "unchecked_tombstone_compaction",
            "yes",
            "'unchecked_tombstone_compaction' should be either 'true' or 'false', not 'yes'",
        );
        refused(
            "log_all",
            "1",
            "'log_all' should either be 'true' or 'false', not 1",
        );
        refused(
            "enabled",
            "1",
            "enabled should either be 'true' or 'false', not 1",
        );
    }
}

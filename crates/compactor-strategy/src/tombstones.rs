//! Single-SSTable compactions that drop tombstones.
//!
//! Source: `AbstractCompactionStrategy.worthDroppingTombstones`.

use std::sync::Arc;

use crate::context::Context;
use crate::expired::fully_expired;
use crate::options::{
    OptionError, Options, boolean, double, not_an_int, number, refuse_bad_overlapping_tombstones,
    set,
};
use crate::sstable::Sstable;
use crate::task::{Output, Task};

const THRESHOLD: &str = "tombstone_threshold";
const INTERVAL: &str = "tombstone_compaction_interval";
const UNCHECKED: &str = "unchecked_tombstone_compaction";
const ONLY_REPAIRED: &str = "only_purge_repaired_tombstones";

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
    /// Whether only tombstones of repaired SSTables are purged (`only_purge_repaired_tombstones`).
    pub only_repaired: bool,
}

impl Default for TombstoneOptions {
    fn default() -> TombstoneOptions {
        TombstoneOptions {
            threshold: 0.2,
            interval_s: 86_400,
            unchecked: false,
            only_repaired: false,
        }
    }
}

impl TombstoneOptions {
    /// Parses the options that every strategy has.
    ///
    /// # Errors
    /// As `CompactionParams.create` and `AbstractCompactionStrategy.validateOptions`.
    pub fn from_options(options: &Options) -> Result<TombstoneOptions, OptionError> {
        refuse_bad_overlapping_tombstones(options)?;
        let mut read = TombstoneOptions::default();
        set(&mut read.threshold, options, THRESHOLD, threshold)?;
        set(&mut read.interval_s, options, INTERVAL, interval_s)?;
        set(&mut read.unchecked, options, UNCHECKED, |text| {
            boolean(text).ok_or_else(|| {
                OptionError(format!(
                    "'{UNCHECKED}' should be either 'true' or 'false', not '{text}'"
                ))
            })
        })?;
        // Any other value counts as false (`CompactionParams`).
        set(&mut read.only_repaired, options, ONLY_REPAIRED, |text| {
            Ok(boolean(text).unwrap_or(false))
        })?;
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

    /// Whether the statistics of an SSTable allow that it is ever worth dropping its tombstones.
    pub(crate) fn may_apply(&self, sstable: &Sstable) -> bool {
        sstable.tombstones.greatest_ratio() > f64::from(self.threshold)
    }

    /// Deletion time up to which the tombstones of an SSTable are too few, seconds since 1970; `None` if they always
    /// are.
    pub(crate) fn applies_after_s(&self, sstable: &Sstable) -> Option<i64> {
        let threshold = f64::from(self.threshold);
        sstable.tombstones.exceeds_after_s(threshold)
    }

    /// Estimated ratio of droppable tombstones, if the SSTable is old enough and full enough of them to be
    /// compacted alone.
    pub(crate) fn ratio_worth_dropping(
        &self,
        sstable: &Sstable,
        context: &Context<'_>,
    ) -> Option<f64> {
        // With overflow, as in Cassandra: no SSTable is too young for `i64::MAX`. One that a compaction of this time has
        // written is.
        let old_at_ms = (sstable.created_ms).wrapping_add(self.interval_s.wrapping_mul(1000));
        let is_young = context.now_ms < sstable.created_ms.max(old_at_ms);
        if is_young || context.node.never_purges_tombstones || !self.may_apply(sstable) {
            return None;
        }
        let ratio = sstable.tombstones.ratio(context.gc_before_s());
        let is_worth = ratio > f64::from(self.threshold)
            && (self.unchecked || self.overlaps_allow_it(sstable, ratio, context));
        is_worth.then_some(ratio)
    }

    /// A compaction of the first SSTable, in this order, that is worth compacting alone.
    pub(crate) fn first_task<K: Ord>(
        &self,
        sstables: &[Arc<Sstable>],
        context: &Context<'_>,
        order: impl Fn(&Sstable) -> K,
    ) -> Option<Task> {
        let ratio_of = |sstable| self.ratio_worth_dropping(sstable, context);
        let worth = sstables
            .iter()
            .filter_map(|sstable| Some((sstable, ratio_of(sstable)?)));
        let (sstable, ratio) = worth.min_by_key(|(sstable, _)| order(sstable))?;
        Some(Task::of_tombstones(sstable, ratio, Output::default()))
    }

    /// Whether an SSTable is not compacted if another one has all of its tokens: no key remains that the other
    /// cannot have. With samples of keys that is an estimate, which may differ.
    pub(crate) fn is_refused_if_covered(&self, sstable: &Sstable, gc_before_s: i64) -> bool {
        let may_be_expired = sstable.max_local_deletion_time < gc_before_s;
        !self.unchecked && !may_be_expired && sstable.keys.samples.is_none()
    }

    fn overlaps_allow_it(&self, sstable: &Sstable, ratio: f64, context: &Context<'_>) -> bool {
        let is_refused = self.is_refused_if_covered(sstable, context.gc_before_s());
        if is_refused && context.live.is_covered(sstable) {
            return false;
        }
        let overlapping = context.live.overlapping(&[sstable]);
        if overlapping.is_empty() {
            return true;
        }
        let expired = fully_expired(&[sstable], &overlapping, self.only_repaired, context);
        if !expired.is_empty() {
            return true;
        }
        let remaining = sstable.keys.remaining_ratio(sstable, &overlapping);
        remaining.is_some_and(|remaining| remaining * ratio > f64::from(self.threshold))
    }
}

fn threshold(text: &str) -> Result<f32, OptionError> {
    let value = double(text).ok_or_else(|| not_an_int(text, THRESHOLD))?;
    match value as f32 {
        // Cassandra takes it, and then compacts every SSTable for its tombstones.
        nan if nan.is_nan() => Err(OptionError(format!("{THRESHOLD} NaN is not supported"))),
        negative if negative < 0.0 => Err(OptionError(format!(
            "{THRESHOLD} must be greater than 0, but was {value:.6}"
        ))),
        threshold => Ok(threshold),
    }
}

fn interval_s(text: &str) -> Result<i64, OptionError> {
    match number(text, INTERVAL)? {
        negative @ ..0 => Err(OptionError(format!(
            "{INTERVAL} must be greater than 0, but was {negative}"
        ))),
        seconds => Ok(seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Node;
    use crate::droppable::DroppableTombstones;
    use crate::key_estimate::KeyEstimate;
    use crate::live::Live;
    use crate::random::TieBreak;
    use crate::sstable::SstableId;
    use crate::token::Token;

    const DAY_MS: i64 = 86_400_000;

    /// Of 1000 cells, these are tombstones, long droppable.
    fn with_tombstones(count: u32, created_ms: i64) -> Sstable {
        Sstable {
            created_ms,
            tombstones: DroppableTombstones::new(&[(1, count)], 1000),
            keys: KeyEstimate {
                keys: 100,
                partitions: 100,
                samples: None,
            },
            ..Sstable::new(SstableId(1), 1, Token(0), Token(99))
        }
    }

    fn is_worth(options: &TombstoneOptions, sstable: Sstable, others: Option<i128>) -> bool {
        let mut live = Live::default();
        live.insert(Arc::new(sstable.clone()));
        if let Some(last) = others {
            let other = Sstable::new(SstableId(2), 1, Token(0), Token(last));
            live.insert(Arc::new(other));
        }
        let context = Context {
            live: &live,
            node: &Node {
                gc_grace_s: 0,
                ..Node::default()
            },
            now_ms: DAY_MS,
            ties: &mut TieBreak::First,
        };
        options.ratio_worth_dropping(&sstable, &context).is_some()
    }

    #[test]
    fn old_enough_and_full_of_tombstones() {
        let options = TombstoneOptions::default();
        assert!(is_worth(&options, with_tombstones(201, 0), None));
        assert!(!is_worth(&options, with_tombstones(201, 1), None));
        // The threshold is a float: 0.2f is a little more than 0.2.
        assert!(!is_worth(&options, with_tombstones(200, 0), None));
    }

    #[test]
    fn a_long_interval_overflows_as_in_cassandra() {
        let options = TombstoneOptions {
            interval_s: i64::MAX,
            ..TombstoneOptions::default()
        };
        assert!(is_worth(&options, with_tombstones(201, 0), None));
        assert!(!is_worth(&options, with_tombstones(201, DAY_MS + 1), None));
    }

    #[test]
    fn overlaps_leave_too_little() {
        let options = TombstoneOptions::default();
        // 0.5 × 0.5 exceeds the threshold, 0.3 × 0.5 does not.
        assert!(is_worth(&options, with_tombstones(500, 0), Some(49)));
        assert!(!is_worth(&options, with_tombstones(500, 0), Some(69)));
    }

    #[test]
    fn a_fully_expired_sstable_needs_no_rest() {
        let options = TombstoneOptions::default();
        let expired = Sstable {
            max_local_deletion_time: 1,
            max_timestamp: -1,
            ..with_tombstones(201, 0)
        };
        assert!(is_worth(&options, expired.clone(), Some(99)));
        let only_repaired = TombstoneOptions {
            only_repaired: true,
            ..options
        };
        assert!(!is_worth(&only_repaired, expired, Some(99)));
    }

    #[test]
    fn unchecked_ignores_overlaps() {
        let options = TombstoneOptions {
            unchecked: true,
            ..TombstoneOptions::default()
        };
        assert!(is_worth(&options, with_tombstones(300, 0), Some(99)));
    }

    #[test]
    fn invalid_options_are_refused_with_cassandras_messages() {
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
            "tombstone_threshold",
            "NaN",
            "tombstone_threshold NaN is not supported",
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

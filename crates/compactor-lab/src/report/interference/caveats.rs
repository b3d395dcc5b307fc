//! Caveats that the figures of an interference experiment show.

use super::{BUFFERED, COMPACTION_RATE, EVICTED, HOT_PAGES, IDLE};
use crate::caveats::Warnings;
use crate::comparison::Comparison;
use crate::outcome::Warning;
use crate::report::units::bytes;
use crate::stats::Spread;
use crate::text_table::count;

/// Share of the hot set, evicted without a compaction, that is reported.
const EVICTED_BY_OTHERS: f64 = 0.01;

/// Share of the hot set that is as good as none.
const NOTHING_EVICTED: f64 = 0.001;

/// Share by which rates of compaction may differ.
const RATE_TOLERANCE: f64 = 0.1;

pub(super) fn of(comparison: &Comparison) -> Vec<Warning> {
    let mut caveats = Warnings::default();
    unequal_rates(comparison, &mut caveats);
    // Without scarce memory there is no difference to see.
    if let Some((evicted, pages)) = evicted(comparison, BUFFERED) {
        let is_none = evicted.most <= NOTHING_EVICTED * pages;
        caveats.when(is_none, "nothing_evicted", || {
            "buffered/buffered evicted hardly anything of the hot set: there was memory for everything, and \
             arms differ only in what they ask of the device"
                .to_owned()
        });
    }
    // Evictions by others are in all arms, and no arm can be better than idle.
    if let Some((evicted, pages)) = evicted(comparison, IDLE) {
        let is_much = evicted.median > EVICTED_BY_OTHERS * pages;
        caveats.when(is_much, "evicted_by_others", || {
            format!(
                "there were {} evictions from the hot set, of {} pages, with no compaction at all: the \
                 kernel reclaims for another reason (DAMON, other processes), in every arm, and the misses \
                 that it causes are in all latencies",
                count(evicted.median.round() as u64),
                count(pages as u64)
            )
        });
    }
    caveats.0
}

/// A slower compaction disturbs less, and longer.
fn unequal_rates(comparison: &Comparison, caveats: &mut Warnings) {
    let arms = comparison.arms.iter();
    let rates = arms.filter_map(|arm| Some((arm.median(COMPACTION_RATE)?, &arm.arm)));
    let mut rates: Vec<(f64, &String)> = rates.collect();
    rates.sort_by(|a, b| a.0.total_cmp(&b.0));
    if let (Some(&(least, slow)), Some(&(most, fast))) = (rates.first(), rates.last()) {
        let differ = most > least * (1.0 + RATE_TOLERANCE);
        caveats.when(differ, "unequal_rates", || {
            format!(
                "the arms compacted at different rates, from {}/s ({slow}) to {}/s ({fast}): a slower \
                 compaction disturbs less, and takes longer; a limit on throughput that all arms reach \
                 makes them equal",
                bytes(least),
                bytes(most)
            )
        });
    }
}

/// Evictions in a baseline, and pages of the hot set.
fn evicted(comparison: &Comparison, baseline: &str) -> Option<(Spread, f64)> {
    let arm = comparison.counted(comparison.baseline(baseline)?)?;
    Some((arm.spread(EVICTED)?, arm.median(HOT_PAGES)?))
}

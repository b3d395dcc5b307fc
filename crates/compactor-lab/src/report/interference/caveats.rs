//! Reasons not to trust the numbers of a point.

use super::{ArmReport, Figure, PointReport, attempts};
use crate::arm::Arm;
use crate::outcome::{Outcome, Warning};
use crate::report::units::{bytes, milliseconds};
use crate::report::{few_repeats, grouped};
use crate::stats::{ENOUGH_REPEATS, Spread, outliers};
use crate::text_table::count;

/// A run is reported only if its p99 is this many times the median of its arm, or less than the reciprocal:
/// of few repeats that hardly differ, one is often an outlier.
const FAR: f64 = 1.25;

/// Share of the hot set, evicted without a compaction, that is reported.
const EVICTED_BY_OTHERS: f64 = 0.01;

/// Share of the hot set that is as good as none.
const NOTHING_EVICTED: f64 = 0.001;

/// Share by which rates of compaction may differ.
const RATE_TOLERANCE: f64 = 0.1;

/// Caveats that the experiment noticed at the point and in its runs, then those that the numbers show.
pub(super) fn of(report: &PointReport<'_>) -> Vec<Warning> {
    let mut caveats = report.point.warnings.clone();
    caveats.extend(grouped(attempts(report.point)));
    caveats.extend(too_few(report));
    for arm in report.arms.iter().filter(|arm| arm.runs > 0) {
        caveats.extend(unpaired(arm));
        caveats.extend(far_off(report, arm));
    }
    caveats.extend(unequal_rates(report));
    caveats.extend(no_eviction(report));
    caveats.extend(evicted_by_others(report));
    caveats
}

/// Arms with too few runs that count, those with equally many together.
fn too_few(report: &PointReport<'_>) -> Vec<Warning> {
    let arms: Vec<&ArmReport> = report.arms.iter().filter(|arm| arm.runs > 0).collect();
    if arms.is_empty() {
        let text = "it ended before a run that counts: there were warm-ups only";
        return vec![Warning::new("no_run", text)];
    }
    let of_count = |counted: usize| {
        let few: Vec<String> = arms
            .iter()
            .filter(|arm| arm.counted == counted)
            .map(|arm| arm.arm.to_string())
            .collect();
        let (kind, text) = few_repeats(counted).filter(|_| !few.is_empty())?;
        let names = match few.len() == report.arms.len() {
            true => "all arms".to_owned(),
            false => few.join(", "),
        };
        Some(Warning::new(kind, format!("{names}: {text}")))
    };
    (0..ENOUGH_REPEATS).filter_map(of_count).collect()
}

fn unpaired(arm: &ArmReport) -> Option<Warning> {
    let mut ratios = arm.to_idle.iter().chain(&arm.to_buffered);
    let text = "no repeat in common with the arm that it is compared with, so that what changed on the \
         machine between repeats counts as a difference";
    let is_unpaired = ratios.any(|r| !r.ratio.paired);
    is_unpaired.then(|| Warning::new("unpaired", format!("{}: {text}", arm.arm)))
}

fn far_off(report: &PointReport<'_>, arm: &ArmReport) -> Option<Warning> {
    let runs: Vec<(u32, f64)> = Outcome::counted(report.point, arm.arm)
        .map(|run| (run.attempt.repeat, run.during.p99_ns as f64))
        .filter(|run| run.1 > 0.0)
        .collect();
    let p99s: Vec<f64> = runs.iter().map(|run| run.1).collect();
    let median = arm.figure(Figure::P99Ns)?.median;
    let far: Vec<String> = outliers(&p99s)
        .into_iter()
        .filter_map(|at| runs.get(at))
        .filter(|(_, ns)| *ns > median * FAR || *ns < median / FAR)
        .map(|(repeat, ns)| format!("repeat {repeat} ({} ms)", milliseconds(*ns)))
        .collect();
    (!far.is_empty()).then(|| {
        Warning::new(
            "outlier",
            format!(
                "{}: p99 of {} is far from the median of {} ms; something else may have been going on. \
                 It counts all the same",
                arm.arm,
                far.join(", "),
                milliseconds(median)
            ),
        )
    })
}

/// A slower compaction disturbs less, and longer.
fn unequal_rates(report: &PointReport<'_>) -> Option<Warning> {
    let rate = |arm: &ArmReport| Some((arm.figure(Figure::CompactionBytesPerS)?.median, arm.arm));
    let mut rates: Vec<(f64, Arm)> = report.arms.iter().filter_map(rate).collect();
    rates.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (&(least, slow), &(most, fast)) = (rates.first()?, rates.last()?);
    (most > least * (1.0 + RATE_TOLERANCE)).then(|| {
        Warning::new(
            "unequal_rates",
            format!(
                "the arms compacted at different rates, from {}/s ({slow}) to {}/s ({fast}): slower is \
                 gentler, and takes longer; a limit on throughput that all arms reach makes them equal",
                bytes(least),
                bytes(most)
            ),
        )
    })
}

/// Evictions in an arm, and pages of the hot set.
fn evicted(report: &PointReport<'_>, arm: Arm) -> Option<(Spread, u64)> {
    let figure = report.counted(arm)?.figure(Figure::EvictedPages)?;
    Some((figure, report.hot_pages(arm)?))
}

/// Reports that memory was not scarce: then there is no difference to see.
fn no_eviction(report: &PointReport<'_>) -> Option<Warning> {
    let (evicted, pages) = evicted(report, Arm::BUFFERED)?;
    (evicted.most <= NOTHING_EVICTED * pages as f64).then(|| {
        Warning::new(
            "nothing_evicted",
            format!(
                "{} evicted hardly anything of the hot set: there was memory for all, and arms differ \
                 only in what they ask of the device",
                Arm::BUFFERED
            ),
        )
    })
}

/// Reports evictions by others: they are in all arms, and no arm can be better than idle.
fn evicted_by_others(report: &PointReport<'_>) -> Option<Warning> {
    let (evicted, pages) = evicted(report, Arm::Idle)?;
    (evicted.median > EVICTED_BY_OTHERS * pages as f64).then(|| {
        Warning::new(
            "evicted_by_others",
            format!(
                "there were {} evictions from the hot set, of {} pages, with no compaction at all: the \
                 kernel reclaims for another reason (DAMON, other processes), in every arm, and the \
                 misses that it causes are in all latencies",
                count(evicted.median.round() as u64),
                count(pages)
            ),
        )
    })
}

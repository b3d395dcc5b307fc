//! Why the numbers of a point should not be believed.

use super::units::{bytes, milliseconds};
use super::{ArmReport, Figure, PointReport};
use crate::arm::Arm;
use crate::outcome::{Outcome, Run, Warning};
use crate::stats::{ENOUGH_REPEATS, Spread, median_range_confidence, outliers};
use crate::text_table::count;

/// A run whose p99 is this many times the median of its arm, or less than the reciprocal, may be told
/// of: of few repeats that hardly differ, one often lies far off in units of what the others differ by.
const FAR: f64 = 1.25;

/// Share of the hot set that is evicted without a compaction from which on it is told of.
const EVICTED_BY_OTHERS: f64 = 0.01;

/// Share of the hot set that comes to nothing.
const NOTHING_EVICTED: f64 = 0.001;

/// Rates of compaction that differ by more than this share are told of.
const RATE_TOLERANCE: f64 = 0.1;

/// What the experiment noticed at the point and in its runs, then what the numbers say themselves.
pub(super) fn of(report: &PointReport<'_>) -> Vec<Warning> {
    let mut doubts = report.point.warnings.clone();
    doubts.extend(of_runs(&report.point.runs));
    doubts.extend(too_few(report));
    for arm in report.arms.iter().filter(|arm| arm.runs > 0) {
        doubts.extend(unpaired(arm));
        doubts.extend(far_off(report, arm));
    }
    doubts.extend(unequal_rates(report));
    doubts.extend(no_eviction(report));
    doubts.extend(evicted_by_others(report));
    doubts
}

/// Warnings of runs that count.
fn of_runs(runs: &[Run]) -> Vec<Warning> {
    let counted = runs.iter().filter(|run| run.counts());
    told_once(counted.map(|run| {
        let place = format!("{} repeat {}", run.arm, run.repeat);
        (place, run.warnings.as_slice())
    }))
}

/// Warnings of runs, each text once with the names of the runs that it is about.
pub(super) fn told_once<'a>(runs: impl Iterator<Item = (String, &'a [Warning])>) -> Vec<Warning> {
    let mut found: Vec<(&Warning, Vec<String>)> = Vec::new();
    for (place, warnings) in runs {
        for warning in warnings {
            match found.iter_mut().find(|(known, _)| *known == warning) {
                Some((_, places)) => places.push(place.clone()),
                None => found.push((warning, vec![place.clone()])),
            }
        }
    }
    let told = found.into_iter().map(|(warning, places)| {
        let places = match places.as_slice() {
            [first, second, third, _, ..] => {
                let others = places.len() - 3;
                format!("{first}, {second}, {third} and {others} more")
            }
            few => few.join(", "),
        };
        Warning::new(&warning.kind, format!("{places}: {}", warning.text))
    });
    told.collect()
}

/// Arms with too few runs that count, those with equally many together.
fn too_few(report: &PointReport<'_>) -> Vec<Warning> {
    let mut doubts = Vec::new();
    if report.arms.iter().all(|arm| arm.runs == 0) {
        return vec![Warning::new(
            "no_run",
            "it ended before a run that counts: there were warm-ups only",
        )];
    }
    for counted in 0..ENOUGH_REPEATS {
        let arms = report.arms.iter().filter(|arm| arm.runs > 0);
        let arms: Vec<&ArmReport> = arms.filter(|arm| arm.counted == counted).collect();
        if arms.is_empty() {
            continue;
        }
        let names = if arms.len() == report.arms.len() {
            "all arms".to_owned()
        } else {
            let names: Vec<String> = arms.iter().map(|arm| arm.arm.to_string()).collect();
            names.join(", ")
        };
        let (kind, text) = match counted {
            0 => (
                "no_valid_run",
                "no run counts, so that there is no figure".to_owned(),
            ),
            1 => (
                "few_repeats",
                "only 1 run that counts; there is no telling how much of its figures is chance"
                    .to_owned(),
            ),
            _ => (
                "few_repeats",
                format!(
                    "only {counted} runs that count; an interval over them is at most {:.0}% sure",
                    median_range_confidence(counted) * 100.0
                ),
            ),
        };
        doubts.push(Warning::new(kind, format!("{names}: {text}")));
    }
    doubts
}

fn unpaired(arm: &ArmReport) -> Option<Warning> {
    let mut ratios = arm.to_idle.iter().chain(&arm.to_buffered);
    ratios.any(|r| !r.ratio.paired).then(|| {
        Warning::new(
            "unpaired",
            format!(
                "{}: it has no repeat in common with what it is compared with, so that what changed \
                 on the machine between repeats counts as a difference",
                arm.arm
            ),
        )
    })
}

fn far_off(report: &PointReport<'_>, arm: &ArmReport) -> Option<Warning> {
    let runs: Vec<(u32, f64)> = Outcome::counted(report.point, arm.arm)
        .filter_map(|run| Some((run.repeat, Figure::P99Ns.of(run)?)))
        .collect();
    let numbers: Vec<f64> = runs.iter().map(|run| run.1).collect();
    let middle = Spread::of(&numbers)?.median;
    let far = outliers(&numbers);
    let told: Vec<String> = far
        .iter()
        .filter_map(|&at| runs.get(at))
        .filter(|(_, ns)| *ns > middle * FAR || *ns < middle / FAR)
        .map(|(repeat, ns)| format!("repeat {repeat} ({} ms)", milliseconds(*ns)))
        .collect();
    (!told.is_empty()).then(|| {
        Warning::new(
            "outlier",
            format!(
                "{}: p99 of {} lies far off the median of {} ms; something else may have been going \
                 on. It counts all the same",
                arm.arm,
                told.join(", "),
                milliseconds(middle)
            ),
        )
    })
}

/// A slower compaction disturbs less, and longer.
fn unequal_rates(report: &PointReport<'_>) -> Option<Warning> {
    let rates = report.arms.iter().filter_map(|arm| {
        let spread = arm.figure(Figure::CompactionBytesPerS)?;
        Some((arm.arm, spread.median))
    });
    let mut rates: Vec<(Arm, f64)> = rates.collect();
    rates.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (&(slow, least), &(fast, most)) = (rates.first()?, rates.last()?);
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

/// Where memory is not scarce there is nothing to be seen.
fn no_eviction(report: &PointReport<'_>) -> Option<Warning> {
    let buffered = report.arms.iter().find(|arm| arm.arm == Arm::BUFFERED)?;
    let evicted = buffered.figure(Figure::EvictedPages)?;
    let pages = super::tables::pages_of_hot_set(report, Arm::BUFFERED)?;
    (evicted.most <= NOTHING_EVICTED * pages as f64).then(|| {
        Warning::new(
            "nothing_evicted",
            format!(
                "{} evicted hardly anything of the hot set: there was memory for all, and arms differ \
                 only in what they ask of the device",
                buffered.arm
            ),
        )
    })
}

/// Somebody else evicts as well: it is in all arms, and no arm can be better than idle.
fn evicted_by_others(report: &PointReport<'_>) -> Option<Warning> {
    let idle = report.arms.iter().find(|arm| arm.arm == Arm::Idle)?;
    let evicted = idle.figure(Figure::EvictedPages)?.median;
    let pages = super::tables::pages_of_hot_set(report, Arm::Idle)?;
    (evicted > EVICTED_BY_OTHERS * pages as f64).then(|| {
        Warning::new(
            "evicted_by_others",
            format!(
                "there were {} evictions from the hot set, of {} pages, with no compaction at all: the \
                 kernel reclaims for another reason (DAMON, other processes), in every arm, and misses \
                 of its making are in all latencies",
                count(evicted.round() as u64),
                count(pages)
            ),
        )
    })
}

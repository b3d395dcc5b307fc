//! Why the numbers of a point should not be believed.

use super::units::{bytes, milliseconds};
use super::{ArmReport, Figure, PointReport};
use crate::arm::Arm;
use crate::outcome::{Outcome, Run, Warning};
use crate::stats::{ENOUGH_REPEATS, Spread, median_range_confidence, outliers};
use crate::text_table::counted as counted_text;

/// Rates of compaction that differ by more than this share are told of.
const RATE_TOLERANCE: f64 = 0.1;

/// What the experiment noticed at the point and in its runs, then what the numbers say themselves.
pub(super) fn of(report: &PointReport<'_>) -> Vec<Warning> {
    let mut doubts = report.point.warnings.clone();
    doubts.extend(of_runs(&report.point.runs));
    for arm in report.arms.iter().filter(|arm| arm.runs > 0) {
        doubts.extend(too_few(arm));
        doubts.extend(unpaired(arm));
        doubts.extend(far_off(report, arm));
    }
    doubts.extend(unequal_rates(report));
    doubts.extend(no_eviction(report));
    doubts
}

/// Warnings of runs that count, each text once with the runs that it is about.
fn of_runs(runs: &[Run]) -> Vec<Warning> {
    let mut found: Vec<(&Warning, Vec<String>)> = Vec::new();
    for run in runs.iter().filter(|run| run.counts()) {
        let place = format!("{} repeat {}", run.arm, run.repeat);
        for warning in &run.warnings {
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

fn too_few(arm: &ArmReport) -> Option<Warning> {
    let name = arm.arm;
    if arm.counted == 0 {
        let runs = counted_text(arm.runs as u64, "run");
        return Some(Warning::new(
            "no_valid_run",
            format!("{name}: none of {runs} counts, so that there is no figure"),
        ));
    }
    if arm.counted >= ENOUGH_REPEATS {
        return None;
    }
    let sureness = median_range_confidence(arm.counted) * 100.0;
    let intervals = match arm.counted {
        1 => "there is no telling how much of its figures is chance".to_owned(),
        _ => format!("an interval over them is at most {sureness:.0}% sure"),
    };
    Some(Warning::new(
        "few_repeats",
        format!(
            "{name}: only {} that {}; {intervals}",
            counted_text(arm.counted as u64, "run"),
            if arm.counted == 1 { "counts" } else { "count" }
        ),
    ))
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
    let far = outliers(&numbers);
    let told: Vec<String> = far
        .iter()
        .filter_map(|&at| runs.get(at))
        .map(|(repeat, ns)| format!("repeat {repeat} ({} ms)", milliseconds(*ns)))
        .collect();
    let middle = Spread::of(&numbers)?.median;
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
    (evicted.most == 0.0).then(|| {
        Warning::new(
            "nothing_evicted",
            format!(
                "{} evicted nothing of the hot set: there was memory for all, and arms differ only in \
                 what they ask of the device",
                buffered.arm
            ),
        )
    })
}

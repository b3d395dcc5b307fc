//! Caveats: reasons not to trust figures that are no reason to discard a run.

use crate::comparison::{ArmFigures, Comparison, Measured, counted, samples};
use crate::figure::Figure;
use crate::outcome::Warning;
use crate::stats::{ENOUGH_REPEATS, median, median_range_confidence, outliers};

/// A run is an outlier only if its figure is this many times the median of its arm, or less than the
/// reciprocal: of few repeats that hardly differ, one is often far from the others in units of their deviation.
const FAR: f64 = 1.25;

/// Warnings that apply: caveats, or reasons that a run does not count.
#[derive(Debug, Default)]
pub(crate) struct Warnings(pub(crate) Vec<Warning>);

impl Warnings {
    /// Adds a warning if it applies.
    pub(crate) fn when(&mut self, applies: bool, kind: &str, text: impl FnOnce() -> String) {
        if applies {
            self.0.push(Warning::new(kind, text()));
        }
    }
}

/// Caveats about runs, then those that their figures show.
pub(crate) fn of(comparison: &Comparison, runs: &[Measured]) -> Vec<Warning> {
    let mut caveats = of_runs(runs);
    caveats.extend(too_few(comparison));
    for arm in comparison.arms.iter().filter(|arm| arm.runs > 0) {
        caveats.extend(unpaired(arm));
        caveats.extend(far_off(&arm.arm, comparison.experiment.headline, runs));
    }
    caveats
}

/// Warnings of runs that count, each text once with the names of its runs.
fn of_runs(runs: &[Measured]) -> Vec<Warning> {
    let mut found: Vec<(&Warning, Vec<String>)> = Vec::new();
    for run in runs.iter().filter(|run| run.attempt.counts()) {
        let name = format!("{} repeat {}", run.arm, run.attempt.repeat);
        for warning in &run.attempt.warnings {
            match found.iter_mut().find(|(known, _)| *known == warning) {
                Some((_, names)) => names.push(name.clone()),
                None => found.push((warning, vec![name.clone()])),
            }
        }
    }
    let grouped = found.into_iter().map(|(warning, names)| {
        let names = match names.as_slice() {
            [first, second, third, _, ..] => {
                let others = names.len() - 3;
                format!("{first}, {second}, {third} and {others} more")
            }
            few => few.join(", "),
        };
        Warning::new(&warning.kind, format!("{names}: {}", warning.text))
    });
    grouped.collect()
}

/// Arms with too few runs that count, those with the same number together.
fn too_few(comparison: &Comparison) -> Vec<Warning> {
    let arms: Vec<&ArmFigures> = comparison.arms.iter().filter(|arm| arm.runs > 0).collect();
    if arms.is_empty() {
        let text = "it ended before a run that counts: there were warm-ups only";
        return vec![Warning::new("no_run", text)];
    }
    let with = |counted: usize| {
        let few = arms.iter().filter(|arm| arm.counted == counted);
        let few: Vec<&str> = few.map(|arm| arm.arm.as_str()).collect();
        let names = match few.len() {
            0 => return None,
            all if all == comparison.arms.len() => "all arms".to_owned(),
            _ => few.join(", "),
        };
        let (kind, text) = match counted {
            0 => (
                "no_valid_run",
                "no run counts, so that there is no figure".to_owned(),
            ),
            1 => (
                "few_repeats",
                "only 1 run that counts: its variance is unknown".to_owned(),
            ),
            _ => (
                "few_repeats",
                format!(
                    "only {counted} runs that count: an interval over them has a confidence of at most \
                     {:.0}%",
                    median_range_confidence(counted) * 100.0
                ),
            ),
        };
        Some(Warning::new(kind, format!("{names}: {text}")))
    };
    (0..ENOUGH_REPEATS).filter_map(with).collect()
}

fn unpaired(arm: &ArmFigures) -> Option<Warning> {
    let text = "no repeat in common with the arm that it is compared with, so that what changed on the \
         machine between repeats counts as a difference";
    let is_unpaired = arm
        .ratios
        .values()
        .flatten()
        .any(|ratio| !ratio.value.paired);
    is_unpaired.then(|| Warning::new("unpaired", format!("{}: {text}", arm.arm)))
}

fn far_off(arm: &str, figure: Figure, runs: &[Measured]) -> Option<Warning> {
    let of_runs = samples(&counted(runs, arm), figure);
    let numbers: Vec<f64> = of_runs.iter().map(|sample| sample.1).collect();
    let median = median(&numbers)?;
    let far = outliers(&numbers).into_iter().filter_map(|at| {
        let &(repeat, number) = of_runs.get(at)?;
        let is_far = number > median * FAR || number < median / FAR;
        is_far.then(|| format!("repeat {repeat} ({})", figure.unit.text(number)))
    });
    let far: Vec<String> = far.collect();
    (!far.is_empty()).then(|| {
        Warning::new(
            "outlier",
            format!(
                "{arm}: {} of {} is far from the median, {}: something else may have been running. It \
                 counts all the same",
                figure.label,
                far.join(", "),
                figure.unit.text(median)
            ),
        )
    })
}

//! Reports of experiments: figures of each arm over its repeats, how they compare, and why not to trust
//! them.
//!
//! A report has numbers and is serialised to JSON as it is; [`Document`] shows it to people. Nothing is measured
//! here: a report can be made again at any time of a saved outcome.

use serde::Serialize;

use crate::outcome::{Attempt, Invalid, Subject, Warning};
use crate::stats::{ENOUGH_REPEATS, Ratio, Spread, median_range_confidence, ratio_of_repeats};
use document::{Block, Table};
use units::{significant, times};

mod chart;
pub mod chunk_length;
pub mod document;
pub(crate) mod facts;
pub mod fio;
pub mod interference;
pub mod units;

pub use document::Document;
pub use interference::{Figure, Report};

/// A number that each run of an experiment gives.
pub trait Measure: Copy + PartialEq + Serialize + 'static {
    /// Run, or part of a run, that has the number.
    type Of;
    /// All of them.
    const ALL: &'static [Self];
    /// Figures that arms are compared by.
    const COMPARED: &'static [Self];

    /// The number of a run; `None` where it has none, such as latencies without a read.
    fn of(self, run: &Self::Of) -> Option<f64>;
}

/// Runs that count, each with its repeat.
pub(crate) type Counted<'a, R> = Vec<(u32, &'a R)>;

/// A figure over repeats.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FigureSpread<F> {
    /// The figure.
    pub figure: F,
    /// Over the runs that count.
    #[serde(flatten)]
    pub spread: Spread,
}

/// A figure in comparison.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FigureRatio<F> {
    /// The figure.
    pub figure: F,
    /// By how much it is multiplied.
    #[serde(flatten)]
    pub ratio: Ratio,
}

/// A run that does not count.
#[derive(Clone, Debug, Serialize)]
pub struct LeftOut<'a> {
    /// Its arm or variant.
    #[serde(flatten)]
    pub subject: Subject,
    /// Its repeat.
    pub repeat: u32,
    /// Reasons.
    pub reasons: &'a [Invalid],
}

/// Each figure over runs that count; one that no run has is missing.
fn spreads<F: Measure>(runs: &Counted<'_, F::Of>) -> Vec<FigureSpread<F>> {
    let spread = |&figure: &F| {
        let numbers: Vec<f64> = runs.iter().filter_map(|run| figure.of(run.1)).collect();
        Some(FigureSpread {
            figure,
            spread: Spread::of(&numbers)?,
        })
    };
    F::ALL.iter().filter_map(spread).collect()
}

/// The figures of an arm divided by those of another, within each repeat.
fn ratios<F: Measure>(
    ours: &Counted<'_, F::Of>,
    theirs: &Counted<'_, F::Of>,
    seed: u64,
) -> Vec<FigureRatio<F>> {
    let ratio = |&figure: &F| {
        let numbers = |runs: &Counted<'_, F::Of>| -> Vec<(u32, f64)> {
            let numbers = runs.iter().map(|(repeat, run)| (*repeat, figure.of(run)));
            numbers
                .filter_map(|(repeat, n)| Some((repeat, n?)))
                .collect()
        };
        Some(FigureRatio {
            figure,
            ratio: ratio_of_repeats(&numbers(ours), &numbers(theirs), seed)?,
        })
    };
    F::COMPARED.iter().filter_map(ratio).collect()
}

fn spread_of<F: Measure>(spreads: &[FigureSpread<F>], figure: F) -> Option<Spread> {
    let found = spreads.iter().find(|f| f.figure == figure);
    found.map(|found| found.spread)
}

fn ratio_of<F: Measure>(ratios: &[FigureRatio<F>], figure: F) -> Option<Ratio> {
    let found = ratios.iter().find(|f| f.figure == figure);
    found.map(|found| found.ratio)
}

/// Runs that do not count, without warm-ups.
fn left_out<'a>(runs: impl Iterator<Item = (Subject, &'a Attempt)>) -> Vec<LeftOut<'a>> {
    let invalid = runs.filter(|(_, run)| !run.warm_up && !run.counts());
    let left_out = invalid.map(|(subject, run)| LeftOut {
        subject,
        repeat: run.repeat,
        reasons: &run.invalid,
    });
    left_out.collect()
}

/// Table of runs that do not count; `None` if all do.
fn left_out_table(runs: &[LeftOut<'_>]) -> Option<Block> {
    let rows = runs.iter().flat_map(|run| {
        let name = format!("{} repeat {}", run.subject, run.repeat);
        let reasons = run.reasons.iter();
        reasons.map(move |reason| (name.clone(), reason.text.clone()))
    });
    let caption = "Runs that do not count, and are in none of the figures";
    Table::prose(caption, ["run", "reason"], rows).unless_empty()
}

/// Warnings of runs that count, each text once with the names of its runs.
fn grouped<'a>(runs: impl Iterator<Item = (Subject, &'a Attempt)>) -> Vec<Warning> {
    let mut found: Vec<(&Warning, Vec<String>)> = Vec::new();
    for (subject, run) in runs.filter(|(_, run)| run.counts()) {
        let name = format!("{subject} repeat {}", run.repeat);
        for warning in &run.warnings {
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

/// Caveat about a number of runs that count; `None` if there are enough.
fn few_repeats(counted: usize) -> Option<(&'static str, String)> {
    let sure = median_range_confidence(counted) * 100.0;
    match counted {
        0 => Some((
            "no_valid_run",
            "no run counts, so that there is no figure".to_owned(),
        )),
        1 => Some((
            "few_repeats",
            "only 1 run that counts: how much of its figures is chance is unknown".to_owned(),
        )),
        2..ENOUGH_REPEATS => Some((
            "few_repeats",
            format!(
                "only {counted} runs that count; an interval over them is at most {sure:.0}% sure"
            ),
        )),
        _ => None,
    }
}

fn texts(warnings: &[Warning]) -> Vec<String> {
    warnings
        .iter()
        .map(|warning| warning.text.clone())
        .collect()
}

/// A number of runs that count: `3`, or `2 of 3`.
fn runs(counted: usize, all: usize) -> String {
    match counted == all {
        true => all.to_string(),
        false => format!("{counted} of {all}"),
    }
}

/// A ratio and its interval: `×0.24 (0.21–0.27)`.
pub(crate) fn with_interval(ratio: Ratio) -> String {
    if ratio.repeats < 2 {
        return times(ratio.ratio);
    }
    let [low, high] = [ratio.low, ratio.high].map(significant);
    format!("{} ({low}–{high})", times(ratio.ratio))
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

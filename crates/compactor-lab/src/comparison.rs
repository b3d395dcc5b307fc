//! Comparison of the arms of an experiment: arm × repeat × figure, with medians, confidence intervals,
//! ratios and caveats.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::experiment::Experiment;
use crate::figure::Figure;
use crate::outcome::{Attempt, Warning};
use crate::stats::{Ratio, Spread};

/// A run and the figures that it yields.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Name of the arm.
    pub arm: String,
    /// Time of the run, and whether it counts.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// Figures, in JSON by their names.
    #[serde(serialize_with = "by_name")]
    pub figures: Vec<(Figure, f64)>,
}

fn by_name<S: Serializer>(figures: &[(Figure, f64)], to: S) -> Result<S::Ok, S::Error> {
    let name = |figure: &Figure| match figure.condition {
        Some(condition) => format!("{condition}_{}", figure.name),
        None => figure.name.to_owned(),
    };
    to.collect_map(figures.iter().map(|(figure, value)| (name(figure), value)))
}

/// Figures of arms over the runs that count.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// Arms in the order in which they were named.
    pub arms: Vec<ArmFigures>,
    /// Runs that do not count, without warm-ups.
    pub left_out: Vec<LeftOut>,
    /// Caveats about the figures.
    pub caveats: Vec<Warning>,
    /// Short names of the baselines of which there are runs that count, and their arms.
    #[serde(skip)]
    pub baselines: Vec<(&'static str, String)>,
    #[serde(skip)]
    pub(crate) experiment: &'static Experiment,
}

/// Figures of one arm.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ArmFigures {
    /// Name of the arm.
    pub arm: String,
    /// Runs that count.
    pub counted: usize,
    /// Runs without warm-ups.
    pub runs: usize,
    /// Each figure over the runs that count; one that no run has is missing.
    pub figures: Vec<FigureValue<Spread>>,
    /// For each baseline, `to_` and its short name: the figures as a multiple of the baseline's.
    #[serde(flatten)]
    pub ratios: BTreeMap<String, Vec<FigureValue<Ratio>>>,
}

/// A figure, and its spread over repeats or its ratio to a baseline's.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FigureValue<T> {
    /// The figure.
    #[serde(flatten)]
    pub figure: Figure,
    /// Over the runs that count.
    #[serde(flatten)]
    pub value: T,
}

/// A run that does not count.
#[derive(Clone, Debug, Serialize)]
pub struct LeftOut {
    /// Its arm.
    pub arm: String,
    /// Its repeat.
    pub repeat: u32,
    /// Reasons.
    pub reasons: Vec<Warning>,
}

impl Comparison {
    /// An arm, if there are runs of it that count.
    pub fn counted(&self, arm: &str) -> Option<&ArmFigures> {
        self.arms.iter().find(|a| a.arm == arm && a.counted > 0)
    }

    /// The arm that a baseline is.
    pub(crate) fn baseline(&self, name: &str) -> Option<&str> {
        let found = self.baselines.iter().find(|(known, _)| *known == name);
        found.map(|(_, arm)| arm.as_str())
    }
}

impl ArmFigures {
    /// A figure over the runs that count.
    pub fn spread(&self, figure: Figure) -> Option<Spread> {
        value_of(&self.figures, figure)
    }

    /// The median of a figure over the runs that count.
    pub fn median(&self, figure: Figure) -> Option<f64> {
        self.spread(figure).map(|spread| spread.median)
    }

    /// A figure as a multiple of a baseline's, by the short name of that.
    pub fn ratio(&self, figure: Figure, baseline: &str) -> Option<Ratio> {
        value_of(self.ratios.get(&format!("to_{baseline}"))?, figure)
    }
}

/// Runs of an arm that count.
pub(crate) fn counted<'a>(runs: &'a [Measured], arm: &str) -> Vec<&'a Measured> {
    let ours = runs.iter().filter(|run| run.arm == arm);
    ours.filter(|run| run.attempt.counts()).collect()
}

fn value_of<T: Copy>(all: &[FigureValue<T>], figure: Figure) -> Option<T> {
    let found = all.iter().find(|found| found.figure == figure);
    found.map(|found| found.value)
}

/// Values of a figure, each with its repeat.
pub(crate) fn samples(runs: &[&Measured], figure: Figure) -> Vec<(u32, f64)> {
    let sample = |run: &&Measured| {
        let found = run.figures.iter().find(|(known, _)| *known == figure)?;
        Some((run.attempt.repeat, found.1)).filter(|sample| sample.1.is_finite())
    };
    runs.iter().filter_map(sample).collect()
}

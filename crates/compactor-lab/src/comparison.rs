//! Comparison of the arms of an experiment: arm × repeat × figure, with medians, confidence intervals,
//! ratios and caveats.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::caveats;
use crate::figure::Figure;
use crate::outcome::{Attempt, Warning};
use crate::report::document::{Block, Table, cell};
use crate::report::{Experiment, distinct, with_interval};
use crate::stats::{Ratio, Spread, ratio_of_repeats};

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

/// A column of a table of arms.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Column {
    /// Number of runs that count: `3`, or `2 of 3`.
    Runs,
    /// Median.
    Median(Figure),
    /// Least and most.
    Range(Figure),
    /// Multiple of a baseline's, with its interval.
    Ratio(Figure, &'static str),
}

impl Comparison {
    /// Computes the figures of runs. Arms are in the order of tables; `baselines` are
    /// those that others are compared with, each after its short name; `seed` is that of the bootstrap.
    pub(crate) fn new(
        experiment: &'static Experiment,
        arms: impl IntoIterator<Item = String>,
        baselines: impl IntoIterator<Item = (&'static str, String)>,
        seed: u64,
        runs: impl IntoIterator<Item = Measured>,
    ) -> Comparison {
        let runs = Vec::from_iter(runs);
        let mut baselines = Vec::from_iter(baselines);
        let arms = arms.into_iter();
        let arms = arms.map(|arm| ArmFigures::new(arm, &baselines, seed, &runs));
        let arms: Vec<ArmFigures> = arms.collect();
        let counts = |arm: &String| arms.iter().any(|a| a.arm == *arm && a.counted > 0);
        baselines.retain(|(_, arm)| counts(arm));
        let mut comparison = Comparison {
            arms,
            left_out: runs.iter().filter_map(LeftOut::of).collect(),
            caveats: Vec::new(),
            baselines,
            experiment,
        };
        comparison.caveats = caveats::of(&comparison, &runs);
        comparison
    }

    /// An arm, if there are runs of it that count.
    pub fn counted(&self, arm: &str) -> Option<&ArmFigures> {
        self.arms.iter().find(|a| a.arm == arm && a.counted > 0)
    }

    /// Whether every arm has a run that counts.
    pub fn every_arm_counts(&self) -> bool {
        self.arms.iter().all(|arm| arm.counted > 0)
    }

    /// The arm that a baseline is.
    pub(crate) fn baseline(&self, name: &str) -> Option<&str> {
        let found = self.baselines.iter().find(|(known, _)| *known == name);
        found.map(|(_, arm)| arm.as_str())
    }

    /// A table with a row for each arm; ratios to baselines without runs are left out.
    pub(crate) fn table(&self, caption: impl Into<String>, columns: &[Column]) -> Table {
        let is_there = |column: &&Column| match column {
            Column::Ratio(_, baseline) => self.baseline(baseline).is_some(),
            _ => true,
        };
        let columns: Vec<&Column> = columns.iter().filter(is_there).collect();
        let names = columns.iter().map(|column| column.name());
        let row = |arm: &ArmFigures| {
            let cells = columns.iter().map(|column| column.cell(arm, self));
            std::iter::once(arm.arm.clone()).chain(cells).collect()
        };
        Table {
            caption: caption.into(),
            columns: std::iter::once(self.experiment.arm.to_owned())
                .chain(names)
                .collect(),
            rows: self.arms.iter().map(row).collect(),
            prose: false,
        }
    }

    /// Table of runs that do not count; `None` if all do.
    pub(crate) fn left_out_table(&self) -> Option<Block> {
        let rows = self.left_out.iter().flat_map(|run| {
            let name = format!("{} repeat {}", run.arm, run.repeat);
            let reasons = run.reasons.iter();
            reasons.map(move |reason| (name.clone(), reason.text.clone()))
        });
        let caption = "Runs that do not count, and are in none of the figures";
        Table::prose(caption, ["run", "reason"], rows).unless_empty()
    }
}

impl Column {
    fn name(self) -> String {
        match self {
            Column::Runs => "runs".to_owned(),
            Column::Median(figure) => figure.label.to_owned(),
            Column::Range(figure) => format!("{} least–most", figure.label),
            Column::Ratio(figure, baseline) => format!("{} / {baseline}", figure.title()),
        }
    }

    fn cell(self, arm: &ArmFigures, comparison: &Comparison) -> String {
        match self {
            Column::Runs if arm.counted == arm.runs => arm.runs.to_string(),
            Column::Runs => format!("{} of {}", arm.counted, arm.runs),
            Column::Median(figure) => cell(arm.median(figure), |median| figure.unit.text(median)),
            Column::Range(figure) => cell(arm.spread(figure), |spread| {
                let [least, most] = [spread.least, spread.most].map(|n| figure.unit.text(n));
                format!("{least}–{most}")
            }),
            Column::Ratio(_, baseline) if comparison.baseline(baseline) == Some(&arm.arm) => {
                "1".to_owned()
            }
            Column::Ratio(figure, baseline) => cell(arm.ratio(figure, baseline), with_interval),
        }
    }
}

impl ArmFigures {
    fn new(
        arm: String,
        baselines: &[(&'static str, String)],
        seed: u64,
        runs: &[Measured],
    ) -> ArmFigures {
        let ours = counted(runs, &arm);
        let figures = ours.iter().flat_map(|run| &run.figures);
        let figures = distinct(figures.map(|(figure, _)| *figure));
        let spread = |&figure: &Figure| {
            let numbers: Vec<f64> = samples(&ours, figure).iter().map(|n| n.1).collect();
            let value = Spread::of(&numbers)?;
            Some(FigureValue { figure, value })
        };
        let ratios = |baseline: &str| -> Vec<FigureValue<Ratio>> {
            let theirs = counted(runs, baseline);
            let ratio = |&figure: &Figure| {
                let (ours, theirs) = (samples(&ours, figure), samples(&theirs, figure));
                let value = ratio_of_repeats(&ours, &theirs, seed)?;
                Some(FigureValue { figure, value })
            };
            let compared = figures.iter().filter(|figure| figure.better.is_some());
            compared.filter_map(ratio).collect()
        };
        let others = baselines.iter().filter(|(_, other)| *other != arm);
        ArmFigures {
            counted: ours.len(),
            runs: runs
                .iter()
                .filter(|run| run.arm == arm && !run.attempt.warm_up)
                .count(),
            figures: figures.iter().filter_map(spread).collect(),
            ratios: others
                .map(|(name, baseline)| (format!("to_{name}"), ratios(baseline)))
                .collect(),
            arm,
        }
    }

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

impl LeftOut {
    fn of(run: &Measured) -> Option<LeftOut> {
        let attempt = &run.attempt;
        (!attempt.warm_up && !attempt.counts()).then(|| LeftOut {
            arm: run.arm.clone(),
            repeat: attempt.repeat,
            reasons: attempt.invalid.clone(),
        })
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

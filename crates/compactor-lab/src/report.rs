//! What an [`Outcome`] says, for people: the figures of each arm over its repeats, how they compare,
//! and why they should not be believed.
//!
//! [`Report`] holds the numbers, and goes into JSON as it is. [`text`], [`markdown`] and [`html`] show
//! them. Nothing is measured here: a report can be made again at any time of a saved outcome.

use serde::Serialize;

use crate::arm::Arm;
use crate::chunk_length::Variant;
use crate::fio::FioOutcome;
use crate::outcome::{End, Invalid, Outcome, Run, SweepPoint, Warning};
use crate::stats::{Ratio, Spread};
use table::Table;

pub mod chunk_length;
mod compare;
mod doubts;
mod figure;
pub mod fio_tables;
pub mod html;
pub mod markdown;
pub(crate) mod place;
pub mod table;
mod tables;
pub mod text;
pub mod units;

pub use figure::Figure;

/// The figures of an outcome.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Report<'a> {
    /// What to call the outcome beside others, such as its file.
    pub name: String,
    /// How the experiment ended.
    pub end: &'a End,
    /// One for each size of the hot set.
    pub points: Vec<PointReport<'a>>,
    /// What makes all of the numbers doubtful.
    pub warnings: &'a [Warning],
    /// What the device gives by itself, if that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fio: Option<&'a FioOutcome>,
    /// Where the numbers come from.
    #[serde(skip)]
    pub outcome: &'a Outcome,
}

/// The figures at one size of the hot set.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PointReport<'a> {
    /// Bytes of page cache that the hot set was to take.
    pub hot_set_bytes: u64,
    /// The hot set divided by the memory that there was.
    pub pressure: f64,
    /// In the order in which they were named.
    pub arms: Vec<ArmReport>,
    /// Runs that do not count, warm-ups left out.
    pub left_out: Vec<LeftOut<'a>>,
    /// What makes the numbers of this point doubtful: what the experiment noticed, and what the
    /// numbers say about themselves.
    pub doubts: Vec<Warning>,
    /// Length of a page of the machine.
    pub page_bytes: u64,
    /// Where the numbers come from.
    #[serde(skip)]
    pub point: &'a SweepPoint,
}

/// The figures of one arm.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ArmReport {
    /// Which.
    pub arm: Arm,
    /// Runs that count.
    pub counted: usize,
    /// Runs but for warm-ups.
    pub runs: usize,
    /// Each figure over the runs that count; one that no run has is missing.
    pub figures: Vec<FigureSpread>,
    /// In comparison with reads that nothing disturbs.
    pub to_idle: Vec<FigureRatio>,
    /// In comparison with a compaction through the page cache.
    pub to_buffered: Vec<FigureRatio>,
}

/// A figure over repeats.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FigureSpread {
    /// Which.
    pub figure: Figure,
    /// Over the runs that count.
    #[serde(flatten)]
    pub spread: Spread,
}

/// A figure in comparison.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FigureRatio {
    /// Which.
    pub figure: Figure,
    /// By how much it is multiplied.
    #[serde(flatten)]
    pub ratio: Ratio,
}

/// A run that does not count.
#[derive(Clone, Debug, Serialize)]
pub struct LeftOut<'a> {
    /// Its arm.
    pub arm: Arm,
    /// Its repeat.
    pub repeat: u32,
    /// Why.
    pub reasons: &'a [Invalid],
}

/// A run of a variant that does not count.
#[derive(Clone, Debug, Serialize)]
pub struct LeftOutVariant<'a> {
    /// What was read.
    pub variant: Variant,
    /// Its repeat.
    pub repeat: u32,
    /// Why.
    pub reasons: &'a [Invalid],
}

impl<'a> Report<'a> {
    /// Of an outcome.
    pub fn new(name: impl Into<String>, outcome: &'a Outcome) -> Report<'a> {
        let points = outcome.points.iter();
        Report {
            name: name.into(),
            end: &outcome.end,
            points: points
                .map(|point| PointReport::new(outcome, point))
                .collect(),
            warnings: &outcome.warnings,
            fio: None,
            outcome,
        }
    }

    /// With what `fio` measured on the same device beside it.
    #[must_use]
    pub fn with_fio(self, fio: &'a FioOutcome) -> Report<'a> {
        Report {
            fio: Some(fio),
            ..self
        }
    }

    /// What `fio` measured, beside the first point.
    fn fio_tables(&self) -> Vec<Table> {
        let tables = |fio| fio_tables::tables(fio, Some(self));
        self.fio.map(tables).unwrap_or_default()
    }
}

impl<'a> PointReport<'a> {
    fn new(outcome: &Outcome, point: &'a SweepPoint) -> PointReport<'a> {
        let mut arms = outcome.options.arms.clone();
        for run in &point.runs {
            if !arms.contains(&run.arm) {
                arms.push(run.arm);
            }
        }
        let left_out = point
            .runs
            .iter()
            .filter(|run| !run.warm_up && !run.counts());
        let mut report = PointReport {
            hot_set_bytes: point.hot_set_bytes,
            pressure: point.pressure,
            arms: arms
                .iter()
                .map(|&arm| ArmReport::new(point, arm, outcome.options.seed))
                .collect(),
            left_out: left_out
                .map(|run| LeftOut {
                    arm: run.arm,
                    repeat: run.repeat,
                    reasons: &run.invalid,
                })
                .collect(),
            doubts: Vec::new(),
            page_bytes: outcome.environment.page_bytes,
            point,
        };
        report.doubts = doubts::of(&report);
        report
    }

    /// The arm that others are compared with, if there are runs of it that count.
    fn has(&self, arm: Arm) -> bool {
        self.arms.iter().any(|a| a.arm == arm && a.counted > 0)
    }
}

impl ArmReport {
    fn new(point: &SweepPoint, arm: Arm, seed: u64) -> ArmReport {
        let counted: Vec<&Run> = Outcome::counted(point, arm).collect();
        let figures = Figure::ALL.into_iter().filter_map(|figure| {
            let numbers: Vec<f64> = counted.iter().filter_map(|run| figure.of(run)).collect();
            let spread = Spread::of(&numbers)?;
            Some(FigureSpread { figure, spread })
        });
        ArmReport {
            arm,
            counted: counted.len(),
            runs: point
                .runs
                .iter()
                .filter(|r| r.arm == arm && !r.warm_up)
                .count(),
            figures: figures.collect(),
            to_idle: compare::all(point, arm, Arm::Idle, seed),
            to_buffered: compare::all(point, arm, Arm::BUFFERED, seed),
        }
    }

    /// A figure over the runs that count.
    pub fn figure(&self, figure: Figure) -> Option<Spread> {
        let found = self.figures.iter().find(|f| f.figure == figure);
        found.map(|f| f.spread)
    }
}

/// The ratio of a figure, of some.
fn ratio_of(ratios: &[FigureRatio], figure: Figure) -> Option<Ratio> {
    let found = ratios.iter().find(|r| r.figure == figure);
    found.map(|r| r.ratio)
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

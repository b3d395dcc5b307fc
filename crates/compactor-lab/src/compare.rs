//! Computation of a comparison.

use crate::caveats;
use crate::comparison::{ArmFigures, Comparison, FigureValue, LeftOut, Measured, counted, samples};
use crate::experiment::Experiment;
use crate::figure::Figure;
use crate::stats::{Ratio, Spread, ratio_of_repeats};

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

/// Items, each once, in the order of their first occurrence.
pub(crate) fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    for item in items {
        if !all.contains(&item) {
            all.push(item);
        }
    }
    all
}

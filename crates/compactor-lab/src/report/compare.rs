//! Arms in comparison.

use super::{Figure, FigureRatio};
use crate::arm::Arm;
use crate::outcome::{Outcome, SweepPoint};
use crate::stats::{Ratio, paired_ratio, unpaired_ratio};

/// The ratios of an arm's figures to another's; none of an arm to itself.
///
/// In every repeat each arm ran once, so that runs are compared within a repeat. Only if invalid runs
/// leave no repeat that both arms have, all runs of one are held against all of the other.
pub(super) fn all(point: &SweepPoint, arm: Arm, base: Arm, seed: u64) -> Vec<FigureRatio> {
    if arm == base {
        return Vec::new();
    }
    let ratios = Figure::COMPARED.into_iter().filter_map(|figure| {
        let ratio = ratio(point, figure, arm, base, seed)?;
        Some(FigureRatio { figure, ratio })
    });
    ratios.collect()
}

fn ratio(point: &SweepPoint, figure: Figure, arm: Arm, base: Arm, seed: u64) -> Option<Ratio> {
    let numbers = |arm| -> Vec<(u32, f64)> {
        Outcome::counted(point, arm)
            .filter_map(|run| Some((run.repeat, figure.of(run)?)))
            .collect()
    };
    of_repeats(numbers(arm), numbers(base), seed)
}

/// The ratio of numbers to others, each with its repeat.
pub(super) fn of_repeats(
    ours: Vec<(u32, f64)>,
    theirs: Vec<(u32, f64)>,
    seed: u64,
) -> Option<Ratio> {
    let pairs: Vec<(f64, f64)> = ours
        .iter()
        .filter_map(|&(repeat, number)| {
            let other = theirs.iter().find(|(other, _)| *other == repeat)?;
            Some((number, other.1))
        })
        .collect();
    if pairs.is_empty() {
        let only = |numbers: Vec<(u32, f64)>| numbers.into_iter().map(|n| n.1).collect::<Vec<_>>();
        return unpaired_ratio(&only(ours), &only(theirs), seed);
    }
    paired_ratio(&pairs, seed)
}

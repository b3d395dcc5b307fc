//! Statistics over repeats: medians, ratios between arms, and how far to trust them.
//!
//! A repeat of an experiment gives one number for each arm, such as its p99. Reads of one run are not
//! independent of one another, since one stall holds up many, so that the repeat is the unit here and
//! not the read: spreads and intervals are over repeats (T. Kalibera, R. Jones, *Rigorous benchmarking
//! in reasonable time*, ISMM 2013).

use serde::Serialize;

use crate::random::Random;

/// The share of resamples that an interval holds.
pub const CONFIDENCE: f64 = 0.95;

/// Fewer repeats than this give no useful interval.
pub const ENOUGH_REPEATS: usize = 5;

const RESAMPLES: usize = 10_000;

/// The median of numbers; `None` for no numbers. Numbers that are not finite do not count.
pub fn median(numbers: &[f64]) -> Option<f64> {
    sorted_median(&sorted(numbers))
}

fn sorted(numbers: &[f64]) -> Vec<f64> {
    let mut finite: Vec<f64> = numbers.iter().copied().filter(|n| n.is_finite()).collect();
    finite.sort_by(f64::total_cmp);
    finite
}

fn sorted_median(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *sorted.get(sorted.len() / 2 - 1)?;
    Some(lower.midpoint(upper))
}

/// Numbers of several repeats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Number of them.
    pub repeats: usize,
    /// Their [`median`].
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Spread {
    /// The spread of those numbers that are finite; `None` if none is.
    pub fn of(numbers: &[f64]) -> Option<Spread> {
        let sorted = sorted(numbers);
        Some(Spread {
            repeats: sorted.len(),
            median: sorted_median(&sorted)?,
            least: *sorted.first()?,
            most: *sorted.last()?,
        })
    }
}

/// A figure of one arm divided by that of another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The estimate.
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Repeats of the arm that the estimate is of.
    pub repeats: usize,
    /// Whether each run was compared with the other arm's of the same repeat.
    pub paired: bool,
}

impl Ratio {
    /// Whether the interval leaves 1 out: the arms differ by more than their repeats do. Not known of a single one.
    pub fn differs(&self) -> bool {
        self.repeats > 1 && (self.low > 1.0 || self.high < 1.0)
    }
}

/// The ratio of an arm's numbers to another's, each with its repeat.
///
/// In every repeat each arm ran once, so that runs are compared within a repeat. Only if invalid runs leave
/// no repeat that both arms have, all runs of one are compared with all of the other.
pub fn ratio_of_repeats(arm: &[(u32, f64)], other: &[(u32, f64)], seed: u64) -> Option<Ratio> {
    let pair = |&(repeat, number): &(u32, f64)| {
        let same = other.iter().find(|(other, _)| *other == repeat)?;
        Some((number, same.1))
    };
    let pairs: Vec<(f64, f64)> = arm.iter().filter_map(pair).collect();
    if pairs.is_empty() {
        let only = |numbers: &[(u32, f64)]| numbers.iter().map(|n| n.1).collect::<Vec<_>>();
        return unpaired_ratio(&only(arm), &only(other), seed);
    }
    paired_ratio(&pairs, seed)
}

/// The ratio of pairs, each of an arm and the one that it is compared with in one repeat: what
/// affected both cancels out.
///
/// The estimate is the median of the pairs' ratios, the interval the percentile bootstrap over pairs
/// (B. Efron, R. Tibshirani, *An Introduction to the Bootstrap*, 1993, chapter 13). With few repeats
/// it is too narrow (T. Hesterberg, *What Teachers Should Know About the Bootstrap*, The American
/// Statistician 69, 2015): [`median_range_confidence`] is the upper limit. Pairs
/// whose ratio is not a positive number do not count.
pub fn paired_ratio(pairs: &[(f64, f64)], seed: u64) -> Option<Ratio> {
    let ratios: Vec<f64> = pairs.iter().filter_map(|&(a, b)| quotient(a, b)).collect();
    let ratio = median(&ratios)?;
    let (low, high) = interval(seed, |random| median(&resample(&ratios, random)))?;
    Some(Ratio {
        ratio,
        low,
        high,
        repeats: ratios.len(),
        paired: true,
    })
}

/// The ratio of the medians of two arms that have no repeat in common, with the percentile bootstrap
/// over both.
pub fn unpaired_ratio(arm: &[f64], other: &[f64], seed: u64) -> Option<Ratio> {
    let ratio = quotient(median(arm)?, median(other)?)?;
    let (low, high) = interval(seed, |random| {
        quotient(
            median(&resample(arm, random))?,
            median(&resample(other, random))?,
        )
    })?;
    Some(Ratio {
        ratio,
        low,
        high,
        repeats: arm.len(),
        paired: false,
    })
}

fn quotient(a: f64, b: f64) -> Option<f64> {
    let ratio = a / b;
    (a > 0.0 && b > 0.0 && ratio.is_finite() && ratio > 0.0).then_some(ratio)
}

fn resample(numbers: &[f64], random: &mut Random) -> Vec<f64> {
    let draw = |_| numbers.get(random.below(numbers.len())).copied();
    (0..numbers.len()).filter_map(draw).collect()
}

fn interval(
    seed: u64,
    mut statistic: impl FnMut(&mut Random) -> Option<f64>,
) -> Option<(f64, f64)> {
    let mut random = Random::new(seed, 0);
    let found: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| statistic(&mut random))
        .collect();
    let found = sorted(&found);
    let last = found.len().checked_sub(1)?;
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let at = |share: f64| found.get((share * last as f64).round() as usize).copied();
    Some((at(tail)?, at(1.0 - tail)?))
}

/// Confidence that the range from least to most of some repeats contains the median of the distribution:
/// `1 - 2^(1 - n)`, whatever the distribution. No interval over them has more confidence.
pub fn median_range_confidence(repeats: usize) -> f64 {
    let Some(others) = repeats.checked_sub(1) else {
        return 0.0;
    };
    1.0 - 0.5f64.powi(others.try_into().unwrap_or(i32::MAX))
}

/// Indices of numbers so far from the median that something other than chance moved them:
/// modified z-score above 3.5 (B. Iglewicz, D. Hoaglin, *How to Detect and Handle Outliers*, 1993).
///
/// None among fewer than [`ENOUGH_REPEATS`]. They are to be reported, not removed.
pub fn outliers(numbers: &[f64]) -> Vec<usize> {
    let Some(middle) = median(numbers).filter(|_| numbers.len() >= ENOUGH_REPEATS) else {
        return Vec::new();
    };
    let off: Vec<f64> = numbers.iter().map(|n| (n - middle).abs()).collect();
    let unit = match median(&off) {
        Some(mad) if mad > 0.0 => mad / 0.6745,
        // More than half of them are equal: the mean of the distances takes the place of their median.
        _ => 1.253_314 * off.iter().sum::<f64>() / off.len() as f64,
    };
    let far = |&(_, off): &(usize, &f64)| unit > 0.0 && off / unit > 3.5;
    off.iter()
        .enumerate()
        .filter(far)
        .map(|(at, _)| at)
        .collect()
}

#[cfg(test)]
mod tests;

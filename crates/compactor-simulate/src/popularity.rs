//! Classes of rows that are drawn about equally often.

use crate::distribution::Distribution;

/// Number of classes of a Zipf distribution.
const CLASSES: i32 = 8;

/// Shares of each class, the most popular first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Popularity {
    /// Share of rows, and share of draws.
    classes: Vec<(f64, f64)>,
}

impl Popularity {
    /// Popularity of this number of rows.
    pub(crate) fn new(distribution: Distribution, rows: f64) -> Popularity {
        let classes = match distribution {
            Distribution::Zipf { exponent } if exponent > 0.0 && rows > 2.0 => {
                zipf_classes(exponent, rows)
            }
            _ => vec![(1.0, 1.0)],
        };
        Popularity { classes }
    }

    pub(crate) fn len(&self) -> usize {
        self.classes.len()
    }

    /// Share of rows of a class.
    pub(crate) fn rows(&self, class: usize) -> f64 {
        self.classes.get(class).map_or(0.0, |(rows, _)| *rows)
    }

    /// Share of updates, deletes and reads of a class.
    pub(crate) fn writes(&self, class: usize) -> f64 {
        self.classes.get(class).map_or(0.0, |(_, draws)| *draws)
    }
}

/// Ranks from 1 to the number of rows, in equal steps of their logarithm.
fn zipf_classes(exponent: f64, rows: f64) -> Vec<(f64, f64)> {
    let total = harmonic(rows, exponent);
    let rank = |class: i32| rows.powf(f64::from(class) / f64::from(CLASSES));
    let class = |class: i32| {
        let (from, to) = match class {
            0 => (0.0, rank(1)),
            _ => (rank(class), rank(class + 1)),
        };
        let draws = harmonic(to, exponent) - harmonic(from, exponent);
        ((to - from) / rows, draws / total)
    };
    (0..CLASSES).map(class).collect()
}

/// Sum of 1/k^exponent up to a rank, as an integral with the midpoint rule.
fn harmonic(rank: f64, exponent: f64) -> f64 {
    let integral = |x: f64| {
        if (1.0 - exponent).abs() < 1e-9 {
            x.ln()
        } else {
            x.powf(1.0 - exponent) / (1.0 - exponent)
        }
    };
    if rank < 1.0 {
        0.0
    } else {
        1.0 + integral(rank + 0.5) - integral(1.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_sum_to_one() {
        for exponent in [0.5, 0.99, 1.0, 1.5] {
            let zipf = Popularity::new(Distribution::Zipf { exponent }, 1e6);
            let rows: f64 = (0..zipf.len()).map(|class| zipf.rows(class)).sum();
            let draws: f64 = (0..zipf.len()).map(|class| zipf.writes(class)).sum();
            assert!((rows - 1.0).abs() < 1e-9 && (draws - 1.0).abs() < 1e-9);
        }
    }

    /// Of 10^8 rows and an exponent of 1, the 10 most popular ones get H(10)/H(10^8) = 15.4%.
    #[test]
    fn the_most_popular_get_their_share() {
        let zipf = Popularity::new(Distribution::Zipf { exponent: 1.0 }, 1e8);
        assert!((zipf.writes(0) - 0.154).abs() < 0.002, "{zipf:?}");
        assert_eq!(Popularity::new(Distribution::Uniform, 1e8).len(), 1);
    }
}

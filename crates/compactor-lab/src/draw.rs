//! Draws of items, equally or by popularity.

use crate::options::Distribution;
use crate::random::Random;

/// Distribution from which items are drawn.
#[derive(Clone, Debug)]
pub(crate) enum Draw {
    Uniform(usize),
    /// Cumulative shares; the first item is the most popular.
    Zipf(Vec<f64>),
}

impl Draw {
    /// For `count` items, which is not 0.
    pub(crate) fn new(distribution: Distribution, count: usize) -> Draw {
        match distribution {
            Distribution::Uniform => Draw::Uniform(count),
            Distribution::Zipf { exponent } => {
                let mut sum = 0.0;
                let mut cumulative: Vec<f64> = (1..=count)
                    .map(|rank| {
                        sum += (rank as f64).powf(-exponent);
                        sum
                    })
                    .collect();
                for share in &mut cumulative {
                    *share /= sum;
                }
                Draw::Zipf(cumulative)
            }
        }
    }

    pub(crate) fn next(&self, random: &mut Random) -> usize {
        match self {
            Draw::Uniform(count) => random.below(*count),
            Draw::Zipf(cumulative) => {
                let fraction = random.fraction();
                let place = cumulative.partition_point(|&share| share <= fraction);
                place.min(cumulative.len() - 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_prefers_the_first_and_uniform_none() {
        let count = 1000;
        let draws = 200_000;
        let histogram = |distribution| {
            let draw = Draw::new(distribution, count);
            let mut random = Random::new(7, 0);
            let mut found = vec![0u32; count];
            for _ in 0..draws {
                found[draw.next(&mut random)] += 1;
            }
            found
        };
        let uniform = histogram(Distribution::Uniform);
        assert!(uniform.iter().all(|&n| (120..290).contains(&n)));
        let zipf = histogram(Distribution::Zipf { exponent: 1.0 });
        // 1 / H(1000) = 0.1336, and half, and a tenth of it.
        for (rank, share) in [(0, 0.1336), (1, 0.0668), (9, 0.01336)] {
            let found = f64::from(zipf[rank]) / f64::from(draws);
            assert!((found / share - 1.0).abs() < 0.1, "{rank}: {found}");
        }
    }
}

//! Pseudo-random numbers of a seed (SplitMix64), and draws of items.

use crate::options::Distribution;

/// A stream of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The stream of a seed; `stream` distinguishes several of one seed.
    pub(crate) fn new(seed: u64, stream: u64) -> Random {
        let mut random = Random(seed ^ stream.wrapping_mul(0xd134_2543_de82_ef95));
        random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Draws a number from 0 up to, without, 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draws a number from 0 up to, without, `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        // The bias is 2^-64 * end: nothing that could be seen.
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    /// Time to the next arrival of a Poisson process, in units of its mean.
    pub(crate) fn exponential(&mut self) -> f64 {
        -(1.0 - self.fraction()).ln()
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

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
    fn arrivals_come_at_their_mean_and_as_irregularly_as_a_poisson_process() {
        let mut random = Random::new(1, 2);
        let count = 100_000;
        let times: Vec<f64> = (0..count).map(|_| random.exponential()).collect();
        let mean = times.iter().sum::<f64>() / f64::from(count);
        let variance = times.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / f64::from(count);
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
        // Equal to the square of the mean.
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
    }

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

    #[test]
    fn a_shuffle_keeps_all_and_follows_its_seed() {
        let shuffled = |seed| {
            let mut items: Vec<u32> = (0..100).collect();
            Random::new(seed, 0).shuffle(&mut items);
            items
        };
        assert_eq!(shuffled(1), shuffled(1));
        assert_ne!(shuffled(1), shuffled(2));
        let mut sorted = shuffled(3);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<u32>>());
    }
}

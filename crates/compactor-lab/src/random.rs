//! Pseudo-random numbers of a seed (SplitMix64).

use compactor_strategy::random::split_mix;

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
        split_mix(&mut self.0)
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

//! Pseudo-random numbers of a seed.

use compactor_strategy::random::split_mix;

/// Fractions and extremes.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A number above 0 and below 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        ((split_mix(&mut self.0) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Smallest and largest of some numbers between 0 and 1.
    pub(crate) fn extremes(&mut self, count: f64) -> (f64, f64) {
        let count = count.max(1.0);
        let low = 1.0 - self.fraction().powf(1.0 / count);
        if count < 2.0 {
            return (low, low);
        }
        let rest = self.fraction().powf(1.0 / (count - 1.0));
        (low, low + (1.0 - low) * rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_are_near_the_ends() {
        let mut random = Random::new(1);
        let mut sums = (0.0, 0.0);
        for _ in 0..10_000 {
            let (low, high) = random.extremes(9.0);
            assert!(0.0 < low && low <= high && high < 1.0);
            sums = (sums.0 + low, sums.1 + high);
        }
        // Order statistics of nine: 1/10 and 9/10.
        assert!((sums.0 / 10_000.0 - 0.1).abs() < 0.005, "{sums:?}");
        assert!((sums.1 / 10_000.0 - 0.9).abs() < 0.005, "{sums:?}");
    }
}

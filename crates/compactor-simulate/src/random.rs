//! Pseudo-random numbers of a seed.

/// SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A number above 0 and below 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64
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

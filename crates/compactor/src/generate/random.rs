//! Numbers that look random and are the same for the same seed, on every machine.

/// SplitMix64: one multiplication chain per number, which is faster than any value is compressed.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

/// The golden ratio's fraction: steps by it visit every 64-bit number once.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// A stream of numbers for one purpose, which `parts` identify.
    pub(super) fn of(seed: u64, parts: &[u64]) -> Random {
        let state = parts.iter().fold(mix(seed ^ STEP), |state, part| {
            mix(state.wrapping_add(STEP) ^ part.wrapping_mul(STEP))
        });
        Random(state)
    }

    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number from 0 to `bound`, exclusive; 0 for a bound of 0.
    #[inline]
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// True in about this share of the cases.
    #[inline]
    pub(super) fn happens(&mut self, share: f64) -> bool {
        share > 0.0 && self.fraction() < share
    }

    /// From 0 to 1, exclusive.
    #[inline]
    pub(super) fn fraction(&mut self) -> f64 {
        // 53 bits: what a double holds exactly.
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

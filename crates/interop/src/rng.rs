//! SplitMix64: small, seeded, the same everywhere.

/// A generator of pseudo-random numbers.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A size below `bound`.
    pub(crate) fn size(&mut self, bound: u64) -> usize {
        usize::try_from(self.below(bound)).unwrap_or(usize::MAX)
    }

    /// True once in `n` on average.
    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let bound = u64::try_from(from.len()).unwrap_or(u64::MAX);
        let index = usize::try_from(self.below(bound)).unwrap_or(0);
        &from[index]
    }

    /// Hex digits of incompressible bytes.
    pub(crate) fn hex(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes * 2 + 16);
        while text.len() < bytes * 2 {
            text.push_str(&format!("{:016x}", self.next()));
        }
        text.truncate(bytes * 2);
        text
    }
}

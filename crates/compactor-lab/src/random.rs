//! Numbers that look random and come from a seed (SplitMix64), and what is drawn with them.

/// A stream of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The stream of a seed; `stream` tells several of one seed apart.
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

    /// From 0 up to, without, `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        // The bias is 2^-64 * end: nothing that could be seen.
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }
}

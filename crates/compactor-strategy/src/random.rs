//! Selection among equals, where Cassandra draws lots.

/// Which of several equals is selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TieBreak {
    /// The first.
    #[default]
    First,
    /// The last, as Cassandra's tests have it, whose random numbers are all zero.
    Last,
    /// The one at this index, counted around. Over all indexes it enumerates what Cassandra may select.
    Nth(usize),
    /// A random one, by a reproducible sequence of numbers.
    Seeded(u64),
}

impl TieBreak {
    /// Selects one of `count`.
    pub(crate) fn select(&mut self, count: usize) -> usize {
        let count = count.max(1);
        match self {
            TieBreak::First => 0,
            TieBreak::Last => count - 1,
            TieBreak::Nth(index) => *index % count,
            TieBreak::Seeded(state) => (split_mix(state) % count as u64) as usize,
        }
    }
}

/// Next number of a sequence, by SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
pub fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut bits = *state;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_selects_each() {
        let mut seen = [0; 5];
        let mut ties = TieBreak::Seeded(7);
        for _ in 0..1000 {
            seen[ties.select(5)] += 1;
        }
        assert!(seen.iter().all(|&times| times > 150), "{seen:?}");
        let nth = |index| TieBreak::Nth(index).select(3);
        assert_eq!([nth(0), nth(1), nth(2), nth(3)], [0, 1, 2, 0]);
        assert_eq!(
            (TieBreak::First.select(3), TieBreak::Last.select(3)),
            (0, 2)
        );
    }
}

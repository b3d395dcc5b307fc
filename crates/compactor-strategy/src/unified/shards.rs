//! Number of output shards, and SSTables by shard.
//!
//! Source: `unified.Controller.getNumShards`, `ShardManager.splitSSTablesInShards`.

use std::sync::Arc;

use crate::sstable::Sstable;
use crate::token::Token;

/// Greatest exponent of two by which the base number of shards is multiplied.
const MAX_SHARD_SHIFT: u32 = 20;

/// Sizes from which the number of output shards follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShardCount {
    /// Number of shards of which all larger numbers are multiples (`base_shard_count`).
    pub base: u32,
    /// Size of an SSTable that the shards aim at, bytes (`target_sstable_size`).
    pub target_bytes: f64,
    /// Size below which there are fewer shards than the base, bytes; zero for no such size
    /// (`min_sstable_size`).
    pub min_bytes: i64,
    /// Part of the growth of the data that makes SSTables larger, not more; from zero to one
    /// (`sstable_growth`).
    pub growth: f64,
}

impl Default for ShardCount {
    fn default() -> ShardCount {
        ShardCount {
            base: 4,
            target_bytes: (1u64 << 30) as f64,
            min_bytes: 100 << 20,
            growth: 0.333,
        }
    }
}

impl ShardCount {
    /// Number of shards for a density, bytes.
    pub fn of_density(&self, density: f64) -> usize {
        let base = self.base as usize;
        if let Some(shards) = self.below_base(density) {
            return shards;
        }
        if self.growth == 1.0 {
            return base;
        }
        if self.growth == 0.0 {
            let smallest = self.target_bytes * 0.5f64.sqrt() * f64::from(self.base);
            let (count, most) = (density / smallest, f64::from(1u32 << MAX_SHARD_SHIFT));
            // An unknown density is not a number, which is no greater than any.
            return base * highest_one_bit(if count > most { most } else { count });
        }
        let count = density / (self.target_bytes * f64::from(self.base));
        // Java multiplies by the inverse of the logarithm of two.
        let exponent = count.ln() * (1.0 / 2f64.ln()) * (1.0 - self.growth) + 0.5;
        if exponent >= 0.0 {
            base << (exponent as u32).min(MAX_SHARD_SHIFT)
        } else {
            base
        }
    }

    /// A divisor of the base, if its shards would be smaller than the minimum, or the density is not known.
    fn below_base(&self, density: f64) -> Option<usize> {
        if self.min_bytes <= 0 {
            return None;
        }
        let count = density / self.min_bytes as f64;
        let is_enough = count >= f64::from(self.base);
        let largest = 1usize << self.base.trailing_zeros();
        (!is_enough).then(|| highest_one_bit(count).min(largest))
    }
}

/// The highest power of two up to a number, at least one.
fn highest_one_bit(count: f64) -> usize {
    let whole = (count as i32).unsigned_abs() | 1;
    1 << whole.ilog2()
}

/// SSTables of each shard that has some, with the number of the shard. One across a boundary is in several.
pub(super) fn split_in_shards(
    sstables: &[Arc<Sstable>],
    boundaries: &[Token],
) -> Vec<(usize, Vec<Arc<Sstable>>)> {
    let mut by_first = sstables.to_vec();
    by_first.sort_by(|a, b| a.first.cmp(&b.first));
    let mut waiting = by_first.into_iter().peekable();
    let mut shard = 0;
    let mut members: Vec<Arc<Sstable>> = Vec::new();
    let mut shards = Vec::new();
    loop {
        if members.is_empty() {
            let Some(next) = waiting.peek() else {
                return shards;
            };
            shard += boundaries[shard..].partition_point(|end| *end < next.first.token);
        }
        let end = boundaries.get(shard);
        let begins_here = |s: &Arc<Sstable>| end.is_none_or(|end| s.first.token <= *end);
        while let Some(sstable) = waiting.next_if(begins_here) {
            members.push(sstable);
        }
        shards.push((shard, members.clone()));
        members.retain(|sstable| end.is_some_and(|end| *end < sstable.last.token));
        shard += usize::from(!members.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sstable::SstableId;

    const MIB: f64 = (1u64 << 20) as f64;

    fn count(base: u32, target: f64, min: f64, growth: f64) -> impl Fn(f64) -> usize {
        let shards = ShardCount {
            base,
            target_bytes: target,
            min_bytes: min as i64,
            growth,
        };
        move |density| shards.of_density(density)
    }

    /// `ControllerTest.testGetNumShards…`.
    #[test]
    fn shards_without_growth() {
        let shards = count(3, 100.0 * MIB, 10.0 * MIB, 0.0);
        let found = [600.0, 2400.0, 800.0, 900.0, 600.0 * 1024.0].map(|mib| shards(mib * MIB));
        assert_eq!(found, [6, 24, 6, 12, 6144]);
        assert_eq!(shards(600.0 * 2f64.powi(60)), 3 << 20);
        assert_eq!([30.0, 200.0].map(|mib| shards(mib * MIB)), [3, 3]);
        assert_eq!([29.0, 10.0, 0.0].map(|mib| shards(mib * MIB)), [1, 1, 1]);
        assert_eq!(shards(f64::NAN), 1);
        let [none, nan] = [0.0, f64::NAN].map(count(3, 100.0 * MIB, 0.0, 0.0));
        assert_eq!((none, nan), (3, 3));
    }

    #[test]
    fn shards_with_growth() {
        assert_eq!(count(3, 100.0 * MIB, 10.0 * MIB, 1.0)(2400.0 * MIB), 3);
        let half = count(3, 100.0 * MIB, 10.0 * MIB, 0.5);
        let found = [1200.0, 4800.0, 2350.0, 2450.0].map(|mib| half(mib * MIB));
        assert_eq!(found, [6, 12, 6, 12]);
        let third = count(3, 100.0 * MIB, 10.0 * MIB, 0.333);
        let found = [2400.0, 4000.0, 4100.0, 19_200.0].map(|mib| third(mib * MIB));
        assert_eq!(found, [12, 12, 24, 48]);
    }

    /// The examples in the comment on `Controller.SSTABLE_GROWTH_OPTION`, and of
    /// `UnifiedCompactionStrategy.md`.
    #[test]
    fn documented_examples() {
        let gib = 1024.0 * MIB;
        let of = |base| {
            [0.0, 0.333, 0.5, 1.0].map(|growth| count(base, gib, 100.0 * MIB, growth)(1024.0 * gib))
        };
        assert_eq!(of(1), [1024, 128, 32, 1]);
        assert_eq!(of(4)[1..], [128, 64, 4]);
        let small = count(4, 100.0 * MIB, 0.0, 0.0);
        assert_eq!([200.0, 1200.0].map(|mib| small(mib * MIB)), [4, 16]);
        assert_eq!(count(4, gib, 100.0 * MIB, 0.5)(10_240.0 * gib), 256);
    }

    #[test]
    fn sstables_across_boundaries_are_in_several_shards() {
        let at =
            |id, first, last| Arc::new(Sstable::new(SstableId(id), 1, Token(first), Token(last)));
        let sstables = [at(1, 0, 10), at(2, 5, 35), at(3, 11, 20), at(4, 90, 99)];
        let shards = split_in_shards(&sstables, &[10, 20, 30, 40, 50].map(Token));
        let found = shards.into_iter().map(|(shard, members)| {
            let ids: Vec<u64> = members.iter().map(|sstable| sstable.id.0).collect();
            (shard, ids)
        });
        let expected = [
            (0, vec![1, 2]),
            (1, vec![2, 3]),
            (2, vec![2]),
            (3, vec![2]),
            (5, vec![4]),
        ];
        assert!(found.eq(expected));
    }
}

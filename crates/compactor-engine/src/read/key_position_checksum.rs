//! Checksum over the keys and positions of partitions, in which the partition index and the data must agree.

use compactor_sstable::partitioner::KeyHash;

/// Running checksum over keys and positions of partitions. The partition index lists the same partitions, so
/// equal checksums show that index and data agree without comparing entry by entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyPositionChecksum {
    /// For n partitions: the first hash times base^(n-1), plus the second times base^(n-2), and so on.
    sum: u64,
    partitions: u64,
}

/// Odd, and one less than the base is twice an odd number: swapping entries loses at most one bit.
const BASE: u64 = 0xff51_afd7_ed55_8ccf;

impl KeyPositionChecksum {
    /// Adds the next partition.
    #[inline]
    pub fn add(&mut self, hash: KeyHash, position: u64) {
        // An odd multiplier spreads every input bit to higher bits, the shift to lower ones.
        let place = (hash.h1 ^ position.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        let place = place ^ place >> 32;
        self.sum = self.sum.wrapping_mul(BASE).wrapping_add(place);
        self.partitions += 1;
    }

    /// Appends the partitions of the following range.
    pub fn append(&mut self, range: KeyPositionChecksum) {
        let mut power = 1u64;
        let mut factor = BASE;
        let mut left = range.partitions;
        while left > 0 {
            if left & 1 == 1 {
                power = power.wrapping_mul(factor);
            }
            factor = factor.wrapping_mul(factor);
            left >>= 1;
        }
        self.sum = self.sum.wrapping_mul(power).wrapping_add(range.sum);
        self.partitions += range.partitions;
    }

    /// Number of partitions added.
    pub fn partitions(&self) -> u64 {
        self.partitions
    }
}

#[cfg(test)]
mod tests {
    use compactor_sstable::partitioner::Partitioner;

    use super::*;

    fn hash_of(places: &[(u32, u64)]) -> KeyPositionChecksum {
        let mut hash = KeyPositionChecksum::default();
        for (key, position) in places {
            hash.add(Partitioner::Murmur3.hash_key(&key.to_be_bytes()), *position);
        }
        hash
    }

    #[test]
    fn ranges_combine_to_the_whole() {
        let places: Vec<(u32, u64)> = (0..100).map(|n| (n * 7, u64::from(n) * 31)).collect();
        let whole = hash_of(&places);
        for first in 0..=100 {
            for second in [first, (first + 1).min(100), (first + 50).min(100), 100] {
                let mut ranges = hash_of(&places[..first]);
                ranges.append(hash_of(&places[first..second]));
                ranges.append(hash_of(&places[second..]));
                assert_eq!(ranges, whole, "{first} {second}");
            }
        }
        assert_eq!(whole.partitions(), 100);
    }

    #[test]
    fn every_position_and_the_order_matter() {
        let places: Vec<(u32, u64)> = (0..100).map(|n| (n, u64::from(n) * 100)).collect();
        let whole = hash_of(&places);
        for at in 0..100 {
            let mut other = places.clone();
            other[at].0 += 1000;
            assert_ne!(hash_of(&other), whole, "key {at}");
            let mut other = places.clone();
            other[at].1 += 1;
            assert_ne!(hash_of(&other), whole, "position {at}");
            let mut other = places.clone();
            other.swap(at, (at + 1) % 100);
            assert_ne!(hash_of(&other), whole, "order at {at}");
            let mut other = places.clone();
            other.remove(at);
            assert_ne!(hash_of(&other), whole, "without {at}");
        }
    }
}

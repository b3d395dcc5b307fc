//! A Bloom filter being filled with many keys, region by region.
//!
//! A key's bits lie all over the filter, mostly in memory that no near cache holds; setting them one
//! after the other waits for that memory. Here their places are sorted by regions of the filter
//! that a near cache does hold, and set once a region has collected many.

use super::BloomFilter;
use crate::partitioner::KeyHash;

/// Bits of the smallest region: 64 KiB.
const LEAST_REGION_BITS: u32 = 19;
/// Regions of a large filter, which are larger then.
const MAX_REGIONS: u64 = 256;
/// Places that a region collects: 1 KiB.
const BATCH_LEN: usize = 256;

/// A filter that keys are added to. Takes 1 KiB more for each 64 KiB of it, at most 256 KiB.
#[derive(Debug)]
pub struct FilterFilling {
    filter: BloomFilter,
    /// A region has 2^this bits.
    region_bits: u32,
    /// Places not set yet, relative to their region, [`BATCH_LEN`] for each; empty if there is one
    /// region only.
    waiting: Vec<u32>,
    /// How many places of each region wait.
    counts: Vec<u32>,
}

impl FilterFilling {
    /// Adds to `filter`.
    pub fn new(filter: BloomFilter) -> FilterFilling {
        let mut region_bits = LEAST_REGION_BITS;
        while filter.bit_count() > MAX_REGIONS << region_bits {
            region_bits += 1;
        }
        let regions = match filter.bit_count().div_ceil(1 << region_bits) {
            0 | 1 => 0,
            regions => regions as usize,
        };
        FilterFilling {
            filter,
            region_bits,
            waiting: vec![0; regions * BATCH_LEN],
            counts: vec![0; regions],
        }
    }

    /// Adds a key.
    #[inline]
    pub fn add_key(&mut self, key: &KeyHash) {
        if self.counts.is_empty() {
            return self.filter.add_key(key);
        }
        for bit in self.filter.bits_of(key.h1, key.h2) {
            let region = (bit >> self.region_bits) as usize;
            let count = self.counts[region] as usize;
            let place = bit & ((1 << self.region_bits) - 1);
            self.waiting[region * BATCH_LEN + count] = place as u32;
            if count + 1 < BATCH_LEN {
                self.counts[region] += 1;
            } else {
                self.counts[region] = BATCH_LEN as u32;
                self.set_waiting(region);
            }
        }
    }

    /// The filter with all keys.
    pub fn finish(mut self) -> BloomFilter {
        for region in 0..self.counts.len() {
            self.set_waiting(region);
        }
        self.filter
    }

    fn set_waiting(&mut self, region: usize) {
        let count = std::mem::take(&mut self.counts[region]) as usize;
        let places = &self.waiting[region * BATCH_LEN..][..count];
        let start = region << (self.region_bits - 3);
        let bytes = &mut self.filter.bits[start..];
        for place in places {
            bytes[(place >> 3) as usize] |= 1 << (place & 7);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partitioner::Partitioner;

    /// Filters of one region, of several with a last one that is shorter, and of larger regions.
    #[test]
    fn equals_adding_one_by_one() {
        for (expected, keys) in [
            (100, 100u32),
            (50_000, 2000),
            (1_000_000, 300_000),
            (20_000_000, 3),
        ] {
            let empty = BloomFilter::for_keys(expected, 0.01).unwrap().unwrap();
            let mut one_by_one = empty.clone();
            let mut filling = FilterFilling::new(empty);
            for number in 0..keys {
                let hash = Partitioner::Murmur3.hash_key(&number.to_be_bytes());
                one_by_one.add_key(&hash);
                filling.add_key(&hash);
            }
            assert!(filling.finish() == one_by_one, "{expected} keys");
        }
    }

    #[test]
    fn no_key_is_lost_at_the_end_of_a_batch() {
        let empty = BloomFilter::for_keys(200_000, 0.01).unwrap().unwrap();
        let mut one_by_one = empty.clone();
        let mut filling = FilterFilling::new(empty.clone());
        // One key again and again fills the batches of its regions.
        let hash = Partitioner::Murmur3.hash_key(b"key");
        one_by_one.add_key(&hash);
        for _ in 0..BATCH_LEN {
            filling.add_key(&hash);
        }
        assert!(filling.counts.contains(&0));
        assert!(filling.finish() == one_by_one);
        assert!(FilterFilling::new(empty.clone()).finish() == empty);
    }

    #[test]
    fn the_filter_that_lets_everything_pass_stays() {
        let pass = BloomFilter::parse(&[], crate::Version::Oa).unwrap();
        let mut filling = FilterFilling::new(pass.clone());
        filling.add_key(&Partitioner::Murmur3.hash_key(b"key"));
        assert!(filling.finish() == pass);
    }
}

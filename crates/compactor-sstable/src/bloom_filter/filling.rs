//! Construction of a Bloom filter with many keys, region by region.
//!
//! A key's bits are spread over the filter, mostly in memory that is not in the CPU caches, so setting them
//! one by one waits for memory. Here bit positions are sorted by regions of the filter that fit into the L1
//! cache, and set once a region has collected several per cache line.

use super::BloomFilter;
use crate::partitioner::KeyHash;

/// Length of a region, bytes: positions in it have 16 bits.
const REGION_LEN: usize = 1 << (u16::BITS - 3);
/// Number of positions that a region collects: 1 KiB.
const BATCH_LEN: usize = 512;

/// A Bloom filter under construction. Takes an eighth more memory than the filter.
#[derive(Debug)]
pub struct FilterBuilder {
    filter: BloomFilter,
    /// Positions of bits to be set, relative to their region, [`BATCH_LEN`] for each region; empty if there
    /// is only one region.
    waiting: Vec<u16>,
    /// Number of collected positions of each region, fewer than [`BATCH_LEN`].
    counts: Vec<u16>,
}

impl FilterBuilder {
    /// Creates a builder that adds keys to `filter`.
    pub fn new(filter: BloomFilter) -> FilterBuilder {
        let regions = match filter.bits.len().div_ceil(REGION_LEN) {
            0 | 1 => 0,
            regions => regions,
        };
        FilterBuilder {
            filter,
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
            let region = (bit >> u16::BITS) as usize;
            let count = &mut self.counts[region];
            self.waiting[region * BATCH_LEN + usize::from(*count)] = bit as u16;
            *count += 1;
            if usize::from(*count) == BATCH_LEN {
                self.set_waiting(region);
            }
        }
    }

    /// Returns the filter with all keys.
    pub fn finish(mut self) -> BloomFilter {
        for region in 0..self.counts.len() {
            self.set_waiting(region);
        }
        self.filter
    }

    fn set_waiting(&mut self, region: usize) {
        let count = usize::from(std::mem::take(&mut self.counts[region]));
        let places = &self.waiting[region * BATCH_LEN..][..count];
        let bytes = &mut self.filter.bits[region * REGION_LEN..];
        let set = |bytes: &mut [u8]| {
            for place in places {
                bytes[usize::from(place >> 3)] |= 1 << (place & 7);
            }
        };
        match bytes.first_chunk_mut::<REGION_LEN>() {
            // Each position is known to be in the region.
            Some(whole) => set(whole),
            None => set(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partitioner::Partitioner;

    /// Filters of one region, of several with a shorter last one, and of many.
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
            let mut filling = FilterBuilder::new(empty);
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
        let mut filling = FilterBuilder::new(empty.clone());
        // Adding one key repeatedly fills the batches of its regions.
        let hash = Partitioner::Murmur3.hash_key(b"key");
        one_by_one.add_key(&hash);
        for _ in 0..BATCH_LEN {
            filling.add_key(&hash);
        }
        assert!(filling.counts.contains(&0));
        assert!(filling.finish() == one_by_one);
        assert!(FilterBuilder::new(empty.clone()).finish() == empty);
    }

    #[test]
    fn the_filter_that_lets_everything_pass_stays() {
        let pass = BloomFilter::parse(&[], crate::Version::Oa).unwrap();
        let mut filling = FilterBuilder::new(pass.clone());
        filling.add_key(&Partitioner::Murmur3.hash_key(b"key"));
        assert!(filling.finish() == pass);
    }
}

//! `Filter.db` on its way out.
//!
//! A key's bits lie all over the filter, mostly in memory that no cache holds. Adding one key and
//! then writing its partition waits for that memory each time; keys that are added together wait once.

use compactor_sstable::bloom_filter::BloomFilter;
use compactor_sstable::partitioner::KeyHash;

/// Keys that are added together.
const BATCH_KEYS: usize = 128;

/// The Bloom filter of the output being filled.
#[derive(Debug)]
pub struct OutputFilter {
    filter: BloomFilter,
    /// Keys that are not in `filter` yet.
    pending: Vec<KeyHash>,
}

impl OutputFilter {
    /// Fills `filter`.
    pub fn new(filter: BloomFilter) -> OutputFilter {
        OutputFilter {
            filter,
            pending: Vec::with_capacity(BATCH_KEYS),
        }
    }

    /// Adds a key.
    #[inline]
    pub fn add_key(&mut self, key: &KeyHash) {
        self.pending.push(*key);
        if self.pending.len() >= BATCH_KEYS {
            self.flush();
        }
    }

    /// The filter with all keys.
    pub fn finish(mut self) -> BloomFilter {
        self.flush();
        self.filter
    }

    fn flush(&mut self) {
        self.filter.add_keys(&self.pending);
        self.pending.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use compactor_sstable::partitioner::Partitioner;

    #[test]
    fn no_key_is_lost_at_the_end_of_a_batch() {
        for count in [0, 1, BATCH_KEYS - 1, BATCH_KEYS, BATCH_KEYS + 1, 1000] {
            let empty = BloomFilter::for_keys(1000, 0.01).unwrap().unwrap();
            let mut expected = empty.clone();
            let mut filter = OutputFilter::new(empty);
            for number in 0..count {
                let hash = Partitioner::Murmur3.hash_key(&number.to_be_bytes());
                expected.add_key(&hash);
                filter.add_key(&hash);
            }
            assert_eq!(filter.finish(), expected, "{count} keys");
        }
    }
}

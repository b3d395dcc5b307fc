//! Partition numbers in the order of their keys' tokens, in bounded memory.
//!
//! Tokens are hashes, so the numbers have to be sorted. Where there are more of them than may be held
//! at a time, the ring is divided into equal slices, and each slice is filled by going over all numbers
//! again: hashing a key takes some nanoseconds, far less than writing its partition.

use std::ops::Range;

use compactor_sstable::partitioner::Partitioner;

/// Keys held at a time; 16 bytes each.
pub(super) const MAX_KEYS_HELD: u64 = 2 << 20;

/// Goes through partition numbers by token.
#[derive(Debug)]
pub(super) struct TokenOrder<K> {
    numbers: [Range<u64>; 2],
    write_key: K,
    slices: u64,
    next_slice: u64,
    /// Tokens and numbers of the current slice, descending: taken from the end.
    held: Vec<(i64, u64)>,
    key: Vec<u8>,
}

impl<K: Fn(u64, &mut Vec<u8>)> TokenOrder<K> {
    /// Orders `numbers`; `write_key` appends the key of a number.
    pub(super) fn new(numbers: [Range<u64>; 2], write_key: K) -> TokenOrder<K> {
        TokenOrder::with_limit(numbers, write_key, MAX_KEYS_HELD)
    }

    fn with_limit(numbers: [Range<u64>; 2], write_key: K, max_keys: u64) -> TokenOrder<K> {
        let count: u64 = numbers.iter().map(|r| r.end.saturating_sub(r.start)).sum();
        TokenOrder {
            numbers,
            write_key,
            slices: count.div_ceil(max_keys),
            next_slice: 0,
            held: Vec::new(),
            key: Vec::new(),
        }
    }

    fn fill(&mut self) {
        let slice = self.next_slice;
        self.next_slice += 1;
        for number in self.numbers.iter().cloned().flatten() {
            self.key.clear();
            (self.write_key)(number, &mut self.key);
            let token = Partitioner::Murmur3.token(&self.key);
            // Tokens as numbers from 0, in the same order.
            let place = (token as u64) ^ (1 << 63);
            if ((u128::from(place) * u128::from(self.slices)) >> 64) as u64 == slice {
                self.held.push((token, number));
            }
        }
        let write_key = &self.write_key;
        self.held.sort_unstable_by(|(token_a, a), (token_b, b)| {
            // Keys of one token go by their bytes.
            token_b
                .cmp(token_a)
                .then_with(|| key_of(write_key, *b).cmp(&key_of(write_key, *a)))
        });
    }
}

fn key_of(write_key: impl Fn(u64, &mut Vec<u8>), number: u64) -> Vec<u8> {
    let mut key = Vec::new();
    write_key(number, &mut key);
    key
}

impl<K: Fn(u64, &mut Vec<u8>)> Iterator for TokenOrder<K> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        while self.held.is_empty() && self.next_slice < self.slices {
            self.fill();
        }
        self.held.pop().map(|(_, number)| number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64, key: &mut Vec<u8>) {
        key.extend_from_slice(&number.to_be_bytes());
    }

    #[test]
    fn tokens_ascend_however_many_are_held() {
        let whole: Vec<u64> = TokenOrder::new([0..1000, 5000..5500], key).collect();
        let token = |n: &u64| Partitioner::Murmur3.token(&n.to_be_bytes());
        assert!(whole.is_sorted_by(|a, b| token(a) < token(b)));
        let mut numbers = whole.clone();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq((0..1000).chain(5000..5500)));
        for limit in [1, 7, 100, 1499] {
            let sliced = TokenOrder::with_limit([0..1000, 5000..5500], key, limit);
            assert!(sliced.eq(whole.iter().copied()), "{limit}");
        }
        assert_eq!(TokenOrder::new([0..0, 3..3], key).next(), None);
    }
}

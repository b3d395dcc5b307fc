//! Filter.db: the Bloom filter over partition keys.
//!
//! ```text
//! i32 hashCount | i32 wordCount | wordCount * 8 bytes
//! ```
//!
//! Bit b is bit b & 7 of byte b >> 3. Before version `na` the words were written big-endian, so that the
//! bytes of each word are reversed. An empty file accepts every key.
//!
//! Source: `BloomFilter`, `BloomFilterSerializer`, `OffHeapBitSet`, `FilterFactory`.

pub mod filling;
pub mod spec;

pub use filling::FilterBuilder;
pub use spec::BloomSpec;

use crate::byte_reader::ByteReader;
use crate::byte_sink::ByteSink;
use crate::error::{Error, Result};
use crate::partitioner::KeyHash;
use crate::version::Version;

/// `FilterFactory.BITSET_EXCESS`.
const EXCESS_BITS: u64 = 20;
/// Maximum number of hashes: Cassandra's own writers use at most 20; its readers have room for 21.
const MAX_HASH_COUNT: u32 = 21;

/// A set of partition keys that may answer "maybe" for a key that is not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BloomFilter {
    /// 0 for the filter that accepts every key.
    hash_count: u32,
    bits: Vec<u8>,
    /// 2^64 divided by the number of bits, or slightly less, to compute remainders without a division.
    reciprocal: u64,
}

impl BloomFilter {
    fn of_bits(hash_count: u32, bits: Vec<u8>) -> BloomFilter {
        BloomFilter {
            hash_count,
            reciprocal: u64::MAX.checked_div(8 * bits.len() as u64).unwrap_or(0),
            bits,
        }
    }

    /// Creates an empty filter for `expected_keys`; `None` for a chance of 1.0, which has no Filter.db.
    ///
    /// # Errors
    /// Unsupported if the chance is out of range or the filter would exceed 16 GiB.
    pub fn for_keys(expected_keys: u64, fp_chance: f64) -> Result<Option<BloomFilter>> {
        if fp_chance == 1.0 {
            return Ok(None);
        }
        let spec = BloomSpec::for_fp_chance(fp_chance)?;
        let words = expected_keys
            .checked_mul(u64::from(spec.bits_per_key))
            .and_then(|bits| bits.checked_add(EXCESS_BITS))
            .map(|bits| bits.div_ceil(64))
            .filter(|&words| words <= i32::MAX as u64);
        match words {
            Some(words) => Ok(Some(BloomFilter::of_bits(
                spec.hash_count,
                vec![0; 8 * words as usize],
            ))),
            None => Err(Error::unsupported(format!(
                "a Bloom filter of more than 16 GiB ({expected_keys} keys at {fp_chance})"
            ))),
        }
    }

    /// Creates an empty filter of the same size.
    #[must_use]
    pub fn empty_like(&self) -> BloomFilter {
        BloomFilter::of_bits(self.hash_count, vec![0; self.bits.len()])
    }

    /// Length of a filter for `expected_keys`, bytes; 0 if there is none or it cannot be created.
    pub fn bytes_for_keys(expected_keys: u64, fp_chance: f64) -> u64 {
        match BloomSpec::for_fp_chance(fp_chance) {
            Ok(spec) if fp_chance < 1.0 => {
                expected_keys.saturating_mul(u64::from(spec.bits_per_key)) / 8
            }
            _ => 0,
        }
    }

    /// Parses the file.
    ///
    /// # Errors
    /// Corruption if lengths are inconsistent.
    pub fn parse(bytes: &[u8], version: Version) -> Result<BloomFilter> {
        if bytes.is_empty() {
            return Ok(BloomFilter::of_bits(0, Vec::new()));
        }
        let mut reader = ByteReader::new(bytes);
        let hash_count = reader.u32("filter.hash_count")?;
        if !(1..=MAX_HASH_COUNT).contains(&hash_count) {
            return Err(Error::corrupt(
                "filter.hash_count",
                0,
                format!("1 to {MAX_HASH_COUNT}"),
                hash_count as i32,
            ));
        }
        let words = reader.i32_count(8, "filter.word_count")?;
        if words == 0 || reader.remaining() != 8 * words {
            return Err(Error::corrupt(
                "filter.word_count",
                4,
                format!("{} bytes of words", reader.remaining()),
                format!("{words} words"),
            ));
        }
        let mut bits = reader.bytes(8 * words, "filter.words")?.to_vec();
        if version.has_old_bloom_filter() {
            bits.as_chunks_mut::<8>()
                .0
                .iter_mut()
                .for_each(|word| word.reverse());
        }
        Ok(BloomFilter::of_bits(hash_count, bits))
    }

    /// Memory of its bits, bytes.
    pub fn memory_bytes(&self) -> usize {
        self.bits.len()
    }

    /// Number of bits set per key.
    pub fn hash_count(&self) -> u32 {
        self.hash_count
    }

    /// Number of bits.
    pub fn bit_count(&self) -> u64 {
        8 * self.bits.len() as u64
    }

    /// Indexes of a key's bits: the absolute remainders of h2 + i * h1, wrapping around, as in Cassandra.
    #[inline]
    fn bits_of(&self, h1: u64, h2: u64) -> impl Iterator<Item = u64> + use<> {
        let (bit_count, reciprocal) = (self.bit_count(), self.reciprocal);
        let mut base = h2;
        (0..self.hash_count).map(move |_| {
            let bit = remainder((base as i64).unsigned_abs(), bit_count, reciprocal);
            base = base.wrapping_add(h1);
            bit
        })
    }

    /// Byte index and mask of each of a key's bits.
    #[inline]
    fn bit_positions(&self, h1: u64, h2: u64) -> impl Iterator<Item = (usize, u8)> + use<> {
        self.bits_of(h1, h2)
            .map(|bit| ((bit >> 3) as usize, 1u8 << (bit & 7)))
    }

    /// Adds a key by the halves of its hash.
    #[inline]
    pub fn add(&mut self, h1: u64, h2: u64) {
        for (index, mask) in self.bit_positions(h1, h2) {
            self.bits[index] |= mask;
        }
    }

    /// Adds a key.
    #[inline]
    pub fn add_key(&mut self, key: &KeyHash) {
        self.add(key.h1, key.h2);
    }

    /// False if the key was certainly not added.
    #[inline]
    pub fn may_contain(&self, h1: u64, h2: u64) -> bool {
        self.bit_positions(h1, h2)
            .all(|(index, mask)| self.bits[index] & mask != 0)
    }

    /// False if the key was certainly not added.
    #[inline]
    pub fn may_contain_key(&self, key: &KeyHash) -> bool {
        self.may_contain(key.h1, key.h2)
    }

    /// Returns the header of the file, which precedes the bits.
    pub fn head(&self) -> [u8; 8] {
        let words = (self.bits.len() / 8) as u32;
        let mut head = [0; 8];
        head[..4].copy_from_slice(&self.hash_count.to_be_bytes());
        head[4..].copy_from_slice(&words.to_be_bytes());
        head
    }

    /// The bits as stored in the file from version `na` on, for writers that avoid a copy.
    pub fn bits(&self) -> &[u8] {
        &self.bits
    }

    /// Appends the file's bytes in the layout of versions from `na` on.
    pub fn write(&self, out: &mut Vec<u8>) {
        if self.hash_count > 0 {
            out.put_slice(&self.head());
            out.put_slice(&self.bits);
        }
    }
}

/// `value % divisor` for values up to 2^63; `reciprocal` is (2^64 - 1) / `divisor`, which makes the quotient
/// at most one too small.
#[inline]
fn remainder(value: u64, divisor: u64, reciprocal: u64) -> u64 {
    let quotient = ((u128::from(value) * u128::from(reciprocal)) >> 64) as u64;
    let remainder = value - quotient * divisor;
    if remainder >= divisor {
        remainder - divisor
    } else {
        remainder
    }
}

#[cfg(test)]
mod tests;

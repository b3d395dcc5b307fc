//! HyperLogLog++: estimator of the number of distinct partition keys.
//!
//! ```text
//! i32 -2 | v(p) | v(sp) | v(format)           v = LEB128 of a 32-bit integer
//! sparse: v(n) | n * v(delta)                  encoded hashes, as differences modulo 2^32
//! normal: v(5464) | 1366 * i32                 registers of 5 bits, 6 to an integer
//! ```
//!
//! Cassandra sizes the Bloom filter of a compaction's output by the estimate for the union of its inputs, so
//! estimates and serialized bytes are those of stream-lib 2.5.2 with the precisions that Cassandra uses (p =
//! 13, sp = 25): registers, temporary list, the order in which lists are merged, and the bias correction.
//!
//! Source: stream-lib `HyperLogLogPlus`, `RegisterSet`; `MetadataCollector.addKey`,
//! `SSTableReader.getApproximateKeyCount`.

mod bias;
mod murmur2;

use std::borrow::Cow;

use crate::byte_reader::ByteReader;
use crate::byte_sink::ByteSink;
use crate::error::{Error, Result};
use bias::{CARDINALITIES, RAW_ESTIMATES};

const P: u32 = 13;
const SP: u32 = 25;
const REGISTERS: usize = 1 << P;
/// stream-lib's size for 8192 registers, 6 to an integer.
const REGISTER_WORDS: usize = REGISTERS / 6 + 1;
/// Maximum number of sparse entries, beyond which registers are used.
const SPARSE_THRESHOLD: usize = REGISTERS / 4 * 3;
/// Maximum number of pending hashes, beyond which they are merged into the sparse list.
const SORT_THRESHOLD: usize = SPARSE_THRESHOLD / 4;
const NEAREST_NEIGHBOURS: usize = 6;
/// `thresholdData` for p = 13: below it linear counting is more accurate.
const LINEAR_COUNTING_THRESHOLD: f64 = 6500.0;
const VERSION: i32 = -2;
const NORMAL: u32 = 0;
const SPARSE: u32 = 1;

/// Estimator of the number of distinct keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HyperLogLogPlus {
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Sparse {
        /// Encoded hashes, one per sparse index.
        set: Vec<i32>,
        /// Encoded hashes that have not been merged into `set`.
        pending: Vec<i32>,
    },
    Normal(Box<[i32; REGISTER_WORDS]>),
}

impl Default for HyperLogLogPlus {
    fn default() -> Self {
        HyperLogLogPlus {
            state: State::Sparse {
                set: Vec::new(),
                pending: Vec::new(),
            },
        }
    }
}

impl HyperLogLogPlus {
    /// Creates an empty estimator.
    pub fn new() -> HyperLogLogPlus {
        HyperLogLogPlus::default()
    }

    /// Adds a partition key.
    pub fn add(&mut self, key: &[u8]) {
        self.add_hash(HyperLogLogPlus::hash(key));
    }

    /// Hash of a partition key.
    pub fn hash(key: &[u8]) -> u64 {
        murmur2::hash2_64(key)
    }

    /// Adds a partition key by its hash.
    #[inline]
    pub fn add_hash(&mut self, hash: u64) {
        match &mut self.state {
            State::Normal(registers) => {
                raise(registers, (hash >> (64 - P)) as usize, run_length(hash));
            }
            State::Sparse { set, pending } => {
                pending.push(encode(hash));
                if pending.len() > SORT_THRESHOLD {
                    merge_pending(set, pending);
                    if set.len() > SPARSE_THRESHOLD {
                        self.make_normal();
                    }
                }
            }
        }
    }

    /// Adds all keys of `other` (`HyperLogLogPlus.addAll`).
    pub fn merge(&mut self, other: &HyperLogLogPlus) {
        match (&mut self.state, &other.state) {
            (State::Normal(mine), State::Normal(theirs)) => merge_registers(mine, theirs),
            (State::Normal(mine), State::Sparse { .. }) => {
                for &encoded in other.sparse_set().iter() {
                    raise(mine, register_of(encoded), run_length_of(encoded));
                }
            }
            (State::Sparse { .. }, State::Normal(theirs)) => {
                self.make_normal();
                if let State::Normal(mine) = &mut self.state {
                    merge_registers(mine, theirs);
                }
            }
            (State::Sparse { set, pending }, State::Sparse { .. }) => {
                merge_pending(set, pending);
                *set = merge_sets(set, &other.sparse_set());
                if set.len() > SPARSE_THRESHOLD + SORT_THRESHOLD {
                    self.make_normal();
                }
            }
        }
    }

    /// Estimates the size of the union of several estimators, as Cassandra computes the number of keys in a
    /// compaction's output (`SSTableReader.getApproximateKeyCount`); `None` if there are none.
    pub fn estimate_union<'a>(
        estimators: impl IntoIterator<Item = &'a HyperLogLogPlus>,
    ) -> Option<i64> {
        let mut estimators = estimators.into_iter();
        let mut union = estimators.next()?.clone();
        for estimator in estimators {
            // Each merge starts from an empty estimator, which switches to registers earlier than one to
            // which keys are added.
            let mut merged = HyperLogLogPlus::new();
            merged.merge(&union);
            merged.merge(estimator);
            union = merged;
        }
        Some(union.cardinality())
    }

    /// Estimated number of distinct keys.
    pub fn cardinality(&self) -> i64 {
        match &self.state {
            State::Sparse { .. } => linear_count(self.sparse_set().len()),
            State::Normal(registers) => estimate(registers),
        }
    }

    fn make_normal(&mut self) {
        if let State::Sparse { .. } = self.state {
            let mut registers = Box::new([0; REGISTER_WORDS]);
            for &encoded in self.sparse_set().iter() {
                raise(&mut registers, register_of(encoded), run_length_of(encoded));
            }
            self.state = State::Normal(registers);
        }
    }

    /// The sparse list including pending hashes; empty in normal mode.
    fn sparse_set(&self) -> Cow<'_, [i32]> {
        match &self.state {
            State::Normal(_) => Cow::Borrowed(&[]),
            State::Sparse { set, pending } if pending.is_empty() => Cow::Borrowed(set),
            State::Sparse { set, pending } => {
                let (mut set, mut pending) = (set.clone(), pending.clone());
                merge_pending(&mut set, &mut pending);
                Cow::Owned(set)
            }
        }
    }

    /// Parses an estimator.
    ///
    /// # Errors
    /// Corruption, or unsupported for other precisions and for the layout without a version, which no SSTable
    /// of a supported version should have.
    pub fn parse(bytes: &[u8]) -> Result<HyperLogLogPlus> {
        const NAME: &str = "compaction.cardinality";
        let mut reader = ByteReader::new(bytes);
        let version = reader.i32(NAME)?;
        if version != VERSION {
            return Err(Error::unsupported(format!(
                "cardinality estimator of layout {version}"
            )));
        }
        let (p, sp) = (leb128(&mut reader)?, leb128(&mut reader)?);
        if (p, sp) != (P, SP) {
            return Err(Error::unsupported(format!(
                "cardinality estimator of precisions {p} and {sp}; Cassandra uses {P} and {SP}"
            )));
        }
        let at = reader.offset();
        match leb128(&mut reader)? {
            NORMAL => {
                let len = leb128(&mut reader)?;
                if len as usize != 4 * REGISTER_WORDS {
                    return Err(reader.corrupt(
                        NAME,
                        format!("{} bytes of registers", 4 * REGISTER_WORDS),
                        len,
                    ));
                }
                let mut registers = Box::new([0; REGISTER_WORDS]);
                for word in registers.iter_mut() {
                    *word = reader.i32(NAME)?;
                }
                Ok(HyperLogLogPlus {
                    state: State::Normal(registers),
                })
            }
            SPARSE => {
                let len = leb128(&mut reader)? as usize;
                if len > reader.remaining() {
                    return Err(reader.corrupt(
                        NAME,
                        format!("at most {} entries", reader.remaining()),
                        len,
                    ));
                }
                let mut set = Vec::with_capacity(len);
                let mut previous = 0i32;
                for _ in 0..len {
                    previous = previous.wrapping_add(leb128(&mut reader)? as i32);
                    set.push(previous);
                }
                Ok(HyperLogLogPlus {
                    state: State::Sparse {
                        set,
                        pending: Vec::new(),
                    },
                })
            }
            format => Err(Error::corrupt(NAME, at, "format 0 or 1", format)),
        }
    }

    /// Appends the serialized form.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.put_i32(VERSION);
        put_leb128(out, P);
        put_leb128(out, SP);
        match &self.state {
            State::Normal(registers) => {
                put_leb128(out, NORMAL);
                put_leb128(out, 4 * REGISTER_WORDS as u32);
                for &word in registers.iter() {
                    out.put_i32(word);
                }
            }
            State::Sparse { .. } => {
                let set = self.sparse_set();
                put_leb128(out, SPARSE);
                put_leb128(out, set.len() as u32);
                let mut previous = 0i32;
                for &encoded in set.iter() {
                    put_leb128(out, encoded.wrapping_sub(previous) as u32);
                    previous = encoded;
                }
            }
        }
    }
}

/// Number of leading zeros after the register's bits, plus one.
#[inline]
fn run_length(hash: u64) -> u32 {
    ((hash << P) | (1 << (P - 1))).leading_zeros() + 1
}

/// Sparse index, shifted left by one; if the bits after the register's are all zero: index, inverted run
/// length, and the lowest bit set.
fn encode(hash: u64) -> i32 {
    let index = (hash >> (64 - SP)) as u32;
    let encoded = if index << (32 - SP + P) == 0 {
        (((index << 6) | (run_length(hash) ^ 63)) << 1) | 1
    } else {
        index << 1
    };
    encoded as i32
}

fn sparse_index(encoded: i32) -> u32 {
    let encoded = encoded as u32;
    if encoded & 1 == 1 {
        encoded >> 7
    } else {
        encoded >> 1
    }
}

fn register_of(encoded: i32) -> usize {
    ((sparse_index(encoded) >> (SP - P)) as usize) & (REGISTERS - 1)
}

fn run_length_of(encoded: i32) -> u32 {
    let encoded = encoded as u32;
    if encoded & 1 == 1 {
        ((encoded >> 1) & 63) ^ 63
    } else {
        (encoded << (P + 31 - SP)).leading_zeros() + 1
    }
}

/// Sorts the pending list, removes all but the first entry of each sparse index and merges it into `set`.
fn merge_pending(set: &mut Vec<i32>, pending: &mut Vec<i32>) {
    if pending.is_empty() {
        return;
    }
    pending.sort_unstable_by_key(|&k| (sparse_index(k), k << (P + 31 - SP)));
    pending.dedup_by_key(|k| sparse_index(*k));
    *set = merge_sets(set, pending);
    pending.clear();
}

/// Merges two lists as if both were sorted by value. They are sorted by sparse index, which differs if run
/// lengths are encoded; the result of stream-lib depends on this.
fn merge_sets(a: &[i32], b: &[i32]) -> Vec<i32> {
    let mut merged = Vec::with_capacity(a.len() + b.len());
    let (mut i, mut j) = (0, 0);
    while let (Some(&left), Some(&right)) = (a.get(i), b.get(j)) {
        if sparse_index(left) == sparse_index(right) {
            merged.push(left.min(right));
            i += 1;
            j += 1;
        } else if left < right {
            merged.push(left);
            i += 1;
        } else {
            merged.push(right);
            j += 1;
        }
    }
    merged.extend_from_slice(&a[i..]);
    merged.extend_from_slice(&b[j..]);
    merged
}

/// `RegisterSet.updateIfGreater`, with Java's integer arithmetic.
#[inline]
fn raise(registers: &mut [i32; REGISTER_WORDS], index: usize, value: u32) {
    let word = &mut registers[index / 6];
    let shift = 5 * (index % 6);
    let mask = 0x1f << shift;
    let value = (value as i32) << shift;
    if (*word & mask) < value {
        *word = (*word & !mask) | value;
    }
}

fn merge_registers(mine: &mut [i32; REGISTER_WORDS], theirs: &[i32; REGISTER_WORDS]) {
    for (word, other) in mine.iter_mut().zip(theirs) {
        *word = (0..6).fold(0, |merged, field| {
            let mask = 0x1f << (5 * field);
            merged | (*word & mask).max(*other & mask)
        });
    }
}

/// `HyperLogLogPlus.linearCounting` over 2^25 sparse indexes.
fn linear_count(entries: usize) -> i64 {
    let size = f64::from(1u32 << SP);
    i64::from(round(size * (size / (size - entries as f64)).ln()) as i32)
}

/// Java's `Math.round`.
fn round(value: f64) -> i64 {
    (value + 0.5).floor() as i64
}

fn estimate(registers: &[i32; REGISTER_WORDS]) -> i64 {
    let m = REGISTERS as f64;
    let mut sum = 0.0;
    let mut zeros = 0.0;
    for index in 0..REGISTERS {
        let value = (registers[index / 6] >> (5 * (index % 6))) & 0x1f;
        sum += 1.0 / f64::from(1i32 << value);
        if value == 0 {
            zeros += 1.0;
        }
    }
    let alpha_m_m = (0.7213 / (1.0 + 1.079 / m)) * m * m;
    let raw = alpha_m_m * (1.0 / sum);
    let corrected = if raw <= 5.0 * m {
        raw - bias_of(raw)
    } else {
        raw
    };
    let linear = if zeros > 0.0 {
        m * (m / zeros).ln()
    } else {
        corrected
    };
    round(if linear < LINEAR_COUNTING_THRESHOLD {
        linear
    } else {
        corrected
    })
}

/// Mean bias of the nearest measured estimates.
fn bias_of(raw: f64) -> f64 {
    let mut by_distance: Vec<(f64, usize)> = RAW_ESTIMATES
        .iter()
        .enumerate()
        .map(|(index, &measured)| ((raw - measured) * (raw - measured), index))
        .collect();
    by_distance.sort_by(|a, b| a.0.total_cmp(&b.0));
    // stream-lib keeps one index per distance: the last one inserted.
    by_distance.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = next.1;
        }
        same
    });
    by_distance.truncate(NEAREST_NEIGHBOURS);
    let bias = |index: usize| RAW_ESTIMATES[index] - f64::from(CARDINALITIES[index]);
    let total = by_distance
        .iter()
        .fold(0.0, |total, &(_, index)| total + bias(index));
    total / by_distance.len() as f64
}

fn leb128(reader: &mut ByteReader<'_>) -> Result<u32> {
    const NAME: &str = "compaction.cardinality";
    let at = reader.offset();
    let mut value = 0u32;
    for shift in (0..35).step_by(7) {
        let byte = reader.u8(NAME)?;
        value |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Error::corrupt(
        NAME,
        at,
        "a number of at most 5 bytes",
        "more",
    ))
}

fn put_leb128(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

#[cfg(test)]
mod tests;

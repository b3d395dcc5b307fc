//! Summary.db: a sample of Index.db.
//!
//! ```text
//! i32 minIndexInterval | i32 offsetCount | i64 summarySize | i32 samplingLevel
//! | i32 sizeAtFullSampling | offsetCount * i32 LE offset | entries | bytes32 first | bytes32 last
//! entry := key | i64 LE position in Index.db
//! ```
//!
//! Offsets are relative to the start of the offsets; a key ends where the position before the next entry
//! begins. Offsets and positions are **little-endian** in an otherwise big-endian file.
//!
//! Source: `IndexSummary.IndexSummarySerializer`, `IndexSummaryBuilder`, `IndexSummaryComponent`.

use crate::byte_reader::ByteReader;
use crate::byte_sink::ByteSink;
use crate::error::{Error, Result};
use crate::version::Version;

/// Default `min_index_interval` of tables.
pub const DEFAULT_MIN_INDEX_INTERVAL: u32 = 128;
/// `Downsampling.BASE_SAMPLING_LEVEL`: the sample is complete.
pub const BASE_SAMPLING_LEVEL: u32 = 128;
/// Maximum length of the entries, since Cassandra addresses them by 31 bits.
const MAX_SUMMARY_LEN: u64 = i32::MAX as u64;
const POSITION_LEN: usize = 8;

/// A sample of the partition index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Partitions per entry at full sampling.
    pub min_index_interval: u32,
    /// 128 at full sampling, less if Cassandra has dropped entries to save memory.
    pub sampling_level: u32,
    /// Number of entries at full sampling; 0 if the writer did not record it.
    pub size_at_full_sampling: u32,
    /// Key of the first partition.
    pub first_key: Vec<u8>,
    /// Key of the last partition.
    pub last_key: Vec<u8>,
    /// Start of each entry in `entries`.
    offsets: Vec<u32>,
    entries: Vec<u8>,
}

impl Summary {
    /// Parses the file.
    ///
    /// # Errors
    /// Corruption if lengths are inconsistent.
    pub fn parse(bytes: &[u8], version: Version) -> Result<Summary> {
        let mut reader = ByteReader::new(bytes);
        let min_index_interval = reader.i32_from(1, "summary.min_index_interval")?;
        let count = reader.i32_count(4 + POSITION_LEN, "summary.offset_count")?;
        let size_at = reader.offset();
        let size = reader.i64("summary.size")?;
        let sampling_level = reader.i32_from(1, "summary.sampling_level")?;
        let least = u32::from(!version.may_lack_summary_size());
        let size_at_full_sampling = reader.i32_from(least, "summary.size_at_full_sampling")?;
        let base = 4 * count;
        let left = reader.remaining();
        let entries_len = usize::try_from(size)
            .ok()
            .filter(|&size| size <= left && size as u64 <= MAX_SUMMARY_LEN)
            .and_then(|size| size.checked_sub(base))
            .ok_or_else(|| {
                Error::corrupt(
                    "summary.size",
                    size_at,
                    format!("{base} bytes of offsets or more, up to {left}"),
                    size,
                )
            })?;
        let offsets_at = reader.offset();
        let (raw_offsets, _) = reader.bytes(base, "summary.offsets")?.as_chunks::<4>();
        let entries = reader.bytes(entries_len, "summary.entries")?;
        let mut offsets = Vec::with_capacity(count);
        let mut lowest = 0usize;
        for (index, raw) in raw_offsets.iter().enumerate() {
            let stored = u32::from_le_bytes(*raw);
            // Each entry ends with a position, so the next one begins at least 8 bytes later.
            let start = (stored as usize).checked_sub(base).filter(|&start| {
                start >= lowest
                    && (index > 0 || start == 0)
                    && entries_len
                        .checked_sub(POSITION_LEN)
                        .is_some_and(|last| start <= last)
            });
            let Some(start) = start else {
                return Err(Error::corrupt(
                    "summary.offset",
                    offsets_at + 4 * index as u64,
                    format!(
                        "entry {index} between {} and {}, little-endian",
                        base + lowest,
                        base + entries_len.saturating_sub(POSITION_LEN)
                    ),
                    stored,
                ));
            };
            lowest = start + POSITION_LEN;
            offsets.push(start as u32);
        }
        let first_key = reader.bytes32("summary.first_key")?.to_vec();
        let last_key = reader.bytes32("summary.last_key")?.to_vec();
        reader.expect_end("summary.end", "the end of the file")?;
        Ok(Summary {
            min_index_interval,
            sampling_level,
            size_at_full_sampling,
            first_key,
            last_key,
            offsets,
            entries: entries.to_vec(),
        })
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Key and position in Index.db of entry `index`.
    pub fn entry(&self, index: usize) -> Option<(&[u8], u64)> {
        let start = *self.offsets.get(index)? as usize;
        let end = self
            .offsets
            .get(index + 1)
            .map_or(self.entries.len(), |&next| next as usize);
        let (key, position) = self
            .entries
            .get(start..end)?
            .split_last_chunk::<POSITION_LEN>()?;
        Some((key, u64::from_le_bytes(*position)))
    }

    /// All entries, in order.
    pub fn entries(&self) -> impl Iterator<Item = (&[u8], u64)> {
        (0..self.len()).filter_map(|index| self.entry(index))
    }

    /// Appends the file's bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        let base = 4 * self.offsets.len() as u32;
        out.put_u32(self.min_index_interval);
        out.put_u32(self.offsets.len() as u32);
        out.put_i64(i64::from(base) + self.entries.len() as i64);
        out.put_u32(self.sampling_level);
        out.put_u32(self.size_at_full_sampling);
        for &offset in &self.offsets {
            out.put_slice(&(base + offset).to_le_bytes());
        }
        out.put_slice(&self.entries);
        out.put_bytes32(&self.first_key);
        out.put_bytes32(&self.last_key);
    }
}

/// Builder of a full sample of an index that is being written.
#[derive(Clone, Debug)]
pub struct SummaryBuilder {
    min_index_interval: u32,
    keys: u64,
    /// Number of keys until the next entry.
    skip: u32,
    offsets: Vec<u32>,
    entries: Vec<u8>,
}

impl SummaryBuilder {
    /// Creates a builder that samples the first key and every `min_index_interval`th after it.
    ///
    /// # Panics
    /// If the interval is 0.
    pub fn new(min_index_interval: u32) -> SummaryBuilder {
        assert!(min_index_interval > 0, "a sample of every 0th key");
        SummaryBuilder {
            min_index_interval,
            keys: 0,
            skip: 0,
            offsets: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// Adds the key whose entry begins at `index_position` of Index.db.
    #[inline]
    pub fn add(&mut self, key: &[u8], index_position: u64) {
        self.keys += 1;
        if self.skip > 0 {
            self.skip -= 1;
        } else {
            self.sample(key, index_position);
        }
    }

    fn sample(&mut self, key: &[u8], index_position: u64) {
        let len = 4 * (self.offsets.len() + 1) + self.entries.len() + key.len() + POSITION_LEN;
        // An entry that does not fit is omitted, as in Cassandra: reads then scan more of the index.
        if len as u64 <= MAX_SUMMARY_LEN {
            self.offsets.push(self.entries.len() as u32);
            self.entries.put_slice(key);
            self.entries.put_slice(&index_position.to_le_bytes());
            self.skip = self.min_index_interval - 1;
        }
    }

    /// Returns the summary of an index from `first_key` to `last_key`.
    pub fn finish(self, first_key: &[u8], last_key: &[u8]) -> Summary {
        let full = self.keys.div_ceil(u64::from(self.min_index_interval));
        Summary {
            min_index_interval: self.min_index_interval,
            sampling_level: BASE_SAMPLING_LEVEL,
            size_at_full_sampling: u32::try_from(full).unwrap_or(i32::MAX as u32),
            first_key: first_key.to_vec(),
            last_key: last_key.to_vec(),
            offsets: self.offsets,
            entries: self.entries,
        }
    }
}

#[cfg(test)]
mod tests;

//! `Index.db` on its way out, and what is derived from its entries: Bloom filter and summary.
//!
//! Source: `BigTableWriter.IndexWriter.append`.

use compactor_io::{SequentialWriter, WrittenFile};
use compactor_sstable::big::index::write_entry;
use compactor_sstable::big::summary::{Summary, SummaryBuilder};
use compactor_sstable::bloom_filter::BloomFilter;
use compactor_sstable::partitioner::KeyHash;

use crate::error::Result;
use crate::partition_writer::IndexOutput;

/// Bytes collected before they go to the file's writer.
const BATCH_LEN: usize = 64 << 10;

/// The BIG partition index being written.
#[derive(Debug)]
pub struct BigIndexOutput {
    file: SequentialWriter,
    batch: Vec<u8>,
    /// Position of the next entry in `Index.db`.
    position: u64,
    filter: Option<BloomFilter>,
    summary: SummaryBuilder,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    entries: u64,
}

/// A complete partition index.
#[derive(Debug)]
pub struct FinishedIndex {
    /// `Index.db`, synced.
    pub file: WrittenFile,
    /// Holds every key; `None` at a false positive chance of 1.
    pub filter: Option<BloomFilter>,
    /// Sample of the index.
    pub summary: Summary,
    /// First partition key.
    pub first_key: Vec<u8>,
    /// Last partition key.
    pub last_key: Vec<u8>,
}

impl BigIndexOutput {
    /// Writes entries to `file` and keys to `filter`.
    pub fn new(
        file: SequentialWriter,
        filter: Option<BloomFilter>,
        min_index_interval: u32,
    ) -> BigIndexOutput {
        BigIndexOutput {
            file,
            batch: Vec::with_capacity(BATCH_LEN + 4096),
            position: 0,
            filter,
            summary: SummaryBuilder::new(min_index_interval.max(1)),
            first_key: Vec::new(),
            last_key: Vec::new(),
            entries: 0,
        }
    }

    /// Partitions so far.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Syncs and closes the file.
    ///
    /// # Errors
    /// A failed write or sync.
    pub fn finish(mut self) -> Result<FinishedIndex> {
        self.file.write_all(&self.batch)?;
        let file = self.file.finish()?;
        Ok(FinishedIndex {
            file,
            filter: self.filter,
            summary: self.summary.finish(&self.first_key, &self.last_key),
            first_key: self.first_key,
            last_key: self.last_key,
        })
    }
}

impl IndexOutput for BigIndexOutput {
    fn add(&mut self, key: &[u8], hash: KeyHash, position: u64, promoted: &[u8]) -> Result<()> {
        if self.entries == 0 {
            self.first_key.extend_from_slice(key);
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.entries += 1;
        if let Some(filter) = &mut self.filter {
            filter.add_key(&hash);
        }
        self.summary.add(key, self.position);
        let before = self.batch.len();
        write_entry(&mut self.batch, key, position, promoted);
        self.position += (self.batch.len() - before) as u64;
        if self.batch.len() >= BATCH_LEN {
            self.file.write_all(&self.batch)?;
            self.batch.clear();
        }
        Ok(())
    }
}

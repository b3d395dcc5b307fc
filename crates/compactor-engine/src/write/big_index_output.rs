//! Output of `Index.db` and of the summary of its entries.
//!
//! Source: `BigTableWriter.IndexWriter.append`.

use compactor_io::SequentialWriter;
use compactor_sstable::Component;
use compactor_sstable::big::index::write_entry;
use compactor_sstable::big::summary::SummaryBuilder;

use crate::error::Result;
use crate::write::finished_index::FinishedIndex;

/// Bytes collected before they are passed to the file's writer.
const BATCH_LEN: usize = 64 << 10;

/// Index of the BIG format being written: `Index.db` with promoted indexes, and the summary.
#[derive(Debug)]
pub(crate) struct BigIndexOutput {
    file: SequentialWriter,
    batch: Vec<u8>,
    /// Position of the next entry in `Index.db`.
    position: u64,
    summary: SummaryBuilder,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
}

impl BigIndexOutput {
    /// Creates an index that writes entries to `file`.
    pub(crate) fn new(file: SequentialWriter, min_index_interval: u32) -> BigIndexOutput {
        BigIndexOutput {
            file,
            batch: Vec::with_capacity(BATCH_LEN + 4096),
            position: 0,
            summary: SummaryBuilder::new(min_index_interval.max(1)),
            first_key: Vec::new(),
            last_key: Vec::new(),
        }
    }

    /// Syncs and closes the file.
    ///
    /// # Errors
    /// A failed write or sync.
    pub(crate) fn finish(mut self) -> Result<FinishedIndex> {
        self.file.write_all(&self.batch)?;
        let file = self.file.finish()?;
        let summary = self.summary.finish(&self.first_key, &self.last_key);
        Ok(FinishedIndex {
            files: vec![(Component::Index, file.len)],
            filter: None,
            summary: Some(summary),
            first_key: self.first_key,
            last_key: self.last_key,
        })
    }

    /// Adds the entry of a partition with this promoted index.
    ///
    /// # Errors
    /// A failed write.
    pub(crate) fn add_entry(&mut self, key: &[u8], position: u64, promoted: &[u8]) -> Result<()> {
        if self.position == 0 {
            self.first_key.extend_from_slice(key);
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
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

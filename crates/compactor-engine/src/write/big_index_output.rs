//! Output of `Index.db` and of the summary of its entries.
//!
//! Source: `BigTableWriter.IndexWriter.append`.

use compactor_io::SequentialWriter;
use compactor_sstable::Component;
use compactor_sstable::big::index::write_entry;
use compactor_sstable::big::index_info::PromotedIndexBuilder;
use compactor_sstable::big::summary::SummaryBuilder;
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;

use crate::error::Result;
use crate::write::finished_index::FinishedIndex;
use crate::write::partition_sink::IndexedPartition;

/// Bytes collected before they are passed to the file's writer.
const BATCH_LEN: usize = 64 << 10;

/// Index of the BIG format being written: `Index.db` with promoted indexes, and the summary.
#[derive(Debug)]
pub struct BigIndexOutput {
    promoted: PromotedIndexBuilder,
    entries: EntryOutput,
}

/// Output of the entries.
#[derive(Debug)]
struct EntryOutput {
    file: SequentialWriter,
    batch: Vec<u8>,
    /// Position of the next entry in `Index.db`.
    position: u64,
    summary: SummaryBuilder,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
}

impl BigIndexOutput {
    /// Creates an index that writes entries to `file`, with blocks built by `promoted`.
    pub fn new(
        file: SequentialWriter,
        promoted: PromotedIndexBuilder,
        min_index_interval: u32,
    ) -> BigIndexOutput {
        BigIndexOutput {
            promoted,
            entries: EntryOutput {
                file,
                batch: Vec::with_capacity(BATCH_LEN + 4096),
                position: 0,
                summary: SummaryBuilder::new(min_index_interval.max(1)),
                first_key: Vec::new(),
                last_key: Vec::new(),
            },
        }
    }

    /// Syncs and closes the file.
    ///
    /// # Errors
    /// A failed write or sync.
    pub fn finish(self) -> Result<FinishedIndex> {
        let mut entries = self.entries;
        entries.file.write_all(&entries.batch)?;
        let file = entries.file.finish()?;
        let summary = entries.summary;
        let summary = summary.finish(&entries.first_key, &entries.last_key);
        Ok(FinishedIndex {
            files: vec![(Component::Index, file.len)],
            filter: None,
            summary: Some(summary),
            first_key: entries.first_key,
            last_key: entries.last_key,
        })
    }

    /// As [`PartitionSink::add_unfiltered`](crate::write::PartitionSink::add_unfiltered).
    #[inline]
    pub fn add_unfiltered(
        &mut self,
        start: u64,
        end: u64,
        kind: Kind,
        body: &[u8],
        open_marker: &DeletionTime,
    ) -> Result<u64> {
        Ok(self
            .promoted
            .add_unfiltered(start, end, kind, body, open_marker))
    }

    /// As [`PartitionSink::add_partition`](crate::write::PartitionSink::add_partition).
    pub fn add_partition(&mut self, partition: &IndexedPartition<'_>) -> Result<bool> {
        let IndexedPartition {
            key,
            position,
            header_len,
            deletion,
            ..
        } = *partition;
        let promoted = self.promoted.finish(header_len, &deletion)?;
        self.entries.add(key, position, promoted)?;
        Ok(!promoted.is_empty())
    }

    /// Adds the entry of a partition whose promoted index has already been built.
    pub fn add_entry(&mut self, key: &[u8], position: u64, promoted: &[u8]) -> Result<()> {
        self.entries.add(key, position, promoted)
    }
}

impl EntryOutput {
    fn add(&mut self, key: &[u8], position: u64, promoted: &[u8]) -> Result<()> {
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

//! Partitions that were merged elsewhere, added behind those that were written.

use compactor_sstable::bti::rows::SeparatedBlock;
use compactor_sstable::statistics::{MetadataCollector, TimeRun};

use super::{BlockOutput, PartitionWriter};
use crate::error::Result;
use crate::range_output::{IndexBatch, IndexPart};
use crate::sstable_index::FormatIndex;

impl<B: BlockOutput> PartitionWriter<B, FormatIndex> {
    /// Adds the next bytes of a range.
    ///
    /// # Errors
    /// Those of a full block.
    pub(crate) fn splice_data(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.extend_from_slice(bytes);
        self.flush_full_blocks()
    }

    /// Adds the next index entries of a range that begins at `base`, and its keys.
    ///
    /// # Errors
    /// A failed write.
    pub(crate) fn splice_index(&mut self, batch: &IndexBatch, base: u64) -> Result<()> {
        let mut bytes = &batch.bytes[..];
        let mut next = |len: usize| {
            let (taken, rest) = bytes.split_at(len.min(bytes.len()));
            bytes = rest;
            taken
        };
        for part in &batch.parts {
            match *part {
                IndexPart::Block {
                    separator_len,
                    offset,
                    open,
                } => {
                    let separator = next(separator_len);
                    if let FormatIndex::Bti(index) = &mut self.index {
                        index.add_block(SeparatedBlock {
                            separator,
                            offset,
                            open,
                        })?;
                    }
                }
                IndexPart::Partition {
                    hash,
                    position,
                    deletion,
                    key_len,
                    promoted_len,
                    blocks,
                } => {
                    let promoted = next(promoted_len);
                    let key = next(key_len);
                    let position = base + position;
                    self.collector.add_key(key);
                    match &mut self.index {
                        FormatIndex::Big(index) => {
                            index.add_entry(key, &hash, position, promoted)?;
                        }
                        FormatIndex::Bti(index) => {
                            index.add_entry(key, &hash, position, &deletion, blocks)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the next local deletion times of a range.
    pub(crate) fn splice_times(&mut self, times: &[TimeRun]) {
        self.collector.add_times(times);
    }

    /// Ends a range: adds what was counted in it.
    pub(crate) fn splice_end(&mut self, rows: u64, partitions: u64, collected: MetadataCollector) {
        self.rows += rows;
        self.partitions += partitions;
        self.collector.append(collected, &self.layout.clustering);
    }
}

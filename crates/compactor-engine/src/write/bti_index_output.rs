//! Output of `Partitions.db` and `Rows.db`.
//!
//! Source: `BtiTableWriter.IndexWriter.append`.

use compactor_io::SequentialWriter;
use compactor_sstable::bti::paged_output::PagedOutput;
use compactor_sstable::bti::partitions::{PartitionIndexWriter, PartitionPosition};
use compactor_sstable::bti::rows::{RowTries, SeparatedBlock};
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::partitioner::KeyHash;
use compactor_sstable::{Component, Error as FormatError};

use crate::error::Result;
use crate::write::finished_index::FinishedIndex;

/// Bytes collected before they are passed to a file's writer.
const BATCH_LEN: usize = 64 << 10;

/// Index of the BTI format being written: `Partitions.db` and `Rows.db`.
#[derive(Debug)]
pub(crate) struct BtiIndexOutput {
    partitions_file: SequentialWriter,
    rows_file: SequentialWriter,
    partitions: PartitionIndexWriter,
    rows: RowTries,
}

impl BtiIndexOutput {
    /// Creates an index that writes tries to the two files.
    pub(crate) fn new(
        partitions_file: SequentialWriter,
        rows_file: SequentialWriter,
    ) -> BtiIndexOutput {
        BtiIndexOutput {
            partitions_file,
            rows_file,
            partitions: PartitionIndexWriter::new(),
            rows: RowTries::default(),
        }
    }

    /// Syncs and closes the files.
    ///
    /// # Errors
    /// A failed write or sync.
    pub(crate) fn finish(mut self) -> Result<FinishedIndex> {
        self.partitions.finish()?;
        drain(self.partitions.output(), &mut self.partitions_file, 1)?;
        drain(self.rows.output(), &mut self.rows_file, 1)?;
        let (first_key, last_key) = self.partitions.key_range();
        Ok(FinishedIndex {
            files: vec![
                (Component::Partitions, self.partitions_file.finish()?.len),
                (Component::Rows, self.rows_file.finish()?.len),
            ],
            filter: None,
            summary: None,
            first_key: first_key.to_vec(),
            last_key: last_key.to_vec(),
        })
    }

    /// Adds a block of the current partition's rows.
    ///
    /// # Errors
    /// A block that the format cannot represent.
    pub(crate) fn add_block(&mut self, block: SeparatedBlock<'_>) -> Result<(), FormatError> {
        self.rows.add(block)
    }

    /// Writes what the blocks added so far have made, if it is long enough.
    ///
    /// # Errors
    /// A failed write.
    pub(crate) fn write_blocks(&mut self) -> Result<()> {
        drain(self.rows.output(), &mut self.rows_file, BATCH_LEN)
    }

    /// Ends a partition of `blocks` such blocks.
    ///
    /// # Errors
    /// A failed write.
    pub(crate) fn add_entry(
        &mut self,
        key: &[u8],
        hash: &KeyHash,
        position: u64,
        deletion: &DeletionTime,
        blocks: u32,
    ) -> Result<()> {
        let place = match self.rows.finish(key, position, deletion, blocks) {
            Some(entry) => PartitionPosition::Rows(entry),
            None => PartitionPosition::Data(position),
        };
        self.partitions.add(hash, key, place)?;
        self.write_blocks()?;
        drain(
            self.partitions.output(),
            &mut self.partitions_file,
            BATCH_LEN,
        )
    }
}

/// Writes the collected bytes if there are `at_least` that many.
#[inline]
fn drain(output: &mut PagedOutput, file: &mut SequentialWriter, at_least: usize) -> Result<()> {
    if output.bytes().len() >= at_least {
        file.write_all(output.bytes())?;
        output.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use compactor_io::{Io, IoOptions, WriteMode, WriterOptions};
    use compactor_sstable::bti::partitions::PartitionIndex;
    use compactor_sstable::bti::rows::{RowBlocks, RowIndex};
    use compactor_sstable::byte_sink::ByteSink;
    use compactor_sstable::data::clustering::Kind;
    use compactor_sstable::partitioner::Partitioner;
    use compactor_sstable::types::CqlType;

    use super::*;

    /// Writes partitions with rows of 100 bytes: `count(n)` of them in partition n.
    fn write(index: &mut BtiIndexOutput, keys: &[Vec<u8>], count: impl Fn(usize) -> u64) {
        let mut blocks = RowBlocks::new(&[CqlType::Int32], 400).unwrap();
        let mut position = 0;
        for (n, key) in keys.iter().enumerate() {
            let mut end = 10;
            for row in 0..count(n) {
                let mut body = vec![0];
                body.put_u32(row as u32);
                let live = DeletionTime::LIVE;
                let emit = |block: SeparatedBlock<'_>| index.add_block(block);
                blocks
                    .add_unfiltered(end, end + 100, Kind::Clustering, &body, &live, emit)
                    .unwrap();
                index.write_blocks().unwrap();
                end += 100;
            }
            let hash = Partitioner::Murmur3.hash_key(key);
            let count = blocks.finish(|block| index.add_block(block)).unwrap();
            index
                .add_entry(key, &hash, position, &DeletionTime::LIVE, count)
                .unwrap();
            position += end + 1;
        }
    }

    #[test]
    fn files_hold_what_was_added() {
        let directory = tempfile::tempdir().unwrap();
        let io = Io::new(IoOptions::default()).unwrap();
        let create = |name: &str| {
            let path = directory.path().join(name);
            io.create(&path, WriteMode::Buffered, WriterOptions::default())
                .unwrap()
        };
        let mut keys: Vec<Vec<u8>> = (0..20_000u32).map(|n| n.to_be_bytes().to_vec()).collect();
        keys.sort_by_key(|key| Partitioner::Murmur3.token(key));
        // Exceeds the collected bytes both in one partition and in total.
        let count = |n: usize| match n % 1000 {
            0 => 4 * n as u64,
            _ => n as u64 % 3,
        };
        let mut output = BtiIndexOutput::new(create("p"), create("r"));
        write(&mut output, &keys, count);
        assert_eq!(output.partitions.count(), keys.len() as u64);
        let finished = output.finish().unwrap();
        assert_eq!(finished.first_key, keys[0]);
        assert_eq!(finished.last_key, keys[keys.len() - 1]);
        let read = |name| std::fs::read(directory.path().join(name)).unwrap();
        let (partitions, rows) = (read("p"), read("r"));
        let files = [
            (Component::Partitions, partitions.len() as u64),
            (Component::Rows, rows.len() as u64),
        ];
        assert_eq!(finished.files, files);
        assert!(
            partitions.len() > BATCH_LEN && rows.len() > 4 * BATCH_LEN,
            "{}",
            rows.len()
        );
        let parsed = PartitionIndex::parse(&partitions).unwrap();
        let mut entries = parsed.iter();
        let mut position = 0;
        for (n, key) in keys.iter().enumerate() {
            let hash = Partitioner::Murmur3.hash_key(key);
            let entry = entries.next_entry().unwrap().unwrap();
            let found = parsed.candidate(&hash, key).unwrap();
            assert_eq!(found, Some(entry.position));
            match entry.position {
                PartitionPosition::Data(at) => assert_eq!((at, count(n) < 5), (position, true)),
                PartitionPosition::Rows(at) => {
                    let row_index = RowIndex::parse(&rows, at).unwrap();
                    assert_eq!(row_index.key, key);
                    assert_eq!(row_index.data_position, position);
                    let mut blocks = row_index.blocks();
                    for block in 0..count(n).div_ceil(4) {
                        let offset = blocks.next_block().unwrap().unwrap().offset;
                        assert_eq!(offset, 10 + 400 * block);
                    }
                    let end = blocks.next_block().unwrap().unwrap().offset;
                    assert_eq!(
                        (end, blocks.next_block().unwrap()),
                        (10 + 100 * count(n), None)
                    );
                }
            }
            position += 11 + 100 * count(n);
        }
        assert_eq!(entries.next_entry().unwrap(), None);
    }
}

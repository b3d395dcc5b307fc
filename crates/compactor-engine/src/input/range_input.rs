//! An SSTable that several threads read in ranges.

use std::path::PathBuf;
use std::sync::Arc;

use compactor_io::{InputFile, Io};
use compactor_sstable::Component;
use compactor_sstable::Error as FormatError;
use compactor_sstable::data::layout::Layout;
use compactor_sstable::partitioner::{Partitioner, Position};

use crate::error::{Error, Result};
use crate::input::key_estimate::partition_count;
use crate::input::sstable::InputSstable;
use crate::read::cursor::Cursor;
use crate::read::decode::DecodedBlocks;
use crate::read::encoding::Encoding;
use crate::read::expected_partitions::{CursorRange, ExpectedPartitions};
use crate::read::hex::hex;
use crate::read::reading::{DecodeOptions, Reading};
use crate::read::stored_blocks::Recycled;

/// An input with an open `Data.db`.
#[derive(Debug)]
pub(crate) struct RangeInput {
    file: InputFile,
    encoding: Arc<Encoding>,
    recycled: Arc<Recycled>,
    pub(crate) layout: Arc<Layout>,
    pub(crate) path: PathBuf,
    partitioner: Partitioner,
    expected: ExpectedPartitions,
}

impl RangeInput {
    /// Opens `Data.db` of an SSTable.
    pub(crate) fn open(io: &Io, input: &InputSstable) -> Result<RangeInput> {
        let stats = &input.statistics.stats;
        Ok(RangeInput {
            file: input.open_data(io)?,
            encoding: Arc::clone(&input.encoding),
            recycled: Arc::default(),
            layout: Arc::new(input.bounded_layout()?),
            path: input.data_path(),
            partitioner: input.partitioner,
            expected: ExpectedPartitions {
                count: partition_count(stats),
                first_key: stats.first_key.clone(),
                last_key: stats.last_key.clone(),
            },
        })
    }

    /// Uncompressed length, bytes.
    pub(crate) fn data_len(&self) -> u64 {
        self.encoding.data_len()
    }

    /// Returns a cursor over the partitions between two positions, which the index states for two split points.
    ///
    /// # Errors
    /// The positions are out of order: the index is damaged.
    pub(crate) fn cursor(
        &self,
        (start, end): (u64, u64),
        (from, below): (Option<Position>, Option<Position>),
        reading: Reading,
    ) -> Result<Cursor<DecodedBlocks>> {
        if end < start {
            let expected = format!("{start} or more, where the partitions before it end");
            let error = FormatError::corrupt("index.position", end, expected, end.to_string());
            return Err(Error::Format(error.with_file(&self.path, Component::Data)));
        }
        let blocks = DecodedBlocks::start_range(
            self.file.clone(),
            Arc::clone(&self.encoding),
            Arc::clone(&self.recycled),
            start..end,
            reading,
        );
        let lead_len = blocks.lead_len();
        let layout = Arc::clone(&self.layout);
        let cursor = Cursor::new(blocks, layout, self.partitioner, self.path.clone());
        let range = CursorRange { start, from, below };
        let mut cursor = cursor.in_range(lead_len, range);
        if from.is_none() && below.is_none() {
            cursor.expect(self.expected.clone());
        }
        Ok(cursor)
    }

    /// Ring position of the partition at a position of the content.
    ///
    /// # Errors
    /// Damage at that position, or a failed read.
    pub(crate) fn key_at(&self, position: u64, reading: &Reading) -> Result<Position> {
        let reading = Reading {
            decode: DecodeOptions {
                block_len: 0,
                depth: 1,
                decoded: 1,
                headroom: 0,
            },
            limiter: None,
            ..reading.clone()
        };
        let (bounds, splits) = ((position, self.data_len()), (Some((i64::MIN, 0)), None));
        let mut cursor = self.cursor(bounds, splits, reading)?;
        cursor.next_partition()?;
        Ok(cursor.position_in_ring())
    }

    /// Validates the partitions of all ranges together against the statistics.
    pub(crate) fn check(&self, first_key: &[u8], last_key: &[u8], partitions: u64) -> Result<()> {
        let corrupt = |structure, expected: String, found: String| {
            let error = FormatError::corrupt(structure, 0, expected, found);
            Err(Error::Format(error.with_file(&self.path, Component::Data)))
        };
        if self.expected.count != partitions {
            let expected = format!(
                "{} of them, according to Statistics.db",
                self.expected.count
            );
            return corrupt("partitions", expected, partitions.to_string());
        }
        let keys = [
            ("first", &self.expected.first_key, first_key),
            ("last", &self.expected.last_key, last_key),
        ];
        for (which, expected, found) in keys {
            if let Some(expected) = expected.as_ref().filter(|expected| **expected != found) {
                let expected = format!("{which} key {}, according to Statistics.db", hex(expected));
                return corrupt("partition.key", expected, hex(found));
            }
        }
        Ok(())
    }
}

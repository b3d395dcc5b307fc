//! Split points of an input of the BTI format: [`SplitIndex`](crate::input::split_index::SplitIndex) by
//! `Partitions.db`.
//!
//! The trie stores the shortest prefix of each key that distinguishes it from its neighbours. If such a
//! prefix is also a prefix of the split point, the whole key decides, which is in the data.

use std::sync::Arc;

use compactor_io::{Io, ReadMode};
use compactor_sstable::Component;
use compactor_sstable::Error as FormatError;
use compactor_sstable::bti::partitions::{PartitionEntry, PartitionIndex, PartitionPosition};
use compactor_sstable::bti::rows::RowIndex;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::partitioner::{Partitioner, Position};

use crate::error::{Error, Result};
use crate::input::sample::Sample;
use crate::input::sstable::InputSstable;
use crate::input::trie_files::TrieFiles;

/// Lookup of split points in an input with Murmur3Partitioner.
#[derive(Debug)]
pub(crate) struct BtiSplitIndex {
    descriptor: Descriptor,
    files: Arc<TrieFiles>,
    pub(crate) samples: Vec<Sample>,
    data_len: u64,
}

impl BtiSplitIndex {
    /// Reads the files and samples the index about every `sample_len` uncompressed bytes.
    pub(crate) fn open(
        io: &Io,
        input: &InputSstable,
        mode: ReadMode,
        sample_len: u64,
    ) -> Result<BtiSplitIndex> {
        let mut places = BtiSplitIndex {
            descriptor: input.descriptor.clone(),
            files: input.tries(io, mode)?,
            samples: Vec::new(),
            data_len: input.data_len(),
        };
        places.samples = places.sample(sample_len)?;
        Ok(places)
    }

    /// Tokens are uniformly distributed, so samples at equal token distances are at about equal byte
    /// distances.
    pub(crate) fn sample(&self, sample_len: u64) -> Result<Vec<Sample>> {
        let index = self.index()?;
        let token = |key: &[u8]| i128::from(Partitioner::Murmur3.token(key));
        let (first, last) = (token(index.first_key), token(index.last_key));
        let count = (self.data_len / sample_len.max(1)).min(index.key_count) + 1;
        let mut samples: Vec<Sample> = Vec::new();
        for number in 1..=count {
            let token = first + (last - first) * i128::from(number) / i128::from(count);
            let Ok(token) = i64::try_from(token) else {
                continue;
            };
            let around = index
                .around(token)
                .map_err(self.at(Component::Partitions))?;
            let data_before = match around.may_be_before.or(around.next) {
                Some(entry) => self.position(entry)?,
                None => self.data_len,
            };
            let is_behind = |last: &Sample| {
                last.at < (token, 0) && last.data_before.saturating_add(sample_len) <= data_before
            };
            if samples.last().is_none_or(is_behind) {
                samples.push(Sample {
                    at: (token, 0),
                    data_before,
                    index_offset: 0,
                });
            }
        }
        Ok(samples)
    }

    pub(crate) fn first_from(
        &self,
        split: Position,
        key_at: impl FnOnce(u64) -> Result<Position>,
    ) -> Result<u64> {
        let around = self.index()?.around(split.0);
        let around = around.map_err(self.at(Component::Partitions))?;
        if let Some(entry) = around.may_be_before {
            let position = self.position(entry)?.min(self.data_len);
            if position == self.data_len || key_at(position)? >= split {
                return Ok(position);
            }
        }
        let next = around.next.map(|entry| self.position(entry)).transpose()?;
        Ok(next.unwrap_or(self.data_len).min(self.data_len))
    }

    fn index(&self) -> Result<PartitionIndex<'_>> {
        PartitionIndex::parse(&self.files.partitions).map_err(self.at(Component::Partitions))
    }

    /// Position of a partition in the data.
    fn position(&self, entry: PartitionEntry) -> Result<u64> {
        match entry.position {
            PartitionPosition::Data(position) => Ok(position),
            PartitionPosition::Rows(entry) => {
                let rows = RowIndex::parse(&self.files.rows, entry);
                Ok(rows.map_err(self.at(Component::Rows))?.data_position)
            }
        }
    }

    fn at(&self, component: Component) -> impl Fn(FormatError) -> Error {
        Error::format(&self.descriptor, component)
    }
}

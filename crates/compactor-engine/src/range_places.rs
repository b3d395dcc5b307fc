//! Where an input can be cut between partitions, by its partition index.
//!
//! A border between ranges is a place in the ring. The index says where the first partition at or behind
//! it begins in `Data.db`. It is not believed: whoever reads the ranges to both sides sees whether the
//! partitions of the one end where those of the other begin, and on which side they belong
//! ([`Cursor::over_range`](crate::cursor::Cursor::over_range)).

use compactor_io::{InputFile, Io, ReadMode};
use compactor_sstable::Component;
use compactor_sstable::Format;
use compactor_sstable::big::summary::Summary;
use compactor_sstable::partitioner::{Partitioner, Position};

use crate::error::{Error, Result};
use crate::index_heads::IndexHeads;
use crate::input::InputSstable;
use crate::trie_places::TriePlaces;

/// Bytes of `Index.db` that are read at a time: for one place, and for all of them.
const SEEK_STEP: usize = 8 << 10;
const SCAN_STEP: usize = 256 << 10;

/// A partition that an index was asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Where it stands in the ring.
    pub(crate) at: Position,
    /// Uncompressed bytes before it, roughly.
    pub(crate) data_before: u64,
    /// Its entry in `Index.db`.
    index_offset: u64,
}

/// The places of one input.
#[derive(Debug)]
pub(crate) enum RangePlaces {
    /// By `Index.db` and `Summary.db`.
    Big(BigPlaces),
    /// By `Partitions.db` and `Rows.db`.
    Bti(TriePlaces),
}

/// The places of an input of the BIG format.
#[derive(Debug)]
pub(crate) struct BigPlaces {
    index: InputFile,
    partitioner: Partitioner,
    data_len: u64,
    samples: Vec<Sample>,
}

impl RangePlaces {
    /// Takes samples of an input's index, about `sample_len` uncompressed bytes from one another. An
    /// `Err` of the inner kind tells why it cannot be cut.
    ///
    /// # Errors
    /// Damage in the index, or a failed read.
    pub(crate) fn open(
        io: &Io,
        input: &InputSstable,
        mode: ReadMode,
        sample_len: u64,
    ) -> Result<Result<RangePlaces, String>> {
        let version = input.descriptor.version;
        if input.partitioner == Partitioner::ByteOrdered {
            return Ok(Err(
                "ByteOrderedPartitioner has no tokens to cut at".to_owned()
            ));
        }
        if version.format() == Format::Bti {
            return match input.partitioner {
                Partitioner::Murmur3 => {
                    let places = TriePlaces::open(io, input, mode, sample_len)?;
                    Ok(Ok(RangePlaces::Bti(places)))
                }
                _ => Ok(Err(
                    "an input of the BTI format has RandomPartitioner".to_owned()
                )),
            };
        }
        if !input.has(Component::Index) {
            return Ok(Err("an input has no Index.db".to_owned()));
        }
        let summary = input.summary(io, mode)?;
        let index = io.open(&input.descriptor.path(Component::Index), mode)?;
        let mut places = BigPlaces {
            index,
            partitioner: input.partitioner,
            data_len: input.data_len(),
            samples: Vec::new(),
        };
        let sample_len = sample_len.max(1);
        let data_len = places.data_len;
        match summary.filter(|s| data_len / (s.len() as u64).max(1) <= sample_len) {
            Some(summary) => places.sample_summary(&summary, sample_len),
            // Its partitions are long, or there is none.
            None => places.sample_index(sample_len)?,
        }
        Ok(Ok(RangePlaces::Big(places)))
    }

    /// The samples, in their order.
    pub(crate) fn samples(&self) -> &[Sample] {
        match self {
            RangePlaces::Big(places) => &places.samples,
            RangePlaces::Bti(places) => places.samples(),
        }
    }

    /// Where the first partition at or behind `border` begins in the uncompressed data, or where these
    /// end. `key_at` reads the key of the partition at a position of the data.
    ///
    /// # Errors
    /// Damage in the index, a failed read, or those of `key_at`.
    pub(crate) fn first_from(
        &self,
        border: Position,
        key_at: impl FnOnce(u64) -> Result<Position>,
    ) -> Result<u64> {
        match self {
            RangePlaces::Big(places) => places.first_from(border),
            RangePlaces::Bti(places) => places.first_from(border, key_at),
        }
    }
}

impl Sample {
    /// A sample of a trie, which is known where it is in the data.
    pub(crate) fn of_trie(at: Position, data_before: u64) -> Sample {
        Sample {
            at,
            data_before,
            index_offset: 0,
        }
    }
}

impl BigPlaces {
    fn sample_summary(&mut self, summary: &Summary, sample_len: u64) {
        let mut next = 0;
        for (key, index_offset) in summary.entries() {
            // Entries are alike, on the whole.
            let before = u128::from(index_offset) * u128::from(self.data_len)
                / u128::from(self.index.len().max(1));
            let data_before = (before as u64).min(self.data_len);
            if data_before >= next {
                next = data_before.saturating_add(sample_len);
                self.add_sample(self.partitioner.position(key), data_before, index_offset);
            }
        }
    }

    fn sample_index(&mut self, sample_len: u64) -> Result<()> {
        let (index, partitioner) = (self.index.clone(), self.partitioner);
        let mut heads = IndexHeads::at(&index, 0, SCAN_STEP);
        let mut next = 0;
        while let Some(head) = heads.next_head()? {
            if head.position >= next {
                next = head.position.saturating_add(sample_len);
                self.add_sample(partitioner.position(head.key), head.position, head.offset);
            }
        }
        Ok(())
    }

    /// Samples ascend. One that does not is damage that others will find.
    fn add_sample(&mut self, at: Position, data_before: u64, index_offset: u64) {
        let is_behind = |last: &Sample| last.at < at && last.index_offset < index_offset;
        if self.samples.last().is_none_or(is_behind) {
            self.samples.push(Sample {
                at,
                data_before,
                index_offset,
            });
        }
    }

    /// The entry of the sampled key is where the sample says: a `Summary.db` may be damaged.
    fn is_true(&self, sample: &Sample) -> Result<bool> {
        let mut heads = IndexHeads::at(&self.index, sample.index_offset, SEEK_STEP);
        match heads.next_head() {
            Ok(head) => {
                Ok(head.is_some_and(|head| self.partitioner.position(head.key) == sample.at))
            }
            // What a wrong offset leads to.
            Err(Error::Format(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn first_from(&self, border: Position) -> Result<u64> {
        let before = self.samples.partition_point(|sample| sample.at < border);
        let sample = before.checked_sub(1).and_then(|n| self.samples.get(n));
        let offset = match sample {
            Some(sample) if self.is_true(sample)? => sample.index_offset,
            _ => 0,
        };
        let mut heads = IndexHeads::at(&self.index, offset, SEEK_STEP);
        while let Some(head) = heads.next_head()? {
            if self.partitioner.position(head.key) >= border {
                return Ok(head.position.min(self.data_len));
            }
        }
        Ok(self.data_len)
    }
}

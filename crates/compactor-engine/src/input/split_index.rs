//! Where an input can be cut between partitions, by its partition index.
//!
//! A split between ranges is a place in the ring. The index says where the first partition at or behind
//! it begins in `Data.db`. It is not believed: whoever reads the ranges to both sides sees whether the
//! partitions of the one end where those of the other begin, and on which side they belong
//! ([`Cursor::over_range`](crate::read::cursor::Cursor::over_range)).

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use compactor_io::{Extent, InputFile, Io, IoError, ReadMode};
use compactor_sstable::Component;
use compactor_sstable::Format;
use compactor_sstable::big::summary::Summary;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::partitioner::{Partitioner, Position};
use crossbeam_channel::{Receiver, bounded};

use crate::error::{Error, Result};
use crate::input::bti_split_index::BtiSplitIndex;
use crate::input::index_heads::IndexHeads;
use crate::input::sample::Sample;
use crate::input::sstable::InputSstable;

/// Bytes of `Index.db` that are read at a time: for one place, and for all of them.
const SEEK_STEP: usize = 32 << 10;
const SCAN_STEP: usize = 256 << 10;

/// The places of one input.
#[derive(Debug)]
pub(crate) enum SplitIndex {
    /// By `Index.db` and `Summary.db`.
    Big(BigSplitIndex),
    /// By `Partitions.db` and `Rows.db`.
    Bti(BtiSplitIndex),
}

/// The places of an input of the BIG format.
#[derive(Debug)]
pub(crate) struct BigSplitIndex {
    io: Io,
    mode: ReadMode,
    descriptor: Descriptor,
    /// Open all the time if so many descriptors are to be had.
    index: Option<InputFile>,
    partitioner: Partitioner,
    data_len: u64,
    samples: Vec<Sample>,
    /// Reads of `index` under way, or done and not asked for yet, by their offset.
    ahead: Mutex<BTreeMap<u64, Receiver<Result<Extent, IoError>>>>,
}

impl SplitIndex {
    /// Why an input cannot be cut, if it cannot.
    pub(crate) fn refusal(input: &InputSstable) -> Option<&'static str> {
        match (input.descriptor.version.format(), input.partitioner) {
            (_, Partitioner::ByteOrdered) => Some("ByteOrderedPartitioner has no tokens to cut at"),
            (Format::Bti, Partitioner::Murmur3) => None,
            (Format::Bti, _) => Some("an SSTable of the BTI format has RandomPartitioner"),
            (Format::Big, _) if input.has(Component::Index) => None,
            (Format::Big, _) => Some("an SSTable has no Index.db"),
        }
    }

    /// Takes samples of an input's index, about `sample_len` uncompressed bytes from one another.
    ///
    /// # Errors
    /// Damage in the index, or a failed read.
    pub(crate) fn open(
        io: &Io,
        input: &InputSstable,
        mode: ReadMode,
        sample_len: u64,
    ) -> Result<SplitIndex> {
        if input.descriptor.version.format() == Format::Bti {
            let places = BtiSplitIndex::open(io, input, mode, sample_len)?;
            return Ok(SplitIndex::Bti(places));
        }
        let mut places = BigSplitIndex {
            io: io.clone(),
            mode,
            descriptor: input.descriptor.clone(),
            index: None,
            partitioner: input.partitioner,
            data_len: input.data_len(),
            samples: Vec::new(),
            ahead: Mutex::default(),
        };
        let summary = input.summary(io, mode)?;
        places.samples = places.sample(summary.as_ref(), sample_len)?;
        Ok(SplitIndex::Big(places))
    }

    /// As [`SplitIndex::open`], samples at another distance.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn other_samples(
        &self,
        input: &InputSstable,
        sample_len: u64,
    ) -> Result<Vec<Sample>> {
        match self {
            SplitIndex::Big(places) => {
                let summary = input.summary(&places.io, places.mode)?;
                places.sample(summary.as_ref(), sample_len)
            }
            SplitIndex::Bti(places) => places.sample(sample_len),
        }
    }

    /// Keeps a descriptor for itself.
    ///
    /// # Errors
    /// A failed open.
    pub(crate) fn keep_open(&mut self) -> Result<()> {
        if let SplitIndex::Big(places) = self {
            places.index = Some(places.index()?);
        }
        Ok(())
    }

    /// The samples, in their order.
    pub(crate) fn samples(&self) -> &[Sample] {
        match self {
            SplitIndex::Big(places) => &places.samples,
            SplitIndex::Bti(places) => places.samples(),
        }
    }

    /// Begins to read what [`SplitIndex::first_from`] needs of the index, which is to be called then.
    pub(crate) fn read_ahead(&self, split: Position) {
        if let SplitIndex::Big(places) = self {
            places.read_ahead(split);
        }
    }

    /// Where the first partition at or behind `split` begins in the uncompressed data, or where these
    /// end. `key_at` reads the key of the partition at a position of the data.
    ///
    /// # Errors
    /// Damage in the index, a failed read, or those of `key_at`.
    pub(crate) fn first_from(
        &self,
        split: Position,
        key_at: impl FnOnce(u64) -> Result<Position>,
    ) -> Result<u64> {
        match self {
            SplitIndex::Big(places) => places.first_from(split),
            SplitIndex::Bti(places) => places.first_from(split, key_at),
        }
    }
}

impl BigSplitIndex {
    fn index(&self) -> Result<InputFile> {
        match &self.index {
            Some(index) => Ok(index.clone()),
            None => {
                let path = self.descriptor.path(Component::Index);
                Ok(self.io.open(&path, self.mode)?)
            }
        }
    }

    fn sample(&self, summary: Option<&Summary>, sample_len: u64) -> Result<Vec<Sample>> {
        let sample_len = sample_len.max(1);
        let index = self.index()?;
        let mut samples = Vec::new();
        let mut next = 0;
        match summary.filter(|s| self.data_len / (s.len() as u64).max(1) <= sample_len) {
            Some(summary) => {
                for (key, index_offset) in summary.entries() {
                    // Entries are alike, on the whole.
                    let before = u128::from(index_offset) * u128::from(self.data_len)
                        / u128::from(index.len().max(1));
                    let data_before = (before as u64).min(self.data_len);
                    if data_before >= next {
                        next = data_before.saturating_add(sample_len);
                        let at = self.partitioner.position(key);
                        add_sample(&mut samples, at, data_before, index_offset);
                    }
                }
            }
            // Its partitions are long, or there is none.
            None => {
                let mut heads = IndexHeads::at(&index, 0, SCAN_STEP);
                while let Some(head) = heads.next_head()? {
                    if head.position >= next {
                        next = head.position.saturating_add(sample_len);
                        let at = self.partitioner.position(head.key);
                        add_sample(&mut samples, at, head.position, head.offset);
                    }
                }
            }
        }
        Ok(samples)
    }

    /// The entry of the sampled key is where the sample says: a `Summary.db` may be damaged.
    fn is_true(&self, heads: &mut IndexHeads<'_>, sample: &Sample) -> Result<bool> {
        match heads.next_head() {
            Ok(head) => {
                Ok(head.is_some_and(|head| self.partitioner.position(head.key) == sample.at))
            }
            // What a wrong offset leads to.
            Err(Error::Format(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The sampled partition before a split.
    fn sample_before(&self, split: Position) -> Option<&Sample> {
        let before = self.samples.partition_point(|sample| sample.at < split);
        before.checked_sub(1).and_then(|n| self.samples.get(n))
    }

    fn read_ahead(&self, split: Position) {
        let Some(index) = &self.index else {
            return;
        };
        let offset = self.sample_before(split).map_or(0, |s| s.index_offset);
        let len = index.len().saturating_sub(offset).min(SEEK_STEP as u64);
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        if len == 0 || ahead.contains_key(&offset) {
            return;
        }
        let (sender, receiver) = bounded(1);
        ahead.insert(offset, receiver);
        drop(ahead);
        // Fails only if the merge has ended.
        let done = Box::new(move |read| drop(sender.send(read)));
        index.submit_read(offset, len as usize, done);
    }

    /// What was read ahead there, or nothing.
    fn take_ahead(&self, offset: u64) -> Result<Vec<u8>> {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(receiver) = ahead.remove(&offset) else {
            return Ok(Vec::new());
        };
        drop(ahead);
        match receiver.recv() {
            Ok(read) => Ok(read?.to_vec()),
            // It was given up; what is read instead says why.
            Err(_) => Ok(Vec::new()),
        }
    }

    fn first_from(&self, split: Position) -> Result<u64> {
        let sample = self.sample_before(split);
        let index = self.index()?;
        // The sampled partition stands before the split.
        let offset = sample.map_or(0, |sample| sample.index_offset);
        let bytes = self.take_ahead(offset)?;
        let mut heads = IndexHeads::at(&index, offset, SEEK_STEP).with_bytes(bytes);
        if let Some(sample) = sample
            && !self.is_true(&mut heads, sample)?
        {
            heads = IndexHeads::at(&index, 0, SEEK_STEP);
        }
        while let Some(head) = heads.next_head()? {
            if self.partitioner.position(head.key) >= split {
                return Ok(head.position.min(self.data_len));
            }
        }
        Ok(self.data_len)
    }
}

/// Samples ascend. One that does not is damage that others will find.
fn add_sample(samples: &mut Vec<Sample>, at: Position, data_before: u64, index_offset: u64) {
    let is_behind = |last: &Sample| last.at < at && last.index_offset < index_offset;
    if samples.last().is_none_or(is_behind) {
        samples.push(Sample {
            at,
            data_before,
            index_offset,
        });
    }
}

//! Split points of an input between partitions, found by its partition index.
//!
//! A split point between ranges is a ring position. The index gives the position in `Data.db` of the first
//! partition at or after it. That position is not trusted: the readers of the ranges on both sides check that
//! the partitions of the first end where those of the second begin, and that each belongs to its range
//! ([`Cursor::in_range`](crate::read::cursor::Cursor::in_range)).

use std::collections::BTreeMap;
use std::sync::Mutex;

use compactor_io::{Extent, InputFile, Io, IoError, ReadMode, lock};
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

/// Bytes of `Index.db` per read: to find one split point, and to sample the whole index.
const SEEK_STEP: usize = 32 << 10;
const SCAN_STEP: usize = 256 << 10;
/// Maximum distance of the entries of `Summary.db`, in distances of samples, for which they are the samples of a merge's
/// ranges: reading all of `Index.db` would take longer than less even ranges do.
const MAX_SUMMARY_STEPS: u64 = 4;

/// Lookup of split points in one input.
#[derive(Debug)]
pub(crate) enum SplitIndex {
    /// In `Index.db` and `Summary.db`.
    Big(BigSplitIndex),
    /// In `Partitions.db` and `Rows.db`.
    Bti(BtiSplitIndex),
}

/// Lookup of split points in an input of the BIG format.
#[derive(Debug)]
pub(crate) struct BigSplitIndex {
    io: Io,
    mode: ReadMode,
    descriptor: Descriptor,
    /// `Index.db`, kept open if enough descriptors are available.
    index: Option<InputFile>,
    partitioner: Partitioner,
    data_len: u64,
    samples: Vec<Sample>,
    /// Reads of `index` in flight or completed and not yet consumed, by offset.
    ahead: Mutex<BTreeMap<u64, Receiver<Result<Extent, IoError>>>>,
}

impl SplitIndex {
    /// Returns the reason why an input cannot be split, if it cannot.
    pub(crate) fn refusal(input: &InputSstable) -> Option<&'static str> {
        match (input.descriptor.version.format(), input.partitioner) {
            (_, Partitioner::ByteOrdered) => {
                Some("ByteOrderedPartitioner has no tokens to split at")
            }
            (Format::Bti, Partitioner::Murmur3) => None,
            (Format::Bti, _) => Some("an SSTable of the BTI format has RandomPartitioner"),
            (Format::Big, _) if input.has(Component::Index) => None,
            (Format::Big, _) => Some("an SSTable has no Index.db"),
        }
    }

    /// Samples an input's index about every `sample_len` uncompressed bytes.
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
        let mut places = BigSplitIndex::unsampled(io, input, mode);
        let summary = input.summary(io, mode)?;
        places.samples = places.sample(summary.as_ref(), sample_len, MAX_SUMMARY_STEPS)?;
        Ok(SplitIndex::Big(places))
    }

    /// Samples an input's index every `sample_len` uncompressed bytes, whatever its summary has.
    ///
    /// # Errors
    /// As [`SplitIndex::open`].
    pub(crate) fn sample(
        io: &Io,
        input: &InputSstable,
        mode: ReadMode,
        sample_len: u64,
    ) -> Result<Vec<Sample>> {
        if input.descriptor.version.format() == Format::Bti {
            return Ok(BtiSplitIndex::open(io, input, mode, sample_len)?.samples);
        }
        let summary = input.summary(io, mode)?;
        BigSplitIndex::unsampled(io, input, mode).sample(summary.as_ref(), sample_len, 1)
    }

    /// Keeps a file descriptor open for lookups.
    pub(crate) fn keep_open(&mut self) -> Result<()> {
        if let SplitIndex::Big(places) = self {
            places.index = Some(places.index()?);
        }
        Ok(())
    }

    /// The samples, in order.
    pub(crate) fn samples(&self) -> &[Sample] {
        match self {
            SplitIndex::Big(places) => &places.samples,
            SplitIndex::Bti(places) => &places.samples,
        }
    }

    /// Starts reading the part of the index that [`SplitIndex::first_from`] needs, which must be called
    /// afterwards.
    pub(crate) fn read_ahead(&self, split: Position) {
        if let SplitIndex::Big(places) = self {
            places.read_ahead(split);
        }
    }

    /// Returns the position of the first partition at or after `split` in the uncompressed data, or the end
    /// of the data. `key_at` reads the key of the partition at a position of the data.
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
    fn unsampled(io: &Io, input: &InputSstable, mode: ReadMode) -> BigSplitIndex {
        BigSplitIndex {
            io: io.clone(),
            mode,
            descriptor: input.descriptor.clone(),
            index: None,
            partitioner: input.partitioner,
            data_len: input.data_len(),
            samples: Vec::new(),
            ahead: Mutex::default(),
        }
    }

    fn index(&self) -> Result<InputFile> {
        match &self.index {
            Some(index) => Ok(index.clone()),
            None => {
                let path = self.descriptor.path(Component::Index);
                Ok(self.io.open(&path, self.mode)?)
            }
        }
    }

    /// Samples `summary` if its entries are at most `steps` samples apart, otherwise all of `Index.db`.
    fn sample(
        &self,
        summary: Option<&Summary>,
        sample_len: u64,
        steps: u64,
    ) -> Result<Vec<Sample>> {
        let sample_len = sample_len.max(1);
        let index = self.index()?;
        let mut samples = Vec::new();
        let mut next = 0;
        let most = sample_len.saturating_mul(steps);
        match summary.filter(|s| self.data_len / (s.len() as u64).max(1) <= most) {
            Some(summary) => {
                for (key, index_offset) in summary.entries() {
                    // Assumes that entries have similar lengths.
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
            // Its partitions are long, or it has no summary.
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

    /// Whether the entry of the sampled key is at the sample's offset: `Summary.db` may be damaged.
    fn is_true(&self, heads: &mut IndexHeads<'_>, sample: &Sample) -> Result<bool> {
        match heads.next_head() {
            Ok(head) => {
                Ok(head.is_some_and(|head| self.partitioner.position(head.key) == sample.at))
            }
            // The result of a wrong offset.
            Err(Error::Format(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The last sampled partition before a split point.
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
        let mut ahead = lock(&self.ahead);
        if len == 0 || ahead.contains_key(&offset) {
            return;
        }
        let (sender, receiver) = bounded(1);
        ahead.insert(offset, receiver);
        drop(ahead);
        // Sending fails only if the merge has ended.
        let done = Box::new(move |read| drop(sender.send(read)));
        index.submit_read(offset, len as usize, done);
    }

    /// Takes the bytes that were read ahead at `offset`; empty if there are none.
    fn take_ahead(&self, offset: u64) -> Result<Vec<u8>> {
        let Some(receiver) = lock(&self.ahead).remove(&offset) else {
            return Ok(Vec::new());
        };
        match receiver.recv() {
            Ok(read) => Ok(read?.to_vec()),
            // The read was abandoned; reading again reports the cause.
            Err(_) => Ok(Vec::new()),
        }
    }

    fn first_from(&self, split: Position) -> Result<u64> {
        let sample = self.sample_before(split);
        let index = self.index()?;
        // The sampled partition is before the split point.
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

/// Samples ascend. One that does not is skipped: its damage is reported when the component is validated.
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

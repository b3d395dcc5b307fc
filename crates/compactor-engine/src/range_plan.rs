//! Into which ranges a merge is cut, so that several threads are at it.
//!
//! Ranges are short: what one comes to waits in memory until those before it have been written.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use compactor_sstable::partitioner::Position;

use crate::budget::Budget;
use crate::error::Result;
use crate::merge_job::{MergeJob, block_unit};
use crate::passes::free_files;
use crate::range_places::RangePlaces;

/// Both ranges at a border decode the chunk that it lies in: so many chunks make that cost little.
const CHUNKS_PER_RANGE: u64 = 32;
/// A range costs some requests and allocations whatever is in it.
const LEAST_RANGE_LEN: u64 = 512 << 10;
/// Bytes that a range may have waiting, at least.
const LEAST_WAITING: usize = 64 << 10;
/// Descriptors that an input being read in ranges takes, at most: as otherwise, and `Index.db` for
/// the places.
const FILES_PER_INPUT: u64 = 6;

/// How many ranges are merged at a time, in what memory, and how many may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RangeSizes {
    /// Threads that merge ranges.
    pub(crate) threads: usize,
    /// Ranges that are being merged or written, or wait.
    pub(crate) under_way: usize,
    /// Bytes that each may have waiting.
    pub(crate) waiting_bytes: usize,
    /// Uncompressed bytes of all inputs in a range.
    pub(crate) range_len: u64,
}

/// The ranges of a merge.
#[derive(Debug)]
pub(crate) struct RangePlan {
    pub(crate) sizes: RangeSizes,
    pub(crate) budget: Budget,
    /// Between two ranges each.
    borders: Vec<Position>,
    inputs: Vec<RangePlaces>,
    data_lens: Vec<u64>,
    /// Where each border is in each input, once somebody asked.
    starts: Vec<Mutex<Option<Vec<u64>>>>,
}

impl RangeSizes {
    /// For as many threads, of what a job may take. `input_unit` are the bytes of all inputs that are
    /// decoded at a border.
    pub(crate) fn of(
        threads: usize,
        memory_bytes: usize,
        input_unit: u64,
        range_len: Option<u64>,
    ) -> RangeSizes {
        let under_way = threads + threads / 2 + 1;
        let waiting_bytes = memory_bytes / 8 * 3 / under_way;
        let least = LEAST_RANGE_LEN.max(CHUNKS_PER_RANGE * input_unit);
        RangeSizes {
            threads,
            under_way,
            waiting_bytes,
            range_len: range_len.unwrap_or((waiting_bytes as u64).max(least)),
        }
    }

    /// How many threads there is memory for, where inputs are decoded by so many bytes at least: each
    /// reads all of them.
    fn most_threads(memory_bytes: usize, units: impl Iterator<Item = usize> + Clone) -> usize {
        let inputs = units.clone().count().max(1);
        let unit = units.max().unwrap_or(0);
        let by_inputs =
            Budget::inputs_at_once(RangeSizes::memory_left(memory_bytes), unit) / inputs;
        let by_waiting = memory_bytes / 8 * 3 / LEAST_WAITING / 2;
        by_inputs.min(by_waiting)
    }

    /// What is left for inputs and output.
    pub(crate) fn memory_left(memory_bytes: usize) -> usize {
        memory_bytes / 8 * 5
    }
}

/// How a merge goes about its partitions.
#[derive(Debug)]
pub(crate) enum Cut {
    /// In ranges.
    Ranges(Box<RangePlan>),
    /// All in one: too little to be cut, or nobody asked for more.
    Whole,
    /// All in one, since it cannot be cut.
    Uncut(String),
}

impl Cut {
    /// Decides for a job whose inputs went through so many passes, the last of which is to come.
    ///
    /// # Errors
    /// Damage in an index, or a failed read.
    pub(crate) fn of(job: &MergeJob, passes: usize) -> Result<Cut> {
        let options = &job.options;
        let threads = options.sub_compactions.map_or(1, NonZeroUsize::get);
        if threads < 2 {
            return Ok(Cut::Whole);
        }
        let uncut = |why: &str| Ok(Cut::Uncut(why.to_owned()));
        if passes > 1 {
            return uncut("its inputs are merged in passes");
        }
        if job.shadow.is_some() {
            return uncut("overlapping SSTables are read beside it");
        }
        if options.max_sstable_size.is_some() {
            return uncut("outputs of a greatest size are written one after the other");
        }
        if job.is_order_decisive() {
            return uncut(
                "its types have equal values of other bytes, between which the order of all partitions decides",
            );
        }
        let units = job.inputs.iter().map(block_unit);
        let most = RangeSizes::most_threads(job.buffer_bytes, units.clone());
        let threads = threads.min(most);
        let unit = units.map(|unit| unit as u64).sum();
        let sizes = RangeSizes::of(threads, job.buffer_bytes, unit, options.range_bytes);
        if threads < 2 {
            return uncut("there is too little memory for its inputs");
        }
        match RangePlan::of(job, sizes)? {
            Ok(Some(plan)) => Ok(Cut::Ranges(Box::new(plan))),
            Ok(None) => Ok(Cut::Whole),
            Err(why) => Ok(Cut::Uncut(why)),
        }
    }
}

impl RangePlan {
    /// Cuts the inputs of a job. `None` if they are too short to be cut; the inner `Err` says why they
    /// cannot be.
    fn of(job: &MergeJob, sizes: RangeSizes) -> Result<Result<Option<RangePlan>, String>> {
        let options = &job.options;
        let total = job.uncompressed_bytes();
        if total < 2 * sizes.range_len {
            return Ok(Ok(None));
        }
        let files = options.open_files.unwrap_or_else(free_files);
        if job.inputs.len() as u64 * FILES_PER_INPUT > files {
            return Ok(Err("too few files may be open".to_owned()));
        }
        let mut inputs = Vec::with_capacity(job.inputs.len());
        for input in &job.inputs {
            let sample_len = sizes.range_len / 4;
            match RangePlaces::open(&job.io, input, options.read_mode, sample_len)? {
                Ok(places) => inputs.push(places),
                Err(why) => return Ok(Err(why)),
            }
        }
        let borders = borders(&inputs, sizes.range_len);
        if borders.is_empty() {
            return Ok(Ok(None));
        }
        Ok(Ok(Some(RangePlan {
            sizes,
            budget: job.budget_of_ranges(sizes.threads, RangeSizes::memory_left(job.buffer_bytes)),
            starts: borders.iter().map(|_| Mutex::new(None)).collect(),
            borders,
            inputs,
            data_lens: job.inputs.iter().map(|input| input.data_len()).collect(),
        })))
    }

    /// How many ranges there are: two or more.
    pub(crate) fn len(&self) -> usize {
        self.borders.len() + 1
    }

    /// The places in the ring that a range lies between; `None` for the first and behind the last.
    pub(crate) fn borders(&self, range: usize) -> (Option<Position>, Option<Position>) {
        let border = |number: usize| self.borders.get(number).copied();
        (range.checked_sub(1).and_then(border), border(range))
    }

    /// Where a range begins in each input; where they end for the one behind the last. `key_at` reads where
    /// the partition of an input at a position of its data stands in the ring.
    ///
    /// # Errors
    /// Damage in an index, a failed read, or those of `key_at`.
    pub(crate) fn starts(
        &self,
        range: usize,
        key_at: impl Fn(usize, u64) -> Result<Position>,
    ) -> Result<Vec<u64>> {
        let Some(number) = range.checked_sub(1) else {
            return Ok(vec![0; self.data_lens.len()]);
        };
        let (Some(border), Some(known)) = (self.borders.get(number), self.starts.get(number))
        else {
            return Ok(self.data_lens.clone());
        };
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(starts) = &*known {
            return Ok(starts.clone());
        }
        let places = self.inputs.iter().enumerate();
        let starts: Vec<u64> = places
            .map(|(input, places)| places.first_from(*border, |position| key_at(input, position)))
            .collect::<Result<_>>()?;
        *known = Some(starts.clone());
        Ok(starts)
    }

    /// Forgets where a range begins: nobody will ask again.
    pub(crate) fn forget(&self, range: usize) {
        if let Some(known) = range.checked_sub(1).and_then(|n| self.starts.get(n)) {
            *known.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}

/// Places in the ring between which there are about `range_len` bytes of all inputs.
fn borders(inputs: &[RangePlaces], range_len: u64) -> Vec<Position> {
    let mut steps: Vec<(Position, u64)> = Vec::new();
    for places in inputs {
        let mut before = 0;
        for sample in places.samples() {
            steps.push((sample.at, sample.data_before.saturating_sub(before)));
            before = before.max(sample.data_before);
        }
    }
    cut(steps, range_len)
}

/// Cuts where the bytes that come to a place make a range.
fn cut(mut steps: Vec<(Position, u64)>, range_len: u64) -> Vec<Position> {
    steps.sort_unstable();
    let mut borders: Vec<Position> = Vec::new();
    let mut len = 0u64;
    for (at, bytes) in steps {
        len = len.saturating_add(bytes);
        if len >= range_len && borders.last() != Some(&at) {
            borders.push(at);
            len = 0;
        }
    }
    borders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_are_where_a_range_is_full() {
        let at = |token: i64| (token, 0);
        let steps = vec![
            (at(5), 40),
            (at(-3), 0),
            (at(0), 60),
            (at(9), 50),
            (at(7), 50),
        ];
        assert_eq!(cut(steps.clone(), 100), [at(5), at(9)]);
        assert_eq!(cut(steps.clone(), 1000), []);
        // However long what lies between two samples is, it is one range.
        assert_eq!(cut(steps, 1), [at(0), at(5), at(7), at(9)]);
        // Many inputs have a partition there.
        assert_eq!(cut(vec![(at(1), 200); 3], 100), [at(1)]);
    }

    #[test]
    fn what_waits_is_within_the_memory() {
        for (threads, memory) in [
            (2usize, 64usize << 20),
            (8, 64 << 20),
            (64, 64 << 20),
            (2, 1 << 20),
        ] {
            let sizes = RangeSizes::of(threads, memory, 32 << 10, None);
            assert!(sizes.under_way > threads);
            let waiting = sizes.under_way * sizes.waiting_bytes;
            assert!(
                waiting + RangeSizes::memory_left(memory) <= memory,
                "{sizes:?}"
            );
            assert!(sizes.range_len >= 1 << 20, "{sizes:?}");
        }
    }

    #[test]
    fn there_are_no_more_threads_than_memory() {
        let most = |memory, inputs, unit| {
            RangeSizes::most_threads(memory, std::iter::repeat_n(unit, inputs))
        };
        assert!(most(64 << 20, 2, 16 << 10) > 16);
        assert!(most(64 << 20, 200, 16 << 10) < 2);
        assert!(most(1 << 20, 2, 16 << 10) < 4);
        for memory in [1usize << 20, 16 << 20, 64 << 20] {
            let threads = most(memory, 3, 16 << 10);
            let sizes = RangeSizes::of(threads.max(1), memory, 48 << 10, None);
            assert!(sizes.waiting_bytes >= LEAST_WAITING / 2, "{sizes:?}");
        }
    }
}

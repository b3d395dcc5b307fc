//! Into which ranges a merge is cut, so that several threads are at it.
//!
//! Ranges are short: what one comes to waits in memory until those before it have been written.

use std::sync::{Mutex, PoisonError};

use compactor_sstable::partitioner::Position;

use crate::error::Result;
use crate::input::sample::Sample;
use crate::input::split_index::SplitIndex;
use crate::input::sstable::InputSstable;
use crate::job::budget::Budget;
use crate::job::merge_job::MergeJob;

/// Samples of all inputs for each output that was asked for.
const SAMPLES_PER_OUTPUT: u64 = 64;

/// The ranges of a merge.
#[derive(Debug)]
pub(crate) struct RangePlan {
    pub(crate) budget: Budget,
    /// Between two ranges each.
    splits: Vec<Position>,
    /// Those of them behind which another output begins.
    output_splits: Vec<Position>,
    /// Why it cannot be cut, if it cannot.
    pub(crate) unsplit_reason: Option<&'static str>,
    /// None where it is not cut.
    inputs: Vec<SplitIndex>,
    data_lens: Vec<u64>,
    /// Where each split is in each input, once somebody asked.
    starts: Vec<Mutex<Option<Vec<u64>>>>,
}

impl RangePlan {
    /// Cuts the inputs of a job, the last of several passes or one before it.
    ///
    /// # Errors
    /// Damage in an index, or a failed read.
    pub(crate) fn of(job: &MergeJob) -> Result<RangePlan> {
        let options = &job.options;
        let outputs = options.outputs.get() as u64;
        let total = job.uncompressed_bytes();
        let unsplit_reason = refusal(job);
        let budget = job.budget;
        let is_short = total < 2 * budget.range_len;
        let is_one = budget.concurrent_ranges < 2 && options.max_sstable_size.is_none();
        let mut plan = RangePlan {
            budget: job.budget,
            splits: Vec::new(),
            output_splits: Vec::new(),
            unsplit_reason,
            inputs: Vec::new(),
            data_lens: job.inputs.iter().map(InputSstable::data_len).collect(),
            starts: Vec::new(),
        };
        if unsplit_reason.is_some() || (outputs < 2 && (is_short || is_one)) {
            return Ok(plan);
        }
        let mut of_outputs = Vec::new();
        for input in &job.inputs {
            let mut places =
                SplitIndex::open(&job.io, input, options.read_mode, budget.sample_len)?;
            if outputs > 1 {
                // Where outputs end depends on nothing but the inputs.
                let sample_len = total / (outputs * SAMPLES_PER_OUTPUT);
                of_outputs.push(places.other_samples(input, sample_len)?);
            }
            if budget.keeps_indexes_open {
                places.keep_open()?;
            }
            plan.inputs.push(places);
        }
        if outputs > 1 {
            let steps = steps(of_outputs.iter().map(Vec::as_slice));
            plan.output_splits = output_splits(steps, total, outputs);
        }
        if !is_one && !is_short {
            let steps = steps(plan.inputs.iter().map(SplitIndex::samples));
            plan.splits = split_ranges(steps, &plan.output_splits, budget.range_len);
        } else {
            plan.splits.clone_from(&plan.output_splits);
        }
        plan.starts = plan.splits.iter().map(|_| Mutex::default()).collect();
        Ok(plan)
    }

    /// How many ranges there are.
    pub(crate) fn len(&self) -> usize {
        self.splits.len() + 1
    }

    /// How many outputs there are, if something is left for each.
    pub(crate) fn outputs(&self) -> usize {
        self.output_splits.len() + 1
    }

    /// Whether a range is the first of another output.
    pub(crate) fn begins_output(&self, range: usize) -> bool {
        let split = range.checked_sub(1).and_then(|n| self.splits.get(n));
        split.is_some_and(|split| self.output_splits.binary_search(split).is_ok())
    }

    /// The places in the ring that a range lies between; `None` for the first and behind the last.
    pub(crate) fn splits(&self, range: usize) -> (Option<Position>, Option<Position>) {
        let split = |number: usize| self.splits.get(number).copied();
        (range.checked_sub(1).and_then(split), split(range))
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
        let (Some(split), Some(known)) = (self.splits.get(number), self.starts.get(number)) else {
            return Ok(self.data_lens.clone());
        };
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(starts) = &*known {
            return Ok(starts.clone());
        }
        let places = self.inputs.iter().enumerate();
        let starts: Vec<u64> = places
            .map(|(input, places)| places.first_from(*split, |position| key_at(input, position)))
            .collect::<Result<_>>()?;
        *known = Some(starts.clone());
        Ok(starts)
    }

    /// Begins to read of the indexes where a range begins, unless that is known.
    pub(crate) fn read_ahead(&self, range: usize) {
        let number = range.checked_sub(1);
        let split = number.and_then(|n| Some((self.splits.get(n)?, self.starts.get(n)?)));
        let Some((split, known)) = split else {
            return;
        };
        let known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            self.inputs
                .iter()
                .for_each(|places| places.read_ahead(*split));
        }
    }

    /// Forgets where a range begins: nobody will ask again.
    pub(crate) fn forget(&self, range: usize) {
        if let Some(known) = range.checked_sub(1).and_then(|n| self.starts.get(n)) {
            *known.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}

/// Why the inputs of a job cannot be cut, or what is read beside them.
fn refusal(job: &MergeJob) -> Option<&'static str> {
    if job.is_order_decisive() {
        return Some(
            "its types have equal values of other bytes, between which the order of all partitions decides",
        );
    }
    let beside = job.shadow.iter().flat_map(|shadow| shadow.sstables());
    job.inputs
        .iter()
        .chain(beside)
        .find_map(SplitIndex::refusal)
}

/// Bytes of all inputs up to a place, behind the place before.
type Step = (Position, u64);

fn steps<'a>(inputs: impl Iterator<Item = &'a [Sample]>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for samples in inputs {
        let mut before = 0;
        for sample in samples {
            steps.push((sample.at, sample.data_before.saturating_sub(before)));
            before = before.max(sample.data_before);
        }
    }
    steps.sort_unstable();
    steps
}

/// Cuts where the bytes that come to a place make their share of all.
fn output_splits(steps: Vec<Step>, total: u64, outputs: u64) -> Vec<Position> {
    let mut splits: Vec<Position> = Vec::new();
    let (mut len, mut ended) = (0u64, 0);
    for (at, bytes) in steps {
        len = len.saturating_add(bytes);
        let shares = u128::from(len) * u128::from(outputs) / u128::from(total.max(1));
        let shares = (shares as u64).min(outputs - 1);
        if shares > ended && splits.last() != Some(&at) {
            splits.push(at);
            ended = shares;
        }
    }
    splits
}

/// Cuts at the splits of outputs, and where the bytes that come to a place make a range.
fn split_ranges(steps: Vec<Step>, of_outputs: &[Position], range_len: u64) -> Vec<Position> {
    let mut splits: Vec<Position> = Vec::new();
    let mut of_outputs = of_outputs.iter().copied().peekable();
    let mut len = 0u64;
    for (at, bytes) in steps {
        while let Some(split) = of_outputs.next_if(|split| *split <= at) {
            if splits.last() != Some(&split) {
                splits.push(split);
            }
            len = 0;
        }
        len = len.saturating_add(bytes);
        if len >= range_len && splits.last() != Some(&at) {
            splits.push(at);
            len = 0;
        }
    }
    splits.extend(of_outputs);
    splits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(token: i64) -> Position {
        (token, 0)
    }

    fn sorted(mut steps: Vec<Step>) -> Vec<Step> {
        steps.sort_unstable();
        steps
    }

    #[test]
    fn split_points_are_where_a_range_is_full() {
        let steps = sorted(vec![
            (at(5), 40),
            (at(-3), 0),
            (at(0), 60),
            (at(9), 50),
            (at(7), 50),
        ]);
        assert_eq!(split_ranges(steps.clone(), &[], 100), [at(5), at(9)]);
        assert_eq!(split_ranges(steps.clone(), &[], 1000), []);
        // However long what lies between two samples is, it is one range.
        assert_eq!(
            split_ranges(steps.clone(), &[], 1),
            [at(0), at(5), at(7), at(9)]
        );
        // Ranges subdivide what outputs are cut into.
        let of_outputs = [at(1), at(7), at(20)];
        let expected = [at(1), at(7), at(9), at(20)];
        assert_eq!(split_ranges(steps, &of_outputs, 100), expected);
        // Many inputs have a partition there.
        assert_eq!(split_ranges(vec![(at(1), 200); 3], &[], 100), [at(1)]);
    }

    #[test]
    fn outputs_have_their_shares() {
        let steps: Vec<Step> = (1..=100).map(|token| (at(token), 10)).collect();
        assert_eq!(output_splits(steps.clone(), 1000, 2), [at(50)]);
        assert_eq!(
            output_splits(steps.clone(), 1000, 4),
            [at(25), at(50), at(75)]
        );
        assert_eq!(output_splits(steps, 1000, 1), []);
        // One that is longer than a share takes another's.
        let steps = vec![(at(1), 10), (at(2), 900), (at(3), 90)];
        assert_eq!(output_splits(steps, 1000, 4), [at(2)]);
    }
}

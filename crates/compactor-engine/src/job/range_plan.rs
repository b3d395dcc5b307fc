//! Split of a merge into ranges, so that several threads can work on it.
//!
//! Ranges are short: the output of a range is buffered until the previous ones have been written.

use std::sync::Mutex;

use compactor_io::lock;

use compactor_sstable::partitioner::Position;

use crate::error::Result;
use crate::input::sample::Sample;
use crate::input::split_index::SplitIndex;
use crate::input::sstable::InputSstable;
use crate::job::merge_job::MergeJob;
use crate::job::output_plan::OutputPlan;
use crate::job::output_split::OutputSplit;

/// An output whose first partition is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedOutput {
    /// Expected partitions; `None` for the number of the previous output.
    pub(crate) expected_keys: Option<u64>,
}

/// Split point between two ranges.
#[derive(Debug)]
struct Split {
    at: Position,
    /// Its position in each input, once looked up.
    starts: Mutex<Option<Vec<u64>>>,
}

/// The ranges of a merge.
#[derive(Debug)]
pub(crate) struct RangePlan {
    splits: Vec<Split>,
    pub(crate) outputs: OutputPlan,
    /// Reason why the merge cannot be split, if it cannot.
    pub(crate) unsplit_reason: Option<&'static str>,
    /// Lookup of split points in each input; empty if the merge is not split.
    inputs: Vec<SplitIndex>,
    data_lens: Vec<u64>,
}

impl RangePlan {
    /// Plans the ranges of a job with these outputs, for the last of several passes or an earlier one.
    ///
    /// # Errors
    /// Damage in an index, or a failed read.
    pub(crate) fn of(job: &MergeJob, outputs: OutputPlan) -> Result<RangePlan> {
        let options = &job.options;
        let total = job.uncompressed_bytes();
        let unsplit_reason = refusal(job);
        let budget = job.budget;
        let is_short = total < 2 * budget.range_len;
        let is_one = budget.concurrent_ranges < 2 && options.split.max_bytes().is_none();
        let mut plan = RangePlan {
            splits: Vec::new(),
            outputs,
            unsplit_reason,
            inputs: Vec::new(),
            data_lens: job.inputs.iter().map(InputSstable::data_len).collect(),
        };
        let is_single = !options.split.is_divided() || options.split.max_bytes().is_some();
        let ends_at_tokens = matches!(options.split, OutputSplit::Tokens(_));
        if (unsplit_reason.is_some() && !ends_at_tokens) || (is_single && (is_short || is_one)) {
            return Ok(plan);
        }
        for input in &job.inputs {
            let mut places =
                SplitIndex::open(&job.io, input, options.read_mode, budget.sample_len)?;
            if budget.keeps_indexes_open {
                places.keep_open()?;
            }
            plan.inputs.push(places);
        }
        // Where the order of partitions matters, it is that of each output, as if each were a merge of its own.
        let splits = if !is_one && !is_short && unsplit_reason.is_none() {
            let steps = steps(plan.inputs.iter().map(SplitIndex::samples));
            split_ranges(steps, &plan.outputs.splits, budget.range_len)
        } else {
            plan.outputs.splits.clone()
        };
        let split = |at| Split {
            at,
            starts: Mutex::default(),
        };
        plan.splits = splits.into_iter().map(split).collect();
        Ok(plan)
    }

    /// Number of ranges.
    pub(crate) fn len(&self) -> usize {
        self.splits.len() + 1
    }

    /// The split point before a range; `None` before the first and after the last.
    fn split_before(&self, range: usize) -> Option<&Split> {
        self.splits.get(range.checked_sub(1)?)
    }

    /// The output that a range is the first of, if it is one but the first.
    pub(crate) fn begins_output(&self, range: usize) -> Option<PlannedOutput> {
        let split = self.split_before(range)?;
        let before = self.outputs.splits.binary_search(&split.at).ok()?;
        Some(PlannedOutput {
            expected_keys: self.outputs.keys.get(before + 1).copied(),
        })
    }

    /// Lower and upper split point of a range; `None` for the start of the first and the end of the last.
    pub(crate) fn splits(&self, range: usize) -> (Option<Position>, Option<Position>) {
        let [from, below] = [range, range + 1].map(|range| self.split_before(range));
        (from.map(|split| split.at), below.map(|split| split.at))
    }

    /// Returns the position of the start of a range in each input, or the end of each for the range after the
    /// last. `key_at` reads the ring position of the partition at a position of an input's data.
    ///
    /// # Errors
    /// Damage in an index, a failed read, or those of `key_at`.
    pub(crate) fn starts(
        &self,
        range: usize,
        key_at: impl Fn(usize, u64) -> Result<Position>,
    ) -> Result<Vec<u64>> {
        if range == 0 {
            return Ok(vec![0; self.data_lens.len()]);
        }
        let Some(split) = self.split_before(range) else {
            return Ok(self.data_lens.clone());
        };
        let mut known = lock(&split.starts);
        if let Some(starts) = &*known {
            return Ok(starts.clone());
        }
        let places = self.inputs.iter().enumerate();
        let starts: Vec<u64> = places
            .map(|(input, places)| places.first_from(split.at, |position| key_at(input, position)))
            .collect::<Result<_>>()?;
        *known = Some(starts.clone());
        Ok(starts)
    }

    /// Starts reading the parts of the indexes that are needed to look up the start of a range, unless it is
    /// known.
    pub(crate) fn read_ahead(&self, range: usize) {
        let Some(split) = self.split_before(range) else {
            return;
        };
        let known = lock(&split.starts);
        if known.is_none() {
            let inputs = self.inputs.iter();
            inputs.for_each(|places| places.read_ahead(split.at));
        }
    }

    /// Forgets the start of a range, which is not needed any more.
    pub(crate) fn forget(&self, range: usize) {
        if let Some(split) = self.split_before(range) {
            *lock(&split.starts) = None;
        }
    }
}

/// Returns the reason why the inputs of a job, or the SSTables read along with them, cannot be split.
pub(super) fn refusal(job: &MergeJob) -> Option<&'static str> {
    if job.is_order_decisive() {
        return Some(
            "its types have values that compare equal but differ in their bytes, and the choice depends on the order of all partitions",
        );
    }
    index_refusal(job)
}

/// Returns the reason why positions of partitions cannot be looked up in an input.
pub(super) fn index_refusal(job: &MergeJob) -> Option<&'static str> {
    let overlapping = job.shadow.iter().flat_map(|shadow| shadow.sstables());
    job.inputs
        .iter()
        .chain(overlapping)
        .find_map(SplitIndex::refusal)
}

/// A sampled ring position, and the bytes of all inputs between the previous one and it.
pub(super) type Step = (Position, u64);

pub(super) fn steps<'a>(inputs: impl Iterator<Item = &'a [Sample]>) -> Vec<Step> {
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

/// Returns the split points of outputs, and those at which the bytes since the previous one make a range.
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
        // Data between two samples, however long, is in one range.
        assert_eq!(
            split_ranges(steps.clone(), &[], 1),
            [at(0), at(5), at(7), at(9)]
        );
        // Ranges subdivide outputs.
        let of_outputs = [at(1), at(7), at(20)];
        let expected = [at(1), at(7), at(9), at(20)];
        assert_eq!(split_ranges(steps, &of_outputs, 100), expected);
        // Many inputs have a partition there.
        assert_eq!(split_ranges(vec![(at(1), 200); 3], &[], 100), [at(1)]);
    }
}

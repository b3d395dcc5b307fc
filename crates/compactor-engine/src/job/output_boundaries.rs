//! Finds the boundaries of the outputs of a merge, if their number or tokens are given.

use compactor_sstable::partitioner::Position;

use crate::error::{Error, Result};
use crate::input::split_index::SplitIndex;
use crate::job::merge_job::MergeJob;
use crate::job::output_plan::OutputPlan;
use crate::job::output_split::OutputSplit;
use crate::job::range_plan::{Step, index_refusal, refusal, steps};
use crate::job::token_shards::token_shards;

/// Samples of all inputs per requested output.
const SAMPLES_PER_OUTPUT: u64 = 64;

impl MergeJob {
    /// Plan of the outputs: that which was decided before the first of several passes, or a new one. There is one output
    /// if the inputs cannot be split, or if the number of outputs depends on their lengths.
    ///
    /// # Errors
    /// Outputs that end at tokens, of inputs that cannot be split; damage in an index, or a failed read.
    pub(crate) fn output_plan(&self) -> Result<OutputPlan> {
        if let Some(decided) = &self.outputs {
            return Ok(decided.clone());
        }
        match &self.options.split {
            OutputSplit::Tokens(tokens) => {
                if let Some(reason) = index_refusal(self) {
                    return Err(Error::InvalidInput(format!(
                        "the merge cannot be split at tokens: {reason}"
                    )));
                }
                let (splits, keys) = token_shards(self, tokens)?;
                Ok(OutputPlan { splits, keys })
            }
            OutputSplit::Count(outputs) if outputs.get() > 1 && refusal(self).is_none() => {
                let (total, outputs) = (self.uncompressed_bytes(), outputs.get() as u64);
                let sample_len = total / (outputs * SAMPLES_PER_OUTPUT);
                let samples = self.inputs.iter().map(|input| {
                    SplitIndex::sample(&self.io, input, self.options.read_mode, sample_len)
                });
                let samples: Vec<_> = samples.collect::<Result<_>>()?;
                Ok(OutputPlan {
                    splits: output_splits(steps(samples.iter().map(Vec::as_slice)), total, outputs),
                    keys: Vec::new(),
                })
            }
            OutputSplit::None | OutputSplit::MaxBytes(_) | OutputSplit::Count(_) => {
                Ok(OutputPlan::default())
            }
        }
    }
}

/// Returns the split points at which the bytes before them reach each output's share of the total.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(token: i64) -> Position {
        (token, 0)
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
        // Data that is longer than a share takes up another output's.
        let steps = vec![(at(1), 10), (at(2), 900), (at(3), 90)];
        assert_eq!(output_splits(steps, 1000, 4), [at(2)]);
    }
}

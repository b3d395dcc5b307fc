//! Outputs that end at tokens, and the partitions to be expected in each.
//!
//! Source: `ShardedCompactionWriter`, `ShardTracker.shardAdjustedKeyCount`.

use std::ops::RangeInclusive;

use compactor_sstable::partitioner::Position;

use crate::error::Result;
use crate::input::key_estimate::partition_count;
use crate::input::key_range::KeyRange;
use crate::input::split_index::SplitIndex;
use crate::job::merge_job::MergeJob;

/// First position of each output but the first, and the expected partitions of each output.
type Shards = (Vec<Position>, Vec<u64>);

/// Samples per input: the partitions of an input in a shard are known to within two of them.
const SAMPLES: u64 = 1024;

/// Distribution of an input's partitions over tokens.
struct Input {
    /// Tokens of its first and last partition.
    tokens: RangeInclusive<i64>,
    partitions: f64,
    /// Sampled tokens, ascending, and the bytes before each.
    samples: Vec<(i64, u64)>,
    len: u64,
}

/// Outputs of a job, by the last token of each but the last one. Those outside of all inputs are omitted.
///
/// # Errors
/// An index that cannot be read or is damaged.
pub(crate) fn token_shards(job: &MergeJob, ends: &[i64]) -> Result<Shards> {
    let mode = job.options.read_mode;
    let inputs = job.inputs.iter().map(|input| {
        let range = KeyRange::of(&job.io, input, mode)?;
        let samples = SplitIndex::sample(&job.io, input, mode, input.data_len() / SAMPLES)?;
        Ok(Input {
            tokens: range.first().0.0..=range.last().0.0,
            partitions: partition_count(&input.statistics.stats) as f64,
            samples: samples.iter().map(|s| (s.at.0, s.data_before)).collect(),
            len: input.data_len(),
        })
    });
    let inputs: Vec<Input> = inputs.collect::<Result<_>>()?;
    Ok(shards(&inputs, ends, job.settings.expected_keys))
}

fn shards(inputs: &[Input], ends: &[i64], all_keys: u64) -> Shards {
    let first = inputs.iter().map(|input| *input.tokens.start()).min();
    let last = inputs.iter().map(|input| *input.tokens.end()).max();
    let (Some(first), Some(last)) = (first, last) else {
        return Shards::default();
    };
    let ends = ends.iter().filter(|end| (first..last).contains(end));
    let starts: Vec<i64> = ends.filter_map(|end| end.checked_add(1)).collect();
    let firsts = std::iter::once(first).chain(starts.iter().copied());
    let lasts = starts.iter().map(|start| start - 1).chain([last]);
    let all: f64 = inputs.iter().map(|input| input.partitions).sum();
    let keys = firsts.zip(lasts).map(|(first, last)| {
        let of_shard: f64 = inputs
            .iter()
            .map(|input| input.partitions_in(first, last))
            .sum();
        (all_keys as f64 * of_shard / all.max(1.0)).ceil() as u64
    });
    let mut keys: Vec<u64> = keys.collect();
    // The writer that is begun for an output without partitions is used for the next one.
    let mut next = 1;
    for keys in keys.iter_mut().rev() {
        if *keys == 0 {
            *keys = next;
        }
        next = *keys;
    }
    (starts.into_iter().map(|start| (start, 0)).collect(), keys)
}

impl Input {
    /// Partitions between these tokens, at most, if all are of a similar length.
    fn partitions_in(&self, first: i64, last: i64) -> f64 {
        if last < *self.tokens.start() || first > *self.tokens.end() {
            return 0.0;
        }
        let before = self.samples.partition_point(|(token, _)| *token < first);
        let from = before.checked_sub(1).and_then(|n| self.samples.get(n));
        let after = self.samples.partition_point(|(token, _)| *token <= last);
        let to = self
            .samples
            .get(after)
            .map_or(self.len, |(_, bytes)| *bytes);
        let bytes = to.saturating_sub(from.map_or(0, |(_, bytes)| *bytes));
        self.partitions * bytes as f64 / self.len.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An input with a sample of 10 bytes at each of these tokens.
    fn input(tokens: impl IntoIterator<Item = i64>, partitions: f64) -> Input {
        let samples: Vec<(i64, u64)> = tokens.into_iter().zip((0..).step_by(10)).collect();
        Input {
            tokens: samples[0].0..=samples[samples.len() - 1].0,
            partitions,
            len: 10 * samples.len() as u64,
            samples,
        }
    }

    #[test]
    fn partitions_are_expected_by_the_samples_of_the_inputs() {
        let inputs = [input(0..100, 10_000.0), input(50..150, 10_000.0)];
        let (splits, keys) = shards(&inputs, &[-5, 49, 99, 149, 300], 10_000);
        assert_eq!(splits, [(50, 0), (100, 0)]);
        assert_eq!(keys, [2500, 5050, 2550]);
    }

    #[test]
    fn partitions_need_not_be_evenly_distributed() {
        let inputs = [input((0..100).chain([1_000_000]), 10_100.0)];
        let (splits, keys) = shards(&inputs, &[99, 500_000], 10_100);
        assert_eq!(splits, [(100, 0), (500_001, 0)]);
        assert_eq!(keys, [10_000, 100, 200]);
    }

    #[test]
    fn an_output_without_partitions_has_the_size_of_the_next() {
        let inputs = [input(0..10, 10.0), input(1000..1010, 1000.0)];
        let (splits, keys) = shards(&inputs, &[9, 500, 999], 1010);
        assert_eq!(splits, [(10, 0), (501, 0), (1000, 0)]);
        assert_eq!(keys[1], keys[3]);
        assert_eq!(keys[2], keys[3]);
    }
}

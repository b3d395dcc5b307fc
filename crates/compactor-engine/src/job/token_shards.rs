//! Outputs that end at tokens, and the partitions to be expected in each.
//!
//! Source: `ShardedCompactionWriter`, `ShardTracker.shardAdjustedKeyCount`.

use std::ops::RangeInclusive;

use compactor_sstable::partitioner::Position;

use crate::error::Result;
use crate::input::key_estimate::partition_count;
use crate::input::key_range::KeyRange;
use crate::job::merge_job::MergeJob;

/// First position of each output but the first, and the expected partitions of each output.
type Shards = (Vec<Position>, Vec<u64>);

/// Tokens of an input's first and last partition, and its number of partitions.
type Input = (RangeInclusive<i64>, f64);

/// Outputs of a job, by the last token of each but the last one. Those outside of all inputs are omitted.
///
/// # Errors
/// An index that cannot be read or is damaged.
pub(crate) fn token_shards(job: &MergeJob, ends: &[i64]) -> Result<Shards> {
    let inputs = job.inputs.iter().map(|input| {
        let range = KeyRange::of(&job.io, input, job.options.read_mode)?;
        let partitions = partition_count(&input.statistics.stats);
        let tokens = range.first().0.0..=range.last().0.0;
        Ok((tokens, partitions as f64))
    });
    let inputs: Vec<Input> = inputs.collect::<Result<_>>()?;
    Ok(shards(&inputs, ends, job.settings.expected_keys))
}

fn shards(inputs: &[Input], ends: &[i64], all_keys: u64) -> Shards {
    let first = inputs.iter().map(|(tokens, _)| *tokens.start()).min();
    let last = inputs.iter().map(|(tokens, _)| *tokens.end()).max();
    let (Some(first), Some(last)) = (first, last) else {
        return Shards::default();
    };
    let ends = ends.iter().filter(|end| (first..last).contains(end));
    let starts: Vec<i64> = ends.filter_map(|end| end.checked_add(1)).collect();
    let firsts = std::iter::once(first).chain(starts.iter().copied());
    let lasts = starts.iter().map(|start| start - 1).chain([last]);
    let all: f64 = inputs.iter().map(|(_, keys)| keys).sum();
    let keys = firsts.zip(lasts).map(|(first, last)| {
        let of_shard: f64 = (inputs.iter())
            .map(|(tokens, keys)| keys * overlap(tokens, &(first..=last)))
            .sum();
        let expected = all_keys as f64 * of_shard / all.max(1.0);
        // The number of random tokens in a range varies by its root; a filter should not be too small.
        (expected + 3.0 * expected.sqrt()).ceil() as u64
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

/// Fraction of an input's tokens that are in a shard, as if they were evenly distributed.
fn overlap(input: &RangeInclusive<i64>, shard: &RangeInclusive<i64>) -> f64 {
    let width = |first: i64, last: i64| (i128::from(last) - i128::from(first) + 1).max(0) as f64;
    let first = *input.start().max(shard.start());
    let last = *input.end().min(shard.end());
    width(first, last) / width(*input.start(), *input.end()).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_expected_by_the_tokens_of_the_inputs() {
        let inputs = [(0..=99, 10_000.0), (50..=149, 10_000.0)];
        let (splits, keys) = shards(&inputs, &[-5, 49, 99, 149, 300], 10_000);
        assert_eq!(splits, [(50, 0), (100, 0)]);
        let near =
            |expected: u64| expected + 3 * expected.isqrt()..=expected + 4 * expected.isqrt();
        for (keys, expected) in keys.iter().zip([2500, 5000, 2500]) {
            assert!(near(expected).contains(keys), "{keys}, {expected}");
        }
    }

    #[test]
    fn an_output_without_partitions_has_the_size_of_the_next() {
        let inputs = [(0..=9, 10.0), (1000..=1009, 1000.0)];
        let (splits, keys) = shards(&inputs, &[9, 500, 999], 1010);
        assert_eq!(splits, [(10, 0), (501, 0), (1000, 0)]);
        assert_eq!(keys[1], keys[3]);
        assert_eq!(keys[2], keys[3]);
    }
}

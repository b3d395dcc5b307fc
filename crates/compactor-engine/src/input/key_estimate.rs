//! Estimate of the number of partitions before any are read.

use compactor_sstable::statistics::{HyperLogLogPlus, StatsMetadata};

use crate::input::sstable::InputSstable;

/// Estimates the number of distinct partitions in the inputs from their cardinality sketches, or from the row
/// counts if an input has none (`SSTableReader.getApproximateKeyCount`).
pub fn estimate_keys(inputs: &[InputSstable]) -> u64 {
    let of_input = |input: &InputSstable| input.statistics.compaction.as_ref()?.cardinality().ok();
    let mut sketches = inputs.iter().map(of_input);
    let first = sketches.next().flatten();
    let merge = |mut all: HyperLogLogPlus, one: Option<HyperLogLogPlus>| {
        all.merge(&one?);
        Some(all)
    };
    let keys = match first.and_then(|first| sketches.try_fold(first, merge)) {
        Some(merged) => merged.cardinality().max(0).unsigned_abs(),
        None => partitions_of_all(inputs),
    };
    keys.max(1)
}

/// Estimates the number of partitions per output for a maximum size on disk of `max_sstable_size`, where
/// `keys` is the number of distinct partitions in the inputs (`MaxSSTableSizeWriter.sstableKeyCount`).
pub fn keys_per_sstable(inputs: &[InputSstable], keys: u64, max_sstable_size: u64) -> u64 {
    let keys_of_all = partitions_of_all(inputs);
    let bytes_of_all: u64 = inputs.iter().map(|i| i.data.len()).sum();
    let kept = keys as f64 / keys_of_all.max(1) as f64;
    let bytes = (kept * bytes_of_all as f64).round() as u64;
    let sstables = (bytes / max_sstable_size.max(1)).max(1);
    (keys / sstables).max(1)
}

fn partitions_of_all(inputs: &[InputSstable]) -> u64 {
    let stats = inputs.iter().map(|i| &i.statistics.stats);
    stats.map(partition_count).sum()
}

/// Number of partitions of an SSTable: the count of its partition size histogram.
pub fn partition_count(stats: &StatsMetadata) -> u64 {
    stats.partition_sizes.count().max(0).unsigned_abs()
}

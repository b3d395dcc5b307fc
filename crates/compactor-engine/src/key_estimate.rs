//! How many partitions there are, before anything was read.

use compactor_sstable::statistics::{HyperLogLogPlus, StatsMetadata};

use crate::input::InputSstable;

/// How many partitions the inputs have together, from the cardinality that each carries; where one
/// does not, from its rows (`SSTableReader.getApproximateKeyCount`).
pub fn estimate_keys(inputs: &[InputSstable]) -> u64 {
    let mut merged: Option<HyperLogLogPlus> = None;
    for input in inputs {
        let cardinality = input
            .statistics
            .compaction
            .as_ref()
            .and_then(|c| c.cardinality().ok());
        let Some(cardinality) = cardinality else {
            return inputs
                .iter()
                .map(|i| partition_count(&i.statistics.stats))
                .sum::<u64>()
                .max(1);
        };
        match &mut merged {
            None => merged = Some(cardinality),
            Some(merged) => merged.merge(&cardinality),
        }
    }
    merged.map_or(1, |m| m.cardinality().max(1).unsigned_abs())
}

/// How many partitions an SSTable has: each is in the histogram of sizes.
pub fn partition_count(stats: &StatsMetadata) -> u64 {
    stats.partition_sizes.count().max(0).unsigned_abs()
}

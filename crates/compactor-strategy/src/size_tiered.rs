//! Size-tiered compaction: SSTables of similar size are compacted together.
//!
//! Source: `SizeTieredCompactionStrategy`, `SizeTieredCompactionStrategyOptions`.

mod buckets;

use std::cmp::Reverse;
use std::sync::Arc;

pub(crate) use buckets::most_interesting;
pub use buckets::{BucketOptions, SizeTier};

use crate::context::Context;
use crate::members::Members;
use crate::options::{OptionError, Options, Thresholds, refuse_unknown};
use crate::sstable::Sstable;
use crate::strategy::Strategy;
use crate::task::{Idle, Output, Reason, Split, Task};
use crate::tombstones::TombstoneOptions;

/// Options of this strategy, and of the others that have tiers, including the thresholds, which not every strategy has.
pub(crate) const TIER_OPTIONS: [&str; 5] = [
    "min_threshold",
    "max_threshold",
    "min_sstable_size",
    "bucket_low",
    "bucket_high",
];

/// Smallest output of a major compaction that splits its output, bytes
/// (`SplittingSizeTieredCompactionWriter.DEFAULT_SMALLEST_SSTABLE_BYTES`).
const SMALLEST_SPLIT_BYTES: u64 = 50_000_000;

/// Options of size-tiered compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SizeTieredOptions {
    /// Number of SSTables per compaction.
    pub thresholds: Thresholds,
    /// Bucket options.
    pub buckets: BucketOptions,
    /// Options of single-SSTable tombstone compactions.
    pub tombstones: TombstoneOptions,
}

impl SizeTieredOptions {
    /// Parses all options of a table.
    ///
    /// # Errors
    /// Options that Cassandra refuses, with its messages.
    pub fn from_options(options: &Options) -> Result<SizeTieredOptions, OptionError> {
        let tombstones = TombstoneOptions::from_options(options)?;
        let buckets = BucketOptions::from_options(options)?;
        refuse_unknown(options, "SizeTieredCompactionStrategy", &[&TIER_OPTIONS])?;
        Ok(SizeTieredOptions {
            thresholds: Thresholds::from_options(options)?,
            buckets,
            tombstones,
        })
    }
}

/// Size-tiered strategy of a group of SSTables.
#[derive(Clone, Debug, Default)]
pub struct SizeTiered {
    options: SizeTieredOptions,
    members: Members,
    remaining_tasks: usize,
}

impl SizeTiered {
    /// A strategy without SSTables.
    pub fn new(options: SizeTieredOptions) -> SizeTiered {
        SizeTiered {
            options,
            ..SizeTiered::default()
        }
    }
}

impl Strategy for SizeTiered {
    fn add(&mut self, sstable: &Arc<Sstable>) {
        self.members.insert(sstable);
    }

    fn remove(&mut self, sstable: &Sstable) {
        self.members.remove(sstable.id);
    }

    fn next_task(&mut self, context: &mut Context<'_>) -> Result<Task, Idle> {
        let available = self.members.available(context.live);
        let tiers = self.options.buckets.tiers(&available);
        let thresholds = self.options.thresholds;
        self.remaining_tasks = buckets::estimated_tasks(&tiers, thresholds);
        if let Some(tier) = most_interesting(&tiers, thresholds) {
            let reason = Reason::SizeTier {
                average_bytes: tier.average_bytes(),
            };
            return Ok(Task::compact(&tier.sstables, reason, Output::default()));
        }
        let largest_first = |sstable: &Sstable| Reverse(sstable.data_bytes);
        let tombstones = &self.options.tombstones;
        let task = tombstones.first_task(&available, context, largest_first);
        task.ok_or_else(|| idle(&tiers, thresholds))
    }

    fn remaining_tasks(&self) -> usize {
        self.remaining_tasks
    }

    fn major(&self, context: &Context<'_>, splits_output: bool) -> Vec<Task> {
        let output = Output {
            level: 0,
            split: if splits_output {
                Split::Halves {
                    min_bytes: SMALLEST_SPLIT_BYTES,
                }
            } else {
                Split::None
            },
        };
        Task::major(self.members.iter(), context.live, output)
    }
}

fn idle(tiers: &[SizeTier], thresholds: Thresholds) -> Idle {
    let largest = tiers.iter().map(|tier| tier.sstables.len()).max();
    match largest {
        None => Idle::NoSstables,
        Some(largest) => Idle::SmallTiers {
            largest,
            min_threshold: thresholds.min,
        },
    }
}

#[cfg(test)]
mod tests;

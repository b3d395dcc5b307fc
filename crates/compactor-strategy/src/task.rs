//! A compaction to run next, or why there is none.

use std::sync::Arc;

use crate::live::Live;
use crate::sstable::{Sstable, SstableId};
use crate::token::Token;

/// SSTables to compact together.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// The SSTables, in the order in which Cassandra selected them.
    pub inputs: Vec<SstableId>,
    /// Of these, the ones that were found to be fully expired: dropped without being read.
    pub expired: Vec<SstableId>,
    /// Operation on the inputs.
    pub kind: TaskKind,
    /// Rule that selected them.
    pub reason: Reason,
    /// Level and bounds of the outputs.
    pub output: Output,
}

impl Task {
    /// An operation on these SSTables, whose outputs are not split.
    pub(crate) fn new(kind: TaskKind, inputs: Vec<SstableId>, reason: Reason) -> Task {
        Task {
            inputs,
            expired: Vec::new(),
            kind,
            reason,
            output: Output::default(),
        }
    }

    /// A merge of these SSTables.
    pub(crate) fn compact(inputs: &[Arc<Sstable>], reason: Reason, output: Output) -> Task {
        let inputs = inputs.iter().map(|sstable| sstable.id).collect();
        Task {
            output,
            ..Task::new(TaskKind::Compact, inputs, reason)
        }
    }

    /// A merge of all that are not suspect; none if one of them is being compacted, or if there are none.
    pub(crate) fn major<'a>(
        sstables: impl Iterator<Item = &'a Arc<Sstable>>,
        live: &Live,
        output: Output,
    ) -> Vec<Task> {
        let sound = sstables.filter(|sstable| !sstable.is_suspect);
        let sound: Vec<Arc<Sstable>> = sound.cloned().collect();
        let is_busy = sound.iter().any(|sstable| live.is_compacting(sstable.id));
        if sound.is_empty() || is_busy {
            Vec::new()
        } else {
            vec![Task::compact(&sound, Reason::Major, output)]
        }
    }

    /// A rewrite of one SSTable for its tombstones.
    pub(crate) fn of_tombstones(sstable: &Sstable, ratio: f64, output: Output) -> Task {
        let reason = Reason::Tombstones { ratio };
        Task {
            output,
            ..Task::new(TaskKind::Tombstones, vec![sstable.id], reason)
        }
    }

    /// Adds fully expired SSTables to a selection, or drops them alone.
    pub(crate) fn with_expired(
        selection: Result<Task, Idle>,
        expired: Vec<SstableId>,
    ) -> Result<Task, Idle> {
        if expired.is_empty() {
            return selection;
        }
        let alone = |_| Task::new(TaskKind::Expired, Vec::new(), Reason::Expired);
        let mut task = selection.unwrap_or_else(alone);
        task.inputs.extend(&expired);
        task.expired = expired;
        Ok(task)
    }
}

/// Operation of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKind {
    /// Merges them (`CompactionTask`).
    Compact,
    /// Rewrites one SSTable to drop its tombstones (`OperationType.TOMBSTONE_COMPACTION`).
    Tombstones,
    /// Changes the level in the statistics of one SSTable (`SingleSSTableLCSTask`).
    LevelOnly,
    /// Drops them: all are fully expired.
    Expired,
}

/// Outputs of a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// Level in the statistics of the outputs.
    pub level: u32,
    /// Where one output ends and the next begins.
    pub split: Split,
}

/// Where one output of a task ends and the next begins.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Split {
    /// There is one output.
    #[default]
    None,
    /// At the first partition after this number of stored bytes (`MaxSSTableSizeWriter`).
    MaxBytes(u64),
    /// As `MaxBytes`, and the level is one higher after each time that the level's limit is exceeded
    /// (`MajorLeveledCompactionWriter`).
    Levels(LevelSplit),
    /// At half of the expected bytes, at half of the rest, and so on (`SplittingSizeTieredCompactionWriter`).
    Halves {
        /// Smallest part, bytes.
        min_bytes: u64,
    },
    /// After each of these tokens (`ShardedCompactionWriter`).
    Shards(Shards),
}

/// Outputs of a major compaction into levels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelSplit {
    /// Stored bytes after which an output ends.
    pub sstable_bytes: u64,
    /// Number of times that a level is larger than the one below.
    pub fanout: f64,
    /// Highest level, which is not left.
    pub top: u32,
}

/// Output shards of a unified compaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Shards {
    /// Last token of each shard that the inputs extend over, except for the last one. Empty if they are all in one.
    pub boundaries: Vec<Token>,
    /// Whether each shard is compacted concurrently, as a task of its own (`parallelize_output_shards`).
    pub is_parallel: bool,
}

/// Rule that selected the inputs of a task.
#[derive(Clone, Copy, Debug, PartialEq, strum::Display)]
#[non_exhaustive]
pub enum Reason {
    /// SSTables of similar size.
    #[strum(to_string = "SSTables of similar size, {average_bytes} bytes on average")]
    SizeTier {
        /// Their mean length, bytes.
        average_bytes: u64,
    },
    /// L0 has too many SSTables: they are compacted by size first.
    #[strum(to_string = "L0 has {sstables} SSTables, which are compacted by size first")]
    SizeTierInL0 {
        /// Number of SSTables in L0.
        sstables: usize,
    },
    /// A level exceeds its limit.
    #[strum(to_string = "L{level} has {bytes} bytes, its limit is {limit}")]
    LevelOverLimit {
        /// The level.
        level: u32,
        /// Stored bytes that are not being compacted.
        bytes: u64,
        /// Limit of the level, bytes.
        limit: u64,
    },
    /// SSTables of L0 move to L1, or are joined if they are small.
    #[strum(to_string = "{sstables} SSTables of L0")]
    L0 {
        /// Number of SSTables of L0 among the inputs.
        sstables: usize,
    },
    /// The current time window has SSTables of similar size.
    #[strum(to_string = "SSTables of similar size in the current window from {start_ms}")]
    CurrentWindow {
        /// Start of the window, milliseconds since 1970.
        start_ms: i64,
    },
    /// A time window that has ended has several SSTables.
    #[strum(to_string = "{sstables} SSTables in the past window from {start_ms}")]
    PastWindow {
        /// Start of the window, milliseconds since 1970.
        start_ms: i64,
        /// Number of SSTables in it.
        sstables: usize,
    },
    /// Overlapping SSTables of similar density.
    #[strum(
        to_string = "{overlap} overlapping SSTables in level {level}, its threshold is {threshold}"
    )]
    Density {
        /// The level.
        level: u32,
        /// Greatest number of SSTables that cover a partition.
        overlap: usize,
        /// Number from which on they are compacted.
        threshold: usize,
    },
    /// Enough of the cells of an SSTable are tombstones that can be dropped.
    #[strum(to_string = "an estimated {ratio:.2} of the cells are droppable tombstones")]
    Tombstones {
        /// Their estimated fraction.
        ratio: f64,
    },
    /// All data is expired.
    #[strum(to_string = "fully expired")]
    Expired,
    /// Everything is compacted on request.
    #[strum(to_string = "major compaction")]
    Major,
}

/// Reason why a strategy selects nothing.
#[derive(Clone, Copy, Debug, PartialEq, strum::Display)]
#[non_exhaustive]
pub enum Idle {
    /// The table's option `enabled` is false.
    #[strum(to_string = "compaction is disabled for this table")]
    Disabled,
    /// There are no SSTables that are neither suspect nor being compacted.
    #[strum(to_string = "all SSTables are being compacted, or there are none")]
    NoSstables,
    /// No size tier has enough SSTables.
    #[strum(
        to_string = "the largest tier has {largest} SSTables, min_threshold is {min_threshold}"
    )]
    SmallTiers {
        /// Number of SSTables in the largest tier.
        largest: usize,
        /// `min_threshold`.
        min_threshold: usize,
    },
    /// No level exceeds its limit, and L0 has too few SSTables.
    #[strum(to_string = "all levels are within their limits, L0 has {l0} SSTables")]
    LevelsWithinLimits {
        /// Number of SSTables in L0.
        l0: usize,
    },
    /// A level exceeds its limit, but every selection has an SSTable that is suspect or being compacted.
    #[strum(
        to_string = "L{level} exceeds its limit, but its SSTables overlap suspect or compacting ones"
    )]
    LevelBlocked {
        /// The level.
        level: u32,
    },
    /// No time window has enough SSTables of similar size.
    #[strum(
        to_string = "no past window has two SSTables, and the current one has fewer than {min_threshold} of \
        similar size; the largest window has {largest}"
    )]
    SmallWindows {
        /// Number of SSTables in the largest window.
        largest: usize,
        /// `min_threshold`, which counts in the current window. Past ones need two.
        min_threshold: usize,
    },
    /// No level has enough overlapping SSTables.
    #[strum(
        to_string = "the greatest overlap is {overlap} SSTables, in level {level}, its threshold is {threshold}"
    )]
    LowOverlap {
        /// Level with the greatest overlap.
        level: u32,
        /// Greatest number of SSTables that cover a partition.
        overlap: usize,
        /// Number from which on they are compacted.
        threshold: usize,
    },
    /// A level could be compacted, but one with a greater overlap, which does not reach its own threshold,
    /// is considered in its place. This lasts until SSTables are added
    /// (`UnifiedCompactionStrategy.chooseCompactionPick`).
    #[strum(
        to_string = "stalled: level {level} has the greatest overlap, {overlap}, below its threshold of {threshold}; \
        levels with a smaller overlap wait for it"
    )]
    Stalled {
        /// Level that is considered.
        level: u32,
        /// Its overlap.
        overlap: usize,
        /// Its threshold.
        threshold: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_in_the_texts() {
        let reason = Reason::Tombstones { ratio: 0.256 };
        assert!(reason.to_string().contains("estimated 0.26 of"), "{reason}");
    }
}

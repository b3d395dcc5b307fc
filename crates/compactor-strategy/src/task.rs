//! A compaction to run next, or why there is none.

use std::fmt;
use std::sync::Arc;

use crate::sstable::{Session, Sstable, SstableId};
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
    /// A merge of these SSTables.
    pub(crate) fn compact(inputs: &[Arc<Sstable>], reason: Reason, output: Output) -> Task {
        Task {
            inputs: inputs.iter().map(|sstable| sstable.id).collect(),
            expired: Vec::new(),
            kind: TaskKind::Compact,
            reason,
            output,
        }
    }

    /// A rewrite of one SSTable for its tombstones.
    pub(crate) fn of_tombstones(sstable: &Sstable, ratio: f64, output: Output) -> Task {
        Task {
            inputs: vec![sstable.id],
            expired: Vec::new(),
            kind: TaskKind::Tombstones,
            reason: Reason::Tombstones { ratio },
            output,
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
        match selection {
            Ok(mut task) => {
                task.inputs.extend(&expired);
                task.expired = expired;
                Ok(task)
            }
            Err(_) => Ok(Task {
                inputs: expired.clone(),
                expired,
                kind: TaskKind::Expired,
                reason: Reason::Expired,
                output: Output::default(),
            }),
        }
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
    /// Changes the repair state in their statistics, after a session (`RepairFinishedCompactionTask`): to
    /// repaired at this time in milliseconds since 1970, or to unrepaired.
    RepairFinished(Option<i64>),
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
    /// Last token of each shard except for the last shard.
    pub boundaries: Vec<Token>,
    /// Whether each shard is compacted concurrently, as a task of its own (`parallelize_output_shards`).
    pub is_parallel: bool,
}

/// Rule that selected the inputs of a task.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// SSTables of similar size.
    SizeTier {
        /// Their mean length, bytes.
        average_bytes: u64,
    },
    /// L0 has too many SSTables: they are compacted by size first.
    SizeTierInL0 {
        /// Number of SSTables in L0.
        sstables: usize,
    },
    /// A level exceeds its limit.
    LevelOverLimit {
        /// The level.
        level: u32,
        /// Stored bytes that are not being compacted.
        bytes: u64,
        /// Limit of the level, bytes.
        limit: u64,
    },
    /// SSTables of L0 move to L1, or are joined if they are small.
    L0 {
        /// Number of SSTables of L0 among the inputs.
        sstables: usize,
    },
    /// The current time window has SSTables of similar size.
    CurrentWindow {
        /// Start of the window, milliseconds since 1970.
        start_ms: i64,
    },
    /// A time window that has ended has several SSTables.
    PastWindow {
        /// Start of the window, milliseconds since 1970.
        start_ms: i64,
        /// Number of SSTables in it.
        sstables: usize,
    },
    /// Overlapping SSTables of similar density.
    Density {
        /// The level.
        level: u32,
        /// Greatest number of SSTables that cover a partition.
        overlap: usize,
        /// Number from which on they are compacted.
        threshold: usize,
    },
    /// Enough of the cells of an SSTable are tombstones that can be dropped.
    Tombstones {
        /// Their estimated fraction.
        ratio: f64,
    },
    /// All data is expired.
    Expired,
    /// A repair session ended.
    RepairEnded(Session),
    /// Everything is compacted on request.
    Major,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::SizeTier { average_bytes } => {
                write!(
                    f,
                    "SSTables of similar size, {average_bytes} bytes on average"
                )
            }
            Reason::SizeTierInL0 { sstables } => {
                write!(
                    f,
                    "L0 has {sstables} SSTables, which are compacted by size first"
                )
            }
            Reason::LevelOverLimit {
                level,
                bytes,
                limit,
            } => write!(f, "L{level} has {bytes} bytes, its limit is {limit}"),
            Reason::L0 { sstables } => write!(f, "{sstables} SSTables of L0"),
            Reason::CurrentWindow { start_ms } => {
                write!(
                    f,
                    "SSTables of similar size in the current window from {start_ms}"
                )
            }
            Reason::PastWindow { start_ms, sstables } => {
                write!(f, "{sstables} SSTables in the past window from {start_ms}")
            }
            Reason::Density {
                level,
                overlap,
                threshold,
            } => write!(
                f,
                "{overlap} overlapping SSTables in level {level}, its threshold is {threshold}"
            ),
            Reason::Tombstones { ratio } => {
                write!(
                    f,
                    "an estimated {ratio:.2} of the cells are droppable tombstones"
                )
            }
            Reason::Expired => write!(f, "fully expired"),
            Reason::RepairEnded(Session(id)) => write!(f, "repair session {id:032x} ended"),
            Reason::Major => write!(f, "major compaction"),
        }
    }
}

/// Why a strategy selects nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Idle {
    /// The table's option `enabled` is false.
    Disabled,
    /// There are no SSTables that are neither suspect nor being compacted.
    NoSstables,
    /// No size tier has enough SSTables.
    SmallTiers {
        /// Number of SSTables in the largest tier.
        largest: usize,
        /// `min_threshold`.
        min_threshold: usize,
    },
    /// No level exceeds its limit, and L0 has too few SSTables.
    LevelsWithinLimits {
        /// Number of SSTables in L0.
        l0: usize,
    },
    /// A level exceeds its limit, but every selection has an SSTable that is suspect or being compacted.
    LevelBlocked {
        /// The level.
        level: u32,
    },
    /// No time window has enough SSTables of similar size.
    SmallWindows {
        /// Number of SSTables in the largest window.
        largest: usize,
        /// `min_threshold`, which counts in the current window. Past ones need two.
        min_threshold: usize,
    },
    /// No level has enough overlapping SSTables.
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
    Stalled {
        /// Level that is considered.
        level: u32,
        /// Its overlap.
        overlap: usize,
        /// Its threshold.
        threshold: usize,
    },
}

impl fmt::Display for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Idle::Disabled => write!(f, "compaction is disabled for this table"),
            Idle::NoSstables => write!(f, "all SSTables are being compacted, or there are none"),
            Idle::SmallTiers {
                largest,
                min_threshold,
            } => write!(
                f,
                "the largest tier has {largest} SSTables, min_threshold is {min_threshold}"
            ),
            Idle::LevelsWithinLimits { l0 } => {
                write!(
                    f,
                    "all levels are within their limits, L0 has {l0} SSTables"
                )
            }
            Idle::LevelBlocked { level } => write!(
                f,
                "L{level} exceeds its limit, but its SSTables overlap suspect or compacting ones"
            ),
            Idle::SmallWindows {
                largest,
                min_threshold,
            } => write!(
                f,
                "no past window has two SSTables, and the current one has fewer than {min_threshold} of \
                 similar size; the largest window has {largest}"
            ),
            Idle::LowOverlap {
                level,
                overlap,
                threshold,
            } => write!(
                f,
                "the greatest overlap is {overlap} SSTables, in level {level}, its threshold is {threshold}"
            ),
            Idle::Stalled {
                level,
                overlap,
                threshold,
            } => write!(
                f,
                "stalled: level {level} has the greatest overlap, {overlap}, below its threshold of \
                 {threshold}; levels with a smaller overlap wait for it"
            ),
        }
    }
}

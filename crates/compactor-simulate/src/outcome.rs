//! Results of a simulation.

use std::collections::BTreeMap;

use serde::Serialize;

/// Result of a simulation. A MB is 2^20 bytes, as in Cassandra's `sstable_size_in_mb`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// Class of the strategy, without its package.
    pub strategy: String,
    /// Simulated time, seconds; less than requested if the simulation ended early.
    pub duration_s: f64,
    /// End of the simulation.
    pub end: End,
    /// Bytes per second that flushes and compactions wrote, in MB, over the whole time.
    pub write_mb_per_s: f64,
    /// The same in the second half of the time, when an initially empty table has grown.
    pub late_write_mb_per_s: f64,
    /// Bytes per second that compactions read, in MB.
    pub read_mb_per_s: f64,
    /// Bytes that flushes and compactions wrote per flushed byte.
    pub write_amplification: f64,
    /// Number of levels with data at the end, L0 included. By leveled compaction the highest one counts by
    /// the part of its limit that it holds.
    pub levels: f64,
    /// Stored bytes of all SSTables at the end.
    pub dataset_bytes: u64,
    /// Stored bytes of the rows that exist, each once, at the end.
    pub live_bytes: f64,
    /// Stored bytes of all SSTables per byte of rows that exist, at the end.
    pub space_amplification: f64,
    /// Greatest room of all SSTables and unfinished outputs, bytes.
    pub greatest_bytes: f64,
    /// Greatest room of outputs whose inputs are still there, bytes.
    pub greatest_temporary_bytes: f64,
    /// Number of SSTables at the end.
    pub sstables: usize,
    /// Greatest number of SSTables.
    pub greatest_sstables: usize,
    /// SSTables whose Bloom filter has the partition of a row that exists: average over rows, as they are
    /// read, and over the second half of the time.
    pub sstables_per_point_read: f64,
    /// SSTables that cover a token, all of which a range read opens: average over tokens and over the second
    /// half of the time.
    pub sstables_per_range_read: f64,
    /// Number of compactions to be done at the end, as `nodetool compactionstats` estimates them.
    pub pending_tasks: usize,
    /// Greatest number of them at a sample.
    pub greatest_pending_tasks: usize,
    /// Flushed bytes.
    pub flushed_bytes: f64,
    /// Bytes that compactions wrote.
    pub compacted_bytes: f64,
    /// Levels of leveled, unified and level count compaction. For strategies without levels: SSTables by the
    /// number of merges of their rows.
    pub by_level: Vec<Level>,
    /// Number of compactions.
    pub compactions: Compactions,
    /// Prediction of the closed formula; only of leveled compaction.
    pub model: Option<Model>,
    /// Reasons not to trust the figures.
    pub caveats: Vec<String>,
    /// State of the table over time.
    pub samples: Vec<Sample>,
}

/// End of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// All of the time was simulated.
    Complete,
    /// Flushed SSTables accumulated: compaction is slower than writes.
    Overloaded,
}

/// A level of the table at the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Level {
    /// Its number.
    pub level: u32,
    /// Number of SSTables.
    pub sstables: usize,
    /// Stored bytes.
    pub bytes: u64,
    /// Bytes that were written to it.
    pub written_bytes: f64,
    /// The same per flushed byte.
    pub write_amplification: f64,
}

impl Level {
    /// Returns a level; levels from L0 to it are added if missing.
    pub(crate) fn among(levels: &mut Vec<Level>, level: u32) -> &mut Level {
        for level in levels.len() as u32..=level {
            levels.push(Level {
                level,
                ..Level::default()
            });
        }
        &mut levels[level as usize]
    }
}

/// Number of compactions by their kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Compactions {
    /// Merges.
    pub merges: u64,
    /// Rewrites of one SSTable for its tombstones.
    pub tombstones: u64,
    /// SSTables that got another level without being rewritten.
    pub level_only: u64,
    /// SSTables that were dropped as everything in them had expired.
    pub expired_sstables: u64,
}

/// Prediction of CASSANDRA-7871.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Model {
    /// Bytes per second that flushes and compactions write, in MB.
    pub write_mb_per_s: f64,
    /// Number of levels above L0 for the rows that exist.
    pub levels: f64,
}

/// State of the table at a time, and what happened since the sample before.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Sample {
    /// Time since the start, seconds.
    pub time_s: f64,
    /// Stored bytes of all SSTables.
    pub dataset_bytes: u64,
    /// Stored bytes of the rows that exist.
    pub live_bytes: f64,
    /// Room of unfinished outputs, bytes.
    pub temporary_bytes: f64,
    /// Number of SSTables.
    pub sstables: usize,
    /// SSTables of a point read.
    pub sstables_per_point_read: f64,
    /// SSTables of a range read.
    pub sstables_per_range_read: f64,
    /// Compactions to be done.
    pub pending_tasks: usize,
    /// Bytes per second that flushes and compactions wrote.
    pub write_bytes_per_s: f64,
    /// Bytes per second that compactions read.
    pub read_bytes_per_s: f64,
    /// Bytes by level.
    pub level_bytes: BTreeMap<u32, u64>,
}

//! What was asked for.

use serde::{Deserialize, Serialize};

use crate::arm::Arm;
use crate::priority::Priority;

/// The options of an experiment, defaults filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OptionsRecord {
    /// The command line, as far as there was one.
    pub command: Option<Vec<String>>,
    /// Directory of the data.
    pub directory: String,
    /// In the order in which they were named.
    pub arms: Vec<Arm>,
    /// Repeats that count.
    pub repeats: u32,
    /// Repeats before them that do not.
    pub warm_ups: u32,
    /// What the order of the arms in each repeat, hot partitions, arrivals and data come from.
    pub seed: u64,
    /// Reads per second of the bystander, over all its threads.
    pub rate_per_s: f64,
    /// Threads of the bystander.
    pub reader_threads: u32,
    /// How often each hot partition is read.
    pub distribution: Distribution,
    /// Sizes of the hot set, bytes of page cache.
    pub hot_sets_bytes: Vec<u64>,
    /// Memory limit that was asked for.
    pub memory_limit_bytes: Option<u64>,
    /// Limit on the stored bytes of `Data.db` that the compaction takes per second.
    pub throughput_bytes_per_s: Option<u64>,
    /// Threads of the compaction.
    pub compaction_threads: u32,
    /// Buffers of the compaction.
    pub compaction_memory_bytes: u64,
    /// Processors that the compaction got beside the bystander.
    #[serde(default)]
    pub compaction_priority: Priority,
    /// `auto`, `uring` or `threads`.
    pub backend: String,
    /// Seconds of reads before the compaction.
    pub before_s: f64,
    /// Seconds of reads after it.
    pub after_s: f64,
    /// Seconds for which the table was compacted again and again, in a run that counts.
    pub least_compaction_s: f64,
    /// Time between samples.
    pub sample_ms: u64,
}

/// How often each hot partition is read.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// All alike.
    Uniform,
    /// The k-th most popular in proportion to `k.powf(-exponent)`; which is which is random.
    Zipf {
        /// 0 is uniform; YCSB's is 0.99.
        exponent: f64,
    },
}

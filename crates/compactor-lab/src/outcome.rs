//! The result of an experiment: everything that was measured, and under what circumstances.
//!
//! Durations end in `_ns`, `_us`, `_ms` or `_s`, amounts of data in `_bytes`; pages are those of the
//! machine ([`Environment::page_bytes`]). Times `at_s` and `start_s` are seconds since the run's
//! compaction was started, negative before. Nothing is estimated: what the system does not report is
//! `None`.

use serde::{Deserialize, Serialize};

mod attempt;
mod environment;
mod latency;
mod run;
mod sample;

pub use attempt::Attempt;
pub use environment::{DeviceRecord, Environment};
pub use latency::{CurvePoint, Interval, Latency};
pub use run::{CompactionRecord, GeneratorRecord, HotSetRecord, MemoryRecord, Phase, Run};
pub use sample::{CgroupMemory, Cpu, KernelCounters, Pages, Sample};

use crate::arm::Arm;
use crate::options::InterferenceOptions;

/// Version of the shape of the JSON documents of all experiments. A reader refuses versions that it does not know.
pub const FORMAT_VERSION: u32 = 1;

/// Kind of a document; those of `compactor lab interference` have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Experiment {
    /// `compactor lab chunk-length`.
    ChunkLength,
    /// `compactor lab fan-out`.
    FanOut,
}

/// Outcome of one `compactor lab interference`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Time of the experiment, and whether it was stopped.
    #[serde(flatten)]
    pub header: OutcomeHeader,
    /// Options, defaults filled in.
    pub options: InterferenceOptions,
    /// Machine that it took place on.
    pub environment: Environment,
    /// One for each size of the hot set; just one without `--sweep`.
    pub points: Vec<SweepPoint>,
    /// Caveats about all numbers, sentences.
    pub warnings: Vec<Warning>,
}

impl Outcome {
    /// All runs of an arm at a point that are to be compared: valid and no warm-up, by repeat.
    pub fn counted(point: &SweepPoint, arm: Arm) -> impl Iterator<Item = &Run> {
        let runs = point.runs.iter().filter(move |run| run.arm == arm);
        runs.filter(|run| run.attempt.counts())
    }
}

/// Head of every document of an experiment: version of its shape, time and end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutcomeHeader {
    /// [`FORMAT_VERSION`].
    pub format_version: u32,
    /// Time of the start, milliseconds since 1970.
    pub started_at_ms: u64,
    /// Duration, including making data.
    pub elapsed_s: f64,
    /// Whether all runs that were planned took place.
    pub end: End,
}

/// End of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// All runs took place.
    Complete,
    /// The experiment was stopped; the results were measured before that.
    Interrupted,
}

/// The runs at one size of the hot set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepPoint {
    /// Bytes of page cache that the hot set was to take.
    pub hot_set_bytes: u64,
    /// The table that was read and compacted.
    pub data: DataRecord,
    /// Memory limit of the cgroup that the foreground load and the compaction ran in; `None` without one.
    pub memory_limit_bytes: Option<u64>,
    /// Bytes that the limit, or without one the machine's memory, left to the page cache when the
    /// foreground load had warmed up: limit less what was not page cache.
    pub cache_room_bytes: Option<u64>,
    /// Pressure: pages of the hot set, in bytes, divided by the limit (the machine's memory without
    /// one).
    pub pressure: f64,
    /// Runs in the order in which they took place, warm-ups and invalid ones included.
    pub runs: Vec<Run>,
    /// Caveats about the numbers of this point.
    pub warnings: Vec<Warning>,
}

/// The table of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataRecord {
    /// `kv` or `wide` if it was generated, else `given`.
    pub shape: String,
    /// Version of the SSTables, such as `oa`.
    pub version: String,
    /// Compressor, such as `LZ4Compressor`; `None` for none.
    pub compressor: Option<String>,
    /// Uncompressed bytes of a chunk; `None` without compression.
    pub chunk_length_bytes: Option<u32>,
    /// Number of SSTables.
    pub sstables: u32,
    /// Bytes of all their components.
    pub bytes: u64,
    /// Uncompressed bytes of their `Data.db`.
    pub uncompressed_bytes: u64,
    /// Partitions of all SSTables together; those in several count several times.
    pub partitions: u64,
}

/// A caveat about numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// A word to find it by, such as `virtual_disk`.
    pub kind: String,
    /// The sentence for people.
    pub text: String,
}

impl Warning {
    /// A warning.
    pub fn new(kind: &str, text: impl Into<String>) -> Warning {
        Warning {
            kind: kind.to_owned(),
            text: text.into(),
        }
    }
}

#[cfg(test)]
mod tests;

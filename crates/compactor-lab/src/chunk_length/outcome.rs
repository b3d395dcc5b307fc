//! The result of a comparison: everything that was measured. Units and names are those of
//! [`crate::outcome`].

use serde::{Deserialize, Serialize};

use super::options::ChunkLengthOptions;
use super::variant::Variant;
use crate::outcome::{
    Attempt, DataRecord, Environment, Experiment, Latency, OutcomeHeader, Warning,
};

/// Outcome of one `compactor lab chunk-length`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChunkLengthOutcome {
    /// Always [`Experiment::ChunkLength`].
    pub experiment: Experiment,
    /// Time of the experiment, and whether it was stopped.
    #[serde(flatten)]
    pub header: OutcomeHeader,
    /// Options, defaults filled in.
    pub options: ChunkLengthOptions,
    /// Machine that it took place on.
    pub environment: Environment,
    /// The table that the variants were written from, and that was compacted during the reads.
    pub source: DataRecord,
    /// Hot rows, the same in all variants.
    pub hot_rows: u64,
    /// Memory limit of the cgroup that the foreground load and the compaction ran in; `None` without one.
    pub memory_limit_bytes: Option<u64>,
    /// Reads per second at which latencies were compared; `None` if none were compared.
    pub rate_per_s: Option<f64>,
    /// Variants in the order in which they were named.
    pub variants: Vec<VariantRecord>,
    /// Runs in the order in which they took place, warm-ups and invalid ones included.
    pub runs: Vec<VariantRun>,
    /// Caveats about the numbers, sentences.
    pub warnings: Vec<Warning>,
}

/// The rows as one variant stores them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariantRecord {
    /// The variant.
    pub variant: Variant,
    /// Bytes of `Data.db` of all SSTables, checksums included.
    pub data_file_bytes: u64,
    /// Uncompressed bytes of the same.
    pub uncompressed_bytes: u64,
    /// The former divided by the latter.
    pub ratio: f64,
    /// Chunks of all SSTables.
    pub chunks: u64,
    /// Bytes that their offsets take in memory as long as the SSTables are open: 8 for each chunk, as in
    /// Cassandra's `CompressionMetadata`.
    pub chunk_offset_bytes: u64,
    /// Bytes of chunk offsets for each GiB of uncompressed data.
    pub chunk_offset_bytes_per_gib: f64,
    /// Partitions of all SSTables.
    pub partitions: u64,
    /// Rows of all SSTables.
    pub rows: u64,
    /// Pages of `Data.db` that the hot rows are read from, bytes.
    pub hot_bytes: u64,
    /// Hot bytes divided by the memory limit, or without one by the machine's memory.
    pub pressure: f64,
    /// Seconds that writing it took.
    pub written_in_s: f64,
}

/// One run of one variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariantRun {
    /// The variant that was read.
    pub variant: Variant,
    /// Time of the run, and whether it counts.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// Reads alone.
    pub alone: Reads,
    /// Reads during a compaction; `None` if there was to be none.
    #[serde(alias = "beside")]
    pub compacting: Option<Reads>,
    /// The compactions meanwhile.
    pub compaction: Option<BackgroundRecord>,
    /// Reads that found no row: none are expected.
    pub rows_not_found: u64,
}

/// Reads under one condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reads {
    /// Peak throughput: each thread starts its next read when the last one ends. Latencies are from the
    /// start of each.
    pub peak: Reading,
    /// At the rate that all variants have in common, on a Poisson schedule. Latencies are from when
    /// each was to begin. `None` while that rate is not known: in a warm-up.
    pub at_rate: Option<Reading>,
}

impl Reads {
    /// The measurements.
    pub(crate) fn readings(&self) -> impl Iterator<Item = &Reading> {
        std::iter::once(&self.peak).chain(&self.at_rate)
    }
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Reads and their latencies.
    pub latency: Latency,
    /// Bytes that the reader threads had the disk read, also for pages of the index, readahead
    /// included; `None` where the kernel does not report them (`/proc/self/task/*/io`).
    pub disk_read_bytes: Option<u64>,
    /// Bytes that came out of decompression; of stored pages without compression.
    pub decompressed_bytes: u64,
    /// Processor seconds of the reader threads.
    pub reader_cpu_s: f64,
    /// Uncompressed bytes that a compaction has read meanwhile.
    pub compacted_bytes: u64,
    /// 99th percentile of the delay with which a reader that slept until its next read was woken.
    pub wake_up_p99_ns: u64,
    /// Reads were still waiting seconds after the end.
    pub is_unfinished: bool,
}

impl Reading {
    /// Reads that were completed.
    pub fn completed(&self) -> f64 {
        self.latency.achieved_per_s * self.latency.duration_s
    }
}

/// Compactions of the source during the reads, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BackgroundRecord {
    /// Number of completed compactions; the last one was stopped.
    pub completed: u32,
    /// Uncompressed bytes that were read.
    pub read_bytes: u64,
    /// Seconds from the first one's start to when they were stopped.
    pub elapsed_s: f64,
    /// Mode in which `Data.db` was really read; `None` if none was completed.
    pub read_mode: Option<String>,
    /// Mode in which the output was really written.
    pub write_mode: Option<String>,
    /// Notes on modes that were used instead of the requested ones.
    pub fallbacks: Vec<String>,
    /// Reason that one failed.
    pub failure: Option<String>,
}

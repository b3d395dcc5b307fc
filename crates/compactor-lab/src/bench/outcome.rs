//! Outcome of a bench: everything that was measured. Bytes, seconds and pages as in [`crate::outcome`].

use serde::Serialize;

use super::{ArmKind, BenchOptions, CodecTimes, Compression, IoPair};
use crate::outcome::{Attempt, DataRecord, End, Environment, OutcomeHeader, Warning};

/// Outcome of one `compactor bench`.
#[derive(Clone, Debug, Serialize)]
pub struct BenchOutcome {
    /// Time of the experiment, and whether it was stopped.
    #[serde(flatten)]
    pub header: OutcomeHeader,
    /// Options, defaults filled in.
    pub options: BenchOptions,
    /// Machine that it took place on.
    pub environment: Environment,
    /// The inputs.
    pub data: DataRecord,
    /// Stored bytes of the inputs' `Data.db`: what is copied.
    pub data_file_bytes: u64,
    /// Output of a merge of them, as found after one that is not measured.
    pub output: OutputFacts,
    /// Ours first, in the order of the options.
    pub arms: Vec<ArmOutcome>,
    /// Caveats about all of the numbers.
    pub warnings: Vec<Warning>,
}

/// An output on the disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutputFacts {
    /// Number of SSTables.
    pub sstables: u32,
    /// Bytes of all components.
    pub bytes: u64,
    /// Uncompressed bytes of `Data.db`.
    pub uncompressed_bytes: u64,
    /// Rows, static rows included.
    pub rows: u64,
    /// Compression; `None` for none.
    pub compression: Option<Compression>,
    /// CRC32 over every component in the order of their names, `Data.db` as it is stored.
    pub crc32: u32,
}

/// An arm and its runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArmOutcome {
    /// Name.
    pub name: String,
    /// Kind of its work.
    pub kind: ArmKind,
    /// Modes that it was asked to use.
    pub io: Option<IoPair>,
    /// Compactions at a time, if it compacts.
    pub compactors: Option<usize>,
    /// Notes for readers of the report.
    pub notes: Vec<String>,
    /// Runs in the order of repeats, warm-ups included.
    pub runs: Vec<BenchRun>,
    /// Reason that it was abandoned.
    pub failure: Option<String>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenchRun {
    /// Time of the run; its warnings are deviations from what the arm claims.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// Seconds from opening the inputs to the last sync; of the codec: what the whole input would take,
    /// by its sample.
    pub wall_s: f64,
    /// Processor seconds of the same work.
    pub cpu_s: f64,
    /// Largest resident set of the process, bytes; none of the codec, which holds its sample.
    pub peak_rss_bytes: Option<u64>,
    /// Modes that were really used.
    pub io: Option<IoPair>,
    /// Times of the codec for its sample.
    pub codec: Option<CodecTimes>,
}

impl ArmOutcome {
    /// Whether it did not fail and every run did what the arm claims.
    pub fn is_sound(&self) -> bool {
        self.failure.is_none() && self.runs.iter().all(|run| run.attempt.warnings.is_empty())
    }
}

impl BenchOutcome {
    /// Whether every arm ran in every repeat and did what it claims.
    pub fn is_sound(&self) -> bool {
        self.header.end == End::Complete && self.arms.iter().all(ArmOutcome::is_sound)
    }
}

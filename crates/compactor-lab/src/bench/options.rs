//! Options of a bench.

use std::path::PathBuf;

use compactor::generate::{Amount, GenerateOptions};
use compactor::{Error, Result};
use serde::Serialize;

use super::{IoPair, Work};

/// A kind of arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ArmKind {
    /// An external command, which merges.
    External,
    /// This work of ours.
    #[serde(untagged)]
    Ours(Work),
}

/// Options of a bench, and their record in its outcome.
#[derive(Clone, Debug, Serialize)]
pub struct BenchOptions {
    /// The command line, for the record.
    pub command: Option<Vec<String>>,
    /// Parent of the directory for everything; on the disk in question.
    #[serde(skip)]
    pub directory: PathBuf,
    /// `Data.db` of SSTables that are there; empty for generated ones.
    #[serde(skip)]
    pub given: Vec<PathBuf>,
    /// SSTables to generate, if none are given: shape, amount, number, version and compression. TTL expiry is
    /// evaluated at its time in any case.
    #[serde(skip)]
    pub generated: GenerateOptions,
    /// Our arms that run: merges and copies once for each pair of modes, compactions also for each number of
    /// compactors.
    #[serde(skip)]
    pub works: Vec<Work>,
    /// The modes of merges and copies. The first merge is what others are compared with.
    #[serde(skip)]
    pub pairs: Vec<IoPair>,
    /// Compactions at a time, of each compacting arm. It has as many threads, or `threads` if these are more.
    pub compactors: Vec<usize>,
    /// Commands that answer requests, each an arm.
    #[serde(skip)]
    pub external: Vec<String>,
    /// Runs of each arm that count.
    pub repeats: u32,
    /// Runs before them that do not.
    pub warm_ups: u32,
    /// Reads the inputs into the page cache before each run, instead of dropping them.
    pub warm: bool,
    /// Threads that decode and compress.
    pub threads: usize,
    /// Bytes of buffers of a merge.
    pub memory_bytes: usize,
    /// Random seed of data and order.
    pub seed: u64,
    /// The most uncompressed bytes that the codec is tried on; twice as much is held in memory.
    #[serde(skip)]
    pub sample_bytes: u64,
}

/// Deletions older than this are purged: Cassandra's default of `gc_grace_seconds`.
pub(super) const GC_GRACE_S: i64 = 864_000;

impl BenchOptions {
    /// Uncompressed bytes of all SSTables to generate.
    pub(super) fn generated_bytes(&self) -> u64 {
        match self.generated.amount {
            Amount::Bytes(bytes) => bytes.saturating_mul(u64::from(self.generated.sstables)),
            Amount::Rows(_) => 0,
        }
    }

    /// Refuses invalid options.
    ///
    /// # Errors
    /// No arm, no modes or number of compactors for arms that need some, or nothing to repeat.
    pub(super) fn check(&self) -> Result<()> {
        let has_arm = !self.works.is_empty() || !self.external.is_empty();
        let text = match () {
            () if !has_arm => "there is no arm to run",
            () if self.pairs.is_empty() => "there are no modes to read and write in",
            () if self.compactors.is_empty() => "there is no number of compactors",
            () if self.repeats == 0 => "nothing is measured in 0 repeats",
            () => return Ok(()),
        };
        Err(Error::invalid(text))
    }
}

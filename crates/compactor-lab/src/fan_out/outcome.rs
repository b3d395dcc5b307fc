//! The result of a comparison of fan-outs: everything that was measured. Units and names are those of
//! [`crate::outcome`]; seconds of flushes are those of the virtual clock.

use serde::{Deserialize, Serialize};

use super::options::{FanOutArm, FanOutOptions};
use crate::outcome::{Attempt, Environment, Experiment, OutcomeHeader, Warning};

/// Outcome of one `compactor lab fan-out`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FanOutOutcome {
    /// Always [`Experiment::FanOut`].
    pub experiment: Experiment,
    /// Time of the experiment, and whether it was stopped.
    #[serde(flatten)]
    pub header: OutcomeHeader,
    /// Options, defaults filled in.
    pub options: FanOutOptions,
    /// Machine that it took place on. No figure depends on it.
    pub environment: Environment,
    /// The SSTables that were flushed.
    pub flushes: FlushRecord,
    /// One for each strategy.
    pub runs: Vec<ArmRun>,
    /// Caveats about the numbers, sentences.
    pub warnings: Vec<Warning>,
}

/// Flushed SSTables, the same for all strategies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlushRecord {
    /// Number of SSTables.
    pub flushes: u64,
    /// Time between two.
    pub interval_s: f64,
    /// Rows of each.
    pub rows_per_flush: u64,
    /// Bytes of the values of a row.
    pub inserted_row_bytes: u64,
    /// Bytes of `Data.db` of all.
    pub data_bytes: u64,
    /// Bytes of all components of all.
    pub bytes: u64,
}

impl FlushRecord {
    /// Bytes of `Data.db` of one, on average.
    pub fn data_bytes_per_flush(&self) -> f64 {
        self.data_bytes as f64 / self.flushes.max(1) as f64
    }

    /// Stored bytes of a row, on average.
    pub fn stored_row_bytes(&self) -> f64 {
        self.data_bytes_per_flush() / self.rows_per_flush.max(1) as f64
    }

    /// Bytes of the values of all rows.
    pub fn inserted_bytes(&self) -> f64 {
        self.flushes as f64 * self.rows_per_flush as f64 * self.inserted_row_bytes as f64
    }
}

/// One strategy: its table was compacted, simulated, and predicted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmRun {
    /// The strategy.
    pub arm: FanOutArm,
    /// Its name in tables.
    pub name: String,
    /// Time of the run, and whether it counts.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// Measured figures.
    pub measured: Figures,
    /// The same by the simulator: of several simulations the one in the middle by the bytes that are written.
    pub simulated: Figures,
    /// Least and most bytes of `Data.db` that one of them writes, flushes included.
    pub simulated_range_bytes: [f64; 2],
    /// The same by the formula; `None` where it has none.
    pub formula: Option<Formula>,
    /// Bytes of all components that compactions wrote.
    pub all_components_bytes: u64,
    /// Expired rows' cells and tombstones that were dropped.
    pub purged: u64,
    /// SSTables of the final table, each of which was verified.
    pub verified_sstables: u64,
    /// Damaged SSTables among these; expected to be 0.
    pub damaged_sstables: u64,
}

/// Figures of a strategy, measured or simulated. Bytes are those of `Data.db`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Bytes of flushes.
    pub flushed_bytes: f64,
    /// Bytes that compactions wrote.
    pub compacted_bytes: f64,
    /// Merges.
    pub merges: u64,
    /// SSTables that got another level without being rewritten.
    pub level_changes: u64,
    /// Levels with data at the end, L0 included; the highest counts by the part of its limit that it holds.
    pub levels: f64,
    /// SSTables at the end.
    pub sstables: u64,
    /// Bytes of the table at the end.
    pub dataset_bytes: f64,
    /// SSTables whose Bloom filter has the partition of a row that exists: average over the second half of the time.
    pub sstables_per_point_read: f64,
    /// SSTables that cover a token: average over the second half of the time.
    pub sstables_per_range_read: f64,
    /// Levels, ascending.
    pub by_level: Vec<LevelFigures>,
}

/// A level of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelFigures {
    /// SSTables at the end.
    pub sstables: u64,
    /// Bytes at the end.
    pub bytes: f64,
    /// Bytes that were written to it; to L0 also those of flushes.
    pub written_bytes: f64,
}

impl Figures {
    /// Bytes that flushes and compactions wrote.
    pub fn written_bytes(&self) -> f64 {
        self.flushed_bytes + self.compacted_bytes
    }

    /// Bytes written per flushed byte.
    pub fn write_amplification(&self) -> f64 {
        self.written_bytes() / self.flushed_bytes
    }

    /// Level of a number, which is added if it is missing.
    pub(super) fn level(&mut self, number: u32) -> &mut LevelFigures {
        let at = number as usize;
        if self.by_level.len() <= at {
            self.by_level.resize(at + 1, LevelFigures::default());
        }
        &mut self.by_level[at]
    }
}

/// Prediction of the formula of the issue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Formula {
    /// Bytes written per flushed byte.
    pub write_amplification: f64,
    /// Levels above L0.
    pub levels: f64,
}

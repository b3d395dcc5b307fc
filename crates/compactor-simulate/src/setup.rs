//! Input of a simulation.

use compactor_strategy::sstable::Sstable;
use compactor_strategy::{CompactionParams, StrategyOptions};

use crate::setup_error::SetupError;
use crate::workload::{MIB, Workload};

/// A table, its node, and for how long they are simulated.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Strategy with its options.
    pub strategy: CompactionParams,
    /// Writes.
    pub workload: Workload,
    /// Bytes that all compactions together read per second (`compaction_throughput`); `None` if they take
    /// no time.
    pub throughput_bytes_per_s: Option<f64>,
    /// Compactions that run at once (`concurrent_compactors`).
    pub concurrent_compactors: usize,
    /// Probability that a Bloom filter has a partition that its SSTable has not
    /// (`bloom_filter_fp_chance`); `None` for the default of the strategy.
    pub bloom_filter_fp_chance: Option<f64>,
    /// SSTables at the start.
    pub initial: Vec<Sstable>,
    /// Time that is simulated, seconds.
    pub duration_s: u64,
    /// Seed of random numbers.
    pub seed: u64,
}

impl Setup {
    /// A month of 1 MiB/s of inserts, on a node with Cassandra's defaults.
    pub fn new(strategy: CompactionParams) -> Setup {
        Setup {
            strategy,
            workload: Workload::default(),
            throughput_bytes_per_s: Some(64.0 * MIB),
            concurrent_compactors: 2,
            bloom_filter_fp_chance: None,
            initial: Vec::new(),
            duration_s: 30 * 86_400,
            seed: 1,
        }
    }

    /// Refuses what cannot be simulated.
    ///
    /// # Errors
    /// Numbers out of range, contradictions, a duration without a flush, and deletes that leave hardly a row.
    pub fn validate(&self) -> Result<(), SetupError> {
        self.workload.validate()?;
        let interval_s = self.workload.flush_interval_s();
        if interval_s > self.duration_s as f64 {
            return Err(SetupError(format!(
                "duration ({} s) is shorter than the time to the first flush ({interval_s:.0} s)",
                self.duration_s
            )));
        }
        self.workload.validate_rows(self.duration_s as f64)?;
        if self.concurrent_compactors == 0 {
            return Err(SetupError(
                "concurrent-compactors must be at least 1".to_owned(),
            ));
        }
        let chance = self.fp_chance();
        if !(chance > 0.0 && chance <= 1.0) {
            return Err(SetupError(format!(
                "bloom_filter_fp_chance must be larger than 0 and less than or equal to 1.0 (got {chance})"
            )));
        }
        match self.throughput_bytes_per_s {
            Some(rate) if !(rate.is_finite() && rate > 0.0) => Err(SetupError(
                "compaction-throughput must be greater than 0".to_owned(),
            )),
            _ => Ok(()),
        }
    }

    /// Probability of a Bloom filter's error (`CompactionParams.defaultBloomFilterFbChance`).
    pub(crate) fn fp_chance(&self) -> f64 {
        let default = match self.strategy.strategy {
            StrategyOptions::Leveled(_) | StrategyOptions::LevelCount(_) => 0.1,
            _ => 0.01,
        };
        self.bloom_filter_fp_chance.unwrap_or(default)
    }
}

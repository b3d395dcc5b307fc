//! Fan-out experiment: bytes that leveled compaction really writes, by its fan-out and the size of its SSTables.
//!
//! CASSANDRA-7871 measured it on a cluster for 88 hours. Here the same workload, rows that are inserted once and
//! expire after two days, is scaled down in bytes and not in time: SSTables are flushed at times of a virtual
//! clock, and after each flush the engine merges all that the strategy selects, as if it took no time. So the
//! figures depend on the options and the seed alone, and the simulator is given the same: size, interval and
//! lifetime of what is flushed, and nothing that was measured later. It is run with several seeds, of which the middle
//! counts.

mod arm;
mod experiment;
mod flushes;
mod options;
mod outcome;
mod predicted;
mod reads;
mod run;

pub use arm::{FanOutArm, Published};
pub use experiment::compare;
pub use options::{FanOutOptions, directory_in_memory};
pub use outcome::{ArmRun, FanOutOutcome, Figures, FlushRecord, Formula, LevelFigures};

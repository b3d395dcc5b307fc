//! Who looks on while an experiment goes on, and may stop it.

use std::path::Path;
use std::time::Duration;

use crate::arm::Arm;
use crate::chunk_length::{Variant, VariantRecord, VariantRun};
use crate::outcome::{Interval, Run, Warning};

/// Hears what goes on. Events come from several threads.
pub trait Watcher: Sync {
    /// Whether to stop: then everything is cleaned up, and what was measured is returned.
    fn is_cancelled(&self) -> bool;

    /// Something has happened.
    fn event(&self, event: &Event<'_>);
}

/// What happens.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The table is being generated; uncompressed bytes.
    Generating {
        /// So many are done.
        done_bytes: u64,
        /// Of so many.
        total_bytes: u64,
    },
    /// The hot set has been drawn.
    HotSet {
        /// Rows.
        rows: usize,
        /// Their pages in bytes.
        bytes: u64,
        /// Those divided by the memory limit, or the machine's memory.
        pressure: f64,
    },
    /// A run begins.
    RunStarted(Plan),
    /// What was read in the last second or so of a run.
    Interval {
        /// Which run.
        plan: Plan,
        /// The reads. Its times count from the first interval of the run.
        interval: &'a Interval,
        /// Reads of the run so far.
        operations: u64,
        /// Uncompressed bytes that its compaction has read, of `compaction_bytes`.
        compaction_read_bytes: u64,
        /// What it has to read.
        compaction_bytes: u64,
    },
    /// A run is over.
    RunEnded {
        /// Which run.
        plan: Plan,
        /// Its result.
        run: &'a Run,
    },
    /// So many bytes will be taken below the directory, on which there is room for them.
    Room {
        /// At most.
        bytes: u64,
        /// Where.
        directory: &'a Path,
    },
    /// The rows are being written as a variant; uncompressed bytes.
    Writing {
        /// Which.
        variant: Variant,
        /// So many are done.
        done_bytes: u64,
        /// Of so many.
        total_bytes: u64,
    },
    /// A variant has been written.
    Written(&'a VariantRecord),
    /// At this many reads per second latencies will be compared.
    Rate(f64),
    /// A run of a variant begins.
    VariantStarted(VariantPlan),
    /// A run of a variant is over.
    VariantEnded {
        /// Which run.
        plan: VariantPlan,
        /// Its result.
        run: &'a VariantRun,
    },
    /// Something that a person should know.
    Warning(&'a Warning),
}

/// A run among all others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// What runs beside the bystander.
    pub arm: Arm,
    /// Which repeat, warm-ups included.
    pub repeat: u32,
    /// Whether it only warms up.
    pub warm_up: bool,
    /// Its place among all runs, from 0.
    pub order: u32,
    /// How many runs there are.
    pub runs: u32,
    /// How long this and all later ones will take, going by those before, or for the first by the options.
    pub time_left: Duration,
}

/// A run of a variant among all others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VariantPlan {
    /// What is read.
    pub variant: Variant,
    /// Which repeat, warm-ups included.
    pub repeat: u32,
    /// Whether it only warms up.
    pub warm_up: bool,
    /// Its place among all runs, from 0.
    pub order: u32,
    /// How many runs there are.
    pub runs: u32,
    /// How long this and all later ones will take, going by those before, or for the first by the options.
    pub time_left: Duration,
}

/// Watches nothing and never stops an experiment.
#[derive(Clone, Copy, Debug)]
pub struct NoWatcher;

impl Watcher for NoWatcher {
    fn is_cancelled(&self) -> bool {
        false
    }

    fn event(&self, _event: &Event<'_>) {}
}

//! Observer of an experiment, which may stop it.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::arm::Arm;
use crate::chunk_length::{Variant, VariantRecord, VariantRun};
use crate::options::form;
use crate::outcome::{Attempt, Interval, Invalid, Run, Subject, Warning};

/// Receives events, from several threads.
pub trait Watcher: Sync {
    /// Whether to stop: then everything is cleaned up, and what was measured is returned.
    fn is_cancelled(&self) -> bool;

    /// Receives an event.
    fn event(&self, event: &Event<'_>);
}

/// Event of an experiment, also in JSON.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event<'a> {
    /// The table is being generated; uncompressed bytes.
    Generating {
        /// Done so far.
        done_bytes: u64,
        /// To be done.
        total_bytes: u64,
    },
    /// The hot set has been drawn.
    HotSet {
        /// Rows.
        rows: usize,
        /// Their pages in bytes.
        bytes: u64,
        /// Their bytes divided by the memory limit, or the machine's memory.
        pressure: f64,
    },
    /// A run of an arm begins.
    RunStarted(Plan),
    /// Reads of the last second or so of a run.
    Interval {
        /// The run's position among all.
        order: u32,
        /// Its arm.
        arm: Arm,
        /// The reads. Its times count from the first interval of the run.
        interval: &'a Interval,
        /// Reads of the run so far.
        operations: u64,
        /// Uncompressed bytes that its compaction has read, of `compaction_bytes`.
        compaction_read_bytes: u64,
        /// Uncompressed bytes that it has to read.
        compaction_bytes: u64,
    },
    /// A run of an arm is over.
    RunEnded {
        /// Its position among all.
        order: u32,
        /// Its arm.
        arm: Arm,
        /// Reasons that it does not count.
        invalid: &'a [Invalid],
        /// 99 percent of the reads during the compaction.
        p99_ns: u64,
        /// All of its result.
        #[serde(skip)]
        run: &'a Run,
    },
    /// Space that will be needed below the directory, and is there.
    Room {
        /// At most.
        bytes: u64,
        /// The directory.
        directory: &'a Path,
    },
    /// The rows are being written as a variant; uncompressed bytes.
    Writing {
        /// The variant.
        variant: Variant,
        /// Done so far.
        done_bytes: u64,
        /// To be done.
        total_bytes: u64,
    },
    /// A variant has been written.
    Written {
        /// The variant on disk.
        variant: &'a VariantRecord,
    },
    /// The rate at which latencies will be compared is known.
    Rate {
        /// Reads per second.
        reads_per_s: f64,
    },
    /// A run of a variant begins.
    VariantStarted(Plan),
    /// A run of a variant is over.
    VariantEnded {
        /// Its position among all.
        order: u32,
        /// Its variant.
        variant: Variant,
        /// Reasons that it does not count.
        invalid: &'a [Invalid],
        /// The most reads per second, alone.
        reads_per_s: f64,
        /// All of its result.
        #[serde(skip)]
        run: &'a VariantRun,
    },
    /// A caveat about the experiment.
    Warning(&'a Warning),
}

/// A run among all others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Arm or variant.
    #[serde(flatten)]
    pub subject: Subject,
    /// Repeat, warm-ups included.
    pub repeat: u32,
    /// Whether it only warms up.
    pub warm_up: bool,
    /// Position among all runs, from 0.
    pub order: u32,
    /// Number of all runs.
    pub runs: u32,
    /// Time that this and all later runs will take, going by those before, or for the first by the options.
    #[serde(rename = "time_left_s", with = "form::seconds")]
    pub time_left: Duration,
}

impl Plan {
    /// The record of a run that went by this plan.
    pub(crate) fn attempt(&self, started_at_ms: u64, started: Instant) -> Attempt {
        Attempt {
            repeat: self.repeat,
            warm_up: self.warm_up,
            order: self.order,
            started_at_ms,
            elapsed_s: started.elapsed().as_secs_f64(),
            ..Attempt::default()
        }
    }
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

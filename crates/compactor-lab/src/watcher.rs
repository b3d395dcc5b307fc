//! Observers of an experiment, which may stop it, and of the merges in it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use compactor::{Error, Observer, Result};
use serde::Serialize;

use crate::clocks::unix_ms;
use crate::comparison::Measured;
use crate::options::form;
use crate::outcome::{Attempt, Interval, Warning};

/// Observer of an experiment.
pub trait Watcher: Sync {
    /// Whether the experiment is to stop. It is asked often, from several threads.
    fn is_cancelled(&self) -> bool;

    /// Receives an event.
    fn event(&self, event: &Event<'_>);
}

/// Event of an experiment, also in JSON.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event<'a> {
    /// A note on a finding or on the next step.
    Note {
        /// The sentence.
        text: &'a str,
    },
    /// Progress of work that prepares for the runs.
    Progress {
        /// The work, such as `generating data`.
        work: &'a str,
        /// Uncompressed bytes done so far.
        done_bytes: u64,
        /// Uncompressed bytes to be done.
        total_bytes: u64,
    },
    /// A caveat that is known before the runs.
    Warning(&'a Warning),
    /// A run of an arm begins.
    RunStarted(&'a Plan),
    /// Reads of the last second or so of a run.
    Interval {
        /// The run's position among all.
        order: u32,
        /// Its arm.
        arm: &'a str,
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
    RunEnded(&'a Measured),
}

/// A run that begins.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Name of the arm.
    pub arm: String,
    /// Repeat, warm-ups included.
    pub repeat: u32,
    /// Whether the run is a warm-up.
    pub warm_up: bool,
    /// Position among all runs, from 0.
    pub order: u32,
    /// Number of all runs.
    pub runs: u32,
    /// Expected duration of this and all further runs.
    #[serde(rename = "time_left_s", with = "form::seconds")]
    pub time_left: Duration,
    /// Start of the run.
    #[serde(skip)]
    pub(crate) started: Instant,
}

impl Plan {
    /// The record of the run, which is over.
    pub(crate) fn attempt(&self) -> Attempt {
        let elapsed = self.started.elapsed();
        Attempt {
            repeat: self.repeat,
            warm_up: self.warm_up,
            order: self.order,
            started_at_ms: unix_ms().saturating_sub(elapsed.as_millis() as u64),
            elapsed_s: elapsed.as_secs_f64(),
            ..Attempt::default()
        }
    }
}

/// Stops once it is set, and watches nothing.
impl Watcher for AtomicBool {
    fn is_cancelled(&self) -> bool {
        self.load(Ordering::Relaxed)
    }

    fn event(&self, _event: &Event<'_>) {}
}

/// Interval at which a waiting experiment checks whether it is to stop.
const NAP: Duration = Duration::from_millis(20);

/// Fails if the experiment is cancelled.
///
/// # Errors
/// Cancellation.
pub(crate) fn check_cancelled(is_cancelled: bool) -> Result<()> {
    if is_cancelled {
        Err(Error::Cancelled)
    } else {
        Ok(())
    }
}

/// Sleeps, unless the experiment is cancelled.
///
/// # Errors
/// Cancellation.
pub(crate) fn wait(duration: Duration, watcher: &dyn Watcher) -> Result<()> {
    let until = Instant::now() + duration;
    loop {
        check_cancelled(watcher.is_cancelled())?;
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(NAP));
    }
}

/// Sends a note.
pub(crate) fn note(watcher: &dyn Watcher, text: &str) {
    watcher.event(&Event::Note { text });
}

/// Observer that can be cancelled and notes uncompressed bytes read.
pub(crate) struct Following<C, P> {
    pub(crate) is_cancelled: C,
    pub(crate) progress: P,
}

impl<C: Fn() -> bool + Send, P: FnMut(u64) + Send> Observer for Following<C, P> {
    fn is_cancelled(&self) -> bool {
        (self.is_cancelled)()
    }

    fn progress(&mut self, read_bytes: u64, _rows: u64, _partitions: u64) {
        (self.progress)(read_bytes);
    }
}

/// Observer that reports the progress of work on a number of uncompressed bytes, some of which are done before.
pub(crate) fn watched<'a>(
    watcher: &'a dyn Watcher,
    work: &'a str,
    (before_bytes, total_bytes): (u64, u64),
) -> impl Observer + 'a {
    Following {
        is_cancelled: || watcher.is_cancelled(),
        progress: move |read_bytes| {
            watcher.event(&Event::Progress {
                work,
                done_bytes: before_bytes + read_bytes,
                total_bytes,
            });
        },
    }
}

//! Begin and end of every experiment.

use std::path::Path;
use std::time::Instant;

use compactor::{ErrorKind, Result};

use crate::cgroup;
use crate::clocks::unix_ms;
use crate::environment::capture;
use crate::outcome::{End, Environment, Warning};
use crate::scratch::Scratch;
use crate::watcher::{Event, Watcher};

/// An experiment that is under way.
#[derive(Debug)]
pub(crate) struct Session {
    started: Instant,
    pub(crate) started_at_ms: u64,
    /// Directory of all its files.
    pub(crate) scratch: Scratch,
    pub(crate) environment: Environment,
}

impl Session {
    /// Begins an experiment below a directory, in a memory cgroup if there is a limit.
    ///
    /// # Errors
    /// If a directory cannot be created there.
    pub(crate) fn begin(
        directory: &Path,
        purpose: &str,
        limit_bytes: Option<u64>,
    ) -> Result<Session> {
        let (started, started_at_ms) = (Instant::now(), unix_ms());
        let scratch = Scratch::create(directory, purpose)?;
        let environment = capture(scratch.path(), cgroup::available(limit_bytes))?;
        Ok(Session {
            started,
            started_at_ms,
            scratch,
            environment,
        })
    }

    /// Ends it, and returns its duration in seconds.
    ///
    /// # Errors
    /// If its files cannot be removed.
    pub(crate) fn finish(self) -> Result<f64> {
        let elapsed_s = self.started.elapsed().as_secs_f64();
        self.scratch.remove()?;
        Ok(elapsed_s)
    }
}

/// End of runs: if they were stopped after some were measured, these are the outcome.
///
/// # Errors
/// Any other error of the runs.
pub(crate) fn end_of(runs: Result<()>, has_runs: bool) -> Result<End> {
    match runs {
        Ok(()) => Ok(End::Complete),
        Err(error) if error.kind() == ErrorKind::Cancelled && has_runs => Ok(End::Interrupted),
        Err(error) => Err(error),
    }
}

/// Reports caveats that are known before the runs.
pub(crate) fn report_warnings(warnings: &[Warning], watcher: &dyn Watcher) {
    for warning in warnings {
        watcher.event(&Event::Warning(warning));
    }
}

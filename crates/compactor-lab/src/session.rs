//! Begin and end of every experiment.

use std::path::Path;
use std::time::Instant;

use compactor::{Error, ErrorKind, Result};

use crate::cgroup::{MemoryCgroup, available};
use crate::clocks::unix_ms;
use crate::environment::{capture, memory_bytes};
use crate::outcome::{End, Environment, FORMAT_VERSION, OutcomeHeader, Warning};
use crate::scratch::Scratch;
use crate::watcher::{Event, Watcher, note};

/// An experiment that is under way.
pub(crate) struct Session<'a> {
    started: Instant,
    started_at_ms: u64,
    /// Directory of all its files.
    scratch: Scratch,
    pub(crate) environment: Environment,
    /// Memory limit of its cgroup; `None` without one, also if none can be had.
    pub(crate) limit_bytes: Option<u64>,
    pub(crate) watcher: &'a dyn Watcher,
}

impl<'a> Session<'a> {
    /// Begins an experiment below a directory, in a memory cgroup if there is a limit.
    ///
    /// # Errors
    /// If a directory cannot be created there.
    pub(crate) fn begin(
        directory: &Path,
        purpose: &str,
        limit_bytes: Option<u64>,
        watcher: &'a dyn Watcher,
    ) -> Result<Session<'a>> {
        let (started, started_at_ms) = (Instant::now(), unix_ms());
        let scratch = Scratch::create(directory, purpose)?;
        let environment = capture(scratch.path(), available(limit_bytes))?;
        let limit_bytes = limit_bytes.filter(|_| environment.memory_cgroup.starts_with('v'));
        Ok(Session {
            started,
            started_at_ms,
            scratch,
            environment,
            limit_bytes,
            watcher,
        })
    }

    pub(crate) fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// Memory that the foreground load and the compaction may take.
    pub(crate) fn room_bytes(&self) -> u64 {
        self.limit_bytes.or_else(memory_bytes).unwrap_or(u64::MAX)
    }

    /// Moves this process into a cgroup with the limit, if there is one.
    ///
    /// # Errors
    /// A cgroup that could be had before.
    pub(crate) fn enter_cgroup(&self) -> Result<Option<MemoryCgroup>> {
        let cgroup = self.limit_bytes.map(MemoryCgroup::enter).transpose();
        cgroup.map_err(Error::invalid)
    }

    /// Sends a note.
    pub(crate) fn note(&self, text: &str) {
        note(self.watcher, text);
    }

    /// Reports caveats that are known before the runs, and returns them.
    pub(crate) fn warn(&self, warnings: Vec<Warning>) -> Vec<Warning> {
        let events = warnings.iter().map(Event::Warning);
        events.for_each(|event| self.watcher.event(&event));
        warnings
    }

    /// Ends it. If its runs were stopped after some were measured, these are the outcome.
    ///
    /// # Errors
    /// Any other error of the runs.
    pub(crate) fn finish(
        self,
        runs: Result<()>,
        has_runs: bool,
    ) -> Result<(OutcomeHeader, Environment)> {
        let end = end_of(runs, has_runs)?;
        let elapsed_s = self.started.elapsed().as_secs_f64();
        self.scratch.remove_or_note(self.watcher);
        let header = OutcomeHeader {
            format_version: FORMAT_VERSION,
            started_at_ms: self.started_at_ms,
            elapsed_s,
            end,
        };
        Ok((header, self.environment))
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

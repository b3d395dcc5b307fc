//! Compactions of a run: the same SSTables, again and again, for as long as it is to last.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

use compactor::{EngineError, Error, ErrorKind, MergeReport, Observer, Result};

use crate::compaction::CompactionSettings;
use crate::options::InterferenceOptions;
use crate::sampler::Progress;
use crate::table::Table;
use crate::watcher::Watcher;

/// Of so many a table is too small to tell anything: what is measured is how SSTables are opened and
/// published.
const MOST_ROUNDS: u32 = 100;

/// Compactions of a run.
pub(crate) struct Rounds<'a> {
    pub(crate) options: &'a InterferenceOptions,
    pub(crate) table: &'a Table,
    pub(crate) settings: CompactionSettings,
    /// Where each puts its output, in a directory of its own.
    pub(crate) output: &'a Path,
    pub(crate) progress: &'a Progress,
    pub(crate) watcher: &'a dyn Watcher,
}

/// What the compactions of a run did.
#[derive(Debug, Default)]
pub(crate) struct Compacted {
    /// One for each time.
    pub(crate) reports: Vec<MergeReport>,
}

impl Compacted {
    /// The output that is there.
    pub(crate) fn output(&self) -> Option<&Path> {
        let output = self.reports.last()?.outputs.first()?;
        Some(&output.data_path)
    }

    pub(crate) fn sum(&self, bytes: impl Fn(&MergeReport) -> u64) -> u64 {
        self.reports.iter().map(bytes).sum()
    }
}

impl Rounds<'_> {
    /// Compacts, at the priority that was asked for, until the time that a run has to last is over. The
    /// output before goes once the next is published, as do the inputs of a node.
    ///
    /// The outer error stops the experiment, the inner one only this run.
    ///
    /// # Errors
    /// Cancellation, and what the experiment itself cannot do.
    pub(crate) fn run(&self) -> Result<Result<Compacted>> {
        std::thread::scope(|scope| {
            // A thread of its own, since threads inherit their priority and cannot always get back.
            let thread = std::thread::Builder::new().name("compaction".to_owned());
            let thread = thread.spawn_scoped(scope, || {
                let priority = self.options.compaction_priority;
                let set = priority.apply();
                set.map_err(Error::file("set the priority of", "the compaction"))?;
                self.again_and_again()
            });
            let thread = thread.map_err(Error::file("start a thread for", "the compaction"))?;
            let panicked = |_| EngineError::Internal("the compaction panicked".to_owned());
            thread.join().map_err(panicked)?
        })
    }

    fn again_and_again(&self) -> Result<Result<Compacted>> {
        let began = Instant::now();
        let mut compacted = Compacted::default();
        let mut previous: Option<PathBuf> = None;
        for round in 0..MOST_ROUNDS {
            let output = self.output.join(round.to_string());
            match self.once(&output, compacted.sum(|r| r.input_uncompressed_bytes)) {
                Ok(report) => compacted.reports.push(report),
                Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error),
                Err(error) => return Ok(Err(error)),
            }
            if let Some(path) = previous.replace(output) {
                compactor::io::remove_dir_all(&path).map_err(Error::file("remove", &path))?;
            }
            if began.elapsed() >= self.options.least_compaction {
                break;
            }
        }
        Ok(Ok(compacted))
    }

    fn once(&self, output: &Path, read_before: u64) -> Result<MergeReport> {
        let mut told = Told {
            progress: self.progress,
            watcher: self.watcher,
            read_before,
        };
        self.settings.compact(self.table, output, &mut told)
    }
}

/// Passes the compaction's progress to the sampler, and the wish to stop to the compaction.
struct Told<'a> {
    progress: &'a Progress,
    watcher: &'a dyn Watcher,
    read_before: u64,
}

impl Observer for Told<'_> {
    fn is_cancelled(&self) -> bool {
        self.watcher.is_cancelled()
    }

    fn progress(&mut self, read_bytes: u64, _rows: u64, _partitions: u64) {
        let done = &self.progress.compaction_read_bytes;
        done.store(self.read_before + read_bytes, Ordering::Relaxed);
    }
}

//! Compactions of one table beside the reads, one after the other, for as long as these take.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use compactor::{ErrorKind, MergeReport, Observer};

use super::outcome::BesideRecord;
use crate::compaction::CompactionSettings;
use crate::run::Output;
use crate::table::Table;
use crate::watcher::Watcher;

/// How far they are.
#[derive(Debug, Default)]
pub(super) struct Beside {
    is_over: AtomicBool,
    /// Uncompressed bytes read, over all of them.
    read_bytes: AtomicU64,
    failure: Mutex<Option<String>>,
}

impl Beside {
    /// Compacts until [`end`](Beside::end), or until one fails. What they write is removed.
    pub(super) fn run(
        &self,
        settings: &CompactionSettings,
        table: &Table,
        directory: &Path,
        watcher: &dyn Watcher,
    ) -> BesideRecord {
        let started = Instant::now();
        let mut record = BesideRecord::default();
        while !self.is_over.load(Ordering::Relaxed) && !watcher.is_cancelled() {
            match self.once(settings, table, directory, watcher) {
                Ok(report) => {
                    record.completed += 1;
                    record.read_mode = Some(report.io.read_mode.clone());
                    record.write_mode = report.io.write_mode.clone();
                    for note in &report.io.fallbacks {
                        if !record.fallbacks.contains(note) {
                            record.fallbacks.push(note.clone());
                        }
                    }
                }
                Err(error) if error.kind() == ErrorKind::Cancelled => break,
                Err(error) => {
                    let reason = error.to_string();
                    *self.lock_failure() = Some(reason.clone());
                    record.failure = Some(reason);
                    break;
                }
            }
        }
        record.elapsed_s = started.elapsed().as_secs_f64();
        record.read_bytes = self.read_bytes();
        record
    }

    fn once(
        &self,
        settings: &CompactionSettings,
        table: &Table,
        directory: &Path,
        watcher: &dyn Watcher,
    ) -> compactor::Result<MergeReport> {
        // A node does not compact the same SSTables twice: they come from disk each time.
        table.drop_pages()?;
        let output = Output::new(directory.join("compacted"))?;
        let mut observer = Following {
            beside: self,
            watcher,
            seen: 0,
        };
        let report = settings.compact(table, &output.path, &mut observer)?;
        output.remove()?;
        Ok(report)
    }

    /// Uncompressed bytes that were read so far.
    pub(super) fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    /// Whether one failed: then none is running any more.
    pub(super) fn has_failed(&self) -> bool {
        self.lock_failure().is_some()
    }

    /// Stops the one that is running, and begins no other.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn lock_failure(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Following<'a> {
    beside: &'a Beside,
    watcher: &'a dyn Watcher,
    /// Of this compaction.
    seen: u64,
}

impl Observer for Following<'_> {
    fn is_cancelled(&self) -> bool {
        self.beside.is_over.load(Ordering::Relaxed) || self.watcher.is_cancelled()
    }

    fn progress(&mut self, read_bytes: u64, _rows: u64, _partitions: u64) {
        let more = read_bytes.saturating_sub(self.seen);
        self.seen = self.seen.max(read_bytes);
        self.beside.read_bytes.fetch_add(more, Ordering::Relaxed);
    }
}

//! Compactions of one table during the reads, for as long as these take.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use compactor::ErrorKind;
use compactor_io::{ReadMode, WriteMode};

use super::outcome::BackgroundRecord;
use crate::compaction::Compactions;
use crate::options::Setup;
use crate::scratch::OutputDirectory;
use crate::session::Session;
use crate::table::Table;

/// Progress of the compactions.
#[derive(Debug, Default)]
pub(super) struct Background {
    is_over: AtomicBool,
    /// Uncompressed bytes read, over all of them.
    read_bytes: AtomicU64,
    has_failed: AtomicBool,
}

impl Background {
    /// Compacts until [`end`](Background::end), or until a compaction fails. Their outputs are removed.
    pub(super) fn run(
        &self,
        setup: &Setup,
        (read, write): (ReadMode, WriteMode),
        table: &Table,
        session: &Session<'_>,
    ) -> BackgroundRecord {
        let started = Instant::now();
        let mut record = BackgroundRecord::default();
        let is_over = || self.is_over.load(Ordering::Relaxed) || session.watcher.is_cancelled();
        let output = session.directory().join("compacted");
        let result = OutputDirectory::create(output).and_then(|output| {
            let compactions = Compactions {
                setup,
                read,
                write,
                table,
                directory: &output.path,
                keeps_last: false,
                read_bytes: &self.read_bytes,
                is_cancelled: &is_over,
            };
            // A node does not compact the same SSTables twice: they come from disk each time.
            compactions.run(
                || table.drop_pages(),
                |report| {
                    record.completed += 1;
                    record.read_mode = Some(report.io.read_mode);
                    record.write_mode = report.io.write_mode;
                    for note in report.io.fallbacks {
                        if !record.fallbacks.contains(&note) {
                            record.fallbacks.push(note);
                        }
                    }
                    is_over()
                },
            )?;
            output.remove()
        });
        if let Err(error) = result
            && error.kind() != ErrorKind::Cancelled
        {
            self.has_failed.store(true, Ordering::Relaxed);
            record.failure = Some(error.to_string());
        }
        record.elapsed_s = started.elapsed().as_secs_f64();
        record.read_bytes = self.read_bytes();
        record
    }

    /// Uncompressed bytes that were read so far.
    pub(super) fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    /// Whether a compaction failed: then none is running any more.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Stops the compaction that is running, and begins no other.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

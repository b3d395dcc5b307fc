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
    /// Stops the one that is running, and begins no other.
    pub(super) is_over: AtomicBool,
    /// Uncompressed bytes read so far, over all of them.
    pub(super) read_bytes: AtomicU64,
}

impl Background {
    /// Compacts until it is over, or until a compaction fails. Their outputs are removed.
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
            record.failure = Some(error.to_string());
        }
        record.elapsed_s = started.elapsed().as_secs_f64();
        record.read_bytes = self.read_bytes.load(Ordering::Relaxed);
        record
    }
}

//! Run of a strategy: a flush, all compactions that follow, and the next flush.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use compactor::compact::replay::{Replay, ReplayedSstable};
use compactor::compact::{CompactReport, CompactRequest, Plan};
use compactor::verify::{VerifyOptions, verify};
use compactor::{InputCheck, MergeRequest, NoObserver, Result, Scope};
use compactor_io::{Io, IoOptions};
use compactor_simulate::level_count;
use compactor_strategy::CompactionParams;

use super::flushes::{Flush, Flushes};
use super::options::FanOutOptions;
use super::outcome::Figures;
use super::reads::Reads;
use crate::random::Random;
use crate::watcher::{Event, Following, Watcher};

/// Flushes after which rows are looked up, at most; all are in the second half of the time, as in a simulation.
const LOOK_UPS: usize = 60;
/// Rows that are looked up each time.
const ROWS: usize = 2000;
/// Stream of random numbers of the seed, for these rows.
const STREAM: u64 = 0x7265_6164;

/// A strategy, and the flushes that it compacts.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) name: String,
    pub(super) strategy: CompactionParams,
    pub(super) options: &'a FanOutOptions,
    pub(super) flushes: &'a Flushes,
}

impl Run<'_> {
    /// Compacts in a directory. Returns the measured figures, and the report of all compactions.
    ///
    /// # Errors
    /// A failed merge, or cancellation.
    pub(super) fn run(
        &self,
        directory: &Path,
        watcher: &dyn Watcher,
    ) -> Result<(Figures, CompactReport)> {
        let io = Io::new(IoOptions::default())?;
        let mut replay = Replay::open(io.clone(), self.request(directory))?;
        let mut reads = Reads::default();
        let mut random = Random::new(self.options.seed, STREAM);
        for (flush, number) in self.flushes.flushes.iter().zip(1..) {
            self.flush(&mut replay, flush, number, watcher)?;
            if self.is_sampled(number as usize) {
                let rows = self.live_rows(number, flush.at_s, &mut random);
                reads.look_up(&io, &replay.sstables(), rows)?;
            }
        }
        let sstables = replay.sstables();
        let mut figures = self.figures(&replay, &sstables);
        [
            figures.sstables_per_point_read,
            figures.sstables_per_range_read,
        ] = reads.per_row();
        Ok((figures, replay.finish()?))
    }

    fn request(&self, directory: &Path) -> CompactRequest {
        let mut merges = MergeRequest::new(Vec::new(), directory);
        merges.scope = Scope::Complete;
        merges.now_s = 0;
        merges.gc_before_s = Some(-i64::from(self.options.gc_grace_s));
        CompactRequest {
            merges,
            plan: Plan::Strategy(self.strategy.clone()),
            max_compactions: None,
            concurrent: 1,
            check: InputCheck::DataOnly,
            verify_outputs: false,
            recorder: None,
        }
    }

    fn flush(
        &self,
        replay: &mut Replay,
        flush: &Flush,
        number: u64,
        watcher: &dyn Watcher,
    ) -> Result<()> {
        replay.add(&flush.data_path, flush.at_s)?;
        let mut observer = Following {
            is_cancelled: || watcher.is_cancelled(),
            progress: |_| {},
        };
        replay.compact(flush.at_s, &mut observer)?;
        let per_flush = self.flushes.record.data_bytes_per_flush();
        let bytes = |flushes: u64| (flushes as f64 * per_flush) as u64;
        watcher.event(&Event::Progress {
            work: &self.name,
            done_bytes: bytes(number),
            total_bytes: bytes(self.flushes.record.flushes),
        });
        Ok(())
    }

    fn is_sampled(&self, number: usize) -> bool {
        let half = self.flushes.flushes.len() / 2;
        number > half && (number - half).is_multiple_of((half / LOOK_UPS).max(1))
    }

    /// Draws rows that were flushed and have not expired.
    fn live_rows(
        &self,
        flushed: u64,
        now_s: i64,
        random: &mut Random,
    ) -> impl Iterator<Item = u64> {
        let record = &self.flushes.record;
        let first = record.expired_rows(now_s, self.options.ttl_s);
        let live = flushed * record.rows_per_flush - first;
        std::iter::repeat_with(move || first + random.below(live as usize) as u64).take(ROWS)
    }

    fn figures(&self, replay: &Replay, sstables: &[ReplayedSstable]) -> Figures {
        let report = replay.report();
        let mut level_bytes: BTreeMap<u32, u64> = BTreeMap::new();
        for sstable in sstables {
            *level_bytes.entry(sstable.level).or_default() += sstable.data_bytes;
        }
        let mut figures = Figures {
            flushed_bytes: self.flushes.record.data_bytes as f64,
            compacted_bytes: report.data_bytes_written as f64,
            merges: report.compactions as u64,
            level_changes: report.level_changes as u64,
            levels: level_count(&level_bytes, &self.strategy),
            sstables: sstables.len() as u64,
            dataset_bytes: level_bytes.values().sum::<u64>() as f64,
            ..Figures::default()
        };
        for sstable in sstables {
            let level = figures.level(sstable.level);
            level.sstables += 1;
            level.bytes += sstable.data_bytes as f64;
        }
        figures.level(0).written_bytes = figures.flushed_bytes;
        for (&level, &bytes) in replay.written_by_level() {
            figures.level(level).written_bytes += bytes as f64;
        }
        figures
    }
}

/// Verifies the final table. Returns the number of its SSTables, and of those that are damaged.
///
/// # Errors
/// A failed read.
pub(super) fn verified(report: &CompactReport) -> Result<(u64, u64)> {
    let io = Io::new(IoOptions::default())?;
    let made = report.outputs.iter().map(|o| o.sstable.data_path.clone());
    let all: Vec<PathBuf> = made.chain(report.untouched.iter().cloned()).collect();
    let mut damaged = 0;
    for data_path in &all {
        let found = verify(&io, data_path, &VerifyOptions::default(), &mut NoObserver)?;
        damaged += u64::from(found.is_damaged());
    }
    Ok((all.len() as u64, damaged))
}

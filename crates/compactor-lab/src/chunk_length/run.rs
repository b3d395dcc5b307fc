//! Run of a variant: drop the caches, read until they are filled again, measure alone and during a
//! compaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use compactor::{Error, ErrorKind, Result};

use super::options::ChunkLengthOptions;
use super::outcome::{BackgroundRecord, Reading, Reads, VariantRun};
use super::written::Written;
use crate::arm::{Arm, IoPair};
use crate::caveats::Warnings;
use crate::cgroup::MemoryCgroup;
use crate::compaction::Compactions;
use crate::foreground::Foreground;
use crate::hot_set::HotSet;
use crate::load::{Load, Pace};
use crate::outcome::{Phase, Warning};
use crate::scratch::OutputDirectory;
use crate::session::Session;
use crate::table::Table;
use crate::validity::keeps_schedule;
use crate::watcher::{Plan, wait};

/// Maximum time of reads before a measurement, so that all threads have started and the queue is in a steady
/// state.
pub(super) const SETTLE: Duration = Duration::from_millis(300);

/// Time of reads before a measurement: at most its own length.
pub(super) fn settle(measure: Duration) -> Duration {
    SETTLE.min(measure)
}

/// Context of all runs.
pub(super) struct Bench<'a> {
    pub(super) options: &'a ChunkLengthOptions,
    pub(super) session: &'a Session<'a>,
    /// Table that is compacted.
    pub(super) source: &'a Table,
    pub(super) hot: Arc<HotSet>,
    pub(super) cgroup: Option<&'a MemoryCgroup>,
    /// `None` while it is not known.
    pub(super) rate_per_s: Option<f64>,
}

/// Compactions of one table during the reads, for as long as these take.
#[derive(Debug, Default)]
struct Background {
    /// Stops the one that is running, and begins no other.
    is_over: AtomicBool,
    /// Uncompressed bytes read so far, over all of them.
    read_bytes: AtomicU64,
}

/// Context of the measurements of a run.
struct Reader<'a> {
    bench: &'a Bench<'a>,
    foreground: Arc<Foreground>,
    seed: u64,
    first_error: Option<String>,
}

impl Bench<'_> {
    /// Runs a variant. A failure of the compaction makes the run invalid; one of the experiment is an error.
    ///
    /// # Errors
    /// A failed read, or cancellation. Nothing of a compaction's output stays.
    pub(super) fn run(&self, written: &Written, plan: &Plan) -> Result<VariantRun> {
        written.table.drop_pages()?;
        self.source.drop_pages()?;
        let (paths, distribution) = (&written.table.data_paths, self.options.distribution);
        let mut reader = Reader {
            bench: self,
            foreground: Foreground::open(paths, &self.hot, distribution)?,
            seed: self.options.seed ^ (u64::from(plan.repeat) << 32),
            first_error: None,
        };
        if !self.options.warm.is_zero() {
            reader.measure(Pace::Closed, self.options.warm, &Background::default())?;
        }
        let alone = reader.reads(&Background::default())?;
        let (compacting, compaction) = match self.options.compaction {
            Arm::Idle => (None, None),
            Arm::Compaction(modes) => {
                let (reads, record) = self.during_compactions(modes, &mut reader)?;
                (Some(reads), Some(record))
            }
        };
        let rows_not_found = reader.foreground.not_found();
        let first_error = reader.first_error.take();
        drop(reader);
        // Its pages are of no use to the next one.
        written.table.drop_pages()?;
        let mut run = VariantRun {
            variant: written.record.variant,
            attempt: plan.attempt(),
            alone,
            compacting,
            compaction,
            rows_not_found,
        };
        let kept_cgroup = self.cgroup.is_none_or(MemoryCgroup::holds_this_process);
        run.attempt.invalid = judge(
            &run,
            self.options.compaction,
            first_error.as_deref(),
            kept_cgroup,
        );
        run.attempt.warnings = warnings(&run);
        Ok(run)
    }

    /// Reads during compactions.
    fn during_compactions(
        &self,
        modes: IoPair,
        reader: &mut Reader<'_>,
    ) -> Result<(Reads, BackgroundRecord)> {
        let (background, watcher) = (Background::default(), self.session.watcher);
        std::thread::scope(|scope| {
            let running = std::thread::Builder::new()
                .spawn_scoped(scope, || self.compact(modes, &background))
                .map_err(Error::thread("the compaction"))?;
            let until = Instant::now() + Duration::from_secs(10);
            // Until a compaction is under way, or none will be.
            let is_awaited = || {
                let read_bytes = background.read_bytes.load(Ordering::Relaxed);
                read_bytes == 0 && !running.is_finished() && Instant::now() < until
            };
            let reads = (|| {
                while is_awaited() {
                    wait(Duration::from_millis(20), watcher)?;
                }
                reader.reads(&background)
            })();
            background.is_over.store(true, Ordering::Relaxed);
            let record = running
                .join()
                .map_err(|_| Error::Internal("the compaction panicked".to_owned()))?;
            Ok((reads?, record))
        })
    }

    /// Compacts until the reads are over, or until a compaction fails. Their outputs are removed.
    fn compact(&self, modes: IoPair, background: &Background) -> BackgroundRecord {
        let started = Instant::now();
        let mut record = BackgroundRecord::default();
        let is_over =
            || background.is_over.load(Ordering::Relaxed) || self.session.watcher.is_cancelled();
        let output = self.session.directory().join("compacted");
        let result = OutputDirectory::create(output).and_then(|output| {
            let compactions = Compactions {
                setup: self.options,
                modes,
                table: self.source,
                directory: &output.path,
                keeps_last: false,
                read_bytes: &background.read_bytes,
                is_cancelled: &is_over,
            };
            // A node does not compact the same SSTables twice: they come from disk each time.
            compactions.run(
                || self.source.drop_pages(),
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
        record.read_bytes = background.read_bytes.load(Ordering::Relaxed);
        record
    }
}

impl Reader<'_> {
    /// The most reads that there can be, then reads at the common rate.
    fn reads(&mut self, background: &Background) -> Result<Reads> {
        let span = self.bench.options.measure;
        let peak = self.measure(Pace::Closed, span, background)?;
        let at_rate = match self.bench.rate_per_s {
            Some(per_s) => Some(self.measure(Pace::Open { per_s }, span, background)?),
            None => None,
        };
        Ok(Reads { peak, at_rate })
    }

    fn measure(&mut self, pace: Pace, span: Duration, background: &Background) -> Result<Reading> {
        // Each measurement draws its own rows, and each variant the same ones for it.
        self.seed = self.seed.wrapping_add(1);
        let watcher = self.bench.session.watcher;
        let reads = |thread| self.foreground.reader(self.seed, thread).reads();
        let load = Load::start(self.bench.options.reader_threads, pace, self.seed, reads)?;
        wait(settle(span), watcher)?;
        let now = || {
            (
                load.disk_read_bytes(),
                self.foreground.decompressed_bytes(),
                load.cpu_ns(),
                background.read_bytes.load(Ordering::Relaxed),
            )
        };
        load.begin_during();
        let before = now();
        wait(span, watcher)?;
        let after = now();
        load.end_during();
        let result = load.finish();
        let disk = after.0.zip(before.0);
        let reading = Reading {
            latency: result.latency(Phase::During),
            disk_read_bytes: disk.map(|(after, before)| after.saturating_sub(before)),
            decompressed_bytes: after.1 - before.1,
            reader_cpu_s: after.2.saturating_sub(before.2) as f64 / 1e9,
            compacted_bytes: after.3 - before.3,
            wake_up_p99_ns: result.wake_up_p99_ns(Phase::During),
            is_unfinished: result.is_unfinished,
        };
        self.first_error = self.first_error.take().or(result.first_error);
        Ok(reading)
    }
}

/// Reasons that a run does not count; none if it does.
fn judge(
    run: &VariantRun,
    asked: Arm,
    first_error: Option<&str>,
    kept_cgroup: bool,
) -> Vec<Warning> {
    let mut reasons = Warnings::default();
    let errors = readings(run)
        .map(|(_, reading)| reading.latency.errors)
        .sum();
    reasons.failed_reads(errors, first_error);
    let all: f64 = readings(run).map(|(_, reading)| reading.completed()).sum();
    reasons.rows_not_found(run.rows_not_found, all);
    for (name, reading) in readings(run) {
        reasons.when(reading.latency.operations == 0, "no_reads", || {
            format!("{name}: nothing was read")
        });
        reasons.wake_up(&format!("{name}: "), reading.wake_up_p99_ns);
    }
    if let (Arm::Compaction(modes), Some(record)) = (asked, &run.compaction) {
        match &record.failure {
            Some(failure) => reasons.failed(failure),
            None => {
                // Modes are known of those that were completed.
                let read_mode = record.read_mode.as_deref().unwrap_or(modes.read.name());
                let write_mode = record.write_mode.as_deref().unwrap_or(modes.write.name());
                reasons.modes(modes, [read_mode, write_mode], &[]);
                let mut compacting = run.compacting.iter().flat_map(Reads::readings);
                let is_idle = compacting.any(|reading| reading.compacted_bytes == 0);
                reasons.when(is_idle, "compaction_idle", || {
                    "the compaction read nothing while the reads during it were measured".to_owned()
                });
            }
        }
    }
    reasons.lost_cgroup(!kept_cgroup);
    reasons.0
}

/// Caveats about a run that are no reason to discard it.
fn warnings(run: &VariantRun) -> Vec<Warning> {
    let mut warnings = Warnings::default();
    for (name, reading) in readings(run) {
        warnings.when(!holds_rate(reading), "rate_not_held", || {
            format!(
                "{name}: {:.0} of {:.0} reads/s were done: latencies are those of a queue that grows, and \
                 are left out; use a lower --rate",
                reading.latency.achieved_per_s, reading.latency.intended_per_s
            )
        });
    }
    warnings.0
}

/// Whether reads kept up with their schedule.
pub(crate) fn holds_rate(reading: &Reading) -> bool {
    !reading.is_unfinished && keeps_schedule(&reading.latency)
}

/// All measurements of a run with their names.
fn readings(run: &VariantRun) -> impl Iterator<Item = (&'static str, &Reading)> {
    let alone = ["peak alone", "at the rate alone"];
    let during = [
        "peak during a compaction",
        "at the rate during a compaction",
    ];
    let compacting = run
        .compacting
        .iter()
        .flat_map(move |reads| during.into_iter().zip(reads.readings()));
    alone
        .into_iter()
        .zip(run.alone.readings())
        .chain(compacting)
}

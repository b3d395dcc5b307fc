//! Run of an arm: drop the caches, warm the hot set, read, compact meanwhile, read the output, clean up.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use compactor::{Error, ErrorKind, MergeReport, Result};
use compactor_io::{ReadMode, WriteMode};

use crate::arm::{Arm, IoPair};
use crate::cgroup::MemoryCgroup;
use crate::clocks::thread_cpu_ns;
use crate::compaction::Compactions;
use crate::foreground::{Foreground, ForegroundReader};
use crate::hot_set::{HotAndCold, HotSet};
use crate::load::{Load, LoadResult, Pace};
use crate::options::InterferenceOptions;
use crate::outcome::{
    CompactionRecord, GeneratorRecord, HotSetRecord, Interval, MemoryRecord, Pages, Phase, Run,
    Sample,
};
use crate::parallel::parallel;
use crate::sampler::{Counters, Progress, Sampler, Seen, pages_of};
use crate::scratch::OutputDirectory;
use crate::session::Session;
use crate::table::Table;
use crate::validity::{Circumstances, caveats, judge};
use crate::watcher::{Event, Plan, check_cancelled, wait};

/// Times that each hot row is read to warm up: pages that were touched twice are active.
const WARMING_READS: usize = 2;
/// Compactions of a run at most: of a table that is compacted so often in its time, nothing is measured but
/// how SSTables are opened and published.
pub(super) const MOST_COMPACTIONS: usize = 100;

/// Context of all runs at one size of the hot set.
pub(super) struct Bench<'a> {
    pub(super) options: &'a InterferenceOptions,
    pub(super) session: &'a Session<'a>,
    pub(super) table: &'a Table,
    pub(super) hot: &'a Arc<HotSet>,
    pub(super) cgroup: Option<&'a MemoryCgroup>,
    pub(super) pressure: f64,
}

/// Measurements of the time of the compaction.
struct During {
    elapsed: Duration,
    /// One for each compaction.
    reports: Vec<MergeReport>,
    failure: Option<String>,
    inputs_before: Option<Pages>,
    hot_before: Option<HotAndCold>,
    hot_after: Option<HotAndCold>,
    before: Counters,
    after: Counters,
    /// Bytes that the foreground load had the disk read.
    disk_read_bytes: Option<u64>,
    /// Seconds since the sampler was started.
    began_s: f64,
}

impl Bench<'_> {
    /// Runs an arm; `idle` is the duration of a run without a compaction. A failure of the compaction makes the run
    /// invalid; one of the experiment is an error.
    ///
    /// # Errors
    /// A failed read, or cancellation. Nothing of the output stays.
    pub(super) fn run(&self, arm: Arm, idle: Duration, plan: &Plan) -> Result<Run> {
        let output = self.session.directory().join(format!("run-{}", plan.order));
        let output = OutputDirectory::create(output)?;
        self.table.drop_pages()?;
        let not_dropped = pages_of(&self.table.files());
        let (paths, distribution) = (&self.table.data_paths, self.options.distribution);
        let foreground = Foreground::open(paths, self.hot, distribution)?;
        foreground.expect_random();
        let seed = self.options.seed ^ (u64::from(plan.order) << 32);
        let new_reader = |thread| foreground.reader(seed, thread);
        self.warm_up(&new_reader)?;
        let threads = self.options.reader_threads;
        let per_s = self.options.rate_per_s;
        let load = Load::start(threads, Pace::Open { per_s }, seed, |thread| {
            new_reader(thread).reads()
        })?;
        let (seen, during) = self.measure((arm, idle, plan), &load, &foreground, &output)?;
        let result = load.finish();
        let circumstances = Circumstances {
            failure: during.failure.as_deref(),
            least_compaction: self.options.least_compaction,
            first_error: result.first_error.as_deref(),
            pressure: self.pressure,
            kept_cgroup: self.cgroup.map(MemoryCgroup::holds_this_process),
            not_dropped,
        };
        let rows_not_found = foreground.not_found();
        drop(foreground);
        output.remove()?;
        let mut run = self.record((arm, plan), seen, &during, &result, rows_not_found);
        run.attempt.invalid = judge(&run, &circumstances);
        run.attempt.warnings = caveats(&run, &circumstances);
        Ok(run)
    }

    /// Reads each hot row some times, so that its pages are in the cache, and active there.
    ///
    /// # Errors
    /// A failed read, or cancellation.
    fn warm_up(&self, new_reader: &(impl Fn(u32) -> ForegroundReader + Sync)) -> Result<()> {
        let threads = self.options.reader_threads.max(1) as usize;
        for _ in 0..WARMING_READS {
            parallel(threads, "warming up", |thread| {
                let mut reader = new_reader(u32::try_from(thread).unwrap_or(u32::MAX));
                for row in (thread..self.hot.rows.len()).step_by(threads) {
                    check_cancelled(self.session.watcher.is_cancelled())?;
                    let read = reader.read_row(row);
                    read.map_err(|reason| Error::Internal(format!("warm up: {reason}")))?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn measure(
        &self,
        (arm, idle, plan): (Arm, Duration, &Plan),
        load: &Load,
        foreground: &Foreground,
        output: &OutputDirectory,
    ) -> Result<(Seen, During)> {
        let watcher = self.session.watcher;
        let device = self.session.environment.device.as_ref();
        let inputs = self.table.files();
        let progress = Progress::default();
        let sampler = Sampler {
            hot: self.hot,
            inputs: &inputs,
            output: &output.path,
            cgroup: self.cgroup,
            device: device.map(|device| device.name.as_str()),
            load,
            progress: &progress,
            sample_interval: Duration::from_millis(self.options.sample_ms),
            report_interval: self.options.report_interval,
        };
        let notify = |interval: &Interval, operations| {
            watcher.event(&Event::Interval {
                order: plan.order,
                arm: &plan.arm,
                interval,
                operations,
                compaction_read_bytes: progress.compaction_read_bytes.load(Ordering::Relaxed),
                compaction_bytes: match arm {
                    Arm::Idle => 0,
                    Arm::Compaction(_) => self.table.record.uncompressed_bytes,
                },
            });
        };
        std::thread::scope(|scope| {
            let (sampler, progress) = (&sampler, &progress);
            let sampling = std::thread::Builder::new()
                .spawn_scoped(scope, || sampler.watch(&notify))
                .map_err(Error::thread("the sampler"))?;
            let sampling_since = Instant::now();
            let during = (|| {
                wait(self.options.before, watcher)?;
                let own_cpu = thread_cpu_ns();
                let hot_before = self.hot.resident();
                let inputs_before = pages_of(&inputs);
                // What looking cost is not the compaction's.
                progress.harness.add(own_cpu);
                let before = sampler.counters();
                let read_before = load.disk_read_bytes();
                load.begin_during();
                let began = Instant::now();
                let compacted = self.compact((arm, idle), &output.path, progress)?;
                let elapsed = began.elapsed();
                load.end_during();
                let read = load.disk_read_bytes().zip(read_before);
                let after = sampler.counters();
                let hot_after = self.hot.resident();
                let (reports, failure) = match compacted {
                    Ok(reports) => (reports, None),
                    Err(error) => (Vec::new(), Some(error.to_string())),
                };
                if let Some(output) = reports.last().and_then(|report| report.outputs.first()) {
                    foreground.replace(std::slice::from_ref(&output.data_path))?;
                    foreground.expect_random();
                }
                wait(self.options.after, watcher)?;
                Ok(During {
                    elapsed,
                    reports,
                    failure,
                    inputs_before,
                    hot_before,
                    hot_after,
                    before,
                    after,
                    disk_read_bytes: read.map(|(after, before)| after.saturating_sub(before)),
                    began_s: (began - sampling_since).as_secs_f64(),
                })
            })();
            progress.end();
            let seen = sampling
                .join()
                .map_err(|_| Error::Internal("the sampler panicked".to_owned()))?;
            during.map(|during| (seen, during))
        })
    }

    /// Compacts, at the requested priority, until the time that a run has to last is over.
    ///
    /// The outer error stops the experiment, the inner one only this run.
    fn compact(
        &self,
        (arm, idle): (Arm, Duration),
        output: &Path,
        progress: &Progress,
    ) -> Result<Result<Vec<MergeReport>>> {
        let watcher = self.session.watcher;
        let Arm::Compaction(mut modes) = arm else {
            return wait(idle, watcher).map(|()| Ok(Vec::new()));
        };
        let options = self.options;
        if options.may_fall_back && arm == Arm::DIRECT {
            modes = IoPair {
                read: ReadMode::Auto,
                write: WriteMode::Auto,
            };
        }
        let compactions = Compactions {
            setup: options,
            modes,
            table: self.table,
            directory: output,
            keeps_last: true,
            read_bytes: &progress.compaction_read_bytes,
            is_cancelled: &|| watcher.is_cancelled(),
        };
        let began = Instant::now();
        let mut reports = Vec::new();
        let is_enough = |report| {
            reports.push(report);
            began.elapsed() >= options.least_compaction || reports.len() >= MOST_COMPACTIONS
        };
        // A thread of its own, since threads inherit their priority and cannot always get back.
        let result = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("compaction".to_owned());
            let thread = thread.spawn_scoped(scope, || {
                let set = options.compaction_priority.apply();
                set.map_err(Error::file("set the priority of", "the compaction"))?;
                compactions.run(|| Ok(()), is_enough)
            });
            let thread = thread.map_err(Error::thread("the compaction"))?;
            let panicked = |_| Error::Internal("the compaction panicked".to_owned());
            thread.join().map_err(panicked)?
        });
        match result {
            Err(error) if error.kind() == ErrorKind::Cancelled => Err(error),
            result => Ok(result.map(|()| reports)),
        }
    }

    /// The record of what was measured.
    fn record(
        &self,
        (arm, plan): (Arm, &Plan),
        mut seen: Seen,
        during: &During,
        result: &LoadResult,
        rows_not_found: u64,
    ) -> Run {
        let Seen { samples, intervals } = &mut seen;
        samples.iter_mut().for_each(|s| s.at_s -= during.began_s);
        let intervals = intervals.iter_mut();
        intervals.for_each(|i| i.start_s -= during.began_s);
        let vm = during.after.vmstat.since(&during.before.vmstat);
        let sum = |a, b| Some(vm.get(a)? + vm.get(b)?);
        let mut cpu = during.after.cpu_since(&during.before);
        if arm == Arm::Idle {
            // Without a compaction whatever is left is the experiment's own.
            cpu.harness_s += std::mem::take(&mut cpu.compaction_s);
        }
        Run {
            arm,
            attempt: plan.attempt(),
            before: result.latency(Phase::Before),
            during: result.latency(Phase::During),
            after: result.latency(Phase::After),
            compaction: self.compaction_record(during),
            hot_set: hot_set_record(self.hot, during, &seen.samples),
            memory: MemoryRecord {
                cgroup_refaults: during.after.cgroup_refaults_since(&during.before),
                machine_refaults: vm.get("workingset_refault_file"),
                pages_scanned: sum("pgscan_kswapd", "pgscan_direct"),
                pages_reclaimed: sum("pgsteal_kswapd", "pgsteal_direct"),
                allocation_stalls: vm.get("allocstall"),
                most_dirty_pages: most_dirty(&seen.samples),
            },
            pressure: during.after.pressure.since(&during.before.pressure),
            cpu,
            generator: GeneratorRecord {
                wake_up_p99_before_ns: result.wake_up_p99_ns(Phase::Before),
                wake_up_p99_during_ns: result.wake_up_p99_ns(Phase::During),
                is_unfinished: result.is_unfinished,
                rows_not_found,
            },
            intervals: seen.intervals,
            samples: seen.samples,
        }
    }

    fn compaction_record(&self, during: &During) -> Option<CompactionRecord> {
        let elapsed_s = during.elapsed.as_secs_f64();
        let per_s = |bytes: u64| bytes as f64 / elapsed_s.max(1e-9);
        let reports = &during.reports;
        let all = |bytes: fn(&MergeReport) -> u64| reports.iter().map(bytes).sum::<u64>();
        let last = reports.last()?;
        let rounds = u32::try_from(reports.len()).unwrap_or(u32::MAX);
        let data_file_bytes = self.table.data_file_bytes() * u64::from(rounds);
        let uncompressed = all(|report| report.input_uncompressed_bytes);
        // A fallback in any of them is one of the run.
        let modes = |report: &MergeReport| {
            let io = &report.io;
            (io.read_mode.clone(), io.write_mode.clone())
        };
        let is_odd =
            |report: &&MergeReport| !report.io.fallbacks.is_empty() || modes(report) != modes(last);
        let io = &reports.iter().find(is_odd).unwrap_or(last).io;
        let cold = |found: Option<HotAndCold>| found.map(|found| found.cold.resident);
        Some(CompactionRecord {
            rounds,
            elapsed_s,
            input_bytes: all(|report| report.input_bytes),
            input_uncompressed_bytes: uncompressed,
            data_file_bytes,
            output_bytes: all(|report| report.output_bytes),
            stored_bytes_per_s: per_s(data_file_bytes),
            uncompressed_bytes_per_s: per_s(uncompressed),
            throughput_limit_bytes_per_s: self.options.throughput_bytes_per_s.map(u64::from),
            read_mode: io.read_mode.clone(),
            write_mode: io.write_mode.clone(),
            backend: io.backend.clone(),
            fallbacks: io.fallbacks.clone(),
            input_pages: last.page_cache.input_pages,
            input_pages_before: during.inputs_before.map(|pages| pages.resident),
            input_pages_after: last.page_cache.input_pages_resident,
            cold_pages: during.hot_before.map_or(0, |found| found.cold.total),
            cold_pages_before: cold(during.hot_before),
            cold_pages_after: cold(during.hot_after),
            output_pages: last.page_cache.output_pages,
            output_pages_after: reports
                .iter()
                .filter_map(|report| report.page_cache.output_pages_resident)
                .max(),
        })
    }
}

fn hot_set_record(hot: &HotSet, during: &During, samples: &[Sample]) -> HotSetRecord {
    let resident = |pages: Option<HotAndCold>| pages.map(|pages| pages.hot.resident);
    let resident_before = resident(during.hot_before);
    let resident_after = resident(during.hot_after);
    let ends = resident_before.into_iter().chain(resident_after);
    let while_running = while_running(samples).filter_map(|sample| Some(sample.hot?.resident));
    let least_resident = while_running.chain(ends).min();
    let page_bytes = rustix::param::page_size() as u64;
    let read_again = during.disk_read_bytes.map(|bytes| bytes / page_bytes);
    HotSetRecord {
        pages: hot.page_count(),
        resident_before,
        least_resident,
        resident_after,
        read_again,
        evicted: resident_before
            .zip(resident_after)
            .zip(least_resident)
            .map(|((before, after), least)| evicted(before, least, after, read_again)),
    }
}

/// See [`HotSetRecord::evicted`].
fn evicted(before: u64, least: u64, after: u64, read_again: Option<u64>) -> u64 {
    let missing = before.saturating_sub(least);
    let in_all = read_again.map_or(0, |read| (before + read).saturating_sub(after));
    in_all.max(missing)
}

fn most_dirty(samples: &[Sample]) -> Option<u64> {
    let dirty = |sample: &Sample| Some(sample.inputs?.dirty? + sample.outputs?.dirty?);
    while_running(samples).filter_map(dirty).max()
}

fn while_running(samples: &[Sample]) -> impl Iterator<Item = &Sample> {
    samples.iter().filter(|s| s.phase == Phase::During)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_read_again_was_evicted_whether_or_not_it_is_missing() {
        // One of ten is missing at the end, and three have come back.
        assert_eq!(evicted(10, 8, 9, Some(3)), 4);
        // Some were missing before, and have been read since.
        assert_eq!(evicted(6, 6, 10, Some(4)), 0);
        // The compaction brought back what was missing.
        assert_eq!(evicted(10, 4, 10, Some(0)), 6);
        assert_eq!(evicted(10, 4, 10, None), 6);
    }
}

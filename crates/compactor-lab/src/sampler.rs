//! Sampler of the system every 100 ms or so during a run, and of the foreground load every second.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use compactor_io::residency;

use crate::cgroup::MemoryCgroup;
use crate::clocks::{CpuMeter, process_cpu_ns, thread_cpu_ns};
use crate::counters;
use crate::hot_set::HotSet;
use crate::load::{Load, Reads};
use crate::outcome::{CgroupMemory, Cpu, Interval, KernelCounters, Pages, Sample};

/// Reciprocal of the share of a processor that counting pages may take: each page costs a look, a page that
/// was evicted more than that, and reads would wait for it meanwhile.
const COUNTING_SHARE: u32 = 50;
/// Directories of an output within one another: staging is one.
const MOST_DEPTH: u32 = 4;

/// Files, cgroup, device and load that are sampled.
pub(crate) struct Sampler<'a> {
    pub(crate) hot: &'a HotSet,
    /// Files of the inputs.
    pub(crate) inputs: &'a [PathBuf],
    /// Directory of the output.
    pub(crate) output: &'a Path,
    pub(crate) cgroup: Option<&'a MemoryCgroup>,
    /// Name of the block device.
    pub(crate) device: Option<&'a str>,
    pub(crate) load: &'a Load,
    pub(crate) progress: &'a Progress,
    pub(crate) sample_interval: Duration,
    pub(crate) report_interval: Duration,
}

/// State of a run, shared with the sampler.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    is_over: AtomicBool,
    /// Uncompressed bytes that the compaction has read.
    pub(crate) compaction_read_bytes: AtomicU64,
    /// Processor time of the sampler's thread, and of the harness in other threads.
    pub(crate) harness: CpuMeter,
}

impl Progress {
    /// Lets the sampler end.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// The system at an instant, counters as the kernel has them.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    pub(crate) cgroup: Option<CgroupMemory>,
    pub(crate) vmstat: KernelCounters,
    pub(crate) pressure: KernelCounters,
    pub(crate) disk: Option<KernelCounters>,
    process_ns: u64,
    foreground_ns: u64,
    harness_ns: u64,
}

impl Counters {
    /// Processor time since `earlier`.
    pub(crate) fn cpu_since(&self, earlier: &Counters) -> Cpu {
        let seconds = |now: u64, before: u64| now.saturating_sub(before) as f64 / 1e9;
        let foreground_s = seconds(self.foreground_ns, earlier.foreground_ns);
        let harness_s = seconds(self.harness_ns, earlier.harness_ns);
        let process_s = seconds(self.process_ns, earlier.process_ns);
        Cpu {
            // The threads report their part a little later than the process has it.
            compaction_s: (process_s - foreground_s - harness_s).max(0.0),
            foreground_s,
            harness_s,
        }
    }

    pub(crate) fn cgroup_refaults_since(&self, earlier: &Counters) -> Option<u64> {
        let (now, earlier) = (self.cgroup?.refaults?, earlier.cgroup?.refaults?);
        Some(now.saturating_sub(earlier))
    }
}

/// Samples and intervals of a run. Times are since the sampler's start, to be moved to that of the compaction.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) samples: Vec<Sample>,
    pub(crate) intervals: Vec<Interval>,
}

impl Sampler<'_> {
    /// The counters now.
    pub(crate) fn counters(&self) -> Counters {
        let (load, progress) = (self.load, self.progress);
        Counters {
            cgroup: self.cgroup.map(MemoryCgroup::memory),
            vmstat: counters::vmstat(),
            pressure: counters::pressure(),
            disk: self.device.and_then(counters::disk),
            process_ns: process_cpu_ns(),
            foreground_ns: load.cpu_ns(),
            harness_ns: progress.harness.ns(),
        }
    }

    /// Samples until the run is over. `notify` receives each interval, and the number of reads so far.
    pub(crate) fn watch(&self, notify: &dyn Fn(&Interval, u64)) -> Seen {
        let (load, progress) = (self.load, self.progress);
        let mut added_ns = progress.harness.add(thread_cpu_ns());
        let first = self.counters();
        let started = Instant::now();
        let mut seen = Seen::default();
        let mut interval_from = started;
        let mut interval_phase = load.phase();
        let mut operations = 0;
        let mut count_at = Duration::ZERO;
        // Reads before this are in no interval.
        drop(load.take_interval());
        let next_of = |count: usize| started + self.sample_interval * count as u32;
        loop {
            let is_last = progress.is_over.load(Ordering::Relaxed);
            let at_s = started.elapsed().as_secs_f64();
            let is_due = is_last || started.elapsed() >= count_at;
            let counted = is_due.then(|| {
                let before = thread_cpu_ns();
                let counted = self.count_pages();
                let cost = Duration::from_nanos(thread_cpu_ns().saturating_sub(before));
                count_at = started.elapsed() + cost * COUNTING_SHARE;
                counted
            });
            let counted = counted.unwrap_or_default();
            seen.samples.push(self.sample(&first, at_s, counted));
            let now = Instant::now();
            if now - interval_from >= self.report_interval || is_last {
                let Reads { latency, errors } = load.take_interval();
                let interval = Interval {
                    start_s: (interval_from - started).as_secs_f64(),
                    duration_s: (now - interval_from).as_secs_f64(),
                    phase: interval_phase,
                    operations: latency.len(),
                    errors,
                    mean_ns: latency.mean(),
                    p50_ns: latency.value_at_quantile(0.5),
                    p99_ns: latency.value_at_quantile(0.99),
                    p999_ns: latency.value_at_quantile(0.999),
                    max_ns: latency.max(),
                };
                operations += interval.operations + interval.errors;
                notify(&interval, operations);
                seen.intervals.push(interval);
                interval_from = now;
                interval_phase = load.phase();
            }
            added_ns = progress.harness.add(added_ns);
            if is_last {
                return seen;
            }
            // After a slow sample the others catch up, but not all at once.
            let next = next_of(seen.samples.len()).max(Instant::now() + self.sample_interval / 4);
            while Instant::now() < next && !progress.is_over.load(Ordering::Relaxed) {
                let left = next.saturating_duration_since(Instant::now());
                std::thread::sleep(left.min(Duration::from_millis(20)));
            }
        }
    }

    /// Pages of the hot set, the inputs and the outputs.
    fn count_pages(&self) -> [Option<Pages>; 3] {
        [
            self.hot.resident().map(|found| found.hot),
            pages_of(self.inputs),
            pages_of(&files_below(self.output, MOST_DEPTH)),
        ]
    }

    fn sample(
        &self,
        first: &Counters,
        at_s: f64,
        [hot, inputs, outputs]: [Option<Pages>; 3],
    ) -> Sample {
        let now = self.counters();
        let cgroup = now.cgroup.map(|found| CgroupMemory {
            refaults: now.cgroup_refaults_since(first),
            ..found
        });
        let disk = now.disk.as_ref().zip(first.disk.as_ref());
        let read_bytes = &self.progress.compaction_read_bytes;
        Sample {
            at_s,
            phase: self.load.phase(),
            hot,
            inputs,
            outputs,
            cgroup,
            vmstat: now.vmstat.since(&first.vmstat),
            pressure: now.pressure.since(&first.pressure),
            disk: disk.map(|(now, first)| now.since(first)),
            cpu: now.cpu_since(first),
            compaction_read_bytes: read_bytes.load(Ordering::Relaxed),
        }
    }
}

/// Pages of files, of those that are still there; `None` where the kernel does not report them.
pub(crate) fn pages_of(files: &[PathBuf]) -> Option<Pages> {
    let mut sum = Pages {
        dirty: Some(0),
        writeback: Some(0),
        ..Pages::default()
    };
    for path in files {
        let Ok(found) = residency(path) else {
            continue;
        };
        sum.total += found.pages_total;
        sum.resident += found.pages_resident?;
        sum.dirty = sum.dirty.zip(found.dirty).map(|(a, b)| a + b);
        sum.writeback = sum.writeback.zip(found.writeback).map(|(a, b)| a + b);
    }
    Some(sum)
}

/// Regular files in a directory and in those below it.
pub(crate) fn files_below(directory: &Path, depth: u32) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in compactor_io::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
    {
        match entry.file_type() {
            Ok(kind) if kind.is_file() => files.push(entry.path()),
            Ok(kind) if kind.is_dir() && depth > 0 => {
                files.extend(files_below(&entry.path(), depth - 1));
            }
            _ => {}
        }
    }
    files
}

//! Open-loop load: reads start on a schedule, not when the one before is done; or closed-loop, to measure the
//! most reads per second, each when the one before is done.
//!
//! Each thread has a schedule of its own, a Poisson process of its share of the rate; together they are
//! one of the whole rate. A read that is held up makes those after it late, and each of them is counted
//! from the moment at which it was to start: this avoids coordinated omission.

use compactor_io::lock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use compactor::Result;
use hdrhistogram::Histogram;
use rustix::thread::{Pid, gettid};

use crate::clocks::{CpuMeter, thread_cpu_ns};
use crate::counters::disk_read_bytes_of;
use crate::outcome::{CurvePoint, Latency, Phase};
use crate::random::Random;

/// Latencies beyond are counted as this.
const LONGEST: Duration = Duration::from_secs(300);
/// Time at the end for reads that are due already.
const DRAIN: Duration = Duration::from_secs(5);
/// Interval at which a sleeping thread checks whether it is to stop.
const NAP: Duration = Duration::from_millis(50);
/// Reads between two additions of the thread's processor time: few, since a short phase has some thirty per thread.
const CPU_EVERY: u64 = 8;
const PHASES: usize = 3;
const UNSET: u64 = u64::MAX;

/// Pace of reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    /// On a schedule, with a rate over all threads.
    Open {
        /// Reads per second.
        per_s: f64,
    },
    /// Each when the one before it in its thread is done: the most that there can be. Their latencies omit
    /// reads that would have waited for a stall to end.
    Closed,
}

/// Threads that read at a pace.
pub(crate) struct Load {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Phases>>,
}

struct Shared {
    started: Instant,
    /// Nanoseconds since `started`.
    during_from: AtomicU64,
    during_to: AtomicU64,
    stop_at: AtomicU64,
    is_abandoned: AtomicBool,
    cpu: CpuMeter,
    /// Ids of the threads that have begun.
    thread_ids: Mutex<Vec<Pid>>,
    intervals: Vec<Mutex<Reads>>,
    first_error: Mutex<Option<String>>,
    /// A thread was given up, with reads that were still due.
    is_unfinished: AtomicBool,
}

/// Reads of a span of time.
pub(crate) struct Reads {
    pub(crate) latency: Histogram<u64>,
    pub(crate) errors: u64,
}

/// Reads of a phase.
struct PhaseReads {
    reads: Reads,
    /// Delay with which threads that slept were woken.
    wake_up: Histogram<u64>,
    /// Completed in the phase, whenever they were to start.
    completed: u64,
}

type Phases = [PhaseReads; PHASES];

/// Result of a load.
pub(crate) struct LoadResult {
    phases: Phases,
    /// Length of each phase.
    durations: [Duration; PHASES],
    /// Error of the first read that failed.
    pub(crate) first_error: Option<String>,
    /// Reads were still due when the time was over for good.
    pub(crate) is_unfinished: bool,
}

impl Load {
    /// Starts reading at a pace over `threads`; `reads` makes the read of each, whose error is a sentence.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub(crate) fn start<R: FnMut() -> Result<(), String> + Send + 'static>(
        threads: u32,
        pace: Pace,
        seed: u64,
        mut reads: impl FnMut(u32) -> R,
    ) -> Result<Load> {
        let threads = threads.max(1);
        let shared = Arc::new(Shared {
            started: Instant::now(),
            during_from: AtomicU64::new(UNSET),
            during_to: AtomicU64::new(UNSET),
            stop_at: AtomicU64::new(UNSET),
            is_abandoned: AtomicBool::new(false),
            cpu: CpuMeter::default(),
            thread_ids: Mutex::new(Vec::new()),
            intervals: (0..threads).map(|_| Mutex::new(Reads::new())).collect(),
            first_error: Mutex::new(None),
            is_unfinished: AtomicBool::new(false),
        });
        let mut load = Load {
            shared: Arc::clone(&shared),
            threads: Vec::new(),
        };
        let mean_ns = match pace {
            Pace::Open { per_s } => Some(1e9 * f64::from(threads) / per_s),
            Pace::Closed => None,
        };
        for thread in 0..threads {
            let mut schedule = Schedule {
                random: Random::new(seed, u64::from(thread)),
                mean_ns,
                next_ns: 0.0,
            };
            let mut reads = reads(thread);
            let shared = Arc::clone(&shared);
            let started = std::thread::Builder::new()
                .name(format!("foreground-{thread}"))
                .spawn(move || shared.run(thread as usize, &mut schedule, &mut reads));
            // Those that run already stop when `load` is dropped.
            load.threads
                .push(started.map_err(compactor::Error::file("start a thread for", "reads"))?);
        }
        Ok(load)
    }

    /// Begins the time of the compaction, for reads that are to start from now on.
    pub(crate) fn begin_during(&self) {
        self.shared
            .during_from
            .store(self.shared.now_ns(), Ordering::Relaxed);
    }

    /// Ends the time of the compaction.
    pub(crate) fn end_during(&self) {
        self.shared
            .during_to
            .store(self.shared.now_ns(), Ordering::Relaxed);
    }

    /// The phase that it is now.
    pub(crate) fn phase(&self) -> Phase {
        self.shared.phase_of(self.shared.now_ns())
    }

    /// Processor nanoseconds of the threads so far.
    pub(crate) fn cpu_ns(&self) -> u64 {
        self.shared.cpu.ns()
    }

    /// Bytes that the threads have made the disk read so far, readahead and page faults included; `None`
    /// where the kernel does not report them.
    pub(crate) fn disk_read_bytes(&self) -> Option<u64> {
        let threads = lock(&self.shared.thread_ids);
        threads.iter().map(|&id| disk_read_bytes_of(id)).sum()
    }

    /// Takes the reads since the last call.
    pub(crate) fn take_interval(&self) -> Reads {
        let mut all = Reads::new();
        for interval in &self.shared.intervals {
            let mut reads = lock(interval);
            all.add(&reads);
            reads.latency.reset();
            reads.errors = 0;
        }
        all
    }

    /// Stops when all reads that are due by now are done.
    pub(crate) fn finish(mut self) -> LoadResult {
        let stop_at = self.shared.now_ns();
        self.shared.stop_at.store(stop_at, Ordering::Relaxed);
        let shared = &self.shared;
        let mut phases = no_reads();
        for thread in std::mem::take(&mut self.threads) {
            let Ok(own) = thread.join() else {
                lock(&shared.first_error)
                    .get_or_insert_with(|| "a reader thread panicked".to_owned());
                shared.is_unfinished.store(true, Ordering::Relaxed);
                continue;
            };
            for (phase, own) in phases.iter_mut().zip(&own) {
                phase.reads.add(&own.reads);
                // Of one shape, as in `Reads`.
                let _ = phase.wake_up.add(&own.wake_up);
                phase.completed += own.completed;
            }
        }
        let from = shared.during_from.load(Ordering::Relaxed).min(stop_at);
        let to = shared.during_to.load(Ordering::Relaxed).min(stop_at);
        LoadResult {
            phases,
            durations: [from, to.saturating_sub(from), stop_at.saturating_sub(to)]
                .map(Duration::from_nanos),
            first_error: lock(&shared.first_error).take(),
            is_unfinished: shared.is_unfinished.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.shared.is_abandoned.store(true, Ordering::Relaxed);
        for thread in std::mem::take(&mut self.threads) {
            let _ = thread.join();
        }
    }
}

struct Schedule {
    random: Random,
    /// Between two reads; `None` for no time at all.
    mean_ns: Option<f64>,
    next_ns: f64,
}

impl Schedule {
    /// Time at which the next read is to start.
    fn next(&mut self, now_ns: u64) -> u64 {
        let Some(mean_ns) = self.mean_ns else {
            return now_ns;
        };
        self.next_ns += self.random.exponential() * mean_ns;
        self.next_ns as u64
    }
}

impl Shared {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn phase_of(&self, at_ns: u64) -> Phase {
        if at_ns < self.during_from.load(Ordering::Relaxed) {
            Phase::Before
        } else if at_ns < self.during_to.load(Ordering::Relaxed) {
            Phase::During
        } else {
            Phase::After
        }
    }

    fn run(
        &self,
        thread: usize,
        schedule: &mut Schedule,
        read: &mut dyn FnMut() -> Result<(), String>,
    ) -> Phases {
        // By default the kernel lets a sleeper oversleep by 50 us, to wake several at once. Without
        // the right to less, that is in the figures.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        lock(&self.thread_ids).push(gettid());
        let mut phases = no_reads();
        let mut added_ns = self.cpu.add(thread_cpu_ns());
        let mut count = 0u64;
        loop {
            let due = schedule.next(self.now_ns());
            let Some(woken) = self.wait_until(due) else {
                break;
            };
            let now = self.now_ns();
            let stop_at = self.stop_at.load(Ordering::Relaxed);
            if stop_at != UNSET && now > stop_at.saturating_add(DRAIN.as_nanos() as u64) {
                self.is_unfinished.store(true, Ordering::Relaxed);
                break;
            }
            let result = read();
            let done = self.now_ns();
            let phase = self.phase_of(due);
            phases[self.phase_of(done) as usize].completed += 1;
            let latency_ns = result.is_ok().then(|| done.saturating_sub(due));
            lock(&self.intervals[thread]).record(latency_ns);
            let of_phase = &mut phases[phase as usize];
            of_phase.reads.record(latency_ns);
            if let Some(late_ns) = woken {
                of_phase.wake_up.saturating_record(late_ns);
            }
            if let Err(reason) = result {
                lock(&self.first_error).get_or_insert(reason);
            }
            count += 1;
            if count.is_multiple_of(CPU_EVERY) {
                added_ns = self.cpu.add(added_ns);
            }
        }
        self.cpu.add(added_ns);
        phases
    }

    /// Sleeps until a read is due, and returns how late the thread was woken, if it slept. `None` if the read
    /// is cancelled.
    fn wait_until(&self, due: u64) -> Option<Option<u64>> {
        let mut slept = false;
        loop {
            if self.is_abandoned.load(Ordering::Relaxed)
                || due > self.stop_at.load(Ordering::Relaxed)
            {
                return None;
            }
            let now = self.now_ns();
            if now >= due {
                return Some(slept.then_some(now - due));
            }
            std::thread::sleep(Duration::from_nanos(due - now).min(NAP));
            slept = true;
        }
    }
}

impl Reads {
    fn new() -> Reads {
        Reads {
            latency: histogram(),
            errors: 0,
        }
    }

    /// Adds a read; `None` for one that failed.
    fn record(&mut self, latency_ns: Option<u64>) {
        match latency_ns {
            Some(latency_ns) => self.latency.saturating_record(latency_ns),
            None => self.errors += 1,
        }
    }

    fn add(&mut self, other: &Reads) {
        // Of one shape, so that nothing can be out of bounds.
        let _ = self.latency.add(&other.latency);
        self.errors += other.errors;
    }
}

fn no_reads() -> Phases {
    std::array::from_fn(|_| PhaseReads {
        reads: Reads::new(),
        wake_up: histogram(),
        completed: 0,
    })
}

impl LoadResult {
    /// Latencies of the reads that were to start in a phase.
    pub(crate) fn latency(&self, phase: Phase) -> Latency {
        let duration_s = self.durations[phase as usize].as_secs_f64();
        let PhaseReads {
            reads, completed, ..
        } = &self.phases[phase as usize];
        let (found, errors) = (&reads.latency, reads.errors);
        let per_s = |count: u64| {
            if duration_s > 0.0 {
                count as f64 / duration_s
            } else {
                0.0
            }
        };
        Latency {
            operations: found.len(),
            errors,
            duration_s,
            intended_per_s: per_s(found.len() + errors),
            achieved_per_s: per_s(*completed),
            mean_ns: found.mean(),
            stdev_ns: found.stdev(),
            min_ns: found.min(),
            p50_ns: found.value_at_quantile(0.5),
            p90_ns: found.value_at_quantile(0.9),
            p95_ns: found.value_at_quantile(0.95),
            p99_ns: found.value_at_quantile(0.99),
            p999_ns: found.value_at_quantile(0.999),
            p9999_ns: found.value_at_quantile(0.9999),
            max_ns: found.max(),
            curve: curve(found),
        }
    }

    /// 99th percentile of the delay with which sleeping threads were woken for reads of a phase.
    pub(crate) fn wake_up_p99_ns(&self, phase: Phase) -> u64 {
        self.phases[phase as usize].wake_up.value_at_quantile(0.99)
    }
}

fn curve(found: &Histogram<u64>) -> Vec<CurvePoint> {
    let mut operations = 0;
    let mut points = Vec::new();
    if found.is_empty() {
        return points;
    }
    for step in found.iter_quantiles(5) {
        operations += step.count_since_last_iteration();
        points.push(CurvePoint {
            percentile: 100.0 * step.quantile_iterated_to(),
            latency_ns: step.value_iterated_to().min(found.max()),
            operations,
        });
    }
    points
}

fn histogram() -> Histogram<u64> {
    let longest = u64::try_from(LONGEST.as_nanos()).unwrap_or(u64::MAX);
    match Histogram::new_with_bounds(1, longest, 3) {
        Ok(histogram) => histogram,
        // 1 to 300 s at 3 digits is a shape that it accepts; a test makes one.
        Err(error) => unreachable!("{error}"),
    }
}

#[cfg(test)]
mod tests;

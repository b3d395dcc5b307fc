//! The time of day, and processor time of the process and of single threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds that threads have spent on processors, added by the threads themselves from time to time.
#[derive(Debug, Default)]
pub(crate) struct CpuMeter(AtomicU64);

impl CpuMeter {
    /// Adds the time that the calling thread has spent since it last added its time, at `added_ns`, and
    /// returns the time that it has spent altogether.
    pub(crate) fn add(&self, added_ns: u64) -> u64 {
        let now = thread_cpu_ns();
        self.0
            .fetch_add(now.saturating_sub(added_ns), Ordering::Relaxed);
        now
    }

    pub(crate) fn ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Milliseconds since 1970; 0 before.
pub(crate) fn unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

/// Processor time of the calling thread, since it was started.
pub(crate) fn thread_cpu_ns() -> u64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

/// Processor time of all threads of the process, also those that have ended.
pub(crate) fn process_cpu_ns() -> u64 {
    nanoseconds(ClockId::ProcessCPUTime)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

//! Resource usage of this process.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, DynamicClockId, clock_gettime_dynamic};

/// Processor time and memory of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time on processors, user and system, over all threads.
    pub cpu: Duration,
    /// Largest resident set so far, bytes. Counts from the start of the process.
    pub peak_rss_bytes: u64,
}

impl Usage {
    /// Returns the current usage. CPU time comes from the process clock; `/proc` has it only in hundredths of
    /// a second. Memory is 0 without `/proc`.
    pub fn now() -> Usage {
        // Unlike the function for clocks that never fail, this one does not panic in a sandbox.
        let cpu = clock_gettime_dynamic(DynamicClockId::Known(ClockId::ProcessCPUTime));
        let cpu = cpu.map_or(Duration::ZERO, |cpu| {
            let seconds = u64::try_from(cpu.tv_sec).unwrap_or_default();
            let nanoseconds = u32::try_from(cpu.tv_nsec).unwrap_or_default();
            Duration::new(seconds, nanoseconds)
        });
        let peak = fs::read_to_string("/proc/self/status")
            .ok()
            .and_then(|s| peak_rss(&s));
        Usage {
            cpu,
            peak_rss_bytes: peak.unwrap_or_default(),
        }
    }

    /// The processor time since `earlier`, and the peak as it is now.
    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            peak_rss_bytes: self.peak_rss_bytes,
        }
    }
}

fn peak_rss(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_proc() {
        assert_eq!(peak_rss("Name:\tx\nVmHWM:\t   1024 kB\n"), Some(1 << 20));
        assert!(Usage::now().peak_rss_bytes > 0);
    }

    #[test]
    fn work_takes_time_on_the_processor() {
        let before = Usage::now();
        let sum: u64 = (0..1_000_000u64).map(std::hint::black_box).sum();
        assert!(sum > 0);
        assert!(Usage::now().since(&before).cpu > Duration::ZERO);
    }
}

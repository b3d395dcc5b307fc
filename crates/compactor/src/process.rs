//! What this process has used so far.

use std::fs;
use std::time::Duration;

/// Processor time and memory of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time on processors, user and system, over all threads.
    pub cpu: Duration,
    /// Largest resident set so far, bytes. Counts from the start of the process.
    pub peak_rss_bytes: u64,
}

impl Usage {
    /// Reads `/proc/self`; zeros where it is missing.
    pub fn now() -> Usage {
        let cpu = fs::read_to_string("/proc/self/stat")
            .ok()
            .and_then(|s| cpu_time(&s));
        let peak = fs::read_to_string("/proc/self/status")
            .ok()
            .and_then(|s| peak_rss(&s));
        Usage {
            cpu: cpu.unwrap_or_default(),
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

/// User and system time from `/proc/self/stat`, in clock ticks there.
fn cpu_time(stat: &str) -> Option<Duration> {
    // The command's name stands in parentheses and may hold anything.
    let rest = &stat[stat.rfind(')')? + 1..];
    let mut fields = rest.split_ascii_whitespace();
    // Fields 14 and 15 of the line; the name was field 2.
    let user: u64 = fields.nth(11)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
    Some(Duration::from_millis(
        (user + system) * 1000 / ticks_per_second,
    ))
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
        let stat = "12 (a) b) S 1 1 1 0 -1 0 1 2 3 4 150 50 0 0";
        let ticks = rustix::param::clock_ticks_per_second();
        assert_eq!(
            cpu_time(stat),
            Some(Duration::from_millis(200 * 1000 / ticks))
        );
        assert_eq!(peak_rss("Name:\tx\nVmHWM:\t   1024 kB\n"), Some(1 << 20));
        assert!(Usage::now().peak_rss_bytes > 0);
    }
}

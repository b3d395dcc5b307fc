//! Counters of the kernel: `/proc/vmstat`, `/proc/pressure`, `/proc/diskstats`.

use std::fs;

use rustix::thread::Pid;

use crate::outcome::{DiskStats, Pressure, VmStat};

/// `/proc/vmstat` since boot; what is not there is `None`.
pub(crate) fn vmstat() -> VmStat {
    parse_vmstat(&fs::read_to_string("/proc/vmstat").unwrap_or_default())
}

/// Stalls since boot; what is not there is `None`: kernels without PSI, and those that were not told
/// `psi=1`.
pub(crate) fn pressure() -> Pressure {
    let read = |what: &str| fs::read_to_string(format!("/proc/pressure/{what}"));
    let memory = read("memory").unwrap_or_default();
    let io = read("io").unwrap_or_default();
    Pressure {
        memory_some_us: stall(&memory, "some"),
        memory_full_us: stall(&memory, "full"),
        io_some_us: stall(&io, "some"),
        io_full_us: stall(&io, "full"),
    }
}

/// Bytes that a thread of this process has made the disk read; `None` where the kernel does not count.
pub(crate) fn disk_read_bytes_of(thread: Pid) -> Option<u64> {
    let path = format!("/proc/self/task/{}/io", thread.as_raw_nonzero());
    parse_read_bytes(&fs::read_to_string(path).ok()?)
}

fn parse_read_bytes(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix("read_bytes: ")?.parse().ok())
}

/// A device's counters since boot, by its name.
pub(crate) fn disk(name: &str) -> Option<DiskStats> {
    parse_disk(&fs::read_to_string("/proc/diskstats").ok()?, name)
}

fn parse_vmstat(text: &str) -> VmStat {
    let sum = |wanted: &dyn Fn(&str) -> bool| {
        let mut found = None;
        for line in text.lines() {
            if let Some((name, value)) = line.split_once(' ')
                && wanted(name)
                && let Ok(value) = value.trim().parse::<u64>()
            {
                *found.get_or_insert(0) += value;
            }
        }
        found
    };
    let one = |name: &'static str| sum(&move |found| found == name);
    VmStat {
        pgscan_kswapd: one("pgscan_kswapd"),
        pgscan_direct: one("pgscan_direct"),
        pgsteal_kswapd: one("pgsteal_kswapd"),
        pgsteal_direct: one("pgsteal_direct"),
        // One for each zone.
        allocstall: sum(&|name| name == "allocstall" || name.starts_with("allocstall_")),
        workingset_refault_file: one("workingset_refault_file")
            .or_else(|| one("workingset_refault")),
    }
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`
fn stall(text: &str, kind: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(kind))?;
    line.rsplit_once("total=")?.1.trim().parse().ok()
}

/// Sectors are of 512 bytes here, whatever the device has.
fn parse_disk(text: &str, name: &str) -> Option<DiskStats> {
    let line = text
        .lines()
        .find(|line| line.split_ascii_whitespace().nth(2) == Some(name))?;
    let fields: Vec<u64> = line
        .split_ascii_whitespace()
        .skip(3)
        .map_while(|field| field.parse().ok())
        .collect();
    let field = |index: usize| fields.get(index).copied();
    Some(DiskStats {
        reads: field(0)?,
        read_bytes: field(2)? * 512,
        read_ms: field(3)?,
        writes: field(4)?,
        written_bytes: field(6)? * 512,
        write_ms: field(7)?,
        in_flight: field(8)?,
        busy_ms: field(9)?,
        queue_ms: field(10)?,
    })
}

/// Counts from another moment on.
pub(crate) trait Since {
    /// What has come since `earlier`.
    fn since(&self, earlier: &Self) -> Self;
}

pub(crate) fn difference(now: Option<u64>, earlier: Option<u64>) -> Option<u64> {
    Some(now?.saturating_sub(earlier?))
}

impl Since for VmStat {
    fn since(&self, earlier: &VmStat) -> VmStat {
        VmStat {
            pgscan_kswapd: difference(self.pgscan_kswapd, earlier.pgscan_kswapd),
            pgscan_direct: difference(self.pgscan_direct, earlier.pgscan_direct),
            pgsteal_kswapd: difference(self.pgsteal_kswapd, earlier.pgsteal_kswapd),
            pgsteal_direct: difference(self.pgsteal_direct, earlier.pgsteal_direct),
            allocstall: difference(self.allocstall, earlier.allocstall),
            workingset_refault_file: difference(
                self.workingset_refault_file,
                earlier.workingset_refault_file,
            ),
        }
    }
}

impl Since for Pressure {
    fn since(&self, earlier: &Pressure) -> Pressure {
        Pressure {
            memory_some_us: difference(self.memory_some_us, earlier.memory_some_us),
            memory_full_us: difference(self.memory_full_us, earlier.memory_full_us),
            io_some_us: difference(self.io_some_us, earlier.io_some_us),
            io_full_us: difference(self.io_full_us, earlier.io_full_us),
        }
    }
}

impl Since for DiskStats {
    fn since(&self, earlier: &DiskStats) -> DiskStats {
        DiskStats {
            reads: self.reads.saturating_sub(earlier.reads),
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            read_ms: self.read_ms.saturating_sub(earlier.read_ms),
            writes: self.writes.saturating_sub(earlier.writes),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
            write_ms: self.write_ms.saturating_sub(earlier.write_ms),
            in_flight: self.in_flight,
            busy_ms: self.busy_ms.saturating_sub(earlier.busy_ms),
            queue_ms: self.queue_ms.saturating_sub(earlier.queue_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_parsed_and_what_is_missing_is_none() {
        let text = "pgscan_kswapd 5\npgscan_direct_throttle 9\nallocstall_dma 1\nallocstall_normal 2\n\
                    workingset_refault_anon 3\nworkingset_refault_file 4\n";
        let found = parse_vmstat(text);
        assert_eq!(found.pgscan_kswapd, Some(5));
        assert_eq!(found.pgscan_direct, None);
        assert_eq!(found.allocstall, Some(3));
        assert_eq!(found.workingset_refault_file, Some(4));
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=17\nfull avg10=0 total=4\n";
        assert_eq!(
            (stall(text, "some"), stall(text, "full")),
            (Some(17), Some(4))
        );
        assert_eq!(stall("", "some"), None);
    }

    #[test]
    fn a_thread_is_asked_for_what_it_read_from_disk() {
        let text = "rchar: 10\nsyscr: 1\nread_bytes: 8192\ncancelled_write_bytes: 0\n";
        assert_eq!(parse_read_bytes(text), Some(8192));
        assert_eq!(parse_read_bytes("rchar: 10\n"), None);
    }

    #[test]
    fn diskstats_are_of_the_device_itself() {
        let text = " 254 0 vda 10 1 80 5 20 2 160 7 3 11 13 0 0 0 0\n\
                    254 1 vda1 1 0 8 1 0 0 0 0 0 1 1\n";
        let found = parse_disk(text, "vda").unwrap();
        assert_eq!(
            (found.reads, found.read_bytes, found.read_ms),
            (10, 40_960, 5)
        );
        assert_eq!((found.writes, found.written_bytes), (20, 81_920));
        assert_eq!(
            (found.in_flight, found.busy_ms, found.queue_ms),
            (3, 11, 13)
        );
        assert!(parse_disk(text, "vd").is_none());
        let later = DiskStats { reads: 15, ..found };
        assert_eq!(later.since(&found).reads, 5);
        assert_eq!(later.since(&found).in_flight, 3);
    }
}

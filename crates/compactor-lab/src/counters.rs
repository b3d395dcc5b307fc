//! Counters of the kernel: `/proc/vmstat`, `/proc/pressure`, `/proc/diskstats`.

use procfs::process::Io;
use procfs::{Current, DiskStat, FromRead, IoPressure, MemoryPressure};
use rustix::thread::Pid;

use crate::outcome::KernelCounters;

/// Length of a sector in `/proc/diskstats`, whatever that of the device is.
const SECTOR: u64 = 512;

/// Reclaim and refaults of the machine.
pub(crate) fn vmstat() -> KernelCounters {
    let all = procfs::vmstat().unwrap_or_default();
    let one = |name: &str| u64::try_from(*all.get(name)?).ok();
    // One for each zone.
    let stalls = all
        .iter()
        .filter(|(name, _)| name.starts_with("allocstall"));
    let stalls: Option<u64> = stalls.map(|(_, count)| u64::try_from(*count).ok()).sum();
    // One counter until 5.9.
    let refaults = one("workingset_refault_file").or_else(|| one("workingset_refault"));
    KernelCounters::from([
        ("pgscan_kswapd", one("pgscan_kswapd")),
        ("pgscan_direct", one("pgscan_direct")),
        ("pgsteal_kswapd", one("pgsteal_kswapd")),
        ("pgsteal_direct", one("pgsteal_direct")),
        ("allocstall", stalls.filter(|_| !all.is_empty())),
        ("workingset_refault_file", refaults),
    ])
}

/// Stalls of the machine, microseconds.
pub(crate) fn pressure() -> KernelCounters {
    let (memory, io) = (MemoryPressure::current().ok(), IoPressure::current().ok());
    let memory = memory.map(|it| (it.some.total, it.full.total)).unzip();
    let io = io.map(|it| (it.some.total, it.full.total)).unzip();
    KernelCounters::from([
        ("memory_some_us", memory.0),
        ("memory_full_us", memory.1),
        ("io_some_us", io.0),
        ("io_full_us", io.1),
    ])
}

/// Bytes that a thread of this process had the disk read; `None` where the kernel does not report them.
pub(crate) fn disk_read_bytes_of(thread: Pid) -> Option<u64> {
    let path = format!("/proc/self/task/{}/io", thread.as_raw_nonzero());
    Some(Io::from_file(path).ok()?.read_bytes)
}

/// Requests of a block device.
pub(crate) fn disk(name: &str) -> Option<KernelCounters> {
    let all = procfs::diskstats().ok()?;
    all.iter().find(|disk| disk.name == name).map(counters_of)
}

fn counters_of(disk: &DiskStat) -> KernelCounters {
    KernelCounters::from([
        ("reads", Some(disk.reads)),
        ("read_bytes", Some(disk.sectors_read * SECTOR)),
        ("read_ms", Some(disk.time_reading)),
        ("writes", Some(disk.writes)),
        ("written_bytes", Some(disk.sectors_written * SECTOR)),
        ("write_ms", Some(disk.time_writing)),
        ("in_flight", Some(disk.in_progress)),
        ("busy_ms", Some(disk.time_in_progress)),
        ("queue_ms", Some(disk.weighted_time_in_progress)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_those_of_the_kernel() {
        assert!(vmstat().get("pgscan_kswapd").is_some() && vmstat().get("allocstall").is_some());
        let thread = rustix::thread::gettid();
        let counts_io = std::path::Path::new("/proc/self/io").exists();
        assert_eq!(disk_read_bytes_of(thread).is_some(), counts_io);
        let has_psi = std::fs::read("/proc/pressure/io").is_ok();
        assert_eq!(pressure().get("io_some_us").is_some(), has_psi);
    }

    #[test]
    fn diskstats_are_of_the_device_itself() {
        let line = " 254 0 vda 10 1 80 5 20 2 160 7 3 11 13 0 0 0 0";
        let found = counters_of(&DiskStat::from_line(line).unwrap());
        let of = |names: [&str; 3]| names.map(|name| found.get(name).unwrap());
        assert_eq!(of(["reads", "read_bytes", "read_ms"]), [10, 40_960, 5]);
        assert_eq!(of(["writes", "written_bytes", "write_ms"]), [20, 81_920, 7]);
        assert_eq!(of(["in_flight", "busy_ms", "queue_ms"]), [3, 11, 13]);
        let later = line.replacen(" 10 ", " 15 ", 1);
        let later = counters_of(&DiskStat::from_line(&later).unwrap());
        assert_eq!(later.since(&found).get("reads"), Some(5));
        assert_eq!(later.since(&found).get("in_flight"), Some(3));
        assert!(disk("no such device").is_none());
    }
}

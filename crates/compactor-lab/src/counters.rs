//! Counters of the kernel: `/proc/vmstat`, `/proc/pressure`, `/proc/diskstats`.

use procfs::process::Io;
use procfs::{Current, DiskStat, FromRead, IoPressure, MemoryPressure};
use rustix::thread::Pid;

use crate::outcome::{DiskStats, Pressure, VmStat};

/// Bytes of a sector in `/proc/diskstats`, whatever the device has.
const SECTOR: u64 = 512;

/// `/proc/vmstat` since boot; what is not there is `None`.
pub(crate) fn vmstat() -> VmStat {
    let all = procfs::vmstat().unwrap_or_default();
    let one = |name: &str| u64::try_from(*all.get(name)?).ok();
    // One for each zone.
    let stalls = all
        .iter()
        .filter(|(name, _)| name.starts_with("allocstall"));
    let stalls: Option<u64> = stalls.map(|(_, count)| u64::try_from(*count).ok()).sum();
    VmStat {
        pgscan_kswapd: one("pgscan_kswapd"),
        pgscan_direct: one("pgscan_direct"),
        pgsteal_kswapd: one("pgsteal_kswapd"),
        pgsteal_direct: one("pgsteal_direct"),
        allocstall: stalls.filter(|_| !all.is_empty()),
        // One counter until 5.9.
        workingset_refault_file: one("workingset_refault_file")
            .or_else(|| one("workingset_refault")),
    }
}

/// Stalls since boot; what is not there is `None`: kernels without PSI, and those without `psi=1`.
pub(crate) fn pressure() -> Pressure {
    let (memory, io) = (MemoryPressure::current().ok(), IoPressure::current().ok());
    Pressure {
        memory_some_us: memory.as_ref().map(|memory| memory.some.total),
        memory_full_us: memory.as_ref().map(|memory| memory.full.total),
        io_some_us: io.as_ref().map(|io| io.some.total),
        io_full_us: io.as_ref().map(|io| io.full.total),
    }
}

/// Bytes that a thread of this process has made the disk read; `None` where the kernel does not count.
pub(crate) fn disk_read_bytes_of(thread: Pid) -> Option<u64> {
    let path = format!("/proc/self/task/{}/io", thread.as_raw_nonzero());
    Some(Io::from_file(path).ok()?.read_bytes)
}

/// A device's counters since boot, by its name.
pub(crate) fn disk(name: &str) -> Option<DiskStats> {
    let all = procfs::diskstats().ok()?;
    all.iter().find(|disk| disk.name == name).map(counters_of)
}

fn counters_of(disk: &DiskStat) -> DiskStats {
    DiskStats {
        reads: disk.reads,
        read_bytes: disk.sectors_read * SECTOR,
        read_ms: disk.time_reading,
        writes: disk.writes,
        written_bytes: disk.sectors_written * SECTOR,
        write_ms: disk.time_writing,
        in_flight: disk.in_progress,
        busy_ms: disk.time_in_progress,
        queue_ms: disk.weighted_time_in_progress,
    }
}

pub(crate) fn difference(now: Option<u64>, earlier: Option<u64>) -> Option<u64> {
    Some(now?.saturating_sub(earlier?))
}

impl VmStat {
    /// Counts since `earlier`.
    pub(crate) fn since(&self, earlier: &VmStat) -> VmStat {
        let since = |count: fn(&VmStat) -> Option<u64>| difference(count(self), count(earlier));
        VmStat {
            pgscan_kswapd: since(|s| s.pgscan_kswapd),
            pgscan_direct: since(|s| s.pgscan_direct),
            pgsteal_kswapd: since(|s| s.pgsteal_kswapd),
            pgsteal_direct: since(|s| s.pgsteal_direct),
            allocstall: since(|s| s.allocstall),
            workingset_refault_file: since(|s| s.workingset_refault_file),
        }
    }
}

impl Pressure {
    /// Stalls since `earlier`.
    pub(crate) fn since(&self, earlier: &Pressure) -> Pressure {
        let since = |stall: fn(&Pressure) -> Option<u64>| difference(stall(self), stall(earlier));
        Pressure {
            memory_some_us: since(|p| p.memory_some_us),
            memory_full_us: since(|p| p.memory_full_us),
            io_some_us: since(|p| p.io_some_us),
            io_full_us: since(|p| p.io_full_us),
        }
    }
}

impl DiskStats {
    /// Counts since `earlier`, and requests in flight now.
    pub(crate) fn since(&self, earlier: &DiskStats) -> DiskStats {
        let since = |count: fn(&DiskStats) -> u64| count(self).saturating_sub(count(earlier));
        DiskStats {
            reads: since(|d| d.reads),
            read_bytes: since(|d| d.read_bytes),
            read_ms: since(|d| d.read_ms),
            writes: since(|d| d.writes),
            written_bytes: since(|d| d.written_bytes),
            write_ms: since(|d| d.write_ms),
            in_flight: self.in_flight,
            busy_ms: since(|d| d.busy_ms),
            queue_ms: since(|d| d.queue_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_what_it_counts() {
        assert!(vmstat().pgscan_kswapd.is_some() && vmstat().allocstall.is_some());
        let thread = rustix::thread::gettid();
        let counts_io = std::path::Path::new("/proc/self/io").exists();
        assert_eq!(disk_read_bytes_of(thread).is_some(), counts_io);
        let has_psi = std::fs::read("/proc/pressure/io").is_ok();
        assert_eq!(pressure().io_some_us.is_some(), has_psi);
    }

    #[test]
    fn diskstats_are_of_the_device_itself() {
        let line = " 254 0 vda 10 1 80 5 20 2 160 7 3 11 13 0 0 0 0";
        let found = counters_of(&DiskStat::from_line(line).unwrap());
        assert_eq!(
            (found.reads, found.read_bytes, found.read_ms),
            (10, 40_960, 5)
        );
        assert_eq!((found.writes, found.written_bytes), (20, 81_920));
        assert_eq!(
            (found.in_flight, found.busy_ms, found.queue_ms),
            (3, 11, 13)
        );
        let later = DiskStats { reads: 15, ..found };
        assert_eq!(later.since(&found).reads, 5);
        assert_eq!(later.since(&found).in_flight, 3);
        assert!(disk("no such device").is_none());
    }
}

//! Samples of the system, every 100 ms or so.

use serde::{Deserialize, Serialize};

use super::Phase;

/// The system at one instant. Counters have counted since the first sample of the run; `None` is what
/// the system does not report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Time of the sample.
    pub at_s: f64,
    /// Phase of the run.
    pub phase: Phase,
    /// Pages of the hot set in the inputs. Pages are counted only with some of the samples, since that costs
    /// more than all else.
    pub hot: Option<Pages>,
    /// Pages of all files of the inputs.
    pub inputs: Option<Pages>,
    /// Pages of all files in the output's directory, also while they are being written.
    pub outputs: Option<Pages>,
    /// The cgroup, if there is one.
    pub cgroup: Option<CgroupMemory>,
    /// The machine's memory.
    pub vmstat: VmStat,
    /// Stalls of the machine.
    pub pressure: Pressure,
    /// The block device under the files.
    pub disk: Option<DiskStats>,
    /// Processor time.
    pub cpu: Cpu,
    /// Uncompressed bytes that the compaction has read.
    pub compaction_read_bytes: u64,
}

/// Pages of files, now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pages {
    /// Pages of the files.
    pub total: u64,
    /// Pages in the page cache.
    pub resident: u64,
    /// Dirty ones of these.
    pub dirty: Option<u64>,
    /// Pages that are being written, of these.
    pub writeback: Option<u64>,
}

/// A memory cgroup. Bytes are now; refaults have counted since the first sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupMemory {
    /// Charged altogether.
    pub usage_bytes: Option<u64>,
    /// Page cache.
    pub file_bytes: Option<u64>,
    /// Memory of processes.
    pub anon_bytes: Option<u64>,
    /// Dirty page cache.
    pub dirty_bytes: Option<u64>,
    /// Page cache that is being written.
    pub writeback_bytes: Option<u64>,
    /// Evicted pages of files that were soon needed again, count.
    pub refaults: Option<u64>,
}

/// `/proc/vmstat`; counts since the first sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmStat {
    /// Pages that kswapd scanned.
    pub pgscan_kswapd: Option<u64>,
    /// Pages that allocations scanned.
    pub pgscan_direct: Option<u64>,
    /// Pages that kswapd reclaimed.
    pub pgsteal_kswapd: Option<u64>,
    /// Pages that allocations reclaimed.
    pub pgsteal_direct: Option<u64>,
    /// Allocations that had to reclaim.
    pub allocstall: Option<u64>,
    /// Evicted pages of files that were soon needed again.
    pub workingset_refault_file: Option<u64>,
}

/// `/proc/pressure`; microseconds since the first sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pressure {
    /// Some task waited for memory.
    pub memory_some_us: Option<u64>,
    /// All tasks waited for memory.
    pub memory_full_us: Option<u64>,
    /// Some task waited for I/O.
    pub io_some_us: Option<u64>,
    /// All tasks waited for I/O.
    pub io_full_us: Option<u64>,
}

/// `/proc/diskstats` of the device; since the first sample, but for `in_flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskStats {
    /// Reads completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Milliseconds that reads took, all together.
    pub read_ms: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Milliseconds that writes took, all together.
    pub write_ms: u64,
    /// Requests in flight, now.
    pub in_flight: u64,
    /// Milliseconds in which there was a request.
    pub busy_ms: u64,
    /// Milliseconds times requests in flight: divided by the time, the mean length of the queue.
    pub queue_ms: u64,
}

/// Processor seconds since the first sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// The process without foreground load and samplers: the compaction.
    pub compaction_s: f64,
    /// The foreground load's threads.
    #[serde(alias = "bystander_s")]
    pub foreground_s: f64,
    /// The samplers and whatever else the experiment needs.
    pub harness_s: f64,
}

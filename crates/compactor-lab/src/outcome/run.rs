//! A run of an arm.

use serde::{Deserialize, Serialize};

use super::{Attempt, Cpu, Interval, KernelCounters, Latency, Sample};
use crate::arm::Arm;

/// One run of one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Work alongside the foreground load.
    pub arm: Arm,
    /// Time of the run, and whether it counts.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// Reads before the compaction: hot set warm, no other work.
    pub before: Latency,
    /// **The result**: reads during the compaction, from its start until its output was
    /// published; for [`Arm::Idle`] over as long a time.
    pub during: Latency,
    /// Reads after it, of the output; of the inputs for [`Arm::Idle`].
    pub after: Latency,
    /// Over the whole run, warming up not included.
    pub intervals: Vec<Interval>,
    /// Every 100 ms or so over the same time.
    pub samples: Vec<Sample>,
    /// Record of the compaction; `None` for [`Arm::Idle`] and where it failed.
    pub compaction: Option<CompactionRecord>,
    /// Hot set in the page cache.
    pub hot_set: HotSetRecord,
    /// Memory, from the start of the compaction to its end.
    pub memory: MemoryRecord,
    /// Stalls that the kernel counted (PSI), from the start of the compaction to its end.
    pub pressure: KernelCounters,
    /// Processor time, from the start of the compaction to its end.
    pub cpu: Cpu,
    /// Whether the foreground load itself kept time.
    pub generator: GeneratorRecord,
}

/// Phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Reads alone, of a warm hot set.
    Before,
    /// Reads during the compaction.
    During,
    /// Reads after the compaction.
    After,
}

/// Compactions of a run; amounts of data are of all of them together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompactionRecord {
    /// Number of compactions, one after the other.
    #[serde(default = "once")]
    pub rounds: u32,
    /// Seconds from the start of the first until the output of the last was published.
    pub elapsed_s: f64,
    /// Bytes of the inputs on disk, all components.
    pub input_bytes: u64,
    /// Uncompressed bytes of the inputs' `Data.db`.
    pub input_uncompressed_bytes: u64,
    /// Bytes of the inputs' `Data.db` on disk.
    pub data_file_bytes: u64,
    /// Bytes of the output on disk, all components.
    pub output_bytes: u64,
    /// Uncompressed input bytes per second.
    pub uncompressed_bytes_per_s: f64,
    /// Bytes of `Data.db` as stored per second: what `compaction_throughput` limits in Cassandra.
    pub stored_bytes_per_s: f64,
    /// The limit that was set on those; `None` for none.
    pub throughput_limit_bytes_per_s: Option<u64>,
    /// Mode in which `Data.db` was really read.
    pub read_mode: String,
    /// Mode in which the output was really written.
    pub write_mode: Option<String>,
    /// `uring` or `threads`.
    pub backend: String,
    /// Notes on modes that were used instead of the arm's.
    pub fallbacks: Vec<String>,
    /// Pages of the inputs.
    pub input_pages: u64,
    /// Pages of the inputs in the page cache just before it began.
    pub input_pages_before: Option<u64>,
    /// Pages of the inputs in the page cache when the last output was published.
    pub input_pages_after: Option<u64>,
    /// Pages of the inputs' `Data.db` that no read of a hot row touches.
    #[serde(default)]
    pub cold_pages: u64,
    /// Cold pages in the page cache just before the first compaction began.
    #[serde(default)]
    pub cold_pages_before: Option<u64>,
    /// Cold pages in the page cache when the last compaction was over.
    #[serde(default)]
    pub cold_pages_after: Option<u64>,
    /// Pages of an output in the page cache when it was published: the most of all outputs.
    pub output_pages_after: Option<u64>,
    /// Pages of an output.
    pub output_pages: u64,
}

fn once() -> u32 {
    1
}

/// The hot set in the page cache. Its pages are those of the inputs' `Data.db` that a read of any hot
/// row touches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HotSetRecord {
    /// Pages of the hot set.
    pub pages: u64,
    /// Hot pages in the page cache when the compaction began.
    pub resident_before: Option<u64>,
    /// The least that were during the compaction.
    pub least_resident: Option<u64>,
    /// Hot pages in the page cache when the compaction was over, and before its inputs were dropped.
    pub resident_after: Option<u64>,
    /// Pages that the foreground load's threads had the disk read during the compaction, those of the index
    /// included; `None` where the kernel does not report them (`/proc/self/task/*/io`).
    #[serde(default)]
    pub read_again: Option<u64>,
    /// Evictions of the foreground load's pages: those that were gone at the end, and each time that one was
    /// read again, `resident_before - resident_after + read_again`. More, where the compaction brought
    /// some back. Where the kernel does not report what threads read, those that were missing at one time.
    pub evicted: Option<u64>,
}

/// Timeliness of the foreground load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratorRecord {
    /// 99th percentile of the delay with which a reader that slept until its next read was woken, before the
    /// compaction. It is part of the latencies.
    pub wake_up_p99_before_ns: u64,
    /// Delay during the compaction: much more shows that processors were short.
    pub wake_up_p99_during_ns: u64,
    /// Reads were still waiting seconds after the end.
    pub is_unfinished: bool,
    /// Reads that found no row, warming up included. Deletions among the inputs make some; many would
    /// show that other rows are read than intended.
    pub rows_not_found: u64,
}

/// Memory counters over the compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryRecord {
    /// Pages of files that were evicted and soon needed again (`workingset_refault_file`), of the
    /// cgroup.
    pub cgroup_refaults: Option<u64>,
    /// Refaults of the whole machine, from `/proc/vmstat`.
    pub machine_refaults: Option<u64>,
    /// Pages scanned for reclaim, machine.
    pub pages_scanned: Option<u64>,
    /// Pages reclaimed, machine.
    pub pages_reclaimed: Option<u64>,
    /// Times that an allocation had to reclaim by itself, machine.
    pub allocation_stalls: Option<u64>,
    /// Most dirty pages of inputs and output at a sample.
    pub most_dirty_pages: Option<u64>,
}

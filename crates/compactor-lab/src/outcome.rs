//! The result of an experiment: everything that was measured, and under what circumstances.
//!
//! Durations end in `_ns`, `_us`, `_ms` or `_s`, amounts of data in `_bytes`; pages are those of the
//! machine ([`Environment::page_bytes`]). Times `at_s` and `start_s` are seconds since the run's
//! compaction was started, negative before. Nothing is estimated: what the system does not report is
//! `None`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::arm::Arm;
use crate::options::InterferenceOptions;

/// Version of the shape of the JSON documents. A reader refuses versions that it does not know.
pub const FORMAT_VERSION: u32 = 1;

/// Kind of a document; those of `compactor lab interference` have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Experiment {
    /// `compactor lab chunk-length`.
    ChunkLength,
    /// `compactor lab fan-out`.
    FanOut,
}

/// Outcome of one `compactor lab interference`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Time of the experiment, and whether it was stopped.
    #[serde(flatten)]
    pub course: Course,
    /// Options, defaults filled in.
    pub options: InterferenceOptions,
    /// Machine that it took place on.
    pub environment: Environment,
    /// One for each size of the hot set; just one without `--sweep`.
    pub points: Vec<SweepPoint>,
    /// Caveats about all numbers, sentences.
    pub warnings: Vec<Warning>,
}

impl Outcome {
    /// All runs of an arm at a point that are to be compared: valid and no warm-up, by repeat.
    pub fn counted(point: &SweepPoint, arm: Arm) -> impl Iterator<Item = &Run> {
        let runs = point.runs.iter().filter(move |run| run.arm == arm);
        runs.filter(|run| run.attempt.counts())
    }
}

/// Time and end of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// [`FORMAT_VERSION`].
    pub format_version: u32,
    /// Time of the start, milliseconds since 1970.
    pub started_at_ms: u64,
    /// Duration, including making data.
    pub elapsed_s: f64,
    /// Whether all runs that were planned took place.
    pub end: End,
}

/// End of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// All runs took place.
    Complete,
    /// It was stopped; what is there was measured before that.
    Interrupted,
}

/// The runs at one size of the hot set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepPoint {
    /// Bytes of page cache that the hot set was to take.
    pub hot_set_bytes: u64,
    /// The table that was read and compacted.
    pub data: DataRecord,
    /// Memory limit of the cgroup that the foreground load and the compaction ran in; `None` without one.
    pub memory_limit_bytes: Option<u64>,
    /// Bytes that the limit, or without one the machine's memory, left to the page cache when the
    /// foreground load had warmed up: limit less what was not page cache.
    pub cache_room_bytes: Option<u64>,
    /// Pressure: pages of the hot set, in bytes, divided by the limit (the machine's memory without
    /// one).
    pub pressure: f64,
    /// Runs in the order in which they took place, warm-ups and invalid ones included.
    pub runs: Vec<Run>,
    /// Caveats about the numbers of this point.
    pub warnings: Vec<Warning>,
}

/// The table of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataRecord {
    /// `kv` or `wide` if it was generated, else `given`.
    pub shape: String,
    /// Version of the SSTables, such as `oa`.
    pub version: String,
    /// Compressor, such as `LZ4Compressor`; `None` for none.
    pub compressor: Option<String>,
    /// Uncompressed bytes of a chunk; `None` without compression.
    pub chunk_length_bytes: Option<u32>,
    /// Number of SSTables.
    pub sstables: u32,
    /// Bytes of all their components.
    pub bytes: u64,
    /// Uncompressed bytes of their `Data.db`.
    pub uncompressed_bytes: u64,
    /// Partitions of all SSTables together; those in several count several times.
    pub partitions: u64,
}

/// A caveat about numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// A word to find it by, such as `virtual_disk`.
    pub kind: String,
    /// The sentence for people.
    pub text: String,
}

impl Warning {
    /// A warning.
    pub fn new(kind: &str, text: impl Into<String>) -> Warning {
        Warning {
            kind: kind.to_owned(),
            text: text.into(),
        }
    }
}

/// A run: its place among others, and whether it counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Repeat, warm-ups included: with one warm-up the first that counts is 1.
    pub repeat: u32,
    /// Whether it was only to warm up, and is not counted.
    pub warm_up: bool,
    /// Position among all runs of the experiment, from 0.
    pub order: u32,
    /// Time of the start, milliseconds since 1970.
    pub started_at_ms: u64,
    /// Duration with preparation and cleaning.
    pub elapsed_s: f64,
    /// Reasons not to compare it with others; empty for a valid run. Their kinds are `failed`, `fallback`,
    /// `pages_left`, `compaction_too_short`, `generator_late`, `reads_failed`, `hot_set_not_warm`,
    /// `memory_limit_lost`.
    pub invalid: Vec<Warning>,
    /// Caveats that are no reason to discard it.
    pub warnings: Vec<Warning>,
}

impl Attempt {
    /// Whether it is compared with others.
    pub fn counts(&self) -> bool {
        !self.warm_up && self.invalid.is_empty()
    }
}

/// Machine that an experiment took place on. `None`: the system does not report it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of compactor.
    pub compactor_version: String,
    /// Commit that it was built from.
    pub commit: Option<String>,
    /// Compiler and profile that it was built with.
    pub build: String,
    /// Kernel release and version.
    pub kernel: String,
    /// Architecture, such as `x86_64`.
    pub architecture: String,
    /// Model of the processor.
    pub cpu: Option<String>,
    /// Processors that the process may use.
    pub processors: u32,
    /// Bytes of memory of the machine.
    pub memory_bytes: Option<u64>,
    /// Length of a page.
    pub page_bytes: u64,
    /// The hypervisor or container that it runs in, if that is visible.
    pub virtualisation: Option<String>,
    /// Type of the file system.
    pub file_system: Option<String>,
    /// Mount point.
    pub mounted_on: Option<String>,
    /// Options of the mount.
    pub mount_options: Option<String>,
    /// The device under it.
    pub device: Option<DeviceRecord>,
    /// Whether direct I/O works: `yes`, or why not.
    pub direct_io: String,
    /// Alignment of direct I/O, bytes.
    pub direct_alignment_bytes: Option<u64>,
    /// Whether `RWF_DONTCACHE` works: `yes`, or why not.
    pub dontcache: String,
    /// Whether io_uring works: `yes`, or why not.
    pub io_uring: String,
    /// Whether `cachestat(2)` works: `yes`, or why not.
    pub cachestat: String,
    /// Whether the multi-generational LRU decides on eviction; `None` if the kernel has none.
    pub mglru: Option<bool>,
    /// Whether DAMON is active, which may evict pages that were not used recently even if memory is free;
    /// `None` if the kernel has none or does not report it.
    #[serde(default)]
    pub damon: Option<bool>,
    /// `v1`, `v2`, or why there was none.
    pub memory_cgroup: String,
    /// Settings of `/proc/sys/vm`: `dirty_ratio`, `dirty_background_ratio`, `swappiness` and their like, as
    /// name and value.
    pub vm_settings: Vec<(String, String)>,
    /// Load averages of 1, 5 and 15 minutes before the first run.
    pub load_before: Option<[f64; 3]>,
}

/// A block device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceRecord {
    /// Name, such as `nvme0n1p2`.
    pub name: String,
    /// Model, as the device reports it.
    pub model: Option<String>,
    /// Devices that it is made of.
    pub made_of: Vec<String>,
    /// I/O scheduler in use.
    pub scheduler: Option<String>,
    /// Readahead of buffered reads, KiB.
    pub read_ahead_kb: Option<u64>,
    /// Longest request, KiB.
    pub max_sectors_kb: Option<u64>,
    /// Whether it reports to be a spinning disk.
    pub rotational: Option<bool>,
    /// Logical block length.
    pub logical_block_bytes: Option<u64>,
    /// `write back` or `write through`.
    pub write_cache: Option<String>,
    /// Whether it is a virtual disk, whose host may have a cache of its own.
    pub is_virtual: bool,
}

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

/// Latencies of reads whose intended start is in a span of time.
///
/// Each is counted from the moment at which the read was *to* start, whether or not a thread was free
/// then: a stall shows in all reads that it held up. Three significant digits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Reads.
    pub operations: u64,
    /// Reads that failed, which are not in the figures below.
    pub errors: u64,
    /// Length of the span, seconds.
    pub duration_s: f64,
    /// Reads per second that the schedule had in the span.
    pub intended_per_s: f64,
    /// Reads per second that were completed.
    pub achieved_per_s: f64,
    /// Mean.
    pub mean_ns: f64,
    /// Standard deviation.
    pub stdev_ns: f64,
    /// Least.
    pub min_ns: u64,
    /// Half of the reads took at most this.
    pub p50_ns: u64,
    /// 90 percent.
    pub p90_ns: u64,
    /// 95 percent.
    pub p95_ns: u64,
    /// 99 percent.
    pub p99_ns: u64,
    /// 99.9 percent.
    pub p999_ns: u64,
    /// 99.99 percent.
    pub p9999_ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// The whole distribution as HdrHistogram prints it: from 0 to 100, closer towards 100.
    pub curve: Vec<CurvePoint>,
}

/// A point of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// 0 to 100.
    pub percentile: f64,
    /// Latency that this share of the reads had at most.
    pub latency_ns: u64,
    /// Number of reads that took at most this.
    pub operations: u64,
}

/// Latencies of a second or so: reads that *ended* in it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Begin.
    pub start_s: f64,
    /// Length.
    pub duration_s: f64,
    /// Phase of the run when it began.
    pub phase: Phase,
    /// Reads.
    pub operations: u64,
    /// Reads that failed.
    pub errors: u64,
    /// Mean; 0 without reads, as the others.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 99 percent.
    pub p99_ns: u64,
    /// 99.9 percent.
    pub p999_ns: u64,
    /// Longest.
    pub max_ns: u64,
}

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
    /// Reclaim of the machine's memory, from `/proc/vmstat`.
    pub vmstat: KernelCounters,
    /// Stalls of the machine, from `/proc/pressure`: microseconds in which some or all tasks waited.
    pub pressure: KernelCounters,
    /// The block device under the files, from `/proc/diskstats`. Milliseconds of requests are summed over
    /// them; `queue_ms` divided by the time is the mean length of the queue.
    pub disk: Option<KernelCounters>,
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

/// Name of the number of requests in flight, which is a gauge.
const IN_FLIGHT: &str = "in_flight";

/// Counters of the kernel by their names; `None`, or missing, if the kernel does not have one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KernelCounters(BTreeMap<String, Option<u64>>);

impl KernelCounters {
    /// A counter.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied().flatten()
    }

    /// How much each has counted since an earlier time; a gauge as it is now.
    pub(crate) fn since(&self, earlier: &KernelCounters) -> KernelCounters {
        let names = self.0.keys();
        let since = names.map(|name| {
            let earlier = match name.as_str() {
                IN_FLIGHT => Some(0),
                counter => earlier.get(counter),
            };
            let counted = self.get(name).zip(earlier);
            let counted = counted.map(|(now, earlier)| now.saturating_sub(earlier));
            (name.clone(), counted)
        });
        KernelCounters(since.collect())
    }
}

impl<const N: usize> From<[(&str, Option<u64>); N]> for KernelCounters {
    fn from(counters: [(&str, Option<u64>); N]) -> KernelCounters {
        let counters = counters.into_iter();
        KernelCounters(
            counters
                .map(|(name, count)| (name.to_owned(), count))
                .collect(),
        )
    }
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

#[cfg(test)]
mod tests;

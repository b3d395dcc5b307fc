//! Samples of the system, every 100 ms or so.

use std::collections::BTreeMap;

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
        KernelCounters(
            counters
                .map(|(name, count)| (name.to_owned(), count))
                .into(),
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

//! The figures that a run gives.

use serde::Serialize;

use crate::outcome::Run;

/// One number of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Median latency of the reads during the compaction, ns.
    P50Ns,
    /// 99 percent of them, ns.
    P99Ns,
    /// 99.9 percent of them, ns.
    P999Ns,
    /// The longest of them, ns.
    MaxNs,
    /// Their mean, ns.
    MeanNs,
    /// Uncompressed input bytes that were compacted per second.
    CompactionBytesPerS,
    /// Processor seconds of the compaction.
    CompactionCpuS,
    /// Pages of the hot set that were evicted.
    EvictedPages,
    /// Pages that were evicted and soon needed again: of the cgroup, without one of the machine.
    RefaultedPages,
}

impl Figure {
    /// All of them.
    pub const ALL: [Figure; 9] = [
        Figure::P50Ns,
        Figure::P99Ns,
        Figure::P999Ns,
        Figure::MaxNs,
        Figure::MeanNs,
        Figure::CompactionBytesPerS,
        Figure::CompactionCpuS,
        Figure::EvictedPages,
        Figure::RefaultedPages,
    ];

    /// Those that arms are compared by.
    pub const COMPARED: [Figure; 4] =
        [Figure::P50Ns, Figure::P99Ns, Figure::P999Ns, Figure::MeanNs];

    /// Its name in a table.
    pub fn label(self) -> &'static str {
        match self {
            Figure::P50Ns => "p50",
            Figure::P99Ns => "p99",
            Figure::P999Ns => "p99.9",
            Figure::MaxNs => "max",
            Figure::MeanNs => "mean",
            Figure::CompactionBytesPerS => "MiB/s",
            Figure::CompactionCpuS => "CPU s",
            Figure::EvictedPages => "hot pages evicted",
            Figure::RefaultedPages => "refaults",
        }
    }

    /// Of a run; `None` where it has none, such as latencies without a read.
    pub fn of(self, run: &Run) -> Option<f64> {
        let reads = Some(&run.during).filter(|latency| latency.operations > 0);
        let compaction = run.compaction.as_ref();
        let number = match self {
            Figure::P50Ns => reads?.p50_ns as f64,
            Figure::P99Ns => reads?.p99_ns as f64,
            Figure::P999Ns => reads?.p999_ns as f64,
            Figure::MaxNs => reads?.max_ns as f64,
            Figure::MeanNs => reads?.mean_ns,
            Figure::CompactionBytesPerS => compaction?.uncompressed_bytes_per_s,
            Figure::CompactionCpuS => compaction.map(|_| run.cpu.compaction_s)?,
            Figure::EvictedPages => run.hot_set.evicted? as f64,
            Figure::RefaultedPages => {
                let of_the_cgroup = run.memory.cgroup_refaults;
                of_the_cgroup.or(run.memory.machine_refaults)? as f64
            }
        };
        number.is_finite().then_some(number)
    }
}

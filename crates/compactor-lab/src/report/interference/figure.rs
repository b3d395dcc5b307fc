//! Figures of a run.

use serde::Serialize;

use crate::outcome::{Latency, Run};
use crate::report::Measure;

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
    /// Processor seconds of the compaction for each GiB of uncompressed input.
    CompactionCpuSPerGib,
    /// Seconds for which the compaction went on, or the time that takes its place in the idle arm.
    DuringS,
    /// Pages of the hot set that were evicted, each time counted.
    EvictedPages,
    /// Pages that were evicted and soon needed again: of the cgroup, without one of the machine.
    RefaultedPages,
    /// 99 percent of the reads before the compaction, ns.
    P99BeforeNs,
    /// 99 percent of the reads after it, ns.
    P99AfterNs,
    /// 99.9 percent of the reads after it, ns.
    P999AfterNs,
}

impl Figure {
    /// Name in a table.
    pub fn label(self) -> &'static str {
        match self {
            Figure::P50Ns => "p50",
            Figure::P99Ns => "p99",
            Figure::P999Ns => "p99.9",
            Figure::MaxNs => "max",
            Figure::MeanNs => "mean",
            Figure::CompactionBytesPerS => "MiB/s",
            Figure::CompactionCpuSPerGib => "CPU s/GiB",
            Figure::DuringS => "s",
            Figure::EvictedPages => "hot pages evicted",
            Figure::RefaultedPages => "refaults",
            Figure::P99BeforeNs => "p99 before",
            Figure::P99AfterNs => "p99 after",
            Figure::P999AfterNs => "p99.9 after",
        }
    }
}

impl Measure for Figure {
    type Of = Run;
    const ALL: &'static [Figure] = &[
        Figure::P50Ns,
        Figure::P99Ns,
        Figure::P999Ns,
        Figure::MaxNs,
        Figure::MeanNs,
        Figure::CompactionBytesPerS,
        Figure::CompactionCpuSPerGib,
        Figure::DuringS,
        Figure::EvictedPages,
        Figure::RefaultedPages,
        Figure::P99BeforeNs,
        Figure::P99AfterNs,
        Figure::P999AfterNs,
    ];
    const COMPARED: &'static [Figure] =
        &[Figure::P50Ns, Figure::P99Ns, Figure::P999Ns, Figure::MeanNs];

    fn of(self, run: &Run) -> Option<f64> {
        let of = |latency| Some(latency).filter(|latency: &&Latency| latency.operations > 0);
        let (before, reads, after) = (of(&run.before), of(&run.during), of(&run.after));
        let compaction = run.compaction.as_ref();
        let number = match self {
            Figure::P50Ns => reads?.p50_ns as f64,
            Figure::P99Ns => reads?.p99_ns as f64,
            Figure::P999Ns => reads?.p999_ns as f64,
            Figure::MaxNs => reads?.max_ns as f64,
            Figure::MeanNs => reads?.mean_ns,
            Figure::CompactionBytesPerS => compaction?.uncompressed_bytes_per_s,
            Figure::CompactionCpuSPerGib => {
                let bytes = compaction?.input_uncompressed_bytes as f64;
                run.cpu.compaction_s / (bytes / f64::from(1 << 30))
            }
            Figure::DuringS => run.during.duration_s,
            Figure::EvictedPages => run.hot_set.evicted? as f64,
            Figure::RefaultedPages => {
                let of_the_cgroup = run.memory.cgroup_refaults;
                of_the_cgroup.or(run.memory.machine_refaults)? as f64
            }
            Figure::P99BeforeNs => before?.p99_ns as f64,
            Figure::P99AfterNs => after?.p99_ns as f64,
            Figure::P999AfterNs => after?.p999_ns as f64,
        };
        number.is_finite().then_some(number)
    }
}

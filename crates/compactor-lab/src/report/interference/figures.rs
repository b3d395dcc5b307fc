//! Figures of an interference experiment, and their comparison.

use crate::arm::Arm;
use crate::caveats::Warnings;
use crate::compare::distinct;
use crate::comparison::{Comparison, Measured};
use crate::experiment::Experiment;
use crate::figure::{Figure, Unit};
use crate::outcome::{CompactionRecord, Latency, Outcome, Run, SweepPoint, Warning};
use crate::report::units::{GIB, bytes};
use crate::report::with_values;
use crate::stats::Spread;
use crate::text_table::count;

/// Median latency of the reads during the compaction.
pub const P50: Figure = Figure::lower("p50_ns", "p50", Unit::Milliseconds);
/// 99th percentile of them.
pub const P99: Figure = Figure::lower("p99_ns", "p99", Unit::Milliseconds);
/// 99.9th percentile of them.
pub const P999: Figure = Figure::lower("p999_ns", "p99.9", Unit::Milliseconds);
/// The longest of them.
pub const MAX: Figure = Figure::lower("max_ns", "max", Unit::Milliseconds);
/// Their mean.
pub const MEAN: Figure = Figure::lower("mean_ns", "mean", Unit::Milliseconds);
/// Uncompressed input bytes that were compacted per second.
pub const COMPACTION_RATE: Figure =
    Figure::higher("compaction_bytes_per_s", "MiB/s", Unit::Mebibytes);
/// Processor seconds of the compaction for each GiB of uncompressed input.
pub const COMPACTION_CPU: Figure =
    Figure::new("compaction_cpu_s_per_gib", "CPU s/GiB", Unit::Number);
/// Bytes on disk that the compaction read per second.
pub const DISK_READ_RATE: Figure = Figure::new("disk_read_bytes_per_s", "read", Unit::Mebibytes);
/// Bytes on disk that the compaction wrote per second.
pub const DISK_WRITE_RATE: Figure =
    Figure::new("disk_written_bytes_per_s", "written", Unit::Mebibytes);
/// Duration of the compaction, or of the time that takes its place in the idle arm.
pub const DURING: Figure = Figure::new("during_s", "s", Unit::Number);
/// Pages of the hot set that were evicted, each time counted.
pub const EVICTED: Figure = Figure::new("evicted_pages", "hot pages evicted", Unit::Count);
/// Pages of the hot set.
pub const HOT_PAGES: Figure = Figure::new("hot_pages", "of", Unit::Count);
/// Pages that were evicted and soon needed again: of the cgroup, without one of the machine.
pub const REFAULTED: Figure = Figure::new("refaulted_pages", "refaults", Unit::Count);
/// 99th percentile of the reads before the compaction.
pub const P99_BEFORE: Figure = Figure::new("p99_before_ns", "p99 before", Unit::Milliseconds);
/// 99th percentile of the reads after it.
pub const P99_AFTER: Figure = Figure::new("p99_after_ns", "p99 after", Unit::Milliseconds);
/// 99.9th percentile of the reads after it.
pub const P999_AFTER: Figure = Figure::new("p999_after_ns", "p99.9 after", Unit::Milliseconds);

/// Short names of the arms that others are compared with.
pub const IDLE: &str = "idle";
/// See [`IDLE`].
pub const BUFFERED: &str = "buffered";

pub(super) static EXPERIMENT: Experiment = Experiment {
    title: "Interference",
    heading: "Reads during a compaction",
    introduction: "Foreground reads of hot rows start at random moments while their table is compacted, once \
        in each I/O mode. An arm is named by how the compaction reads / how it writes.",
    arm: "arm",
    headline: P99,
    baseline: BUFFERED,
};

/// Share of the hot set, evicted without a compaction, that is reported.
const EVICTED_BY_OTHERS: f64 = 0.01;

/// Share of the hot set that is as good as none.
const NOTHING_EVICTED: f64 = 0.001;

/// Share by which rates of compaction may differ.
const RATE_TOLERANCE: f64 = 0.1;

/// Compares the arms at a size of the hot set.
pub(crate) fn compare(outcome: &Outcome, point: &SweepPoint) -> Comparison {
    let runs: Vec<Measured> = point.runs.iter().map(measured).collect();
    let planned = outcome.options.arms.iter().map(Arm::to_string);
    let arms = distinct(planned.chain(runs.iter().map(|run| run.arm.clone())));
    let baselines = [
        (IDLE, Arm::Idle.to_string()),
        (BUFFERED, Arm::BUFFERED.to_string()),
    ];
    let mut comparison = Comparison::new(&EXPERIMENT, arms, baselines, outcome.options.seed, runs);
    comparison
        .caveats
        .splice(..0, point.warnings.iter().cloned());
    let own = caveats(&comparison);
    comparison.caveats.extend(own);
    comparison
}

/// Caveats that the figures show.
fn caveats(comparison: &Comparison) -> Vec<Warning> {
    let mut caveats = Warnings::default();
    unequal_rates(comparison, &mut caveats);
    // Without scarce memory there is no difference to see.
    if let Some((evicted, pages)) = evicted(comparison, BUFFERED) {
        let is_none = evicted.most <= NOTHING_EVICTED * pages;
        caveats.when(is_none, "nothing_evicted", || {
            "buffered/buffered evicted hardly anything of the hot set: there was memory for everything, and \
             arms differ only in what they ask of the device"
                .to_owned()
        });
    }
    // Evictions by others are in all arms, and no arm can be better than idle.
    if let Some((evicted, pages)) = evicted(comparison, IDLE) {
        let is_much = evicted.median > EVICTED_BY_OTHERS * pages;
        caveats.when(is_much, "evicted_by_others", || {
            format!(
                "there were {} evictions from the hot set, of {} pages, with no compaction at all: the \
                 kernel reclaims for another reason (DAMON, other processes), in every arm, and the misses \
                 that it causes are in all latencies",
                count(evicted.median.round() as u64),
                count(pages as u64)
            )
        });
    }
    caveats.0
}

/// A slower compaction disturbs less, and longer.
fn unequal_rates(comparison: &Comparison, caveats: &mut Warnings) {
    let arms = comparison.arms.iter();
    let rates = arms.filter_map(|arm| Some((arm.median(COMPACTION_RATE)?, &arm.arm)));
    let mut rates: Vec<(f64, &String)> = rates.collect();
    rates.sort_by(|a, b| a.0.total_cmp(&b.0));
    if let (Some(&(least, slow)), Some(&(most, fast))) = (rates.first(), rates.last()) {
        let differ = most > least * (1.0 + RATE_TOLERANCE);
        caveats.when(differ, "unequal_rates", || {
            format!(
                "the arms compacted at different rates, from {}/s ({slow}) to {}/s ({fast}): a slower \
                 compaction disturbs less, and takes longer; a limit on throughput that all arms reach \
                 makes them equal",
                bytes(least),
                bytes(most)
            )
        });
    }
}

/// Evictions in a baseline, and pages of the hot set.
fn evicted(comparison: &Comparison, baseline: &str) -> Option<(Spread, f64)> {
    let arm = comparison.counted(comparison.baseline(baseline)?)?;
    Some((arm.spread(EVICTED)?, arm.median(HOT_PAGES)?))
}

/// A run with its figures.
pub(crate) fn measured(run: &Run) -> Measured {
    Measured {
        arm: run.arm.to_string(),
        attempt: run.attempt.clone(),
        figures: figures(run),
    }
}

fn figures(run: &Run) -> Vec<(Figure, f64)> {
    // There is no latency without reads.
    let if_read = |reads: &Latency, value: f64| (reads.operations > 0).then_some(value);
    let ns = |reads: &Latency, value: u64| if_read(reads, value as f64);
    let compaction = run.compaction.as_ref();
    let gib = compaction.map(|c| c.input_uncompressed_bytes as f64 / GIB);
    let per_s = |bytes: fn(&CompactionRecord) -> u64| {
        compaction.map(|compaction| bytes(compaction) as f64 / compaction.elapsed_s)
    };
    let refaults = run.memory.cgroup_refaults.or(run.memory.machine_refaults);
    let Run {
        before,
        during,
        after,
        ..
    } = run;
    let figures = [
        (DURING, Some(during.duration_s)),
        (HOT_PAGES, Some(run.hot_set.pages as f64)),
        (P50, ns(during, during.p50_ns)),
        (P99, ns(during, during.p99_ns)),
        (P999, ns(during, during.p999_ns)),
        (MAX, ns(during, during.max_ns)),
        (MEAN, if_read(during, during.mean_ns)),
        (P99_BEFORE, ns(before, before.p99_ns)),
        (P99_AFTER, ns(after, after.p99_ns)),
        (P999_AFTER, ns(after, after.p999_ns)),
        (
            COMPACTION_RATE,
            compaction.map(|c| c.uncompressed_bytes_per_s),
        ),
        (COMPACTION_CPU, gib.map(|gib| run.cpu.compaction_s / gib)),
        (DISK_READ_RATE, per_s(|c| c.input_bytes)),
        (DISK_WRITE_RATE, per_s(|c| c.output_bytes)),
        (EVICTED, run.hot_set.evicted.map(|pages| pages as f64)),
        (REFAULTED, refaults.map(|pages| pages as f64)),
    ];
    with_values(figures)
}

//! Report of an interference experiment.

use serde_json::json;

use super::document::{Block, Facts, Section};
use super::units::{GIB, bytes, significant};
use super::{Experiment, Report, bars, distinct, facts, fio, texts, with_interval, with_values};
use crate::arm::Arm;
use crate::caveats::Warnings;
use crate::comparison::{Column, Comparison, Measured};
use crate::figure::{Figure, Unit};
use crate::fio::FioOutcome;
use crate::outcome::{CompactionRecord, Latency, Outcome, Run, SweepPoint, Warning};
use crate::stats::Spread;
use crate::text_table::count;

mod charts;

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

static EXPERIMENT: Experiment = Experiment {
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

/// The report of an outcome, with what `fio` measured on the same device if that is known.
pub fn report(name: impl Into<String>, outcome: &Outcome, fio: Option<&FioOutcome>) -> Report {
    let points: Vec<(&SweepPoint, Comparison)> = outcome
        .points
        .iter()
        .map(|point| (point, compare(outcome, point)))
        .collect();
    let section = section(name.into(), outcome, &points, fio);
    let picture = match &points[..] {
        [(point, comparison)] => charts::p99_over_time(point, comparison),
        _ => None,
    };
    let point = |(point, comparison): (&SweepPoint, Comparison)| {
        let (hot_set_bytes, pressure) = (point.hot_set_bytes, point.pressure);
        let circumstances = json!({ "hot_set_bytes": hot_set_bytes, "pressure": pressure });
        (circumstances, comparison)
    };
    let points = points.into_iter().map(point);
    let end = &outcome.header.end;
    Report {
        fio: fio.cloned(),
        picture,
        ..Report::new(&EXPERIMENT, end, points, &outcome.warnings, section)
    }
}

/// Compares the arms at a size of the hot set.
pub(super) fn compare(outcome: &Outcome, point: &SweepPoint) -> Comparison {
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

fn section(
    name: String,
    outcome: &Outcome,
    points: &[(&SweepPoint, Comparison)],
    fio: Option<&FioOutcome>,
) -> Section {
    let mut blocks = vec![Block::Caveats(
        "About all numbers",
        texts(&outcome.warnings),
    )];
    blocks.extend(charts::sweep(points));
    for (point, comparison) in points {
        let page_bytes = outcome.environment.page_bytes;
        blocks.extend(self::blocks(point, comparison, page_bytes));
    }
    if let Some(fio) = fio {
        blocks.push(Block::Heading("The device by itself".to_owned()));
        let first = points.first().map(|(_, comparison)| comparison);
        blocks.extend(fio::tables(fio, first));
    }
    Section {
        name,
        headline: headline(points),
        facts: facts(outcome),
        blocks,
    }
}

fn blocks(point: &SweepPoint, comparison: &Comparison, page_bytes: u64) -> Vec<Block> {
    let limit = match point.memory_limit_bytes {
        Some(limit) => format!("under a limit of {} of memory", bytes(limit as f64)),
        None => "without a limit on memory".to_owned(),
    };
    let room = point.cache_room_bytes.map_or_else(String::new, |room| {
        format!(", {} of it left to the page cache", bytes(room as f64))
    });
    let heading = format!(
        "Hot set {}, {limit}{room}: pressure {}",
        bytes(point.hot_set_bytes as f64),
        significant(point.pressure)
    );
    let median = Column::Median;
    let latencies = comparison.table(
        "Reads during the compaction, ms, from the moment at which each was to start: median of the runs that \
         count",
        &[
            Column::Runs,
            median(P50),
            median(P99),
            Column::Range(P99),
            median(P999),
            median(MAX),
            median(MEAN),
        ],
    );
    let mut blocks = vec![
        Block::Heading(heading),
        Block::Paragraph(format!("Table: {}", facts::in_sentence(&point.data))),
        Block::Caveats("About these numbers", texts(&comparison.caveats)),
        Block::Table(latencies),
    ];
    blocks.extend(charts::curves(point, comparison));
    let ratios = comparison.table(
        "Latency as a multiple of another arm's, within each repeat: median, and 95% bootstrap interval over \
         repeats",
        &[
            Column::Ratio(P99, IDLE),
            Column::Ratio(P99, BUFFERED),
            Column::Ratio(P999, BUFFERED),
            Column::Ratio(MEAN, BUFFERED),
        ],
    );
    if ratios.columns.len() > 1 && comparison.arms.len() > 1 {
        blocks.push(Block::Table(ratios));
    }
    let costs = comparison.table(
        "The compaction: MiB of uncompressed input per second, processor seconds per GiB of it, its \
         duration; meanwhile evictions of pages of the hot set, each time counted, its number of pages, and \
         refaults of any file's pages; medians",
        &[
            median(COMPACTION_RATE),
            median(COMPACTION_CPU),
            median(DURING),
            median(EVICTED),
            median(HOT_PAGES),
            median(REFAULTED),
        ],
    );
    // A compaction that bypasses the page cache leaves an output none of which is cached yet.
    let before_and_after = comparison.table(
        "Reads before the compaction, of its inputs, hot rows warm, and right after it, of its output as it \
         left it (idle: of the inputs), ms; medians",
        &[median(P99_BEFORE), median(P99_AFTER), median(P999_AFTER)],
    );
    blocks.extend([Block::Table(costs), Block::Table(before_and_after)]);
    blocks.extend(comparison.left_out_table());
    blocks.extend(bars::figure(comparison, &[(P99, IDLE), (P99, BUFFERED)]));
    blocks.extend(charts::timelines(point, comparison, page_bytes));
    blocks
}

/// Effect of the buffered compaction and of the gentlest, at the first point.
fn headline(points: &[(&SweepPoint, Comparison)]) -> String {
    let Some((point, comparison)) = points.first() else {
        return "No run took place.".to_owned();
    };
    let sentences = [of_buffered(point, comparison), of_gentlest(comparison)];
    let sentences: Vec<String> = sentences.into_iter().flatten().collect();
    sentences.join(" ")
}

fn of_buffered(point: &SweepPoint, comparison: &Comparison) -> Option<String> {
    let idle = comparison.counted(comparison.baseline(IDLE)?)?;
    let buffered = comparison.counted(comparison.baseline(BUFFERED)?)?;
    Some(format!(
        "With a hot set of {}, p99 of reads was {} ms without a compaction and {} ms during one through the \
         page cache: {}.",
        bytes(point.hot_set_bytes as f64),
        P99.unit.text(idle.median(P99)?),
        P99.unit.text(buffered.median(P99)?),
        with_interval(buffered.ratio(P99, IDLE)?)
    ))
}

fn of_gentlest(comparison: &Comparison) -> Option<String> {
    let is_baseline = |arm: &str| comparison.baselines.iter().any(|(_, known)| known == arm);
    let others = comparison.arms.iter().filter(|arm| !is_baseline(&arm.arm));
    let p99s = others.filter_map(|arm| Some((arm, arm.median(P99)?)));
    let (gentlest, p99) = p99s.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let ratio = gentlest.ratio(P99, BUFFERED)?;
    let verdict = match ratio.differs() {
        true => "",
        false => "; the repeats do not show that they differ",
    };
    Some(format!(
        "The lowest p99 during another compaction was {} ms, of {}: {} of buffered{verdict}.",
        P99.unit.text(p99),
        gentlest.arm,
        with_interval(ratio)
    ))
}

fn facts(outcome: &Outcome) -> Facts {
    let options = &outcome.options;
    let (header, command) = (&outcome.header, options.command.as_deref());
    let own = [facts::of_record("options", options, &["command"])];
    facts::of_experiment(header, command, own, &outcome.environment)
}

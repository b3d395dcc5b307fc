//! Report of an interference experiment.

use serde_json::json;

use super::document::{Block, Facts, Section};
use super::units::{bytes, significant};
use super::{Report, bars, facts, fio, texts, with_interval};
use crate::comparison::Comparison;
use crate::fio::FioOutcome;
use crate::outcome::{Outcome, SweepPoint};
use crate::report::arm_table::Column;

mod charts;
pub(crate) mod figures;

use figures::EXPERIMENT;
pub use figures::{
    BUFFERED, COMPACTION_CPU, COMPACTION_RATE, DISK_READ_RATE, DISK_WRITE_RATE, DURING, EVICTED,
    HOT_PAGES, IDLE, MAX, MEAN, P50, P99, P99_AFTER, P99_BEFORE, P999, P999_AFTER, REFAULTED,
};
pub(crate) use figures::{compare, measured};

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
    let end = outcome.header.end;
    Report {
        fio: fio.cloned(),
        picture,
        ..Report::new(&EXPERIMENT, end, points, &outcome.warnings, section)
    }
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
    let verdict = if ratio.differs() {
        ""
    } else {
        "; the repeats do not show that they differ"
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

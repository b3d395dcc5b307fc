//! Report of a chunk-length experiment.

use serde_json::json;

use super::document::{Block, Facts, Section, Table, cell};
use super::units::{bytes, significant, times};
use super::{Report, bars, facts, texts, with_values};
use crate::chunk_length::{
    ChunkLengthOutcome, Reading, Reads, Variant, VariantRecord, VariantRun, holds_rate,
};
use crate::comparison::{Comparison, Measured};
use crate::experiment::Experiment;
use crate::figure::{Figure, Unit};
use crate::report::arm_table::Column;
use crate::text_table::count;

mod published;
#[cfg(test)]
mod tests;

pub use published::{PublishedFigure, Verdict};

/// Reads per second of threads that wait only for their own reads.
pub const READS_PER_S: Figure = Figure::higher("reads_per_s", "reads/s", Unit::Count);
/// 99th percentile of these, from the start of each.
pub const PEAK_P99: Figure = Figure::lower("peak_p99_ns", "p99 at peak", Unit::Milliseconds);
/// Median of the reads at the common rate, from when they were to start.
pub const P50: Figure = Figure::lower("p50_ns", "p50", Unit::Milliseconds);
/// 99th percentile of them.
pub const P99: Figure = Figure::lower("p99_ns", "p99", Unit::Milliseconds);
/// 99.9th percentile of them.
pub const P999: Figure = Figure::lower("p999_ns", "p99.9", Unit::Milliseconds);
/// Bytes read from disk for each read, at peak.
pub const DISK_PER_READ: Figure = Figure::lower("disk_bytes_per_read", "disk KiB", Unit::Kibibytes);
/// Bytes decompressed for each read.
pub const DECOMPRESSED_PER_READ: Figure = Figure::new(
    "decompressed_bytes_per_read",
    "decomp. KiB",
    Unit::Kibibytes,
);
/// Processor nanoseconds of the reader for each read.
pub const CPU_PER_READ: Figure = Figure::lower("cpu_ns_per_read", "CPU us", Unit::Microseconds);
/// Bytes read from disk per second, at peak.
pub const DISK_RATE: Figure = Figure::new("disk_bytes_per_s", "disk MiB/s", Unit::Mebibytes);
/// Processors that the readers took, at peak.
pub const PROCESSORS: Figure = Figure::new("processors", "processors", Unit::Number);
/// Uncompressed bytes that the compaction read per second meanwhile.
pub const COMPACTED_RATE: Figure =
    Figure::new("compacted_bytes_per_s", "compacted MiB/s", Unit::Mebibytes);

/// Condition of the figures of reads during a compaction; the others have none.
pub const COMPACTING: Option<&str> = Some("compacting");

/// Short name of the variant that others are compared with.
pub const BASELINE: &str = "baseline";

/// Chunk lengths of the baseline, if measured: Cassandra's chunk length until 3.11, which published figures are
/// about, else its default since 4.0.
const BASELINES: [u32; 2] = [64 << 10, 16 << 10];

static EXPERIMENT: Experiment = Experiment {
    title: "Chunk length",
    heading: "Cost of a read by chunk length",
    introduction: "The same foreground load reads the same rows, stored with several chunk lengths and \
        compressors: at peak throughput, then at one rate; alone, and during a compaction.",
    arm: "variant",
    headline: READS_PER_S,
    baseline: BASELINE,
};

/// The report of an outcome.
pub fn report(name: impl Into<String>, outcome: &ChunkLengthOutcome) -> Report {
    let comparison = compare_with(outcome, BASELINE, baseline(outcome));
    let published = published::compare(outcome);
    let section = Section {
        name: name.into(),
        headline: String::new(),
        facts: facts(outcome),
        blocks: blocks(outcome, &comparison, &published),
    };
    let circumstances = json!({
        "rate_per_s": outcome.rate_per_s,
        "baseline": baseline(outcome),
        "variants": outcome.variants,
        "published": published,
    });
    let (end, points) = (outcome.header.end, [(circumstances, comparison)]);
    Report::new(&EXPERIMENT, end, points, &outcome.warnings, section)
}

/// Compares the variants with a baseline, which has this short name.
fn compare_with(
    outcome: &ChunkLengthOutcome,
    name: &'static str,
    baseline: Option<Variant>,
) -> Comparison {
    let runs = outcome.runs.iter().map(measured);
    let arms = outcome.variants.iter().map(|v| v.variant.to_string());
    let baseline = baseline.map(|variant| (name, variant.to_string()));
    Comparison::new(&EXPERIMENT, arms, baseline, outcome.options.seed, runs)
}

/// The variant that others are compared with: of the first compressor with chunks.
fn baseline(outcome: &ChunkLengthOutcome) -> Option<Variant> {
    let variants = || outcome.variants.iter().map(|v| v.variant);
    let of_len = |len| variants().find(|v| v.chunk_length_bytes == Some(len));
    BASELINES
        .into_iter()
        .find_map(of_len)
        .or_else(|| variants().next())
}

/// A run with its figures.
pub(crate) fn measured(run: &VariantRun) -> Measured {
    let mut figures = figures_of(&run.alone, None);
    if let Some(reads) = &run.compacting {
        figures.extend(figures_of(reads, COMPACTING));
    }
    Measured {
        arm: run.variant.to_string(),
        attempt: run.attempt.clone(),
        figures,
    }
}

fn figures_of(reads: &Reads, condition: Option<&'static str>) -> Vec<(Figure, f64)> {
    let peak = &reads.peak;
    // Latencies at a rate that was not held are those of a queue.
    let is_valid = |reading: &&Reading| holds_rate(reading) && reading.latency.operations > 0;
    let at_rate = reads.at_rate.as_ref().filter(is_valid);
    let at_rate = at_rate.map(|reading| &reading.latency);
    let (count, seconds) = (peak.completed(), peak.latency.duration_s);
    let disk = peak.disk_read_bytes.map(|bytes| bytes as f64);
    let figures = [
        (READS_PER_S, Some(peak.latency.achieved_per_s)),
        (PEAK_P99, Some(peak.latency.p99_ns as f64)),
        (P50, at_rate.map(|latency| latency.p50_ns as f64)),
        (P99, at_rate.map(|latency| latency.p99_ns as f64)),
        (P999, at_rate.map(|latency| latency.p999_ns as f64)),
        (
            DECOMPRESSED_PER_READ,
            Some(peak.decompressed_bytes as f64 / count),
        ),
        (DISK_PER_READ, disk.map(|bytes| bytes / count)),
        (DISK_RATE, disk.map(|bytes| bytes / seconds)),
        (CPU_PER_READ, Some(1e9 * peak.reader_cpu_s / count)),
        (PROCESSORS, Some(peak.reader_cpu_s / seconds)),
        (COMPACTED_RATE, Some(peak.compacted_bytes as f64 / seconds)),
    ];
    with_values(figures.map(|(figure, value)| (figure.under(condition), value)))
}

fn blocks(
    outcome: &ChunkLengthOutcome,
    comparison: &Comparison,
    published: &[PublishedFigure],
) -> Vec<Block> {
    let mut caveats = outcome.warnings.clone();
    caveats.extend(comparison.caveats.iter().cloned());
    let mut blocks = vec![
        Block::Caveats("About these numbers", texts(&caveats)),
        Block::Table(reads(outcome, comparison, None)),
    ];
    let compared = [
        (READS_PER_S, BASELINE),
        (P99, BASELINE),
        (READS_PER_S.under(COMPACTING), BASELINE),
        (P99.under(COMPACTING), BASELINE),
    ];
    blocks.extend(bars::figure(comparison, &compared));
    let has_compaction = outcome.runs.iter().any(|run| run.compacting.is_some());
    if has_compaction {
        blocks.push(Block::Table(reads(outcome, comparison, COMPACTING)));
    }
    blocks.push(Block::Table(stored(outcome)));
    let baseline = comparison
        .baseline(BASELINE)
        .filter(|_| comparison.arms.len() > 1);
    blocks.extend(baseline.map(|baseline| {
        let [reads_per_s, p99, reads_compacting, p99_compacting] =
            compared.map(|(figure, baseline)| Column::Ratio(figure, baseline));
        let mut columns = vec![reads_per_s, p99, Column::Ratio(DISK_PER_READ, BASELINE)];
        if has_compaction {
            columns.extend([reads_compacting, p99_compacting]);
        }
        let caption = format!(
            "As a multiple of {baseline}, within each repeat: median, and 95% bootstrap interval over repeats"
        );
        Block::Table(comparison.table(caption, &columns))
    }));
    blocks.extend(published::table(published));
    blocks.extend(comparison.left_out_table());
    let explanations = published::explanations(outcome, comparison, published);
    blocks.extend(explanations.into_iter().map(Block::Paragraph));
    blocks
}

/// Reads under a condition.
fn reads(
    outcome: &ChunkLengthOutcome,
    comparison: &Comparison,
    condition: Option<&'static str>,
) -> Table {
    let rate = outcome.rate_per_s.map_or_else(
        || "at a common rate".to_owned(),
        |rate| format!("at {} reads/s", significant(rate)),
    );
    let caption = format!(
        "Reads {}, medians: reads/s at peak, and for each of these KiB from disk, KiB decompressed and us of \
         processor; then latencies {rate}, ms, from the moment at which each was to start, \
         and p99 at peak",
        condition_name(condition)
    );
    let figures = [
        READS_PER_S,
        DISK_PER_READ,
        DECOMPRESSED_PER_READ,
        CPU_PER_READ,
        P50,
        P99,
        P999,
        PEAK_P99,
        COMPACTED_RATE,
    ];
    // Without a compaction nothing was compacted.
    let shown = figures.len() - usize::from(condition.is_none());
    let medians = figures.iter().take(shown);
    let medians = medians.map(|figure| Column::Median(figure.under(condition)));
    let columns: Vec<Column> = std::iter::once(Column::Runs).chain(medians).collect();
    comparison.table(caption, &columns)
}

/// The work alongside reads, in a sentence.
fn condition_name(condition: Option<&str>) -> &'static str {
    match condition {
        None => "alone",
        Some(_) => "during a compaction",
    }
}

fn stored(outcome: &ChunkLengthOutcome) -> Table {
    let chunked =
        |row: &&VariantRecord, text: String| cell(row.variant.chunk_length_bytes, |_| text.clone());
    Table::new(
        "What is stored: compressed over uncompressed, Data.db, chunks, bytes of chunk offsets in memory and \
         those for each GiB of data; page cache that the hot rows take, and its ratio to the memory that they \
         may have",
        &outcome.variants,
        &[
            ("variant", &|row| row.variant.to_string()),
            ("ratio", &|row| significant(row.ratio)),
            ("Data.db", &|row| bytes(row.data_file_bytes as f64)),
            ("chunks", &|row| chunked(row, count(row.chunks))),
            ("offsets", &|row| {
                chunked(row, bytes(row.chunk_offset_bytes as f64))
            }),
            ("per GiB", &|row| {
                chunked(row, bytes(row.chunk_offset_bytes_per_gib.round()))
            }),
            ("hot pages", &|row| bytes(row.hot_bytes as f64)),
            ("of memory", &|row| times(row.pressure)),
        ],
    )
}

fn facts(outcome: &ChunkLengthOutcome) -> Facts {
    let options = &outcome.options;
    let (header, command) = (&outcome.header, options.command.as_deref());
    let rate = outcome.rate_per_s.map_or_else(
        || "not known".to_owned(),
        |rate| match options.rate_per_s {
            Some(_) => format!("{}/s", significant(rate)),
            None => format!(
                "{}/s, half of the slowest variant's peak in warm-ups",
                significant(rate)
            ),
        },
    );
    let hot_rows = count(outcome.hot_rows);
    let own = [
        vec![
            ("common rate".to_owned(), rate),
            ("hot rows".to_owned(), hot_rows),
        ],
        facts::of_record("source table", &outcome.source, &[]),
        facts::of_record("options", options, &["command"]),
    ];
    facts::of_experiment(header, command, own, &outcome.environment)
}

//! What a [`ChunkLengthOutcome`] says, for people: figures of each variant over its repeats, how they
//! compare, what was published, and why not to believe them.

use serde::Serialize;

use super::LeftOutVariant;
use super::compare::of_repeats;
use super::doubts::told_once;
use super::markdown::{escaped, warnings};
use super::table::Table;
use super::text::printable;
use crate::chunk_length::{
    ChunkLengthOutcome, Compressor, Reading, Reads, Variant, VariantRecord, VariantRun, holds_rate,
};
use crate::outcome::{End, Warning};
use crate::stats::{ENOUGH_REPEATS, Ratio, Spread, median_range_confidence};
use crate::text_table::{aligned_left, wrapped};

mod published;
mod tables;
#[cfg(test)]
mod tests;
mod where_and_how;

pub use published::{Comparison, Verdict};

/// What others are compared with, if it was measured: Cassandra's chunk length until 3.11, which
/// published figures are about, else its default since 4.0.
const BASELINES: [u32; 2] = [64 << 10, 16 << 10];

/// The figures of a comparison.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ChunkLengthReport<'a> {
    /// What to call the outcome beside others, such as its file.
    pub name: String,
    /// How the experiment ended.
    pub end: &'a End,
    /// Reads per second at which latencies were compared.
    pub rate_per_s: Option<f64>,
    /// What ratios are to.
    pub baseline: Option<Variant>,
    /// In the order in which they were named.
    pub variants: Vec<VariantReport<'a>>,
    /// Published figures, and whether these agree.
    pub published: Vec<Comparison>,
    /// Runs that do not count, warm-ups left out.
    pub left_out: Vec<LeftOutVariant<'a>>,
    /// What makes the numbers doubtful.
    pub doubts: Vec<Warning>,
    /// Where the numbers come from.
    #[serde(skip)]
    pub outcome: &'a ChunkLengthOutcome,
}

/// The figures of one variant.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct VariantReport<'a> {
    /// What it is on disk and in memory.
    #[serde(flatten)]
    pub record: &'a VariantRecord,
    /// Runs that count.
    pub counted: usize,
    /// Runs but for warm-ups.
    pub runs: usize,
    /// Reads with nothing beside them.
    pub alone: ConditionReport,
    /// Reads beside a compaction.
    pub beside: ConditionReport,
}

/// The figures of one variant under one condition.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct ConditionReport {
    /// Each figure over the runs that count; one that no run has is missing.
    pub figures: Vec<ReadFigureSpread>,
    /// In comparison with the baseline, within each repeat.
    pub to_baseline: Vec<ReadFigureRatio>,
}

/// A figure over repeats.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ReadFigureSpread {
    /// Which.
    pub figure: ReadFigure,
    /// Over the runs that count.
    #[serde(flatten)]
    pub spread: Spread,
}

/// A figure in comparison.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ReadFigureRatio {
    /// Which.
    pub figure: ReadFigure,
    /// By how much it is multiplied.
    #[serde(flatten)]
    pub ratio: Ratio,
}

/// What goes on beside the reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Nothing.
    Alone,
    /// A compaction.
    Beside,
}

impl Condition {
    fn of(self, run: &VariantRun) -> Option<&Reads> {
        match self {
            Condition::Alone => Some(&run.alone),
            Condition::Beside => run.beside.as_ref(),
        }
    }

    /// In a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Condition::Alone => "alone",
            Condition::Beside => "beside a compaction",
        }
    }
}

/// One number of the reads of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadFigure {
    /// Reads per second, as many as there could be.
    ReadsPerS,
    /// 99 percent of these took at most this, ns, from the begin of each.
    PeakP99Ns,
    /// Half of the reads at the common rate, ns, from when they were to begin.
    P50Ns,
    /// 99 percent of them.
    P99Ns,
    /// 99.9 percent of them.
    P999Ns,
    /// Bytes read from disk for each read, at the most reads per second.
    DiskBytesPerRead,
    /// Bytes decompressed for each read.
    DecompressedBytesPerRead,
    /// Processor nanoseconds of the reader for each read.
    CpuNsPerRead,
    /// Bytes read from disk per second, at the most reads per second.
    DiskBytesPerS,
    /// Processors that the readers took, at the most reads per second.
    Processors,
    /// Uncompressed bytes that the compaction read per second meanwhile.
    CompactedBytesPerS,
}

impl ReadFigure {
    /// All of them.
    pub const ALL: [ReadFigure; 11] = [
        ReadFigure::ReadsPerS,
        ReadFigure::PeakP99Ns,
        ReadFigure::P50Ns,
        ReadFigure::P99Ns,
        ReadFigure::P999Ns,
        ReadFigure::DiskBytesPerRead,
        ReadFigure::DecompressedBytesPerRead,
        ReadFigure::CpuNsPerRead,
        ReadFigure::DiskBytesPerS,
        ReadFigure::Processors,
        ReadFigure::CompactedBytesPerS,
    ];

    /// Those that variants are compared by.
    pub const COMPARED: [ReadFigure; 6] = [
        ReadFigure::ReadsPerS,
        ReadFigure::PeakP99Ns,
        ReadFigure::P99Ns,
        ReadFigure::P999Ns,
        ReadFigure::DiskBytesPerRead,
        ReadFigure::CpuNsPerRead,
    ];

    /// Of the reads of a run; `None` where there is none. Latencies of a rate that could not be held
    /// are none.
    pub fn of(self, reads: &Reads) -> Option<f64> {
        let peak = &reads.peak;
        let at_rate = reads.at_rate.as_ref();
        let latency = at_rate
            .filter(|reading| holds_rate(reading) && reading.latency.operations > 0)
            .map(|reading| &reading.latency);
        let seconds = peak.latency.duration_s;
        let per_s = |total: f64| (seconds > 0.0).then(|| total / seconds);
        let disk = |reading: &Reading| Some(reading.disk_read_bytes? as f64);
        let number = match self {
            ReadFigure::ReadsPerS => peak.latency.achieved_per_s,
            ReadFigure::PeakP99Ns => peak.latency.p99_ns as f64,
            ReadFigure::P50Ns => latency?.p50_ns as f64,
            ReadFigure::P99Ns => latency?.p99_ns as f64,
            ReadFigure::P999Ns => latency?.p999_ns as f64,
            ReadFigure::DiskBytesPerRead => peak.per_read(disk(peak)?)?,
            ReadFigure::DecompressedBytesPerRead => {
                peak.per_read(peak.decompressed_bytes as f64)?
            }
            ReadFigure::CpuNsPerRead => peak.per_read(peak.reader_cpu_s * 1e9)?,
            ReadFigure::DiskBytesPerS => per_s(disk(peak)?)?,
            ReadFigure::Processors => per_s(peak.reader_cpu_s)?,
            ReadFigure::CompactedBytesPerS => per_s(peak.compacted_bytes as f64)?,
        };
        number.is_finite().then_some(number)
    }
}

impl VariantReport<'_> {
    /// Its figures under a condition.
    pub fn under(&self, condition: Condition) -> &ConditionReport {
        match condition {
            Condition::Alone => &self.alone,
            Condition::Beside => &self.beside,
        }
    }
}

impl ConditionReport {
    fn new(
        outcome: &ChunkLengthOutcome,
        variant: Variant,
        baseline: Option<Variant>,
        condition: Condition,
    ) -> ConditionReport {
        let figures = ReadFigure::ALL.into_iter().filter_map(|figure| {
            let numbers = numbers(outcome, variant, condition, figure);
            let numbers: Vec<f64> = numbers.into_iter().map(|(_, number)| number).collect();
            let spread = Spread::of(&numbers)?;
            Some(ReadFigureSpread { figure, spread })
        });
        let base = baseline.filter(|base| *base != variant);
        let ratios = base.into_iter().flat_map(|base| {
            ReadFigure::COMPARED.into_iter().filter_map(move |figure| {
                let ratio = ratio(outcome, variant, base, condition, figure)?;
                Some(ReadFigureRatio { figure, ratio })
            })
        });
        ConditionReport {
            figures: figures.collect(),
            to_baseline: ratios.collect(),
        }
    }

    /// A figure over the runs that count.
    pub fn figure(&self, figure: ReadFigure) -> Option<Spread> {
        let found = self.figures.iter().find(|f| f.figure == figure);
        found.map(|f| f.spread)
    }

    /// A figure in comparison.
    pub fn ratio(&self, figure: ReadFigure) -> Option<Ratio> {
        let found = self.to_baseline.iter().find(|f| f.figure == figure);
        found.map(|f| f.ratio)
    }
}

/// A figure of the runs of a variant that count, each with its repeat.
fn numbers(
    outcome: &ChunkLengthOutcome,
    variant: Variant,
    condition: Condition,
    figure: ReadFigure,
) -> Vec<(u32, f64)> {
    let runs = outcome.counted(variant);
    runs.filter_map(|run| Some((run.repeat, figure.of(condition.of(run)?)?)))
        .collect()
}

fn ratio(
    outcome: &ChunkLengthOutcome,
    variant: Variant,
    base: Variant,
    condition: Condition,
    figure: ReadFigure,
) -> Option<Ratio> {
    let of = |variant| numbers(outcome, variant, condition, figure);
    of_repeats(of(variant), of(base), outcome.options.seed)
}

impl<'a> ChunkLengthReport<'a> {
    /// Of an outcome.
    pub fn new(name: impl Into<String>, outcome: &'a ChunkLengthOutcome) -> ChunkLengthReport<'a> {
        let baseline = baseline(outcome);
        let of = |record: &'a VariantRecord| {
            let variant = record.variant;
            let runs = outcome.runs.iter();
            VariantReport {
                record,
                counted: outcome.counted(variant).count(),
                runs: runs.filter(|r| r.variant == variant && !r.warm_up).count(),
                alone: ConditionReport::new(outcome, variant, baseline, Condition::Alone),
                beside: ConditionReport::new(outcome, variant, baseline, Condition::Beside),
            }
        };
        let left_out = outcome.runs.iter();
        let left_out = left_out.filter(|run| !run.warm_up && !run.counts());
        let mut report = ChunkLengthReport {
            name: name.into(),
            end: &outcome.end,
            rate_per_s: outcome.rate_per_s,
            baseline,
            variants: outcome.variants.iter().map(of).collect(),
            published: published::compare(outcome),
            left_out: left_out
                .map(|run| LeftOutVariant {
                    variant: run.variant,
                    repeat: run.repeat,
                    reasons: &run.invalid,
                })
                .collect(),
            doubts: Vec::new(),
            outcome,
        };
        report.doubts = doubts(&report);
        report
    }

    /// Whether every variant has a run that counts.
    pub fn is_complete(&self) -> bool {
        self.variants.iter().all(|variant| variant.counted > 0)
    }
}

/// What others are compared with: of the first compressor with chunks.
fn baseline(outcome: &ChunkLengthOutcome) -> Option<Variant> {
    let variants: Vec<Variant> = outcome.variants.iter().map(|v| v.variant).collect();
    let of_len = |len: u32| {
        let mut variants = variants.iter();
        variants
            .find(|v| v.chunk_length_bytes == Some(len))
            .copied()
    };
    BASELINES
        .into_iter()
        .find_map(of_len)
        .or_else(|| variants.first().copied())
}

fn doubts(report: &ChunkLengthReport<'_>) -> Vec<Warning> {
    let outcome = report.outcome;
    let mut doubts = outcome.warnings.clone();
    let counting = outcome.runs.iter().filter(|run| run.counts());
    doubts.extend(told_once(counting.map(|run| {
        let place = format!("{} repeat {}", run.variant, run.repeat);
        (place, run.warnings.as_slice())
    })));
    let fewest = report.variants.iter().map(|v| v.counted).min().unwrap_or(0);
    if fewest < ENOUGH_REPEATS {
        doubts.push(Warning::new(
            "few_repeats",
            match fewest {
                0 => "a variant has no run that counts".to_owned(),
                1 => "only 1 run of a variant counts; there is no telling how much is chance".to_owned(),
                _ => format!(
                    "only {fewest} runs of a variant count; an interval over them is at most {:.0}% sure",
                    median_range_confidence(fewest) * 100.0
                ),
            },
        ));
    }
    doubts
}

/// As text for a terminal.
pub fn text(report: &ChunkLengthReport<'_>) -> String {
    let mut out = format!("{}\n", report.name);
    out.push_str(&aligned_left(&where_and_how::lines(report)));
    for doubt in &report.doubts {
        out.push_str(&wrapped("  ! ", &doubt.text));
    }
    for table in tables::all(report) {
        out.push('\n');
        out.push_str(&table.to_text());
    }
    for sentence in published::explanations(report) {
        out.push_str(&wrapped("  ", &sentence));
    }
    printable(&out)
}

/// As GitHub's Markdown.
pub fn markdown(report: &ChunkLengthReport<'_>) -> String {
    let mut out = format!("### {}\n\n", escaped(&report.name));
    for (name, value) in where_and_how::lines(report) {
        out.push_str(&format!("- {name}: {}\n", escaped(&value)));
    }
    warnings(&mut out, report.doubts.iter().map(|w| w.text.as_str()));
    for table in tables::all(report) {
        out.push('\n');
        out.push_str(&table.to_markdown());
    }
    for sentence in published::explanations(report) {
        out.push_str(&format!("\n{}\n", escaped(&sentence)));
    }
    out
}

/// What pictures and tables of a page are made of.
pub(super) struct Page {
    pub(super) lines: Vec<(&'static str, String)>,
    pub(super) tables: Vec<Table>,
    pub(super) explanations: Vec<String>,
}

pub(super) fn page(report: &ChunkLengthReport<'_>) -> Page {
    Page {
        lines: where_and_how::lines(report),
        tables: tables::all(report),
        explanations: published::explanations(report),
    }
}

/// The first compressor that has both lengths.
fn compressor_with(outcome: &ChunkLengthOutcome, lengths: [u32; 2]) -> Option<Compressor> {
    let has = |compressor: Compressor, len: u32| {
        let mut variants = outcome.variants.iter().map(|v| v.variant);
        variants.any(|v| v.compressor == compressor && v.chunk_length_bytes == Some(len))
    };
    let compressors = outcome.variants.iter().map(|v| v.variant.compressor);
    compressors
        .into_iter()
        .find(|&c| lengths.iter().all(|&len| has(c, len)))
}

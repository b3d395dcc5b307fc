//! Report of a comparison of chunk lengths: figures of each variant over its repeats, how they compare, what
//! was published, and caveats.

use serde::Serialize;

use super::chart::{Bar, Stroke, bars};
use super::document::{Block, Document, Facts, Section};
use super::units::{bytes, seconds, significant};
use super::{
    Counted, FigureRatio, FigureSpread, LeftOut, Measure, facts, few_repeats, grouped, left_out,
    ratio_of, ratios, spread_of, spreads, texts,
};
use crate::arm::Arm;
use crate::chunk_length::{
    ChunkLengthOutcome, Reading, Reads, Variant, VariantRecord, VariantRun, holds_rate,
};
use crate::outcome::{Attempt, End, Subject, Warning};
use crate::stats::{Ratio, Spread};
use crate::text_table::{count, counted};

mod published;
mod tables;
#[cfg(test)]
mod tests;

pub use published::{Comparison, Verdict};

/// Chunk lengths that others are compared with, if measured: Cassandra's chunk length until 3.11, which
/// published figures are about, else its default since 4.0.
const BASELINES: [u32; 2] = [64 << 10, 16 << 10];

/// The figures of a comparison.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ChunkLengthReport<'a> {
    /// Name of the outcome, such as its file.
    pub name: String,
    /// End of the experiment.
    pub end: &'a End,
    /// Reads per second at which latencies were compared.
    pub rate_per_s: Option<f64>,
    /// The variant that others are compared with.
    pub baseline: Option<Variant>,
    /// Variants in the order in which they were named.
    pub variants: Vec<VariantReport<'a>>,
    /// Published figures, and whether these agree.
    pub published: Vec<Comparison>,
    /// Runs that do not count, without warm-ups.
    pub left_out: Vec<LeftOut<'a>>,
    /// Caveats about the numbers.
    #[serde(rename = "doubts")]
    pub caveats: Vec<Warning>,
    /// Source of the numbers.
    #[serde(skip)]
    pub outcome: &'a ChunkLengthOutcome,
}

/// The figures of one variant.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct VariantReport<'a> {
    /// The variant on disk and in memory.
    #[serde(flatten)]
    pub record: &'a VariantRecord,
    /// Runs that count.
    pub counted: usize,
    /// Runs without warm-ups.
    pub runs: usize,
    /// Reads alone.
    pub alone: ConditionReport,
    /// Reads during a compaction.
    #[serde(rename = "beside")]
    pub compacting: ConditionReport,
}

/// The figures of one variant under one condition.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct ConditionReport {
    /// Each figure over the runs that count; one that no run has is missing.
    pub figures: Vec<FigureSpread<ReadFigure>>,
    /// Comparison with the baseline, within each repeat.
    pub to_baseline: Vec<FigureRatio<ReadFigure>>,
}

/// Work alongside the reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Nothing.
    Alone,
    /// A compaction.
    #[serde(rename = "beside")]
    Compacting,
}

impl Condition {
    fn of(self, run: &VariantRun) -> Option<&Reads> {
        match self {
            Condition::Alone => Some(&run.alone),
            Condition::Compacting => run.compacting.as_ref(),
        }
    }

    /// Reads of a variant's runs that count.
    fn counted(self, outcome: &ChunkLengthOutcome, variant: Variant) -> Counted<'_, Reads> {
        let runs = outcome.counted(variant);
        let reads = runs.map(|run| (run.attempt.repeat, self.of(run)));
        reads
            .filter_map(|(repeat, reads)| Some((repeat, reads?)))
            .collect()
    }

    /// Name in a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Condition::Alone => "alone",
            Condition::Compacting => "during a compaction",
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

impl Measure for ReadFigure {
    type Of = Reads;
    const ALL: &'static [ReadFigure] = &[
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
    const COMPARED: &'static [ReadFigure] = &[
        ReadFigure::ReadsPerS,
        ReadFigure::PeakP99Ns,
        ReadFigure::P99Ns,
        ReadFigure::P999Ns,
        ReadFigure::DiskBytesPerRead,
        ReadFigure::CpuNsPerRead,
    ];

    // Latencies of a rate that could not be held are none.
    fn of(self, reads: &Reads) -> Option<f64> {
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
            Condition::Compacting => &self.compacting,
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
        let ours = condition.counted(outcome, variant);
        let base = baseline.filter(|base| *base != variant);
        let to = |base| {
            ratios(
                &ours,
                &condition.counted(outcome, base),
                outcome.options.seed,
            )
        };
        ConditionReport {
            figures: spreads(&ours),
            to_baseline: base.map(to).unwrap_or_default(),
        }
    }

    /// A figure over the runs that count.
    pub fn figure(&self, figure: ReadFigure) -> Option<Spread> {
        spread_of(&self.figures, figure)
    }

    /// A figure in comparison.
    pub fn ratio(&self, figure: ReadFigure) -> Option<Ratio> {
        ratio_of(&self.to_baseline, figure)
    }
}

/// All runs with their variants.
fn attempts(outcome: &ChunkLengthOutcome) -> impl Iterator<Item = (Subject, &Attempt)> {
    let runs = outcome.runs.iter();
    runs.map(|run| (Subject::Variant(run.variant), &run.attempt))
}

impl<'a> ChunkLengthReport<'a> {
    /// The report of an outcome.
    pub fn new(name: impl Into<String>, outcome: &'a ChunkLengthOutcome) -> ChunkLengthReport<'a> {
        let baseline = baseline(outcome);
        let of = |record: &'a VariantRecord| {
            let variant = record.variant;
            let runs = outcome.runs.iter().filter(|run| run.variant == variant);
            VariantReport {
                record,
                counted: outcome.counted(variant).count(),
                runs: runs.filter(|run| !run.attempt.warm_up).count(),
                alone: ConditionReport::new(outcome, variant, baseline, Condition::Alone),
                compacting: ConditionReport::new(outcome, variant, baseline, Condition::Compacting),
            }
        };
        let variants: Vec<VariantReport<'a>> = outcome.variants.iter().map(of).collect();
        let mut caveats = outcome.warnings.clone();
        caveats.extend(grouped(attempts(outcome)));
        let fewest = variants.iter().map(|v| v.counted).min().unwrap_or(0);
        if let Some((kind, text)) = few_repeats(fewest) {
            caveats.push(Warning::new(kind, format!("a variant: {text}")));
        }
        ChunkLengthReport {
            name: name.into(),
            end: &outcome.end,
            rate_per_s: outcome.rate_per_s,
            baseline,
            variants,
            published: published::compare(outcome),
            left_out: left_out(attempts(outcome)),
            caveats,
            outcome,
        }
    }

    /// Whether every variant has a run that counts.
    pub fn is_complete(&self) -> bool {
        self.variants.iter().all(|variant| variant.counted > 0)
    }

    /// Reports one after the other.
    pub fn document(reports: &[ChunkLengthReport<'_>]) -> Document {
        let numbered = reports.iter().zip(0..);
        Document {
            title: match reports {
                [only] => format!("Chunk length: {}", only.name),
                _ => "Chunk length".to_owned(),
            },
            heading: "Cost of a read by chunk length",
            introduction: "The same foreground load reads the same rows, stored with several chunk lengths \
                and compressors: as fast as it can, then at one rate; alone, and during a compaction.",
            sections: numbered
                .map(|(report, at)| report.section(&format!("c{at}")))
                .collect(),
        }
    }

    fn section(&self, id: &str) -> Section {
        let mut blocks = vec![
            Block::Caveats("About these numbers", texts(&self.caveats)),
            Block::Table(tables::reads(self, Condition::Alone)),
        ];
        blocks.extend(self.charts(id));
        blocks.extend(tables::others(self));
        blocks.extend(super::left_out_table(&self.left_out));
        let explanations = published::explanations(self);
        blocks.extend(explanations.into_iter().map(Block::Paragraph));
        let mut facts = self.facts();
        facts.extend(facts::machine(&self.outcome.environment));
        Section {
            name: self.name.clone(),
            headline: String::new(),
            facts,
            blocks,
        }
    }

    /// Bars of the most reads per second and of p99 as multiples of the baseline's; `None` without one.
    fn charts(&self, id: &str) -> Option<Block> {
        let baseline = self.baseline?.to_string();
        let mut pictures = String::new();
        for condition in [Condition::Alone, Condition::Compacting] {
            for (figure, name) in [
                (ReadFigure::ReadsPerS, "reads/s"),
                (ReadFigure::P99Ns, "p99"),
            ] {
                let bar = |(variant, at): (&VariantReport<'_>, usize)| {
                    Some(Bar {
                        name: variant.record.variant.to_string(),
                        stroke: Stroke::numbered(at),
                        ratio: variant.under(condition).ratio(figure)?,
                    })
                };
                let all: Vec<Bar> = self.variants.iter().zip(0..).filter_map(bar).collect();
                let what = format!("{name} {}", condition.name());
                let id = format!("{id}-{}", what.replace([' ', '/'], "-"));
                pictures.push_str(&bars(&all, &what, &baseline, &id));
            }
        }
        (!pictures.is_empty()).then_some(Block::Figure {
            pictures,
            is_grid: true,
            caption: "The most reads per second, and p99 at the common rate, as a multiple of what they are \
                in the variant that others are compared with, within each repeat; logarithmic. Bars begin \
                at 1, no difference; the thin line with ends is the 95% bootstrap interval over repeats. \
                Where that crosses 1, the repeats do not show a difference. Right is better for reads per \
                second, left for p99.",
        })
    }

    fn facts(&self) -> Facts {
        let (outcome, options) = (self.outcome, &self.outcome.options);
        let mut facts = facts::of_experiment(
            ("experiment", "chunk length, "),
            outcome.started_at_ms,
            outcome.elapsed_s,
            &outcome.end,
            options.command.as_deref(),
        );
        let limit = outcome.memory_limit_bytes.map_or_else(
            || "no memory limit".to_owned(),
            |limit| format!("memory limit {}", bytes(limit as f64)),
        );
        let hot_rows = format!(
            "{} on {} of the table as it was, {}; {limit}",
            count(outcome.hot_rows),
            bytes(options.hot_set_bytes as f64),
            facts::popularity(options.distribution),
        );
        let rate = outcome.rate_per_s.map_or_else(String::new, |rate| {
            let why = match options.rate_per_s {
                Some(_) => "",
                None => ", half of the slowest variant's while warming up",
            };
            format!(
                "; then {} reads/s on a Poisson schedule{why}, latency from when a read was to begin",
                significant(rate)
            )
        });
        let reads = format!(
            "{}, each reading on as soon as it has read{rate}",
            counted(u64::from(options.reader_threads), "thread"),
        );
        let compaction = match options.compaction {
            Arm::Idle => "none".to_owned(),
            arm => format!(
                "of the table as it was, the same for all variants, again and again, {arm}: {}",
                facts::compaction(options)
            ),
        };
        let repeats = format!(
            "{}; page cache dropped before each, filled by {} of reads, {} for each measurement",
            facts::repeats(options.repeats, "variant", options.seed, options.warm_ups),
            seconds(options.warm.as_secs_f64()),
            seconds(options.measure.as_secs_f64()),
        );
        facts.extend([
            ("rows", facts::table(&outcome.source)),
            ("hot rows", hot_rows),
            ("foreground", reads),
            ("compaction", compaction),
            ("repeats", repeats),
        ]);
        facts
    }
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

//! Published figures, and whether those measured here agree.
//!
//! 62,000 operations per second with chunks of 4 KB against 44,000 with 64 KB, p99 of 13 ms against
//! 24 ms: of a whole Cassandra node under as much load as it could take.

use serde::Serialize;

use super::{ChunkLengthReport, Condition, ReadFigure, VariantReport};
use crate::chunk_length::{ChunkLengthOutcome, Compressor, Variant};
use crate::report::Measure;
use crate::report::units::{bytes, mebibytes, milliseconds, significant, times};
use crate::stats::{Ratio, ratio_of_repeats};
use crate::text_table::count;

const SHORT: u32 = 4 << 10;
const LONG: u32 = 64 << 10;
const PUBLISHED_OPS_PER_S: [f64; 2] = [62_000.0, 44_000.0];
const PUBLISHED_P99_NS: [f64; 2] = [13e6, 24e6];
/// Sizes are roughly equal if one's logarithm is not more than this many times the other's.
const ROUGHLY: f64 = 2.0;

/// A published figure and the same measured here.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// Figure measured here.
    pub figure: ReadFigure,
    /// Work alongside.
    pub condition: Condition,
    /// With which compressor.
    pub compressor: Compressor,
    /// Published for chunks of 4 KiB and of 64 KiB: operations per second, or ns.
    pub published: [f64; 2],
    /// The former divided by the latter.
    pub published_ratio: f64,
    /// Ratio measured here, within each repeat; `None` without runs.
    pub measured: Option<Ratio>,
    /// Result of the comparison.
    pub verdict: Verdict,
}

/// Whether two ratios agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Agrees in direction, and roughly in size.
    Agrees,
    /// Agrees in direction; the difference is more than twice as large, on a scale of ratios.
    Larger,
    /// Agrees in direction; the difference is less than half as large.
    Smaller,
    /// The repeats do not show a difference.
    NotShown,
    /// Differs in direction.
    Contradicts,
    /// Nothing was measured.
    NotMeasured,
}

impl Verdict {
    fn of(measured: Option<Ratio>, published: f64) -> Verdict {
        let Some(measured) = measured else {
            return Verdict::NotMeasured;
        };
        if !measured.differs() {
            return Verdict::NotShown;
        }
        let share = measured.ratio.ln() / published.ln();
        match share {
            share if share <= 0.0 => Verdict::Contradicts,
            share if share > ROUGHLY => Verdict::Larger,
            share if share < 1.0 / ROUGHLY => Verdict::Smaller,
            _ => Verdict::Agrees,
        }
    }

    /// For people.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Agrees => "agrees in direction and rough size",
            Verdict::Larger => "agrees in direction, larger",
            Verdict::Smaller => "agrees in direction, smaller",
            Verdict::NotShown => "no difference shown",
            Verdict::Contradicts => "contradicts",
            Verdict::NotMeasured => "not measured",
        }
    }
}

/// Each published figure and the one measured; nothing if both lengths were not.
pub(super) fn compare(outcome: &ChunkLengthOutcome) -> Vec<Comparison> {
    let variants = || outcome.variants.iter().map(|v| v.variant);
    let has = |compressor, len| {
        let wanted = Variant {
            compressor,
            chunk_length_bytes: Some(len),
        };
        variants().any(|variant| variant == wanted)
    };
    let mut compressors = variants().map(|v| v.compressor);
    let Some(compressor) = compressors.find(|&c| has(c, SHORT) && has(c, LONG)) else {
        return Vec::new();
    };
    let variant = |len| Variant {
        compressor,
        chunk_length_bytes: Some(len),
    };
    let figures = [
        (ReadFigure::ReadsPerS, PUBLISHED_OPS_PER_S),
        (ReadFigure::PeakP99Ns, PUBLISHED_P99_NS),
        (ReadFigure::P99Ns, PUBLISHED_P99_NS),
    ];
    let has_compaction = outcome.runs.iter().any(|run| run.compacting.is_some());
    let conditions: &[Condition] = match has_compaction {
        true => &[Condition::Alone, Condition::Compacting],
        false => &[Condition::Alone],
    };
    let mut all = Vec::new();
    for &condition in conditions {
        for (figure, published) in figures {
            let numbers = |len| -> Vec<(u32, f64)> {
                let counted = condition.counted(outcome, variant(len)).into_iter();
                let numbers = counted.map(|(repeat, reads)| (repeat, figure.of(reads)));
                numbers
                    .filter_map(|(repeat, n)| Some((repeat, n?)))
                    .collect()
            };
            let measured = ratio_of_repeats(&numbers(SHORT), &numbers(LONG), outcome.options.seed);
            let published_ratio = published[0] / published[1];
            all.push(Comparison {
                figure,
                condition,
                compressor,
                published,
                published_ratio,
                measured,
                verdict: Verdict::of(measured, published_ratio),
            });
        }
    }
    all
}

impl Comparison {
    pub(super) fn name(&self) -> String {
        let figure = match self.figure {
            ReadFigure::ReadsPerS => "reads/s",
            ReadFigure::PeakP99Ns => "p99 at the most reads/s",
            _ => "p99 at the common rate",
        };
        format!("{} {figure}, {}", self.compressor, self.condition.name())
    }

    pub(super) fn published_text(&self) -> String {
        let [short, long] = self.published;
        match self.figure {
            ReadFigure::ReadsPerS => {
                format!("{} / {}", count(short as u64), count(long as u64))
            }
            _ => format!("{} / {} ms", milliseconds(short), milliseconds(long)),
        }
    }
}

/// Causes of the difference, and of differences from what was published.
pub(super) fn explanations(report: &ChunkLengthReport<'_>) -> Vec<String> {
    let Some(first) = report.published.first() else {
        return Vec::new();
    };
    let of = |len| {
        let mut variants = report.variants.iter();
        variants.find(|v| {
            v.record.variant.compressor == first.compressor
                && v.record.variant.chunk_length_bytes == Some(len)
        })
    };
    let variants = [SHORT, LONG].map(of);
    let costs = variants.into_iter().flatten();
    let costs: Vec<String> = costs.filter_map(cost).collect();
    let mut sentences = Vec::new();
    if !costs.is_empty() {
        sentences.push(format!(
            "Where the difference comes from, reads alone: {}.",
            costs.join("; ")
        ));
    }
    sentences.push(
        "Published for a whole Cassandra node: a request's way through it costs the same whatever \
         the chunk length, and brings ratios closer to 1. This load only reads rows, so that all of \
         the difference shows."
            .to_owned(),
    );
    let reads_per_s = |at: usize| {
        let alone = &variants.get(at).copied().flatten()?.alone;
        Some(alone.figure(ReadFigure::ReadsPerS)?.median)
    };
    let more = (first.verdict == Verdict::Larger)
        .then(|| more_per_request([reads_per_s(0)?, reads_per_s(1)?], first.published_ratio))
        .flatten();
    if let Some(more_s) = more {
        sentences.push(format!(
            "If each request took {} us more of this machine, whatever the chunk length, the most reads/s \
             would be {} as published.",
            significant(more_s * 1e6),
            times(first.published_ratio)
        ));
    }
    sentences
}

/// Seconds that each of two kinds of reads had to take longer for their rates to have this ratio; `None`
/// if there are none.
fn more_per_request(per_s: [f64; 2], ratio: f64) -> Option<f64> {
    let [fast, slow] = per_s.map(f64::recip);
    // ratio = (slow + more) / (fast + more)
    let more = (slow - ratio * fast) / (ratio - 1.0);
    (more > 0.0 && more.is_finite()).then_some(more)
}

fn cost(variant: &VariantReport<'_>) -> Option<String> {
    let of = |figure| variant.alone.figure(figure).map(|spread| spread.median);
    let disk = of(ReadFigure::DiskBytesPerRead).zip(of(ReadFigure::DiskBytesPerS));
    let disk = disk.map_or_else(String::new, |(per_read, per_s)| {
        format!(
            "{} from disk ({} MiB/s in all), ",
            bytes(per_read.round()),
            mebibytes(per_s)
        )
    });
    Some(format!(
        "a read of {} takes {disk}{} decompressed and {} us of processor ({} processors in all), and the \
         hot rows take {} of page cache",
        variant.record.variant,
        bytes(of(ReadFigure::DecompressedBytesPerRead)?.round()),
        significant(of(ReadFigure::CpuNsPerRead)? / 1e3),
        significant(of(ReadFigure::Processors)?),
        bytes(variant.record.hot_bytes as f64),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_requests_have_in_common_brings_ratios_closer() {
        // 10 us against 100 us, and 80 us more for both: 90 against 180.
        let more = more_per_request([1e5, 1e4], 2.0).unwrap();
        assert!((more - 80e-6).abs() < 1e-12, "{more}");
        assert_eq!(more_per_request([1e5, 8e4], 2.0), None);
        assert_eq!(more_per_request([0.0, 0.0], 2.0), None);
    }

    #[test]
    fn verdicts() {
        let measured = |ratio: f64, width: f64| {
            Some(Ratio {
                ratio,
                low: ratio / width,
                high: ratio * width,
                repeats: 5,
                paired: true,
            })
        };
        for (found, verdict) in [
            (measured(1.9, 1.01), Verdict::Agrees),
            (measured(2.1, 1.01), Verdict::Larger),
            (measured(1.1, 1.01), Verdict::Smaller),
            (measured(1.4, 1.5), Verdict::NotShown),
            (measured(0.8, 1.01), Verdict::Contradicts),
            (None, Verdict::NotMeasured),
        ] {
            assert_eq!(Verdict::of(found, 1.409), verdict, "{found:?}");
        }
    }
}

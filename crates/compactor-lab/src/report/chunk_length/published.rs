//! Published figures, and whether those measured here agree.
//!
//! 62,000 operations per second with chunks of 4 KB against 44,000 with 64 KB, p99 of 13 ms against
//! 24 ms: of a whole Cassandra node under as much load as it could take.

use serde::Serialize;

use super::{
    COMPACTING, CPU_PER_READ, DECOMPRESSED_PER_READ, DISK_PER_READ, DISK_RATE, P99, PEAK_P99,
    PROCESSORS, READS_PER_S, condition_name,
};
use crate::chunk_length::{ChunkLengthOutcome, Compressor, Variant, VariantRecord};
use crate::comparison::{ArmFigures, Comparison};
use crate::figure::Figure;
use crate::report::document::{Block, Table, cell};
use crate::report::units::{bytes, mebibytes, significant, times};
use crate::report::with_interval;
use crate::stats::Ratio;

const SHORT: u32 = 4 << 10;
const LONG: u32 = 64 << 10;
/// Figures with the published ones, of chunks of [`SHORT`] and of [`LONG`] bytes.
const PUBLISHED: [(Figure, [f64; 2]); 3] = [
    (READS_PER_S, [62_000.0, 44_000.0]),
    (PEAK_P99, [13e6, 24e6]),
    (P99, [13e6, 24e6]),
];
/// Sizes are roughly equal if one's logarithm is not more than this many times the other's.
const ROUGHLY: f64 = 2.0;
/// Short name of the variant with [`LONG`] chunks.
const LONG_CHUNKS: &str = "long_chunks";

/// A published figure and the same measured here.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PublishedFigure {
    /// Figure measured here.
    #[serde(flatten)]
    pub figure: Figure,
    /// Compressor.
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

/// The first compressor of which both chunk lengths were measured, and these variants.
fn variants(outcome: &ChunkLengthOutcome) -> Option<(Compressor, [&VariantRecord; 2])> {
    let find = |compressor, len| {
        let wanted = Variant {
            compressor,
            chunk_length_bytes: Some(len),
        };
        outcome.variants.iter().find(|v| v.variant == wanted)
    };
    let mut compressors = outcome.variants.iter().map(|v| v.variant.compressor);
    compressors.find_map(|c| Some((c, [find(c, SHORT)?, find(c, LONG)?])))
}

/// Each published figure and the one measured; nothing if not both lengths were.
pub(super) fn compare(outcome: &ChunkLengthOutcome) -> Vec<PublishedFigure> {
    let Some((compressor, [short, long])) = variants(outcome) else {
        return Vec::new();
    };
    let comparison = super::compare_with(outcome, LONG_CHUNKS, Some(long.variant));
    let short = comparison.counted(&short.variant.to_string());
    let has_compaction = outcome.runs.iter().any(|run| run.compacting.is_some());
    let conditions = [Some(None), has_compaction.then_some(COMPACTING)];
    let mut all = Vec::new();
    for condition in conditions.into_iter().flatten() {
        for (figure, published) in PUBLISHED {
            let figure = figure.under(condition);
            let measured = short.and_then(|short| short.ratio(figure, LONG_CHUNKS));
            let published_ratio = published[0] / published[1];
            all.push(PublishedFigure {
                figure,
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

/// Table of published figures and those measured; `None` if there are none.
pub(super) fn table(published: &[PublishedFigure]) -> Option<Block> {
    let name = |p: &&PublishedFigure| {
        let figure = match p.figure.name {
            name if name == P99.name => "p99 at the common rate",
            _ => p.figure.label,
        };
        let condition = condition_name(p.figure.condition);
        format!("{} {figure}, {condition}", p.compressor)
    };
    let unit = |p: &PublishedFigure| match p.figure.name {
        name if name == READS_PER_S.name => "",
        _ => " ms",
    };
    Table::new(
        "Chunks of 4 KiB as a multiple of 64 KiB, as published and as measured",
        published,
        &[
            ("figure", &name),
            ("published", &|p| {
                let [short, long] = p.published.map(|value| p.figure.unit.text(value));
                format!("{short} / {long}{}", unit(p))
            }),
            ("ratio", &|p| times(p.published_ratio)),
            ("here", &|p| cell(p.measured, with_interval)),
            ("verdict", &|p| p.verdict.text().to_owned()),
        ],
    )
    .unless_empty()
}

/// Causes of the difference, and of differences from what was published.
pub(super) fn explanations(
    outcome: &ChunkLengthOutcome,
    comparison: &Comparison,
    published: &[PublishedFigure],
) -> Vec<String> {
    let (Some(first), Some((_, variants))) = (published.first(), variants(outcome)) else {
        return Vec::new();
    };
    let arms = variants.map(|record| comparison.counted(&record.variant.to_string()));
    let costs = variants.into_iter().zip(arms);
    let costs: Vec<String> = costs
        .filter_map(|(record, arm)| cost(record, arm?))
        .collect();
    let mut sentences = Vec::new();
    if !costs.is_empty() {
        sentences.push(format!(
            "Causes of the difference, reads alone: {}.",
            costs.join("; ")
        ));
    }
    sentences.push(
        "Published for a whole Cassandra node: the rest of a request costs the same whatever the chunk length, \
         and brings ratios closer to 1. This load only reads rows, so that it shows all of the difference."
            .to_owned(),
    );
    let [short, long] = arms.map(|arm| arm?.median(READS_PER_S));
    let more = short.zip(long).filter(|_| first.verdict == Verdict::Larger);
    let more =
        more.and_then(|(short, long)| more_per_request([short, long], first.published_ratio));
    if let Some(more_s) = more {
        sentences.push(format!(
            "If each request took {} us more of this machine, whatever the chunk length, reads/s at peak would \
             be {} as published.",
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

fn cost(record: &VariantRecord, arm: &ArmFigures) -> Option<String> {
    let disk = arm.median(DISK_PER_READ).zip(arm.median(DISK_RATE));
    let disk = disk.map_or_else(String::new, |(per_read, per_s)| {
        format!(
            "{} from disk ({} MiB/s in all), ",
            bytes(per_read.round()),
            mebibytes(per_s)
        )
    });
    Some(format!(
        "a read of {} takes {disk}{} decompressed and {} us of processor ({} processors in all), and the hot \
         rows take {} of page cache",
        record.variant,
        bytes(arm.median(DECOMPRESSED_PER_READ)?.round()),
        CPU_PER_READ.unit.text(arm.median(CPU_PER_READ)?),
        significant(arm.median(PROCESSORS)?),
        bytes(record.hot_bytes as f64),
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

//! Charts of an interference experiment.

use super::P99;
use crate::arm::Arm;
use crate::comparison::Comparison;
use crate::outcome::{Latency, Outcome, Pages, Phase, Run, Sample, SweepPoint};
use crate::report::chart::{
    Axis, Horizontal, Line, Mark, Panel, Plot, Point, Stroke, plain, svg_file,
};
use crate::report::document::Block;
use crate::report::units::{MIB, bytes, milliseconds, significant};
use crate::stats::median;

/// Name of the axis of time.
const SECONDS: &str = "seconds since the compaction began";

/// Points of a series are thinned out to about this number, one per pixel and a half.
const POINTS: usize = 240;

/// Of the runs of an arm that count and have something to draw, the one with the median p99, and the others.
fn median_run<'a>(
    point: &'a SweepPoint,
    arm: &str,
    is_drawn: impl Fn(&Run) -> bool,
) -> Option<(&'a Run, Vec<&'a Run>)> {
    let counted = Outcome::counted(point, arm.parse().ok()?);
    let mut counted: Vec<&Run> = counted.filter(|run| is_drawn(run)).collect();
    let p99s: Vec<f64> = counted.iter().map(|run| run.during.p99_ns as f64).collect();
    let middle = median(&p99s)?;
    let off = |at: &usize| (p99s[*at] - middle).abs();
    let nearest = (0..p99s.len()).min_by(|a, b| off(a).total_cmp(&off(b)))?;
    Some((counted.remove(nearest), counted))
}

/// p99 of each arm over the size of the hot set; `None` for an outcome of fewer than two sizes.
pub(super) fn sweep(points: &[(&SweepPoint, Comparison)]) -> Option<Block> {
    let comparison = &points.first()?.1;
    let line = |arm: &str| {
        let places = points.iter().filter_map(|(point, comparison)| {
            let size = Some(point.hot_set_bytes as f64).filter(|size| *size > 0.0)?;
            Some((size, comparison.counted(arm)?.spread(P99)?))
        });
        let places: Vec<_> = places.collect();
        let medians = places.iter().map(|(size, p99)| (*size, p99.median));
        let ends = [places.first(), places.last()].into_iter().flatten();
        let ends =
            ends.map(|(size, p99)| format!("{} ms at {}", milliseconds(p99.median), bytes(*size)));
        let described = format!("{arm}: {}", ends.collect::<Vec<_>>().join(" to "));
        Line {
            ranges: places
                .iter()
                .map(|(_, p99)| (p99.least, p99.most))
                .collect(),
            described,
            ..Line::new(arm, Stroke::of(comparison, arm), medians.collect())
        }
    };
    let lines = comparison.arms.iter().map(|arm| line(&arm.arm));
    let lines: Vec<Line> = lines.filter(|line| line.points.len() > 1).collect();
    if lines.is_empty() {
        return None;
    }
    let sizes = || points.iter().map(|(point, _)| point.hot_set_bytes as f64);
    let ranges = lines
        .iter()
        .flat_map(|line| &line.ranges)
        .flat_map(|range| [range.0, range.1]);
    let x = Horizontal {
        name: "hot set, and its share of memory",
        axis: Axis::log(sizes(), 0.3),
        marks: (points.iter().zip(sizes()))
            .map(|((point, _), at)| Mark {
                at,
                text: bytes(at),
                below: format!("{}%", significant(point.pressure * 100.0)),
            })
            .collect(),
    };
    let panel = Panel::new("p99, ms", Axis::log(ranges, 1.0), (9, milliseconds), lines);
    Some(Block::Figure {
        pictures: Plot::new("p99 by size of the hot set", x, panel).draw(),
        caption: "p99 of reads during the compaction over the size of the hot set, ms; both axes \
            logarithmic. Below each size, the hot set as a share of the memory. Points are medians, the lines \
            through them go from the least to the most of the runs.",
    })
}

/// Points of a latency curve: `log10(1 / (1 - p))` and ns. The last percentile, 100, has no place on such an
/// axis, and is drawn where one read of all is left.
fn curve(latency: &Latency) -> Vec<Point> {
    let most = (latency.operations.max(1) as f64).log10();
    let points = latency.curve.iter().filter_map(|point| {
        let left = 1.0 - point.percentile / 100.0;
        let at = -left.max(f64::MIN_POSITIVE).log10();
        let ns = point.latency_ns as f64;
        (at.is_finite() && ns > 0.0).then_some((at.clamp(0.0, most), ns))
    });
    points.collect()
}

/// Latency by percentile of each arm; `None` if no run that counts has any.
pub(super) fn curves(point: &SweepPoint, comparison: &Comparison) -> Option<Block> {
    let line = |arm: &str| {
        let (shown, others) = median_run(point, arm, |run| curve(&run.during).len() > 1)?;
        let p99 = comparison.counted(arm)?.median(P99)?;
        let described = format!("{arm}: p99 {} ms", milliseconds(p99));
        Some(Line {
            others: others.iter().map(|run| curve(&run.during)).collect(),
            described,
            ..Line::new(arm, Stroke::of(comparison, arm), curve(&shown.during))
        })
    };
    let lines: Vec<Line> = comparison
        .arms
        .iter()
        .filter_map(|arm| line(&arm.arm))
        .collect();
    if lines.is_empty() {
        return None;
    }
    let runs = || {
        lines
            .iter()
            .flat_map(|line| line.others.iter().chain([&line.points]))
    };
    let axis = Axis::linear(runs().flatten().map(|point| point.0).chain([0.0, 2.0]));
    let furthest = runs().flatten().map(|point| point.0).fold(2.0, f64::max);
    let marks = ["0", "50", "90", "99", "99.9", "99.99", "99.999", "99.9999"];
    let places = [0.0, std::f64::consts::LOG10_2, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let marks = places
        .into_iter()
        .zip(marks)
        .filter(|(at, _)| *at <= furthest * 1.005);
    let marks = marks.map(|(at, text)| Mark::new(at, text.to_owned()));
    let x = Horizontal {
        name: "percentile of reads",
        axis,
        marks: marks.collect(),
    };
    let y = Axis::log(runs().flatten().map(|point| point.1), 1.0);
    let panel = Panel::new("latency, ms", y, (9, milliseconds), lines);
    Some(Block::Figure {
        pictures: Plot::new("Latency by percentile", x, panel).draw(),
        caption: "Latency of reads during the compaction by percentile, ms; both axes logarithmic. Right of \
            percentile 99 is one read in a hundred. Each run that counts is a thin line, the one with the \
            median p99 a thick one. Lower is better.",
    })
}

/// p99 over time and the page cache at the same time, for each arm; `None` if nothing was sampled.
pub(super) fn timelines(
    point: &SweepPoint,
    comparison: &Comparison,
    page_bytes: u64,
) -> Option<Block> {
    let arms = comparison.arms.iter();
    let all = arms.filter_map(|arm| Timeline::of(point, &arm.arm, page_bytes));
    let all: Vec<Timeline> = all.collect();
    let p99 = || {
        let runs = |t| Timeline::p99s(t).flatten();
        all.iter().flat_map(runs)
    };
    let files = || {
        all.iter()
            .flat_map(|t| t.inputs_mib.iter().chain(&t.outputs_mib))
    };
    let axes = [
        Axis::linear(p99().chain(files()).map(|p| p.0)),
        Axis::log(p99().map(|p| p.1), 1.0),
        Axis::linear([0.0, 100.0].into_iter()),
        Axis::linear(files().map(|p| p.1).chain([0.0])),
    ];
    let pictures = all.iter().map(|timeline| {
        let stroke = Stroke::of(comparison, &timeline.arm);
        timeline.plot(stroke, axes).draw()
    });
    (!all.is_empty()).then(|| Block::Figure {
        pictures: pictures.collect(),
        caption: "Each arm over time, in the run with the median p99; other runs are thin. Shaded: the \
            compaction. Above, p99 of the reads that ended in each second, ms, logarithmic; in the middle, \
            how much of the hot set is in the page cache, %; below, how much of all files of the \
            compaction is, MiB. All arms have the same axes.",
    })
}

/// p99 over time of all arms in one picture, as an SVG file; the longest compaction is shaded. `None` if nothing was
/// sampled.
pub(super) fn p99_over_time(point: &SweepPoint, comparison: &Comparison) -> Option<String> {
    let arms = comparison.arms.iter();
    let all = arms.filter_map(|arm| Timeline::of(point, &arm.arm, 1));
    let all: Vec<Timeline> = all.filter(|timeline| timeline.p99.len() > 1).collect();
    let p99 = || all.iter().flat_map(|timeline| &timeline.p99);
    let time = Axis::linear(p99().map(|p| p.0));
    let lines = all.iter().map(|timeline| {
        let stroke = Stroke::of(comparison, &timeline.arm);
        let described = format!("{}: {}", timeline.arm, timeline.p99_range());
        Line::new(&timeline.arm, stroke, timeline.p99.clone()).described(described)
    });
    let idle = Arm::Idle.to_string();
    let compacted = all.iter().filter(|timeline| timeline.arm != idle);
    let spans = compacted.filter_map(|timeline| timeline.during);
    let panel = Panel::new(
        "p99 of the reads that ended in each second, ms",
        Axis::log(p99().map(|p| p.1), 1.0),
        (7, milliseconds),
        lines.collect(),
    );
    let plot = Plot {
        shade: spans.max_by(|a, b| a.1.total_cmp(&b.1)),
        ..Plot::new(
            "p99 of reads over time",
            Horizontal::new(SECONDS, time),
            panel,
        )
    };
    (!all.is_empty()).then(|| svg_file(&plot.draw()))
}

/// Series of an arm over seconds, of the run with the median p99.
struct Timeline {
    arm: String,
    /// p99 in ns.
    p99: Vec<Point>,
    /// p99 in ns of the other runs that count.
    other_p99s: Vec<Vec<Point>>,
    hot_percent: Vec<Point>,
    inputs_mib: Vec<Point>,
    outputs_mib: Vec<Point>,
    /// Begin and end of the compaction.
    during: Option<Point>,
}

impl Timeline {
    fn of(point: &SweepPoint, arm: &str, page_bytes: u64) -> Option<Timeline> {
        let is_drawn = |run: &Run| !run.intervals.is_empty() || !run.samples.is_empty();
        let (shown, others) = median_run(point, arm, is_drawn)?;
        let mebibytes = |of: fn(&Sample) -> Option<Pages>| {
            samples(shown, |sample| {
                let bytes = of(sample)?.resident as f64 * page_bytes as f64;
                Some(bytes / MIB)
            })
        };
        let timeline = Timeline {
            arm: arm.to_owned(),
            p99: p99_by_second(shown),
            other_p99s: others.into_iter().map(p99_by_second).collect(),
            hot_percent: samples(shown, |sample| {
                let hot = sample.hot.filter(|hot| hot.total > 0)?;
                Some(100.0 * hot.resident as f64 / hot.total as f64)
            }),
            inputs_mib: mebibytes(|sample| sample.inputs),
            outputs_mib: mebibytes(|sample| sample.outputs),
            during: during(shown),
        };
        let has_p99 = timeline.p99s().any(|run| run.len() > 1);
        (has_p99 || timeline.inputs_mib.len() > 1).then_some(timeline)
    }

    /// p99 of all runs that count.
    fn p99s(&self) -> impl Iterator<Item = &Vec<Point>> {
        self.other_p99s.iter().chain([&self.p99])
    }

    fn plot(&self, stroke: Stroke, [time, p99, hot, files]: [Axis; 4]) -> Plot<'_> {
        let line = |name: &str, points: &[Point], dashes| {
            Line::new(name, stroke.with_dashes(dashes), points.to_vec())
        };
        let reads = Line {
            others: self.other_p99s.clone(),
            described: self.description(),
            ..Line::new("", stroke, self.p99.clone())
        };
        let hot_set = line("", &self.hot_percent, "");
        let inputs = line("inputs", &self.inputs_mib, "");
        let output = line("output", &self.outputs_mib, "4 3");
        Plot {
            title: "Over time",
            heading: Some((&self.arm, stroke)),
            panels: vec![
                Panel::new("p99, ms", p99, (5, milliseconds), vec![reads]),
                Panel::new(
                    "hot set in the page cache, %",
                    hot,
                    (2, plain),
                    vec![hot_set],
                ),
                Panel::new(
                    "files in the page cache, MiB",
                    files,
                    (3, plain),
                    vec![inputs, output],
                ),
            ],
            x: Horizontal::new(SECONDS, time),
            shade: self.during,
        }
    }

    fn p99_range(&self) -> String {
        let [least, most] = [least(&self.p99), most(&self.p99)].map(milliseconds);
        format!("p99 of a second between {least} and {most} ms")
    }

    fn description(&self) -> String {
        format!(
            "{}: {}; at least {}% of the hot set in the page cache; at most {} MiB of the inputs and {} MiB of the \
             output",
            self.arm,
            self.p99_range(),
            significant(least(&self.hot_percent)),
            significant(most(&self.inputs_mib)),
            significant(most(&self.outputs_mib)),
        )
    }
}

fn least(line: &[Point]) -> f64 {
    line.iter().map(|p| p.1).fold(f64::NAN, f64::min)
}

fn most(line: &[Point]) -> f64 {
    line.iter().map(|p| p.1).fold(f64::NAN, f64::max)
}

fn p99_by_second(run: &Run) -> Vec<Point> {
    let intervals = run.intervals.iter();
    let ended = intervals.filter(|i| i.operations > 0 && i.p99_ns > 0);
    let places = ended.map(|i| (i.start_s + i.duration_s / 2.0, i.p99_ns as f64));
    places.filter(|place| place.0.is_finite()).collect()
}

fn samples(run: &Run, value: impl Fn(&Sample) -> Option<f64>) -> Vec<Point> {
    let all = run.samples.iter();
    let all = all.filter_map(|sample| Some((sample.at_s, value(sample)?)));
    let all: Vec<Point> = all
        .filter(|(at, value)| at.is_finite() && value.is_finite())
        .collect();
    let step = all.len().div_ceil(POINTS).max(1);
    let last = all.len().saturating_sub(1);
    let kept = all.iter().enumerate();
    let kept = kept.filter(|(at, _)| at % step == 0 || *at == last);
    kept.map(|(_, place)| *place).collect()
}

/// Begin and end of the compaction, or of the time that takes its place in the idle arm.
fn during(run: &Run) -> Option<Point> {
    if let Some(compaction) = &run.compaction {
        return Some((0.0, compaction.elapsed_s)).filter(|span| span.1.is_finite());
    }
    let during = run.samples.iter().filter(|s| s.phase == Phase::During);
    let times: Vec<f64> = during.map(|s| s.at_s).filter(|at| at.is_finite()).collect();
    Some((*times.first()?, *times.last()?))
}

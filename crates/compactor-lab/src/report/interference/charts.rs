//! Charts of an interference experiment.

use super::{Figure, PointReport, Report};
use crate::arm::Arm;
use crate::outcome::{Latency, Outcome, Pages, Phase, Run, Sample};
use crate::report::chart::{
    Axis, Bar, IDLE, Line, LinePlot, Point, Stroke, Svg, bars, plain, spread,
};
use crate::report::document::Block;
use crate::report::units::{bytes, milliseconds, significant};
use crate::stats::median;

/// Stroke of an arm, the same in all charts of a list of arms.
fn stroke(arms: impl Iterator<Item = Arm>, arm: Arm) -> Stroke {
    if arm == Arm::Idle {
        return IDLE;
    }
    let mut compactions = arms.filter(|arm| *arm != Arm::Idle);
    Stroke::numbered(compactions.position(|other| other == arm).unwrap_or(0))
}

fn stroke_at(point: &PointReport<'_>, arm: Arm) -> Stroke {
    stroke(point.arms.iter().map(|a| a.arm), arm)
}

/// Runs of an arm that count and have something to draw, and which of them has the median p99.
fn runs<'a>(
    point: &PointReport<'a>,
    arm: Arm,
    is_drawn: impl Fn(&Run) -> bool,
) -> Option<(Vec<&'a Run>, usize)> {
    let counted: Vec<&Run> = Outcome::counted(point.point, arm)
        .filter(|run| is_drawn(run))
        .collect();
    let p99s = counted.iter().map(|run| run.during.p99_ns as f64);
    let p99s: Vec<f64> = p99s.collect();
    let middle = median(&p99s)?;
    let off = |at: &usize| (p99s[*at] - middle).abs();
    let nearest = (0..p99s.len()).min_by(|a, b| off(a).total_cmp(&off(b)))?;
    Some((counted, nearest))
}

/// p99 of each arm over the size of the hot set; `None` for an outcome of fewer than two sizes.
pub(super) fn sweep(report: &Report<'_>, id: &str) -> Option<Block> {
    let mut arms: Vec<Arm> = Vec::new();
    for arm in report.points.iter().flat_map(|point| &point.arms) {
        if !arms.contains(&arm.arm) {
            arms.push(arm.arm);
        }
    }
    let line = |&arm: &Arm| {
        let places = report.points.iter().filter_map(|point| {
            let found = point.arms.iter().find(|a| a.arm == arm)?;
            let size = Some(point.hot_set_bytes as f64).filter(|size| *size > 0.0)?;
            Some((size, found.figure(Figure::P99Ns)?))
        });
        let places: Vec<_> = places.collect();
        let described = places.iter();
        let described = described
            .map(|(size, p99)| format!("{} ms at {}", milliseconds(p99.median), bytes(*size)));
        Line {
            name: arm.to_string(),
            stroke: stroke(arms.iter().copied(), arm),
            points: places
                .iter()
                .map(|(size, p99)| (*size, p99.median))
                .collect(),
            others: Vec::new(),
            ranges: places
                .iter()
                .map(|(_, p99)| (p99.least, p99.most))
                .collect(),
            description: format!("{arm}: {}", described.collect::<Vec<_>>().join(", ")),
        }
    };
    let lines: Vec<Line> = arms
        .iter()
        .map(line)
        .filter(|l| l.points.len() > 1)
        .collect();
    let marks = report.points.iter().map(|point| {
        let size = point.hot_set_bytes as f64;
        let share = format!("{}%", significant(point.pressure * 100.0));
        (size, bytes(size), share)
    });
    let plot = LinePlot {
        id: format!("{id}-sweep"),
        title: "p99 by size of the hot set",
        axes: ["p99, ms", "hot set, and its share of memory"],
        is_x_log: true,
        least_x: [f64::NAN; 2],
        marks: marks.collect(),
        lines,
    };
    (report.points.len() > 1 && !plot.lines.is_empty()).then(|| Block::Figure {
        pictures: plot.draw(),
        is_grid: false,
        caption: "p99 of reads during the compaction over the size of the hot set, ms; both axes \
            logarithmic. Below each size, the hot set as a share of the memory. Points are medians, the \
            lines through them go from the least to the most of the runs.",
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
pub(super) fn curves(point: &PointReport<'_>, id: &str) -> Option<Block> {
    let line = |arm: Arm| {
        let (counted, middle) = runs(point, arm, |run| curve(&run.during).len() > 1)?;
        let mut others: Vec<_> = counted.iter().map(|run| curve(&run.during)).collect();
        let points = others.remove(middle);
        let p99s: Vec<f64> = counted.iter().map(|r| r.during.p99_ns as f64).collect();
        Some(Line {
            name: arm.to_string(),
            stroke: stroke_at(point, arm),
            points,
            others,
            ranges: Vec::new(),
            description: format!("{arm}: p99 {} ms", milliseconds(median(&p99s)?)),
        })
    };
    let lines: Vec<Line> = point.arms.iter().filter_map(|arm| line(arm.arm)).collect();
    let marks = ["0", "50", "90", "99", "99.9", "99.99", "99.999", "99.9999"];
    let places = [0.0, std::f64::consts::LOG10_2, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let marks = places.into_iter().zip(marks);
    let plot = LinePlot {
        id: format!("{id}-curves"),
        title: "Latency by percentile",
        axes: ["latency, ms", "percentile of reads"],
        is_x_log: false,
        least_x: [0.0, 2.0],
        marks: marks
            .map(|(at, text)| (at, text.to_owned(), String::new()))
            .collect(),
        lines,
    };
    (!plot.lines.is_empty()).then(|| Block::Figure {
        pictures: plot.draw(),
        is_grid: false,
        caption: "Latency of reads during the compaction by percentile, ms; both axes logarithmic. Right \
            of percentile 99 is one read in a hundred. Each run that counts is a thin line, the one with \
            the median p99 a thick one. Lower is better.",
    })
}

/// Bars of p99 as a multiple of the idle and of the buffered arm's; `None` if there is neither.
pub(super) fn ratios(point: &PointReport<'_>, id: &str) -> Option<Block> {
    let picture = |(name, base): (&str, Arm)| {
        point.counted(base)?;
        let bar = |arm: &super::ArmReport| {
            Some(Bar {
                name: arm.arm.to_string(),
                stroke: stroke_at(point, arm.arm),
                ratio: arm.ratio(base, Figure::P99Ns)?,
            })
        };
        let all: Vec<Bar> = point.arms.iter().filter_map(bar).collect();
        Some(bars(
            &all,
            "p99",
            &format!("p99 of {base}"),
            &format!("{id}-ratio-{name}"),
        ))
    };
    let bases = [("idle", Arm::Idle), ("buffered", Arm::BUFFERED)];
    let pictures: String = bases.into_iter().filter_map(picture).collect();
    (!pictures.is_empty()).then_some(Block::Figure {
        pictures,
        is_grid: true,
        caption: "p99 of reads as a multiple of what it is in another arm, within each repeat; \
            logarithmic. Bars begin at 1, no difference; the thin line with ends is the 95% bootstrap \
            interval over repeats. Where that crosses 1, the repeats do not show a difference. Left is \
            better.",
    })
}

/// p99 over time and the page cache at the same time, for each arm; `None` if nothing was sampled.
pub(super) fn timelines(point: &PointReport<'_>, id: &str) -> Option<Block> {
    let all: Vec<Timeline> = point
        .arms
        .iter()
        .filter_map(|arm| Timeline::of(point, arm.arm))
        .collect();
    let scales = Scales::of(&all);
    let pictures: String = (all.iter().zip(0..))
        .map(|(timeline, at)| timeline.draw(&scales, &format!("{id}-time{at}")))
        .collect();
    (!all.is_empty()).then_some(Block::Figure {
        pictures,
        is_grid: true,
        caption: "Each arm over time, in the run with the median p99; other runs are thin. Shaded: the \
            compaction. Above, p99 of the reads that ended in each second, ms, logarithmic; in the middle, \
            how much of the hot set is in the page cache, %; below, how much of all files of the \
            compaction is, MiB. All arms have the same axes.",
    })
}

/// Series of an arm over seconds.
struct Timeline {
    arm: Arm,
    stroke: Stroke,
    /// p99 in ns of each run that counts.
    p99: Vec<Vec<Point>>,
    /// Index of the run that the other series are of.
    middle: usize,
    hot_percent: Vec<Point>,
    inputs_mib: Vec<Point>,
    outputs_mib: Vec<Point>,
    /// Begin and end of the compaction.
    during: Option<Point>,
}

/// Points of a series are thinned out to about `POINTS`, one per pixel and a half.
const POINTS: usize = 240;
const WIDTH: f64 = 390.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 336.0;
/// Top and bottom of each panel.
const PANELS: [Point; 3] = [(48.0, 158.0), (188.0, 248.0), (278.0, 358.0)];

impl Timeline {
    fn of(point: &PointReport<'_>, arm: Arm) -> Option<Timeline> {
        let is_drawn = |run: &Run| !run.intervals.is_empty() || !run.samples.is_empty();
        let (counted, middle) = runs(point, arm, is_drawn)?;
        let shown = counted.get(middle)?;
        let mebibytes = |of: fn(&Sample) -> Option<Pages>| {
            samples(shown, |sample| {
                let bytes = of(sample)?.resident as f64 * point.page_bytes as f64;
                Some(bytes / f64::from(1 << 20))
            })
        };
        let timeline = Timeline {
            arm,
            stroke: stroke_at(point, arm),
            p99: counted.iter().map(|run| p99_by_second(run)).collect(),
            middle,
            hot_percent: samples(shown, |sample| {
                let hot = sample.hot.filter(|hot| hot.total > 0)?;
                Some(100.0 * hot.resident as f64 / hot.total as f64)
            }),
            inputs_mib: mebibytes(|sample| sample.inputs),
            outputs_mib: mebibytes(|sample| sample.outputs),
            during: during(shown),
        };
        let has_p99 = timeline.p99.iter().any(|run| run.len() > 1);
        (has_p99 || timeline.inputs_mib.len() > 1).then_some(timeline)
    }

    fn draw(&self, scales: &Scales, id: &str) -> String {
        let floor = PANELS[2].1;
        let mut svg = Svg::new(WIDTH, floor + 38.0);
        let name = self.arm.to_string();
        svg.text(
            &format!("name {}", self.stroke.class),
            (LEFT, 16.0),
            "start",
            &name,
        );
        let during = self
            .during
            .map(|(from, to)| (scales.time.at(from), scales.time.at(to)));
        if let Some((Some(from), Some(to))) = during {
            for (top, bottom) in PANELS {
                svg.rectangle("shade", (from, top), (to - from, bottom - top));
            }
        }
        let number: fn(f64) -> String = plain;
        let titles = [
            ("p99, ms", 5, milliseconds as fn(f64) -> String),
            ("hot set in the page cache, %", 2, number),
            ("files in the page cache, MiB", 3, number),
        ];
        for ((title, most, text), (axis, (top, bottom))) in
            titles.into_iter().zip(scales.panels.iter().zip(PANELS))
        {
            svg.text("axis", (LEFT, top - 6.0), "start", title);
            svg.y_axis(axis, (LEFT, RIGHT), most, text);
            svg.line("rule", (LEFT, bottom), (RIGHT, bottom));
        }
        for (tick, x) in scales.time.ticks_at(6) {
            svg.line("rule", (x, floor), (x, floor + 4.0));
            svg.text("tick", (x, floor + 16.0), "middle", &plain(tick));
        }
        let below = (LEFT.midpoint(RIGHT), floor + 32.0);
        svg.text(
            "axis",
            below,
            "middle",
            "seconds since the compaction began",
        );

        let places = |series: &[Point], panel: usize| -> Vec<Point> {
            let axis = &scales.panels[panel];
            let place = |&(at, value): &Point| Some((scales.time.at(at)?, axis.at(value)?));
            series.iter().filter_map(place).collect()
        };
        for (at, run) in self.p99.iter().enumerate() {
            let class = if at == self.middle { "line" } else { "thin" };
            svg.path(class, self.stroke, &places(run, 0));
        }
        let whole = self.stroke.with_dashes("");
        svg.path("line", whole, &places(&self.hot_percent, 1));
        let [inputs, outputs] = [&self.inputs_mib, &self.outputs_mib].map(|s| places(s, 2));
        svg.path("line", whole, &inputs);
        svg.path("line", self.stroke.with_dashes("4 3"), &outputs);
        let ends = [("inputs", inputs.last()), ("output", outputs.last())];
        let ends: Vec<(&str, f64)> = ends
            .into_iter()
            .filter_map(|(name, end)| Some((name, end?.1)))
            .collect();
        let wanted: Vec<f64> = ends.iter().map(|end| end.1).collect();
        for ((name, _), y) in ends.iter().zip(spread(&wanted, 14.0, PANELS[2].0, floor)) {
            svg.text("tick", (RIGHT + 5.0, y + 4.0), "start", name);
        }
        svg.finish(
            id,
            "panel",
            &format!("{name} over time"),
            &self.description(),
        )
    }

    fn description(&self) -> String {
        let most = |line: &[Point]| line.iter().map(|p| p.1).fold(f64::NAN, f64::max);
        let least = |line: &[Point]| line.iter().map(|p| p.1).fold(f64::NAN, f64::min);
        let p99 = self.p99.get(self.middle).map_or(&[][..], Vec::as_slice);
        format!(
            "p99 of a second between {} and {} ms; at least {}% of the hot set in the page cache; at most \
             {} MiB of the inputs and {} MiB of the output.",
            milliseconds(least(p99)),
            milliseconds(most(p99)),
            significant(least(&self.hot_percent)),
            significant(most(&self.inputs_mib)),
            significant(most(&self.outputs_mib)),
        )
    }
}

/// Axes that all arms share.
struct Scales {
    time: Axis,
    panels: [Axis; 3],
}

impl Scales {
    fn of(all: &[Timeline]) -> Scales {
        let p99 = || all.iter().flat_map(|t| t.p99.iter().flatten());
        let files = || {
            all.iter()
                .flat_map(|t| t.inputs_mib.iter().chain(&t.outputs_mib))
        };
        let [first, second, third] = PANELS;
        Scales {
            time: Axis::linear(p99().chain(files()).map(|p| p.0), LEFT, RIGHT),
            panels: [
                Axis::log(p99().map(|p| p.1), 1.0, first.1, first.0),
                Axis::linear([0.0, 100.0].into_iter(), second.1, second.0),
                Axis::linear(files().map(|p| p.1).chain([0.0]), third.1, third.0),
            ],
        }
    }
}

fn p99_by_second(run: &Run) -> Vec<Point> {
    let ended = run
        .intervals
        .iter()
        .filter(|i| i.operations > 0 && i.p99_ns > 0);
    let places = ended.map(|i| (i.start_s + i.duration_s / 2.0, i.p99_ns as f64));
    places.filter(|place| place.0.is_finite()).collect()
}

fn samples(run: &Run, value: impl Fn(&Sample) -> Option<f64>) -> Vec<Point> {
    let all: Vec<Point> = run
        .samples
        .iter()
        .filter_map(|sample| Some((sample.at_s, value(sample)?)))
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

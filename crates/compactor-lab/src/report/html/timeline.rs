//! p99 over time, and below it the page cache at the same time.

use super::axis::{Axis, spread};
use super::curves::nearest;
use super::figure;
use super::palette::{Stroke, stroke};
use super::svg::{Anchor, Svg};
use crate::arm::Arm;
use crate::outcome::{Outcome, Pages, Phase, Run, Sample};
use crate::report::units::{milliseconds, significant};
use crate::report::{Figure, PointReport};
use crate::stats::median;

/// Points of a line are thinned out to about so many, about one per pixel and a half.
const POINTS: usize = 240;

/// A panel for each arm; `None` if nothing was sampled.
pub(super) fn picture(point: &PointReport<'_>, id: &str) -> Option<String> {
    let series: Vec<Series> = point
        .arms
        .iter()
        .filter_map(|arm| series(point, arm.arm))
        .collect();
    if series.is_empty() {
        return None;
    }
    let scales = Scales::of(&series);
    let pictures: String = series
        .iter()
        .enumerate()
        .map(|(at, series)| draw(series, &scales, &format!("{id}-time{at}")))
        .collect();
    Some(figure(
        &format!("<div class=\"grid\">\n{pictures}</div>\n"),
        "Each arm over time, in the run with the median p99; other runs are thin. Shaded: the \
         compaction. Above, p99 of the reads that ended in each second, ms, logarithmic; in the middle, \
         how much of the hot set is in the page cache, %; below, how much of all files of the \
         compaction is, MiB. All arms have the same axes.",
    ))
}

/// What is drawn of an arm.
struct Series {
    arm: Arm,
    stroke: Stroke,
    /// p99 in ms of each run that counts.
    p99: Vec<Vec<(f64, f64)>>,
    middle: usize,
    hot_percent: Vec<(f64, f64)>,
    inputs: Vec<(f64, f64)>,
    outputs: Vec<(f64, f64)>,
    during: Option<(f64, f64)>,
}

fn series(point: &PointReport<'_>, arm: Arm) -> Option<Series> {
    let counted: Vec<&Run> = Outcome::counted(point.point, arm)
        .filter(|run| !run.intervals.is_empty() || !run.samples.is_empty())
        .collect();
    let p99s: Vec<f64> = counted
        .iter()
        .map(|run| Figure::P99Ns.of(run).unwrap_or(f64::NAN))
        .collect();
    let middle = median(&p99s).map_or(0, |p99| nearest(&p99s, p99));
    let shown = counted.get(middle)?;
    let page_bytes = point.page_bytes as f64;
    let mebibytes = |of: fn(&Sample) -> Option<Pages>| {
        samples(shown, |sample| {
            let pages = of(sample)?.resident as f64;
            Some(pages * page_bytes / f64::from(1 << 20))
        })
    };
    let series = Series {
        arm,
        stroke: stroke(point.arms.iter().map(|a| a.arm), arm),
        p99: counted.iter().map(|run| p99(run)).collect(),
        middle,
        hot_percent: samples(shown, |sample| {
            let hot = sample.hot.filter(|hot| hot.total > 0)?;
            Some(100.0 * hot.resident as f64 / hot.total as f64)
        }),
        inputs: mebibytes(|sample| sample.inputs),
        outputs: mebibytes(|sample| sample.outputs),
        during: during(shown),
    };
    let anything = series.p99.iter().any(|run| run.len() > 1) || series.inputs.len() > 1;
    anything.then_some(series)
}

fn p99(run: &Run) -> Vec<(f64, f64)> {
    let ended = run
        .intervals
        .iter()
        .filter(|i| i.operations > 0 && i.p99_ns > 0);
    let places = ended.map(|i| (i.start_s + i.duration_s / 2.0, i.p99_ns as f64));
    places.filter(|place| place.0.is_finite()).collect()
}

fn samples(run: &Run, value: impl Fn(&Sample) -> Option<f64>) -> Vec<(f64, f64)> {
    let all: Vec<(f64, f64)> = run
        .samples
        .iter()
        .filter_map(|sample| Some((sample.at_s, value(sample)?)))
        .filter(|(at, value)| at.is_finite() && value.is_finite())
        .collect();
    let step = all.len().div_ceil(POINTS).max(1);
    let last = all.len().saturating_sub(1);
    let kept = all
        .iter()
        .enumerate()
        .filter(|(at, _)| at % step == 0 || *at == last);
    kept.map(|(_, place)| *place).collect()
}

/// From when to when the compaction went on, or what stands for it in the idle arm.
fn during(run: &Run) -> Option<(f64, f64)> {
    if let Some(compaction) = &run.compaction {
        return Some((0.0, compaction.elapsed_s)).filter(|span| span.1.is_finite());
    }
    let times: Vec<f64> = run
        .samples
        .iter()
        .filter(|sample| sample.phase == Phase::During && sample.at_s.is_finite())
        .map(|sample| sample.at_s)
        .collect();
    Some((*times.first()?, *times.last()?))
}

const WIDTH: f64 = 390.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 336.0;
/// Top and height of each panel.
const PANELS: [(f64, f64); 3] = [(48.0, 110.0), (188.0, 60.0), (278.0, 80.0)];

/// The axes that all arms share.
struct Scales {
    time: Axis,
    p99: Axis,
    percent: Axis,
    mebibytes: Axis,
}

impl Scales {
    fn of(all: &[Series]) -> Scales {
        let floor = |panel: (f64, f64)| panel.0 + panel.1;
        let [first, second, third] = PANELS;
        let times = all.iter().flat_map(|s| {
            let p99 = s.p99.iter().flatten();
            p99.chain(&s.inputs).chain(&s.outputs).map(|place| place.0)
        });
        let p99 = all
            .iter()
            .flat_map(|s| s.p99.iter().flatten().map(|place| place.1));
        let files = all.iter().flat_map(|s| s.inputs.iter().chain(&s.outputs));
        Scales {
            time: Axis::linear(times, LEFT, RIGHT),
            p99: Axis::log(p99, 1.0, floor(first), first.0),
            percent: Axis::linear([0.0, 100.0].into_iter(), floor(second), second.0),
            mebibytes: Axis::linear(
                files.map(|place| place.1).chain([0.0]),
                floor(third),
                third.0,
            ),
        }
    }
}

fn draw(series: &Series, scales: &Scales, id: &str) -> String {
    let floor = PANELS[2].0 + PANELS[2].1;
    let mut svg = Svg::new(WIDTH, floor + 38.0);
    let name = series.arm.to_string();
    svg.text(
        &format!("name {}", series.stroke.class),
        (LEFT, 16.0),
        Anchor::Start,
        &name,
    );
    if let Some((from, to)) = series.during
        && let (Some(from), Some(to)) = (scales.time.at(from), scales.time.at(to))
    {
        for (top, height) in PANELS {
            svg.rectangle("shade", (from, top), (to - from, height));
        }
    }
    let panels = [
        (PANELS[0], "p99, ms", &scales.p99, 5),
        (
            PANELS[1],
            "hot set in the page cache, %",
            &scales.percent,
            2,
        ),
        (
            PANELS[2],
            "files in the page cache, MiB",
            &scales.mebibytes,
            3,
        ),
    ];
    for (at, ((top, height), title, axis, ticks)) in panels.into_iter().enumerate() {
        svg.text("axis", (LEFT, top - 6.0), Anchor::Start, title);
        for tick in axis.ticks(ticks) {
            let Some(y) = axis.at(tick) else { continue };
            svg.line("grid", (LEFT, y), (RIGHT, y));
            let text = match at {
                0 => milliseconds(tick),
                _ => plain(tick),
            };
            svg.text("tick", (LEFT - 6.0, y + 4.0), Anchor::End, &text);
        }
        svg.line("rule", (LEFT, top + height), (RIGHT, top + height));
    }
    for tick in scales.time.ticks(6) {
        let Some(x) = scales.time.at(tick) else {
            continue;
        };
        svg.line("rule", (x, floor), (x, floor + 4.0));
        svg.text("tick", (x, floor + 16.0), Anchor::Middle, &plain(tick));
    }
    svg.text(
        "axis",
        (LEFT.midpoint(RIGHT), floor + 32.0),
        Anchor::Middle,
        "seconds since the compaction began",
    );

    for (at, run) in series.p99.iter().enumerate() {
        let class = if at == series.middle { "line" } else { "thin" };
        svg.path(class, series.stroke, &places(run, scales.time, scales.p99));
    }
    let whole = series.stroke.whole();
    let broken = Stroke {
        dashes: "4 3",
        ..series.stroke
    };
    let hot = places(&series.hot_percent, scales.time, scales.percent);
    svg.path("line", whole, &hot);
    let inputs = places(&series.inputs, scales.time, scales.mebibytes);
    let outputs = places(&series.outputs, scales.time, scales.mebibytes);
    svg.path("line", whole, &inputs);
    svg.path("line", broken, &outputs);
    let ends: Vec<(&str, f64)> = [("inputs", inputs.last()), ("output", outputs.last())]
        .into_iter()
        .filter_map(|(name, end)| Some((name, end?.1)))
        .collect();
    let wanted: Vec<f64> = ends.iter().map(|end| end.1).collect();
    for ((name, _), y) in ends.iter().zip(spread(&wanted, 14.0, PANELS[2].0, floor)) {
        svg.text("tick", (RIGHT + 5.0, y + 4.0), Anchor::Start, name);
    }
    svg.finish(
        id,
        "panel",
        &format!("{name} over time"),
        &described(series),
    )
}

fn places(line: &[(f64, f64)], x: Axis, y: Axis) -> Vec<(f64, f64)> {
    let place = |&(at, value): &(f64, f64)| Some((x.at(at)?, y.at(value)?));
    line.iter().filter_map(place).collect()
}

fn plain(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e5 {
        return format!("{number:.0}");
    }
    significant(number)
}

/// The picture in words.
fn described(series: &Series) -> String {
    let most = |line: &[(f64, f64)]| line.iter().map(|p| p.1).fold(f64::NAN, f64::max);
    let least = |line: &[(f64, f64)]| line.iter().map(|p| p.1).fold(f64::NAN, f64::min);
    let p99 = series.p99.get(series.middle).map_or(&[][..], Vec::as_slice);
    format!(
        "p99 of a second between {} and {} ms; at least {}% of the hot set in the page cache; at most \
         {} MiB of the inputs and {} MiB of the output.",
        milliseconds(least(p99)),
        milliseconds(most(p99)),
        significant(least(&series.hot_percent)),
        significant(most(&series.inputs)),
        significant(most(&series.outputs)),
    )
}

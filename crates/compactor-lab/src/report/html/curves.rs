//! Latency of every percentile.

use super::axis::Axis;
use super::figure;
use super::legend::{self, Entry, Room};
use super::palette::stroke;
use super::svg::{Anchor, Svg};
use crate::arm::Arm;
use crate::outcome::{Latency, Outcome, Run};
use crate::report::units::milliseconds;
use crate::report::{Figure, PointReport};
use crate::stats::median;

/// The arms' percentiles; `None` if no run that counts has any.
pub(super) fn picture(point: &PointReport<'_>, id: &str) -> Option<String> {
    let lines: Vec<Line> = point
        .arms
        .iter()
        .filter_map(|arm| line(point, arm.arm))
        .collect();
    if lines.is_empty() {
        return None;
    }
    let pictures: String = Room::BOTH
        .into_iter()
        .map(|room| draw(&lines, room, id))
        .collect();
    Some(figure(
        &pictures,
        "Latency of reads during the compaction by percentile, ms; both axes logarithmic. From the \
         percentile 99 on the right only one read in a hundred lies. Each run that counts is a thin line, \
         the one with the median p99 a thick one. Lower is better.",
    ))
}

/// The runs of an arm.
struct Line {
    name: String,
    stroke: super::palette::Stroke,
    p99_ns: f64,
    /// `(log10(1 / (1 - p)), ns)` of each run.
    runs: Vec<Vec<(f64, f64)>>,
    /// Which of them has the median p99.
    middle: usize,
}

fn line(point: &PointReport<'_>, arm: Arm) -> Option<Line> {
    let counted: Vec<&Run> = Outcome::counted(point.point, arm)
        .filter(|run| places(&run.during).len() > 1)
        .collect();
    let p99s: Vec<f64> = counted
        .iter()
        .filter_map(|run| Figure::P99Ns.of(run))
        .collect();
    let p99_ns = median(&p99s)?;
    Some(Line {
        name: arm.to_string(),
        stroke: stroke(point.arms.iter().map(|a| a.arm), arm),
        p99_ns,
        runs: counted.iter().map(|run| places(&run.during)).collect(),
        middle: nearest(&p99s, p99_ns),
    })
}

/// The place of the number that is nearest to another.
pub(super) fn nearest(numbers: &[f64], to: f64) -> usize {
    let off = |at: &usize| numbers.get(*at).map_or(f64::INFINITY, |n| (n - to).abs());
    let all = 0..numbers.len();
    all.min_by(|a, b| off(a).total_cmp(&off(b))).unwrap_or(0)
}

/// Points of a curve. The last percentile, 100, has no place on such an axis and takes that at which one
/// read of all is left.
fn places(latency: &Latency) -> Vec<(f64, f64)> {
    let most = (latency.operations.max(1) as f64).log10();
    let points = latency.curve.iter().filter_map(|point| {
        let left = 1.0 - point.percentile / 100.0;
        let place = -left.max(f64::MIN_POSITIVE).log10();
        let ns = point.latency_ns as f64;
        (place.is_finite() && ns > 0.0).then_some((place.clamp(0.0, most), ns))
    });
    points.collect()
}

const MARKS: [(f64, &str); 8] = [
    (0.0, "0"),
    (std::f64::consts::LOG10_2, "50"),
    (1.0, "90"),
    (2.0, "99"),
    (3.0, "99.9"),
    (4.0, "99.99"),
    (5.0, "99.999"),
    (6.0, "99.9999"),
];

fn draw(lines: &[Line], room: Room, id: &str) -> String {
    let (left, top, bottom) = (58.0, 28.0, 44.0);
    let right = room.width() - room.margin();
    let height = match room {
        Room::Wide => (lines.len() as f64 * 17.0).max(330.0),
        Room::Narrow => 260.0,
    };
    let floor = top + height;
    let mut svg = Svg::new(room.width(), floor + bottom + room.below(lines.len()));
    let points = || lines.iter().flat_map(|line| line.runs.iter().flatten());
    let x = Axis::linear(points().map(|p| p.0).chain([0.0, 2.0]), left, right);
    let y = Axis::log(points().map(|p| p.1), 1.0, floor, top);
    let furthest = points().map(|p| p.0).fold(2.0, f64::max);

    for tick in y.ticks(9) {
        let Some(at) = y.at(tick) else { continue };
        svg.line("grid", (left, at), (right, at));
        let text = milliseconds(tick);
        svg.text("tick", (left - 8.0, at + 4.0), Anchor::End, &text);
    }
    for (place, name) in MARKS.into_iter().filter(|mark| mark.0 <= furthest + 0.01) {
        let Some(at) = x.at(place) else { continue };
        svg.line("grid", (at, top), (at, floor));
        svg.text("tick", (at, floor + 16.0), Anchor::Middle, name);
    }
    svg.text("axis", (left - 46.0, 14.0), Anchor::Start, "latency, ms");
    let middle = left.midpoint(right);
    svg.text(
        "axis",
        (middle, floor + 34.0),
        Anchor::Middle,
        "percentile of reads",
    );

    let mut entries = Vec::new();
    for line in lines {
        let place = |&(p, ns): &(f64, f64)| Some((x.at(p)?, y.at(ns)?));
        let mut thick = Vec::new();
        for (at, run) in line.runs.iter().enumerate() {
            let path: Vec<(f64, f64)> = run.iter().filter_map(place).collect();
            if at == line.middle {
                thick = path;
            } else {
                svg.path("thin", line.stroke, &path);
            }
        }
        svg.path("line", line.stroke, &thick);
        entries.extend(thick.last().map(|&end| Entry {
            name: line.name.clone(),
            stroke: line.stroke,
            end,
        }));
    }
    legend::draw(
        &mut svg,
        room,
        &entries,
        (
            right,
            match room {
                Room::Wide => floor,
                Room::Narrow => floor + bottom,
            },
        ),
        top,
    );
    let described: Vec<String> = lines
        .iter()
        .map(|line| format!("{}: p99 {} ms", line.name, milliseconds(line.p99_ns)))
        .collect();
    svg.finish(
        &format!("{id}-curves-{}", room.suffix()),
        room.class(),
        "Latency by percentile",
        &format!("{}.", described.join("; ")),
    )
}

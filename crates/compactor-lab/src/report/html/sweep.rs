//! p99 of each arm over the size of the hot set.

use super::axis::Axis;
use super::figure;
use super::legend::{self, Entry, Room};
use super::palette::{Stroke, stroke};
use super::svg::{Anchor, Svg};
use crate::arm::Arm;
use crate::report::units::{bytes, milliseconds, significant};
use crate::report::{Figure, Report};
use crate::stats::Spread;

/// A line for each arm; `None` for an outcome of fewer than two sizes.
pub(super) fn picture(report: &Report<'_>, id: &str) -> Option<String> {
    let mut arms: Vec<Arm> = Vec::new();
    for arm in report.points.iter().flat_map(|point| &point.arms) {
        if !arms.contains(&arm.arm) {
            arms.push(arm.arm);
        }
    }
    let line = |&arm: &Arm| {
        let places = report.points.iter().filter_map(|point| {
            let found = point.arms.iter().find(|a| a.arm == arm)?;
            Some((point.hot_set_bytes as f64, found.figure(Figure::P99Ns)?))
        });
        Line {
            name: arm.to_string(),
            stroke: stroke(arms.iter().copied(), arm),
            places: places.filter(|place| place.0 > 0.0).collect(),
        }
    };
    let lines: Vec<Line> = arms
        .iter()
        .map(line)
        .filter(|line| line.places.len() > 1)
        .collect();
    if report.points.len() < 2 || lines.is_empty() {
        return None;
    }
    let pictures: String = Room::BOTH
        .into_iter()
        .map(|room| draw(report, &lines, room, id))
        .collect();
    Some(figure(
        &pictures,
        "p99 of reads during the compaction over the size of the hot set, ms; both axes logarithmic. \
         Below each size, the hot set as a share of the memory. Points are medians, the lines through \
         them go from the least to the most of the runs.",
    ))
}

struct Line {
    name: String,
    stroke: Stroke,
    places: Vec<(f64, Spread)>,
}

fn draw(report: &Report<'_>, lines: &[Line], room: Room, id: &str) -> String {
    let (left, top, bottom) = (58.0, 28.0, 64.0);
    let right = room.width() - room.margin();
    let height = match room {
        Room::Wide => (lines.len() as f64 * 17.0).max(280.0),
        Room::Narrow => 240.0,
    };
    let floor = top + height;
    let mut svg = Svg::new(room.width(), floor + bottom + room.below(lines.len()));
    let places = || lines.iter().flat_map(|line| &line.places);
    let x = Axis::log(places().map(|p| p.0), 0.3, left, right);
    let y = Axis::log(
        places().flat_map(|p| [p.1.least, p.1.most, p.1.median]),
        1.0,
        floor,
        top,
    );
    for tick in y.ticks(8) {
        let Some(at) = y.at(tick) else { continue };
        svg.line("grid", (left, at), (right, at));
        svg.text(
            "tick",
            (left - 8.0, at + 4.0),
            Anchor::End,
            &milliseconds(tick),
        );
    }
    let mut free_from = f64::NEG_INFINITY;
    for point in &report.points {
        let Some(at) = x.at(point.hot_set_bytes as f64) else {
            continue;
        };
        svg.line("grid", (at, top), (at, floor));
        // Sizes that lie close go without their text.
        if at < free_from {
            continue;
        }
        free_from = at + 58.0;
        let size = bytes(point.hot_set_bytes as f64);
        svg.text("tick", (at, floor + 16.0), Anchor::Middle, &size);
        let share = format!("{}%", significant(point.pressure * 100.0));
        svg.text("tick", (at, floor + 31.0), Anchor::Middle, &share);
    }
    svg.text("axis", (left - 46.0, 14.0), Anchor::Start, "p99, ms");
    svg.text(
        "axis",
        (left.midpoint(right), floor + 50.0),
        Anchor::Middle,
        "hot set, and its share of memory",
    );
    let mut entries = Vec::new();
    for line in lines {
        let mut path = Vec::new();
        for (size, p99) in &line.places {
            let (Some(at), Some(middle)) = (x.at(*size), y.at(p99.median)) else {
                continue;
            };
            if let (Some(least), Some(most)) = (y.at(p99.least), y.at(p99.most)) {
                svg.path("line", line.stroke.whole(), &[(at, least), (at, most)]);
            }
            svg.circle(&format!("dot {}", line.stroke.class), (at, middle), 4.0);
            path.push((at, middle));
        }
        svg.path("line", line.stroke, &path);
        entries.extend(path.last().map(|&end| Entry {
            name: line.name.clone(),
            stroke: line.stroke,
            end,
        }));
    }
    let under = match room {
        Room::Wide => floor,
        Room::Narrow => floor + bottom,
    };
    legend::draw(&mut svg, room, &entries, (right, under), top);
    let described: Vec<String> = lines
        .iter()
        .map(|line| {
            let places = line
                .places
                .iter()
                .map(|(size, p99)| format!("{} ms at {}", milliseconds(p99.median), bytes(*size)));
            format!("{}: {}", line.name, places.collect::<Vec<_>>().join(", "))
        })
        .collect();
    svg.finish(
        &format!("{id}-sweep-{}", room.suffix()),
        room.class(),
        "p99 by size of the hot set",
        &format!("{}.", described.join("; ")),
    )
}

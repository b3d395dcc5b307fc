//! Charts as SVG inside HTML: line plots over a logarithmic axis of latencies, and bars of ratios.
//!
//! No crate draws these: colours are custom properties of the page, so that one picture works in light and
//! in dark; every picture has a title and a description for people who do not see it; names are at the ends
//! of lines instead of in a legend; and a line plot is drawn for two widths, of which the page shows one.

use std::fmt::Write;

use askama::filters::Escaper;

use super::document::Xml;
use super::units::{milliseconds, significant};
use super::with_interval;
use crate::stats::Ratio;

mod axis;

pub(super) use axis::{Axis, spread};

/// Point of a picture, or of a series.
pub(super) type Point = (f64, f64);

/// Colour and dashes of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stroke {
    /// Class that sets the colour.
    pub(super) class: &'static str,
    /// Value of `stroke-dasharray`.
    pub(super) dashes: &'static str,
}

/// Stroke of what others are compared with.
pub(super) const IDLE: Stroke = Stroke {
    class: "idle",
    dashes: "1 3",
};
const CLASSES: [&str; 8] = ["a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7"];
const DASHES: [&str; 3] = ["", "7 3", "2 3"];

impl Stroke {
    /// Stroke of the n-th series: eight colours, then the same with dashes.
    pub(super) fn numbered(at: usize) -> Stroke {
        Stroke {
            class: CLASSES[at % CLASSES.len()],
            dashes: DASHES[at / CLASSES.len() % DASHES.len()],
        }
    }

    pub(super) fn with_dashes(self, dashes: &'static str) -> Stroke {
        Stroke { dashes, ..self }
    }
}

/// A picture that is being drawn. Lengths are CSS pixels if it is shown at its own size.
#[derive(Debug)]
pub(super) struct Svg {
    width: f64,
    height: f64,
    body: String,
}

impl Svg {
    pub(super) fn new(width: f64, height: f64) -> Svg {
        Svg {
            width,
            height,
            body: String::new(),
        }
    }

    pub(super) fn line(&mut self, class: &str, (x1, y1): Point, (x2, y2): Point) {
        let _ = writeln!(
            self.body,
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        );
    }

    pub(super) fn rectangle(&mut self, class: &str, (x, y): Point, (width, height): Point) {
        let (width, height) = (width.max(0.0), height.max(0.0));
        let _ = writeln!(
            self.body,
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"/>"#
        );
    }

    fn dot(&mut self, class: &str, (x, y): Point) {
        let _ = writeln!(
            self.body,
            r#"<circle class="dot {class}" cx="{x:.1}" cy="{y:.1}" r="4"/>"#
        );
    }

    /// Draws a line through points; nothing of fewer than two.
    pub(super) fn path(&mut self, class: &str, stroke: Stroke, points: &[Point]) {
        if points.len() < 2 {
            return;
        }
        let places: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let dashes = match stroke.dashes {
            "" => String::new(),
            dashes => format!(r#" stroke-dasharray="{dashes}""#),
        };
        let _ = writeln!(
            self.body,
            r#"<polyline class="{class} {}"{dashes} points="{}"/>"#,
            stroke.class,
            places.join(" ")
        );
    }

    /// Writes a text; `anchor` is `start`, `middle` or `end`.
    pub(super) fn text(&mut self, class: &str, (x, y): Point, anchor: &str, text: &str) {
        let _ = writeln!(
            self.body,
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{}</text>"#,
            escaped(text)
        );
    }

    /// Draws the lines and numbers of a vertical axis from `left` to `right`.
    pub(super) fn y_axis(
        &mut self,
        axis: &Axis,
        (left, right): Point,
        most: usize,
        text: fn(f64) -> String,
    ) {
        for (tick, at) in axis.ticks_at(most) {
            self.line("grid", (left, at), (right, at));
            self.text("tick", (left - 7.0, at + 4.0), "end", &text(tick));
        }
    }

    /// Returns the element. `id` is unique in the page; title and description are for people who do not
    /// see it.
    pub(super) fn finish(self, id: &str, class: &str, title: &str, description: &str) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{class}\" role=\"img\" \
             aria-labelledby=\"{id}-t {id}-d\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             width=\"{width:.0}\" height=\"{height:.0}\">\n\
             <title id=\"{id}-t\">{}</title>\n<desc id=\"{id}-d\">{}</desc>\n{}</svg>\n",
            escaped(title),
            escaped(description),
            self.body,
            width = self.width,
            height = self.height,
        )
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    let _ = Xml.write_escaped_str(&mut out, text);
    out
}

/// A series of a line plot.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) stroke: Stroke,
    /// Drawn thick.
    pub(super) points: Vec<Point>,
    /// Other runs, drawn thin.
    pub(super) others: Vec<Vec<Point>>,
    /// Least and most at each of `points`, which are marked if there are any.
    pub(super) ranges: Vec<Point>,
    /// The series in words.
    pub(super) description: String,
}

/// Lines of latencies, ns, over something.
#[derive(Debug)]
pub(super) struct LinePlot<'a> {
    pub(super) id: String,
    pub(super) title: &'a str,
    /// Name of the vertical axis, and of the horizontal one.
    pub(super) axes: [&'a str; 2],
    pub(super) is_x_log: bool,
    /// Values that the horizontal axis includes at least.
    pub(super) least_x: [f64; 2],
    /// Marks of the horizontal axis: value, text, and a second line of text.
    pub(super) marks: Vec<(f64, String, String)>,
    pub(super) lines: Vec<Line>,
}

/// Distance between names.
const GAP: f64 = 16.0;

impl LinePlot<'_> {
    /// Draws the plot twice: for a wide page with names at the right, and for a telephone with names below.
    pub(super) fn draw(&self) -> String {
        self.drawn(true) + &self.drawn(false)
    }

    fn drawn(&self, is_wide: bool) -> String {
        let (left, top) = (58.0, 28.0);
        let count = self.lines.len() as f64;
        let (width, right, height) = match is_wide {
            true => (1000.0, 830.0, (count * 17.0).max(300.0)),
            false => (380.0, 368.0, 250.0),
        };
        let floor = top + height;
        let two_lines = self.marks.iter().any(|mark| !mark.2.is_empty());
        let bottom = floor + if two_lines { 62.0 } else { 46.0 };
        let names = if is_wide { 0.0 } else { count * GAP + 8.0 };
        let mut svg = Svg::new(width, bottom + names);
        let points = || {
            let runs = |line: &'_ Line| line.others.concat().into_iter().chain(line.points.clone());
            self.lines.iter().flat_map(runs)
        };
        let xs = points().map(|point| point.0).chain(self.least_x);
        let x = match self.is_x_log {
            true => Axis::log(xs, 0.3, left, right),
            false => Axis::linear(xs, left, right),
        };
        let ranges = self.lines.iter().flat_map(|line| &line.ranges);
        let ranges = ranges.flat_map(|&(least, most)| [least, most]);
        let y = Axis::log(points().map(|p| p.1).chain(ranges), 1.0, floor, top);
        svg.y_axis(&y, (left, right), 9, milliseconds);
        let furthest = points()
            .map(|p| p.0)
            .chain(self.least_x)
            .fold(0.0, f64::max);
        let mut free_from = f64::NEG_INFINITY;
        for (value, text, below) in self.marks.iter().filter(|m| m.0 <= furthest * 1.005) {
            let Some(at) = x.at(*value) else { continue };
            svg.line("grid", (at, top), (at, floor));
            // Marks that are close to another have no text.
            let needed = 7.5 * text.chars().count().max(below.chars().count()) as f64;
            if at < free_from {
                continue;
            }
            free_from = at + needed;
            svg.text("tick", (at, floor + 16.0), "middle", text);
            svg.text("tick", (at, floor + 31.0), "middle", below);
        }
        svg.text("axis", (12.0, 14.0), "start", self.axes[0]);
        let middle = (left.midpoint(right), bottom - 12.0);
        svg.text("axis", middle, "middle", self.axes[1]);
        let mut ends: Vec<(&Line, Point)> = Vec::new();
        for line in &self.lines {
            let place = |&(at, ns): &Point| Some((x.at(at)?, y.at(ns)?));
            let places = |run: &[Point]| run.iter().filter_map(place).collect::<Vec<_>>();
            for other in &line.others {
                svg.path("thin", line.stroke, &places(other));
            }
            for (point, range) in line.points.iter().zip(&line.ranges) {
                let (Some(at), Some(least), Some(most)) =
                    (place(point), y.at(range.0), y.at(range.1))
                else {
                    continue;
                };
                let whole = line.stroke.with_dashes("");
                svg.path("line", whole, &[(at.0, least), (at.0, most)]);
                svg.dot(line.stroke.class, at);
            }
            let points = places(&line.points);
            svg.path("line", line.stroke, &points);
            ends.extend(points.last().map(|&end| (line, end)));
        }
        if is_wide {
            let wanted: Vec<f64> = ends.iter().map(|end| end.1.1).collect();
            for (&(line, end), at) in ends.iter().zip(spread(&wanted, GAP, top, floor)) {
                let leader = [end, (right, end.1), (right + 12.0, at)];
                svg.path("leader", line.stroke, &leader);
                name(&mut svg, line, (right + 16.0, at + 4.0));
            }
        } else {
            // In the order in which the lines end, the highest first.
            ends.sort_by(|a, b| a.1.1.total_cmp(&b.1.1));
            for (at, (line, _)) in ends.into_iter().enumerate() {
                let at = bottom + (at as f64 + 0.5) * GAP;
                svg.path("line", line.stroke, &[(10.0, at), (44.0, at)]);
                name(&mut svg, line, (52.0, at + 4.0));
            }
        }
        let described: Vec<&str> = self.lines.iter().map(|l| l.description.as_str()).collect();
        let (suffix, class) = if is_wide {
            ("w", "if-wide")
        } else {
            ("n", "if-narrow")
        };
        let id = format!("{}-{suffix}", self.id);
        svg.finish(
            &id,
            class,
            self.title,
            &format!("{}.", described.join("; ")),
        )
    }
}

fn name(svg: &mut Svg, line: &Line, place: Point) {
    let class = format!("label {}", line.stroke.class);
    svg.text(&class, place, "start", &line.name);
}

/// A ratio as a bar.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) stroke: Stroke,
    pub(super) ratio: Ratio,
}

/// Draws bars of a figure as a multiple of what it is in `base`; empty without bars.
pub(super) fn bars(bars: &[Bar], figure: &str, base: &str, id: &str) -> String {
    const ROW: f64 = 38.0;
    if bars.is_empty() {
        return String::new();
    }
    let (width, left, right, top) = (390.0, 12.0, 378.0, 34.0);
    let floor = top + bars.len() as f64 * ROW + 4.0;
    let mut svg = Svg::new(width, floor + 26.0);
    let values = bars.iter().map(|bar| bar.ratio);
    let values = values.flat_map(|ratio| [ratio.ratio, ratio.low, ratio.high]);
    let x = Axis::log(values.chain([1.0]), 0.5, left, right);
    svg.text("axis", (left, 14.0), "start", &format!("{figure} / {base}"));
    let ticks = x.ticks_at(6);
    for &(tick, at) in &ticks {
        let text = format!("×{}", plain(tick));
        svg.text("tick", (at, floor + 16.0), "middle", &text);
    }
    let one = x.at(1.0).unwrap_or(left);
    let mut described = Vec::new();
    for (bar, row) in bars.iter().zip(0..) {
        let y = top + f64::from(row) * ROW;
        // Lines are behind bars only: names and numbers are between them.
        let (from, to) = (y + 12.0, y + 28.0);
        for &(_, tick) in &ticks {
            svg.line("grid", (tick, from), (tick, to));
        }
        svg.line("rule", (one, from), (one, to));
        let [end, low, high] = [bar.ratio.ratio, bar.ratio.low, bar.ratio.high].map(|r| x.at(r));
        let (Some(end), Some(low), Some(high)) = (end, low, high) else {
            continue;
        };
        let value = with_interval(bar.ratio);
        let class = bar.stroke.class;
        svg.text(
            &format!("label {class}"),
            (left, y + 8.0),
            "start",
            &bar.name,
        );
        svg.text("value", (right, y + 8.0), "end", &value);
        let middle = y + 20.0;
        let size = ((end - one).abs(), 10.0);
        svg.rectangle(&format!("bar {class}"), (one.min(end), middle - 5.0), size);
        svg.line("whisker", (low, middle), (high, middle));
        for tip in [low, high] {
            svg.line("whisker", (tip, middle - 5.0), (tip, middle + 5.0));
        }
        described.push(format!("{} {value}", bar.name));
    }
    let title = format!("{figure} as a multiple of {base}");
    svg.finish(id, "panel", &title, &format!("{}.", described.join("; ")))
}

/// Returns a round number without the zeros of its precision.
pub(super) fn plain(number: f64) -> String {
    let text = significant(number);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All lines are behind bars, and none behind a name or a number.
    #[test]
    fn no_line_crosses_a_text() {
        let some = ["buffered/buffered", "direct/direct"].map(|name| Bar {
            name: name.to_owned(),
            stroke: Stroke::numbered(0),
            ratio: Ratio {
                ratio: 2.0,
                low: 1.5,
                high: 3.0,
                repeats: 5,
                paired: true,
            },
        });
        let picture = bars(&some, "p99", "p99 of idle", "x");
        let document = roxmltree::Document::parse(&picture).unwrap();
        let svg = "http://www.w3.org/2000/svg";
        let all = |name| {
            document
                .descendants()
                .filter(move |n| n.has_tag_name((svg, name)))
        };
        let number = |node: &roxmltree::Node<'_, '_>, name: &str| -> f64 {
            node.attribute(name).unwrap().parse().unwrap()
        };
        assert!(all("line").count() > 6 && all("text").count() > 4);
        for text in all("text") {
            // Of 12 pixels, some of which are below the line of writing.
            let (top, bottom) = (number(&text, "y") - 9.0, number(&text, "y") + 3.0);
            for line in all("line") {
                let (from, to) = (number(&line, "y1"), number(&line, "y2"));
                assert!(to <= top || from >= bottom, "{text:?} {line:?}");
            }
        }
    }

    #[test]
    fn no_two_series_look_alike() {
        let strokes: Vec<Stroke> = (0..20).map(Stroke::numbered).chain([IDLE]).collect();
        for (at, stroke) in strokes.iter().enumerate() {
            assert!(!strokes[..at].contains(stroke), "{at}");
        }
    }
}

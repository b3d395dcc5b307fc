//! Charts as SVG inside HTML.
//!
//! No crate draws these: colours are custom properties of the page, so that one picture works in light and
//! in dark; every picture has a description for people who do not see it; and the width
//! fits a telephone.

use std::fmt::Write;

use askama::filters::Escaper;

use super::document::Xml;
use super::units::significant;
use crate::arm::Arm;
use crate::comparison::Comparison;

mod axis;

pub(super) use axis::Axis;

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
const IDLE: Stroke = Stroke {
    class: "idle",
    dashes: "1 3",
};
const CLASSES: [&str; 8] = ["a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7"];
const DASHES: [&str; 3] = ["", "7 3", "2 3"];

impl Stroke {
    /// Stroke of an arm, the same in all charts of a comparison.
    pub(super) fn of(comparison: &Comparison, arm: &str) -> Stroke {
        let idle = Arm::Idle.to_string();
        if arm == idle {
            return IDLE;
        }
        let mut others = comparison.arms.iter().filter(|other| other.arm != idle);
        Stroke::numbered(others.position(|other| other.arm == arm).unwrap_or(0))
    }

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

    /// Returns the element; title and description are for people who do not see it.
    pub(super) fn finish(self, title: &str, description: &str) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"panel\" role=\"img\" \
             aria-label=\"{}: {}.\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\">\n{}</svg>\n",
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

/// A series of a plot.
#[derive(Debug)]
pub(super) struct Line {
    /// Name below the plot; may be empty.
    pub(super) name: String,
    pub(super) stroke: Stroke,
    /// Drawn thick.
    pub(super) points: Vec<Point>,
    /// Other runs, drawn thin.
    pub(super) others: Vec<Vec<Point>>,
    /// Least and most at each of `points`, which are marked if there are any.
    pub(super) ranges: Vec<Point>,
    /// Text alternative, for screen readers; may be empty.
    pub(super) described: String,
}

impl Line {
    /// A thick line.
    pub(super) fn new(name: &str, stroke: Stroke, points: Vec<Point>) -> Line {
        Line {
            name: name.to_owned(),
            stroke,
            points,
            others: Vec::new(),
            ranges: Vec::new(),
            described: String::new(),
        }
    }

    /// The line, described in words.
    pub(super) fn described(self, described: String) -> Line {
        Line { described, ..self }
    }
}

/// Lines over the horizontal axis of a plot.
#[derive(Debug)]
pub(super) struct Panel<'a> {
    /// Name of the vertical axis.
    pub(super) name: &'a str,
    pub(super) axis: Axis,
    /// Number of marks of the axis at most, and their text.
    pub(super) marks: (usize, fn(f64) -> String),
    pub(super) lines: Vec<Line>,
}

impl<'a> Panel<'a> {
    /// Lines over an axis; see the fields.
    pub(super) fn new(
        name: &'a str,
        axis: Axis,
        marks: (usize, fn(f64) -> String),
        lines: Vec<Line>,
    ) -> Panel<'a> {
        Panel {
            name,
            axis,
            marks,
            lines,
        }
    }

    /// Lines over a linear axis from 0 on.
    pub(super) fn from_zero(name: &'a str, lines: Vec<Line>) -> Panel<'a> {
        let values = lines.iter().flat_map(|line| &line.points).map(|(_, y)| *y);
        let axis = Axis::linear(values.chain([0.0]));
        Panel::new(name, axis, (5, plain), lines)
    }

    /// The more marks the axis may have, the higher it is.
    fn height(&self) -> f64 {
        30.0 * self.marks.0 as f64
    }
}

/// A mark of the horizontal axis.
#[derive(Debug)]
pub(super) struct Mark {
    pub(super) at: f64,
    pub(super) text: String,
    /// A second line of text; may be empty.
    pub(super) below: String,
}

impl Mark {
    /// A mark with one line of text.
    pub(super) fn new(at: f64, text: String) -> Mark {
        Mark {
            at,
            text,
            below: String::new(),
        }
    }
}

/// The horizontal axis of a plot.
#[derive(Debug)]
pub(super) struct Horizontal<'a> {
    pub(super) name: &'a str,
    pub(super) axis: Axis,
    pub(super) marks: Vec<Mark>,
}

impl<'a> Horizontal<'a> {
    /// An axis with marks at round numbers.
    pub(super) fn new(name: &'a str, axis: Axis) -> Horizontal<'a> {
        let ticks = axis.ticks_at(6).into_iter();
        Horizontal {
            name,
            axis,
            marks: ticks.map(|(at, _)| Mark::new(at, plain(at))).collect(),
        }
    }
}

/// Panels one above the other that share the horizontal axis.
#[derive(Debug)]
pub(super) struct Plot<'a> {
    pub(super) title: &'a str,
    /// Heading in the colour of a stroke.
    pub(super) heading: Option<(&'a str, Stroke)>,
    pub(super) panels: Vec<Panel<'a>>,
    pub(super) x: Horizontal<'a>,
    /// Span of the horizontal axis that is shaded.
    pub(super) shade: Option<Point>,
}

/// Width of every plot, which fits a telephone.
pub(super) const WIDTH: f64 = 390.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 378.0;

impl<'a> Plot<'a> {
    /// A plot of one panel.
    pub(super) fn new(title: &'a str, x: Horizontal<'a>, panel: Panel<'a>) -> Plot<'a> {
        Plot {
            title,
            heading: None,
            panels: vec![panel],
            x,
            shade: None,
        }
    }

    /// Draws the panels, the marks of the horizontal axis, and the names of the lines.
    pub(super) fn draw(&self) -> String {
        let mut svg = Svg::new(WIDTH, 0.0);
        let x = self.x.axis.between(LEFT, RIGHT);
        let mut floor = 0.0;
        if let Some((name, stroke)) = self.heading {
            let class = format!("name {}", stroke.class);
            svg.text(&class, (LEFT, 16.0), "start", name);
            floor = 18.0;
        }
        for panel in &self.panels {
            let top = floor + 28.0;
            floor = top + panel.height();
            self.draw_panel(panel, &mut svg, &x, (top, floor));
        }
        let mut free_from = f64::NEG_INFINITY;
        for mark in &self.x.marks {
            let Some(at) = x.at(mark.at) else { continue };
            // Marks that are close to another have no text.
            if at < free_from {
                continue;
            }
            let longest = mark.text.chars().count().max(mark.below.chars().count());
            free_from = at + 7.5 * longest as f64;
            svg.text("tick", (at, floor + 16.0), "middle", &mark.text);
            svg.text("tick", (at, floor + 31.0), "middle", &mark.below);
        }
        let mut bottom = floor + 50.0;
        let middle = (LEFT.midpoint(RIGHT), bottom);
        svg.text("axis", middle, "middle", self.x.name);
        let lines = || self.panels.iter().flat_map(|panel| &panel.lines);
        for line in lines().filter(|line| !line.name.is_empty()) {
            bottom += 16.0;
            let sample = [(10.0, bottom), (44.0, bottom)];
            svg.path("line", line.stroke, &sample);
            let class = format!("label {}", line.stroke.class);
            svg.text(&class, (52.0, bottom + 4.0), "start", &line.name);
        }
        svg.height = bottom + 12.0;
        let described = lines().map(|line| line.described.as_str());
        let described: Vec<&str> = described.filter(|text| !text.is_empty()).collect();
        svg.finish(self.title, &described.join("; "))
    }

    fn draw_panel(&self, panel: &Panel<'_>, svg: &mut Svg, x: &Axis, (top, floor): Point) {
        let y = panel.axis.between(floor, top);
        let shade = self.shade.map(|(from, to)| (x.at(from), x.at(to)));
        if let Some((Some(from), Some(to))) = shade {
            svg.rectangle("shade", (from, top), (to - from, floor - top));
        }
        svg.text("axis", (12.0, top - 8.0), "start", panel.name);
        let (most, text) = panel.marks;
        for (tick, at) in y.ticks_at(most) {
            svg.line("grid", (LEFT, at), (RIGHT, at));
            svg.text("tick", (LEFT - 7.0, at + 4.0), "end", &text(tick));
        }
        for at in self.x.marks.iter().filter_map(|mark| x.at(mark.at)) {
            svg.line("grid", (at, top), (at, floor));
        }
        svg.line("rule", (LEFT, floor), (RIGHT, floor));
        let place = |&(at, value): &Point| Some((x.at(at)?, y.at(value)?));
        let places = |run: &[Point]| run.iter().filter_map(place).collect::<Vec<_>>();
        for line in &panel.lines {
            for other in &line.others {
                svg.path("thin", line.stroke, &places(other));
            }
            for (point, range) in line.points.iter().zip(&line.ranges) {
                let ends = (place(point), y.at(range.0), y.at(range.1));
                if let (Some(at), Some(least), Some(most)) = ends {
                    let whole = line.stroke.with_dashes("");
                    svg.path("line", whole, &[(at.0, least), (at.0, most)]);
                    svg.dot(line.stroke.class, at);
                }
            }
            svg.path("line", line.stroke, &places(&line.points));
        }
    }
}

/// Makes a standalone SVG file of a picture, with the colours of reports, light and dark.
pub(super) fn svg_file(element: &str) -> String {
    let css = include_str!("../../templates/report.css");
    let style = format!("<style>\n{css}svg{{background:var(--paper)}}\n</style>\n");
    match element.split_once('\n') {
        Some((begin, rest)) => format!("{begin}\n{style}{rest}"),
        None => element.to_owned(),
    }
}

/// Returns a round number without the zeros of its precision.
pub(super) fn plain(number: f64) -> String {
    let text = significant(number);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_series_look_alike() {
        let strokes: Vec<Stroke> = (0..20).map(Stroke::numbered).chain([IDLE]).collect();
        for (at, stroke) in strokes.iter().enumerate() {
            assert!(!strokes[..at].contains(stroke), "{at}");
        }
    }
}

//! Charts as SVG inside HTML.
//!
//! No crate draws these: colours are custom properties of the page, so that one picture works in light and
//! in dark; every picture has a description for people who do not see it; names are at the ends of lines
//! instead of in a legend; and a large plot is drawn for two widths, of which the page shows one.

use std::fmt::Write;

use askama::filters::Escaper;

use super::document::Xml;
use super::units::significant;
use crate::arm::Arm;
use crate::comparison::Comparison;

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
    fn numbered(at: usize) -> Stroke {
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
    pub(super) fn finish(self, class: &str, title: &str, description: &str) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{class}\" role=\"img\" \
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
    /// Name at its end; may be empty.
    pub(super) name: String,
    pub(super) stroke: Stroke,
    /// Drawn thick.
    pub(super) points: Vec<Point>,
    /// Other runs, drawn thin.
    pub(super) others: Vec<Vec<Point>>,
    /// Least and most at each of `points`, which are marked if there are any.
    pub(super) ranges: Vec<Point>,
}

/// Lines over the horizontal axis of a plot.
#[derive(Debug)]
pub(super) struct Panel<'a> {
    /// Name of the vertical axis.
    pub(super) name: &'a str,
    pub(super) axis: Axis,
    /// Number of marks of the axis at most, and their text.
    pub(super) marks: (usize, fn(f64) -> String),
    pub(super) height: f64,
    pub(super) lines: Vec<Line>,
}

/// A mark of the horizontal axis.
#[derive(Debug)]
pub(super) struct Mark {
    pub(super) at: f64,
    pub(super) text: String,
    /// A second line of text; may be empty.
    pub(super) below: String,
}

/// Panels one above the other that share the horizontal axis.
#[derive(Debug)]
pub(super) struct Plot<'a> {
    pub(super) title: &'a str,
    /// What it shows, in words.
    pub(super) description: String,
    /// Heading in the colour of a stroke.
    pub(super) heading: Option<(&'a str, Stroke)>,
    pub(super) panels: Vec<Panel<'a>>,
    /// Name of the horizontal axis.
    pub(super) x_name: &'a str,
    pub(super) x_axis: Axis,
    pub(super) x_marks: Vec<Mark>,
    /// Span of the horizontal axis that is shaded.
    pub(super) shade: Option<Point>,
}

/// Widths of a plot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    class: &'static str,
    width: f64,
    left: f64,
    right: f64,
    /// Whether names are below the plot, and not at its right.
    names_below: bool,
}

impl Layout {
    /// For a grid of plots.
    pub(super) const SMALL: Layout = Layout {
        class: "panel",
        width: 390.0,
        left: 46.0,
        right: 328.0,
        names_below: false,
    };
    const WIDE: Layout = Layout {
        class: "if-wide",
        width: 1000.0,
        left: 58.0,
        right: 830.0,
        names_below: false,
    };
    const NARROW: Layout = Layout {
        class: "if-narrow",
        width: 380.0,
        left: 58.0,
        right: 368.0,
        names_below: true,
    };
}

/// Distance between names.
const GAP: f64 = 16.0;

impl Plot<'_> {
    /// Draws the plot twice: for a wide page, and for a telephone.
    pub(super) fn draw_large(&self) -> String {
        self.draw(Layout::WIDE) + &self.draw(Layout::NARROW)
    }

    /// Draws the plot.
    pub(super) fn draw(&self, layout: Layout) -> String {
        let mut svg = Svg::new(layout.width, 0.0);
        let x = self.x_axis.between(layout.left, layout.right);
        let mut top = 28.0;
        if let Some((name, stroke)) = self.heading {
            svg.text(
                &format!("name {}", stroke.class),
                (layout.left, 16.0),
                "start",
                name,
            );
            top += 20.0;
        }
        let mut floor = top;
        let mut ends = Vec::new();
        for panel in &self.panels {
            floor = top + panel.height.max(panel.lines.len() as f64 * 17.0);
            ends.extend(self.draw_panel(panel, &mut svg, &x, layout, (top, floor)));
            top = floor + 30.0;
        }
        let mut free_from = f64::NEG_INFINITY;
        for mark in &self.x_marks {
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
        let has_two_lines = self.x_marks.iter().any(|mark| !mark.below.is_empty());
        let mut bottom = floor + if has_two_lines { 62.0 } else { 46.0 };
        let middle = (layout.left.midpoint(layout.right), bottom - 12.0);
        svg.text("axis", middle, "middle", self.x_name);
        if layout.names_below {
            // In the order in which the lines end, the highest first.
            ends.sort_by(|a, b| a.1.1.total_cmp(&b.1.1));
            for (line, _) in ends {
                bottom += GAP;
                svg.path(
                    "line",
                    line.stroke,
                    &[(10.0, bottom - 8.0), (44.0, bottom - 8.0)],
                );
                line.draw_name(&mut svg, (52.0, bottom - 4.0));
            }
            bottom += 8.0;
        }
        svg.height = bottom;
        svg.finish(layout.class, self.title, &self.description)
    }

    /// Draws a panel, and returns its lines with their ends.
    fn draw_panel<'a>(
        &self,
        panel: &'a Panel<'_>,
        svg: &mut Svg,
        x: &Axis,
        layout: Layout,
        (top, floor): Point,
    ) -> Vec<(&'a Line, Point)> {
        let Layout { left, right, .. } = layout;
        let y = panel.axis.between(floor, top);
        let shade = self
            .shade
            .and_then(|(from, to)| Some((x.at(from)?, x.at(to)?)));
        if let Some((from, to)) = shade {
            svg.rectangle("shade", (from, top), (to - from, floor - top));
        }
        svg.text("axis", (12.0, top - 8.0), "start", panel.name);
        let (most, text) = panel.marks;
        for (tick, at) in y.ticks_at(most) {
            svg.line("grid", (left, at), (right, at));
            svg.text("tick", (left - 7.0, at + 4.0), "end", &text(tick));
        }
        for at in self.x_marks.iter().filter_map(|mark| x.at(mark.at)) {
            svg.line("grid", (at, top), (at, floor));
        }
        svg.line("rule", (left, floor), (right, floor));
        let place = |&(at, value): &Point| Some((x.at(at)?, y.at(value)?));
        let places = |run: &[Point]| run.iter().filter_map(place).collect::<Vec<_>>();
        let mut ends: Vec<(&Line, Point)> = Vec::new();
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
            let points = places(&line.points);
            svg.path("line", line.stroke, &points);
            let end = points.last().filter(|_| !line.name.is_empty());
            ends.extend(end.map(|&end| (line, end)));
        }
        if layout.names_below {
            return ends;
        }
        let wanted: Vec<f64> = ends.iter().map(|end| end.1.1).collect();
        for (&(line, end), at) in ends.iter().zip(spread(&wanted, GAP, top, floor)) {
            let leader = [end, (right, end.1), (right + 12.0, at)];
            svg.path("leader", line.stroke, &leader);
            line.draw_name(svg, (right + 16.0, at + 4.0));
        }
        Vec::new()
    }
}

impl Line {
    fn draw_name(&self, svg: &mut Svg, place: Point) {
        svg.text(
            &format!("label {}", self.stroke.class),
            place,
            "start",
            &self.name,
        );
    }
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

    #[test]
    fn no_two_series_look_alike() {
        let strokes: Vec<Stroke> = (0..20).map(Stroke::numbered).chain([IDLE]).collect();
        for (at, stroke) in strokes.iter().enumerate() {
            assert!(!strokes[..at].contains(stroke), "{at}");
        }
    }
}

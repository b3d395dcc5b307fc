//! How many times as long reads took, with intervals.

use super::axis::Axis;
use super::figure;
use super::palette::{Stroke, stroke};
use super::svg::{Anchor, Svg};
use crate::arm::Arm;
use crate::report::tables::with_interval;
use crate::report::units::significant;
use crate::report::{Figure, FigureRatio, PointReport, ratio_of};
use crate::stats::Ratio;

/// Bars of p99 against the idle arm and against the buffered one; `None` if there is neither.
pub(super) fn picture(point: &PointReport<'_>, id: &str) -> Option<String> {
    let of = |base: Arm, ratios: fn(&crate::report::ArmReport) -> &[FigureRatio]| -> Vec<Bar> {
        let bars = point.arms.iter().filter_map(|arm| {
            Some(Bar {
                name: arm.arm.to_string(),
                stroke: stroke(point.arms.iter().map(|a| a.arm), arm.arm),
                ratio: ratio_of(ratios(arm), Figure::P99Ns)?,
            })
        });
        if point.has(base) {
            bars.collect()
        } else {
            Vec::new()
        }
    };
    let groups = [
        ("idle", Arm::Idle, of(Arm::Idle, |arm| &arm.to_idle)),
        (
            "buffered",
            Arm::BUFFERED,
            of(Arm::BUFFERED, |arm| &arm.to_buffered),
        ),
    ];
    let pictures: String = groups
        .iter()
        .filter(|(_, _, bars)| !bars.is_empty())
        .map(|(name, base, bars)| {
            draw(
                bars,
                ("p99", &format!("p99 of {base}")),
                &format!("{id}-ratio-{name}"),
            )
        })
        .collect();
    if pictures.is_empty() {
        return None;
    }
    Some(figure(
        &format!("<div class=\"grid\">\n{pictures}</div>\n"),
        "p99 of reads as a multiple of what it is in another arm, within each repeat; logarithmic. Bars \
         begin at 1, no difference; the thin line with ends is the 95% bootstrap interval over repeats. \
         Where that crosses 1, the repeats do not show a difference. Left is better.",
    ))
}

/// A multiple of something.
pub(super) struct Bar {
    /// Of what.
    pub(super) name: String,
    /// How it is drawn.
    pub(super) stroke: Stroke,
    /// How many times.
    pub(super) ratio: Ratio,
}

const ROW: f64 = 38.0;

/// Bars of a figure as a multiple of what it is compared with.
pub(super) fn draw(bars: &[Bar], (figure, base): (&str, &str), id: &str) -> String {
    let (width, left, right, top) = (390.0, 12.0, 378.0, 34.0);
    let floor = top + bars.len() as f64 * ROW + 4.0;
    let mut svg = Svg::new(width, floor + 26.0);
    let values = bars
        .iter()
        .flat_map(|bar| [bar.ratio.ratio, bar.ratio.low, bar.ratio.high]);
    let x = Axis::log(values.chain([1.0]), 0.5, left, right);
    svg.text(
        "axis",
        (left, 14.0),
        Anchor::Start,
        &format!("{figure} / {base}"),
    );
    let placed = |tick| Some((tick, x.at(tick)?));
    let ticks: Vec<(f64, f64)> = x.ticks(6).into_iter().filter_map(placed).collect();
    for &(tick, at) in &ticks {
        let text = format!("×{}", trimmed(tick));
        svg.text("tick", (at, floor + 16.0), Anchor::Middle, &text);
    }
    let one = x.at(1.0).unwrap_or(left);
    for (at, bar) in bars.iter().enumerate() {
        let y = top + at as f64 * ROW;
        // Lines behind bars only: names and numbers between them stand free.
        let (from, to) = (y + 12.0, y + 28.0);
        for &(_, tick) in &ticks {
            svg.line("grid", (tick, from), (tick, to));
        }
        svg.line("rule", (one, from), (one, to));
        let (Some(end), Some(low), Some(high)) = (
            x.at(bar.ratio.ratio),
            x.at(bar.ratio.low),
            x.at(bar.ratio.high),
        ) else {
            continue;
        };
        let class = format!("label {}", bar.stroke.class);
        svg.text(&class, (left, y + 8.0), Anchor::Start, &bar.name);
        svg.text(
            "value",
            (right, y + 8.0),
            Anchor::End,
            &with_interval(bar.ratio),
        );
        let middle = y + 20.0;
        let class = format!("bar {}", bar.stroke.class);
        svg.rectangle(
            &class,
            (one.min(end), middle - 5.0),
            ((end - one).abs(), 10.0),
        );
        svg.line("whisker", (low, middle), (high, middle));
        for tip in [low, high] {
            svg.line("whisker", (tip, middle - 5.0), (tip, middle + 5.0));
        }
    }
    let described: Vec<String> = bars
        .iter()
        .map(|bar| format!("{} {}", bar.name, with_interval(bar.ratio)))
        .collect();
    svg.finish(
        id,
        "panel",
        &format!("{figure} as a multiple of {base}"),
        &format!("{}.", described.join("; ")),
    )
}

/// A round number without the zeros of its precision.
fn trimmed(number: f64) -> String {
    let text = significant(number);
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All lines are behind bars, and none behind a name or a number.
    #[test]
    fn no_line_crosses_a_text() {
        let arms = [Arm::BUFFERED, Arm::DIRECT];
        let bars = arms.map(|arm| Bar {
            name: arm.to_string(),
            stroke: stroke(arms.into_iter(), arm),
            ratio: Ratio {
                ratio: 2.0,
                low: 1.5,
                high: 3.0,
                repeats: 5,
                paired: true,
            },
        });
        let picture = draw(&bars, ("p99", "p99 of idle"), "x");
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
}

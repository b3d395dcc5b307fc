//! Bars of figures as multiples of a baseline's.

use super::chart::{Axis, Stroke, Svg, WIDTH, plain};
use super::document::Block;
use super::with_interval;
use crate::comparison::Comparison;
use crate::figure::{Better, Figure};
use crate::stats::Ratio;

/// Height of a row.
const ROW: f64 = 38.0;
const LEFT: f64 = 12.0;
const RIGHT: f64 = 378.0;
const TOP: f64 = 34.0;

/// A picture for each figure and baseline; `None` if there is nothing to compare.
pub(super) fn figure(comparison: &Comparison, pictures: &[(Figure, &str)]) -> Option<Block> {
    let pictures = pictures.iter();
    let pictures = pictures.filter_map(|(figure, baseline)| picture(comparison, *figure, baseline));
    let pictures: String = pictures.collect();
    (!pictures.is_empty()).then_some(Block::Figure {
        pictures,
        caption: "Figures as a multiple of another arm's, within each repeat; logarithmic. Bars begin at 1, no \
            difference; the thin line with ends is the 95% bootstrap interval over repeats. If it crosses 1, \
            the repeats do not show a difference.",
    })
}

fn picture(comparison: &Comparison, figure: Figure, baseline: &str) -> Option<String> {
    let baseline_arm = comparison.baseline(baseline)?;
    let arms = comparison.arms.iter();
    let bars = arms.filter_map(|arm| Some((arm.arm.as_str(), arm.ratio(figure, baseline)?)));
    let bars: Vec<(&str, Ratio)> = bars.collect();
    if bars.is_empty() {
        return None;
    }
    let floor = TOP + bars.len() as f64 * ROW + 4.0;
    let mut svg = Svg::new(WIDTH, floor + 26.0);
    let values = bars
        .iter()
        .flat_map(|(_, ratio)| [ratio.ratio, ratio.low, ratio.high]);
    let x = Axis::log(values.chain([1.0]), 0.5).between(LEFT, RIGHT);
    let better = match figure.better {
        Some(Better::Lower) => ", lower is better",
        Some(Better::Higher) => ", higher is better",
        None => "",
    };
    let title = format!("{} / {baseline_arm}{better}", figure.title());
    svg.text("axis", (LEFT, 14.0), "start", &title);
    let ticks = x.ticks_at(6);
    for &(tick, at) in &ticks {
        let text = format!("×{}", plain(tick));
        svg.text("tick", (at, floor + 16.0), "middle", &text);
    }
    let one = x.at(1.0)?;
    let mut described = Vec::new();
    for ((name, ratio), row) in bars.iter().zip(0..) {
        let y = TOP + f64::from(row) * ROW;
        // Grid lines are behind the bars only: names and numbers are between the rows of lines.
        let (from, to) = (y + 12.0, y + 28.0);
        for &(_, tick) in &ticks {
            svg.line("grid", (tick, from), (tick, to));
        }
        svg.line("rule", (one, from), (one, to));
        let [end, low, high] = [ratio.ratio, ratio.low, ratio.high].map(|r| x.at(r));
        let (Some(end), Some(low), Some(high)) = (end, low, high) else {
            continue;
        };
        let (value, stroke) = (with_interval(*ratio), Stroke::of(comparison, name));
        svg.text(
            &format!("label {}", stroke.class),
            (LEFT, y + 8.0),
            "start",
            name,
        );
        svg.text("value", (RIGHT, y + 8.0), "end", &value);
        let middle = y + 20.0;
        let size = ((end - one).abs(), 10.0);
        let class = format!("bar {}", stroke.class);
        svg.rectangle(&class, (one.min(end), middle - 5.0), size);
        svg.line("whisker", (low, middle), (high, middle));
        for tip in [low, high] {
            svg.line("whisker", (tip, middle - 5.0), (tip, middle + 5.0));
        }
        described.push(format!("{name} {value}"));
    }
    Some(svg.finish(&title, &described.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::interference::{self, BUFFERED, P99};

    /// Every grid line is behind a bar, and none crosses a name or a number.
    #[test]
    fn no_grid_line_crosses_a_text() {
        let example = include_str!("../../tests/data/outcome.json");
        let outcome = serde_json::from_str(example).unwrap();
        let report = interference::report("", &outcome, None);
        let picture = picture(&report.points[0].comparison, P99, BUFFERED).unwrap();
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
            // 12 pixels high, some of which are below the baseline.
            let (top, bottom) = (number(&text, "y") - 9.0, number(&text, "y") + 3.0);
            for line in all("line") {
                let (from, to) = (number(&line, "y1"), number(&line, "y2"));
                assert!(to <= top || from >= bottom, "{:?}", text.text());
            }
        }
    }
}

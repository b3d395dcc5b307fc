//! Charts of a fan-out experiment.

use crate::fan_out::{ArmRun, FanOutOutcome, Figures};
use crate::report::chart::{Axis, Line, Mark, Panel, Plot, Stroke, plain};
use crate::report::document::Block;
use crate::report::units::significant;

const MIB: f64 = (1u64 << 20) as f64;
/// Marks of a vertical axis at most.
const MARKS: usize = 5;

/// Bytes written to each level, measured and simulated, a chart for each strategy; `None` without any.
pub(super) fn of(outcome: &FanOutOutcome) -> Option<Block> {
    let pictures: String = outcome.runs.iter().map(picture).collect();
    (!pictures.is_empty()).then_some(Block::Figure {
        pictures,
        caption: "MiB written to each level, flushes included; dashed as simulated.",
    })
}

fn picture(run: &ArmRun) -> String {
    let stroke = Stroke::numbered(0);
    let lines = vec![
        Line::new("measured", stroke, points(&run.measured)),
        Line::new(
            "simulated",
            Stroke::numbered(1).with_dashes("7 3"),
            points(&run.simulated),
        ),
    ];
    let levels = lines
        .iter()
        .map(|line| line.points.len())
        .max()
        .unwrap_or(0);
    let values = lines.iter().flat_map(|line| &line.points).map(|(_, y)| *y);
    let axis = Axis::linear(values.chain([0.0]));
    let at = |level: usize| level as f64;
    let marks = (0..levels).map(|level| Mark::new(at(level), plain(at(level))));
    let x_axis = Axis::linear([0.0, at(levels.saturating_sub(1)).max(1.0)].into_iter());
    Plot {
        title: &run.name,
        description: described(&lines),
        heading: Some((&run.name, stroke)),
        panels: vec![Panel::new("written, MiB", axis, (MARKS, plain), lines)],
        x_name: "level",
        x_axis,
        x_marks: marks.collect(),
        shade: None,
    }
    .draw()
}

fn points(figures: &Figures) -> Vec<(f64, f64)> {
    let levels = figures.by_level.iter().enumerate();
    levels
        .map(|(level, of)| (level as f64, of.written_bytes / MIB))
        .collect()
}

/// Value of each level in words.
fn described(lines: &[Line]) -> String {
    let line = |line: &Line| {
        let values = line.points.iter().map(|(_, y)| significant(*y));
        format!(
            "{} {} by level",
            line.name,
            values.collect::<Vec<_>>().join(", ")
        )
    };
    lines.iter().map(line).collect::<Vec<_>>().join("; ")
}

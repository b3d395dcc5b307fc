//! Charts of simulations.

use compactor_simulate::outcome::Sample;

use super::Run;
use crate::report::chart::{Axis, Line, Mark, Panel, Plot, Point, Stroke, plain};
use crate::report::document::Block;
use crate::report::units::significant;

const GIB: f64 = (1u64 << 30) as f64;
const MIB: f64 = (1u64 << 20) as f64;
const DAY_S: f64 = 86_400.0;

/// Marks of a vertical axis at most.
const MARKS: usize = 5;

/// A quantity over time: its name, and its value at a sample.
type OverTime = (&'static str, fn(&Sample) -> f64);

const OVER_TIME: [OverTime; 6] = [
    ("written, MB/s", |s| s.write_bytes_per_s / MIB),
    ("size, GB (of 2^30 bytes)", |s| s.dataset_bytes as f64 / GIB),
    ("room of unfinished outputs, GB", |s| {
        s.temporary_bytes / GIB
    }),
    ("SSTables per point read", |s| s.sstables_per_point_read),
    ("SSTables per range read", |s| s.sstables_per_range_read),
    ("compactions to be done", |s| s.pending_tasks as f64),
];

/// A quantity by the value of an option.
type ByValue = (&'static str, fn(&Run) -> f64);

const BY_VALUE: [ByValue; 4] = [
    ("bytes written per flushed byte", |r| {
        r.outcome.write_amplification
    }),
    ("SSTables per point read", |r| {
        r.outcome.sstables_per_point_read
    }),
    ("SSTables per range read", |r| {
        r.outcome.sstables_per_range_read
    }),
    ("size per byte of rows that exist", |r| {
        r.outcome.space_amplification
    }),
];

/// Simulations in one chart at most: more lines cannot be told apart.
const LINES: usize = 6;

/// Charts of all simulations over time; `None` without samples, or of too many.
pub(super) fn over_time(runs: &[Run]) -> Option<Block> {
    let end_s = runs
        .iter()
        .map(|run| run.outcome.duration_s)
        .fold(0.0, f64::max);
    let has_samples = runs.iter().any(|run| run.outcome.samples.len() > 1);
    if !has_samples || runs.len() > LINES {
        return None;
    }
    let draw = |quantity: &OverTime| time_plot(runs, end_s, *quantity).draw();
    Some(Block::Figure {
        pictures: OVER_TIME.iter().map(draw).collect(),
        caption: "The table over time, a point for each 120th of it.",
    })
}

fn time_plot(runs: &[Run], end_s: f64, (name, value): OverTime) -> Plot<'static> {
    let lines = runs.iter().enumerate().map(|(at, run)| {
        let samples = run.outcome.samples.iter();
        let points = samples.map(|s| (s.time_s / DAY_S, value(s))).collect();
        // Names are below the first chart of a page only if there are several.
        let name = if runs.len() > 1 {
            run.name.as_str()
        } else {
            ""
        };
        Line::new(name, Stroke::numbered(at), points)
    });
    let x_axis = Axis::linear([0.0, end_s / DAY_S].into_iter());
    let marks = x_axis.ticks_at(6).into_iter();
    let marks = marks.map(|(day, _)| Mark::new(day, plain(day)));
    plot(name, "days", x_axis, marks.collect(), lines.collect())
}

/// Charts of figures by the value of an option; `None` if the values are no numbers.
pub(super) fn by_value(runs: &[Run], option: &str) -> Option<Block> {
    let values: Option<Vec<f64>> = runs.iter().map(|run| run.value).collect();
    let values = values.filter(|values| values.len() > 1)?;
    let draw = |&(name, figure): &ByValue| {
        let points = values.iter().zip(runs);
        let points = points.map(|(&at, run)| (at, figure(run))).collect();
        let x_axis = Axis::linear(values.iter().copied());
        let marks = values.iter().map(|&at| Mark::new(at, plain(at)));
        let line = Line::new("", Stroke::numbered(0), points);
        plot(name, option, x_axis, marks.collect(), vec![line]).draw()
    };
    Some(Block::Figure {
        pictures: BY_VALUE.iter().map(draw).collect(),
        caption: "Figures of the whole time by the value of the option.",
    })
}

fn plot<'a>(
    name: &'a str,
    x_name: &'a str,
    x_axis: Axis,
    x_marks: Vec<Mark>,
    lines: Vec<Line>,
) -> Plot<'a> {
    let values = lines.iter().flat_map(|line| &line.points).map(|(_, y)| *y);
    let axis = Axis::linear(values.chain([0.0]));
    Plot {
        title: name,
        description: described(&lines),
        heading: None,
        panels: vec![Panel::new(name, axis, (MARKS, plain), lines)],
        x_name,
        x_axis,
        x_marks,
        shade: None,
    }
}

/// First, last and greatest value of each line in words.
fn described(lines: &[Line]) -> String {
    let line = |line: &Line| {
        let value = |point: Option<&Point>| point.map_or(0.0, |(_, y)| *y);
        let most = line.points.iter().map(|(_, y)| *y).fold(0.0, f64::max);
        let [first, last, most] =
            [value(line.points.first()), value(line.points.last()), most].map(significant);
        let text = format!("from {first} to {last}, at most {most}");
        match line.name.as_str() {
            "" => text,
            name => format!("{name} {text}"),
        }
    };
    lines.iter().map(line).collect::<Vec<_>>().join("; ")
}

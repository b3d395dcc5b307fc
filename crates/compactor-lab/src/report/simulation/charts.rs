//! Charts of simulations.

use compactor_simulate::outcome::{Outcome, Sample};

use super::Run;
use crate::report::chart::{Axis, Horizontal, Line, Mark, Panel, Plot, Point, Stroke, plain};
use crate::report::document::Block;
use crate::report::units::{GIB, MIB, significant};

const DAY_S: f64 = 86_400.0;

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
type ByValue = (&'static str, fn(&Outcome) -> f64);

const BY_VALUE: [ByValue; 4] = [
    ("bytes written per flushed byte", |of| {
        of.write_amplification
    }),
    ("SSTables per point read", |of| of.sstables_per_point_read),
    ("SSTables per range read", |of| of.sstables_per_range_read),
    ("size per byte of rows that exist", |of| {
        of.space_amplification
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
    // Names are below the first chart of a page only if there are several.
    let shown = |run: &Run| match runs.len() {
        1 => String::new(),
        _ => run.name.clone(),
    };
    let draw = |&(name, value): &OverTime| {
        let lines = runs.iter().enumerate().map(|(at, run)| {
            let samples = run.outcome.samples.iter();
            let points = samples.map(|s| (s.time_s / DAY_S, value(s))).collect();
            line(&shown(run), at, points)
        });
        let days = Axis::linear([0.0, end_s / DAY_S].into_iter());
        plot(name, Horizontal::new("days", days), lines.collect())
    };
    Some(Block::Figure {
        pictures: OVER_TIME.iter().map(draw).collect(),
        caption: "The table over time, a point for each 120th of it.",
    })
}

/// Charts of figures by the value of an option; `None` if the values are no numbers.
pub(super) fn by_value(runs: &[Run], option: &str) -> Option<Block> {
    let values: Option<Vec<f64>> = runs.iter().map(|run| run.value).collect();
    let values = values.filter(|values| values.len() > 1)?;
    let draw = |&(name, figure): &ByValue| {
        let points = values.iter().zip(runs);
        let points = points
            .map(|(&at, run)| (at, figure(&run.outcome)))
            .collect();
        let marks = values.iter().map(|&at| Mark::new(at, plain(at)));
        let x = Horizontal {
            name: option,
            axis: Axis::linear(values.iter().copied()),
            marks: marks.collect(),
        };
        plot(name, x, vec![line("", 0, points)])
    };
    Some(Block::Figure {
        pictures: BY_VALUE.iter().map(draw).collect(),
        caption: "Figures of the whole time by the value of the option.",
    })
}

fn plot(name: &str, x: Horizontal<'_>, lines: Vec<Line>) -> String {
    Plot::new(name, x, Panel::from_zero(name, lines)).draw()
}

/// A line with its first, last and greatest value in words.
fn line(name: &str, number: usize, points: Vec<Point>) -> Line {
    let value = |point: Option<&Point>| point.map_or(0.0, |(_, y)| *y);
    let most = points.iter().map(|(_, y)| *y).fold(0.0, f64::max);
    let [first, last, most] = [value(points.first()), value(points.last()), most].map(significant);
    let text = format!("from {first} to {last}, at most {most}");
    let text = match name {
        "" => text,
        name => format!("{name} {text}"),
    };
    Line::new(name, Stroke::numbered(number), points).described(text)
}

//! Tables of arms.

use super::document::{Block, Table, cell};
use super::with_interval;
use crate::comparison::{ArmFigures, Comparison};
use crate::figure::Figure;

/// A column of a table of arms.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Column {
    /// Number of runs that count: `3`, or `2 of 3`.
    Runs,
    /// Median.
    Median(Figure),
    /// Least and most.
    Range(Figure),
    /// Multiple of a baseline's, with its interval.
    Ratio(Figure, &'static str),
}

impl Comparison {
    /// A table with a row for each arm; ratios to baselines without runs are left out.
    pub(crate) fn table(&self, caption: impl Into<String>, columns: &[Column]) -> Table {
        let is_there = |column: &&Column| match column {
            Column::Ratio(_, baseline) => self.baseline(baseline).is_some(),
            _ => true,
        };
        let columns: Vec<&Column> = columns.iter().filter(is_there).collect();
        let names = columns.iter().map(|column| column.name());
        let row = |arm: &ArmFigures| {
            let cells = columns.iter().map(|column| column.cell(arm, self));
            std::iter::once(arm.arm.clone()).chain(cells).collect()
        };
        Table {
            caption: caption.into(),
            columns: std::iter::once(self.experiment.arm.to_owned())
                .chain(names)
                .collect(),
            rows: self.arms.iter().map(row).collect(),
            prose: false,
        }
    }

    /// Table of runs that do not count; `None` if all do.
    pub(crate) fn left_out_table(&self) -> Option<Block> {
        let rows = self.left_out.iter().flat_map(|run| {
            let name = format!("{} repeat {}", run.arm, run.repeat);
            let reasons = run.reasons.iter();
            reasons.map(move |reason| (name.clone(), reason.text.clone()))
        });
        let caption = "Runs that do not count, and are in none of the figures";
        Table::prose(caption, ["run", "reason"], rows).unless_empty()
    }
}

impl Column {
    fn name(self) -> String {
        match self {
            Column::Runs => "runs".to_owned(),
            Column::Median(figure) => figure.label.to_owned(),
            Column::Range(figure) => format!("{} least–most", figure.label),
            Column::Ratio(figure, baseline) => format!("{} / {baseline}", figure.title()),
        }
    }

    fn cell(self, arm: &ArmFigures, comparison: &Comparison) -> String {
        match self {
            Column::Runs if arm.counted == arm.runs => arm.runs.to_string(),
            Column::Runs => format!("{} of {}", arm.counted, arm.runs),
            Column::Median(figure) => cell(arm.median(figure), |median| figure.unit.text(median)),
            Column::Range(figure) => cell(arm.spread(figure), |spread| {
                let [least, most] = [spread.least, spread.most].map(|n| figure.unit.text(n));
                format!("{least}–{most}")
            }),
            Column::Ratio(_, baseline) if comparison.baseline(baseline) == Some(&arm.arm) => {
                "1".to_owned()
            }
            Column::Ratio(figure, baseline) => cell(arm.ratio(figure, baseline), with_interval),
        }
    }
}

//! Figures: the numbers that each run of an arm yields.

use serde::Serialize;

use crate::report::units::{mebibytes, milliseconds, significant};
use crate::text_table::count;

/// A number that each run of an arm yields, such as its p99.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Figure {
    /// Name, which ends in the unit of the samples.
    #[serde(rename = "figure")]
    pub name: &'static str,
    /// Work alongside, if an experiment measures the figure both with and without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<&'static str>,
    /// Name in tables.
    #[serde(skip)]
    pub label: &'static str,
    /// Unit in tables.
    #[serde(skip)]
    pub unit: Unit,
    /// Which values are better; `None` for a figure that arms are not compared by.
    pub better: Option<Better>,
}

/// Which values of a figure are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Lower ones, such as of latencies.
    Lower,
    /// Higher ones, such as of throughput.
    Higher,
}

/// Unit of a figure in tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds of samples in nanoseconds.
    Milliseconds,
    /// Microseconds of samples in nanoseconds.
    Microseconds,
    /// KiB of samples in bytes.
    Kibibytes,
    /// MiB of samples in bytes.
    Mebibytes,
    /// MB of samples in bytes.
    Megabytes,
    /// Whole numbers.
    Count,
    /// Other numbers.
    Number,
}

impl Unit {
    /// Its name, and the text for a value without it.
    fn name_and_text(self) -> (&'static str, fn(f64) -> String) {
        match self {
            Unit::Milliseconds => ("ms", milliseconds),
            Unit::Microseconds => ("us", |ns| significant(ns / 1e3)),
            Unit::Kibibytes => ("KiB", |bytes| significant(bytes / 1024.0)),
            Unit::Mebibytes => ("MiB", mebibytes),
            Unit::Megabytes => ("MB", |bytes| significant(bytes / 1e6)),
            Unit::Count => ("as a number", |number| count(number.round() as u64)),
            Unit::Number => ("as a number", significant),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.name_and_text().0
    }

    /// The text for a value, without the unit.
    pub fn text(self, value: f64) -> String {
        self.name_and_text().1(value)
    }
}

impl Figure {
    /// A figure that arms are not compared by.
    pub(crate) const fn new(name: &'static str, label: &'static str, unit: Unit) -> Figure {
        Figure {
            name,
            condition: None,
            label,
            unit,
            better: None,
        }
    }

    /// A figure of which lower values are better.
    pub(crate) const fn lower(name: &'static str, label: &'static str, unit: Unit) -> Figure {
        Figure {
            better: Some(Better::Lower),
            ..Figure::new(name, label, unit)
        }
    }

    /// A figure of which higher values are better.
    pub(crate) const fn higher(name: &'static str, label: &'static str, unit: Unit) -> Figure {
        Figure {
            better: Some(Better::Higher),
            ..Figure::new(name, label, unit)
        }
    }

    /// Its label, and the work alongside.
    pub fn title(self) -> String {
        let condition = self
            .condition
            .map_or_else(String::new, |name| format!(" {name}"));
        format!("{}{condition}", self.label)
    }

    /// The figure with work alongside.
    pub(crate) const fn under(self, condition: Option<&'static str>) -> Figure {
        Figure { condition, ..self }
    }
}

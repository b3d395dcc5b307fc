//! Reports of experiments: the figures of arms, how they compare, and caveats about them.
//!
//! A report has numbers and is serialised to JSON as it is; a [`Document`] shows it to people. Nothing is
//! measured here: a report can be made again at any time of a saved outcome.

use serde::Serialize;
use serde_json::Value;

use crate::compare::distinct;
use crate::comparison::Comparison;
use crate::experiment::Experiment;
use crate::figure::Figure;
use crate::fio::FioOutcome;
use crate::outcome::{End, Warning};
use crate::stats::Ratio;
use document::{Block, Section, Table, cell};
use units::{significant, times};

mod arm_table;
mod bars;
pub mod bench;
mod chart;
pub mod chunk_length;
pub mod document;
pub(crate) mod facts;
pub mod fan_out;
pub mod fio;
pub mod interference;
pub mod simulation;
pub mod units;

pub use document::Document;

/// Report of an outcome.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Name of the outcome, such as its file.
    pub name: String,
    /// End of the experiment.
    pub end: End,
    /// Comparisons of the same arms, such as one for each size of the hot set.
    pub points: Vec<Point>,
    /// Caveats about all of the figures.
    pub warnings: Vec<Warning>,
    /// Measurements of the device by itself, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fio: Option<FioOutcome>,
    /// The report for people.
    #[serde(skip)]
    pub section: Section,
    /// The result as one picture, an SVG file, if there is one for the experiment.
    #[serde(skip)]
    pub picture: Option<String>,
    /// Whether every arm has a run that counts, at every point, unless the experiment has a rule of its own.
    #[serde(skip)]
    pub is_sound: bool,
    #[serde(skip)]
    pub(crate) experiment: &'static Experiment,
}

/// A comparison of the arms under some circumstances.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Point {
    /// Circumstances, by the experiment.
    #[serde(flatten)]
    pub circumstances: Value,
    /// Figures of the arms.
    #[serde(flatten)]
    pub comparison: Comparison,
}

impl Report {
    /// A report without a picture and jobs of fio; its name is its section's.
    pub(crate) fn new(
        experiment: &'static Experiment,
        end: End,
        points: impl IntoIterator<Item = (Value, Comparison)>,
        warnings: &[Warning],
        section: Section,
    ) -> Report {
        let point = |(circumstances, comparison)| Point {
            circumstances,
            comparison,
        };
        let points: Vec<Point> = points.into_iter().map(point).collect();
        let mut arms = points.iter().flat_map(|point| &point.comparison.arms);
        Report {
            name: section.name.clone(),
            end,
            is_sound: arms.all(|arm| arm.counted > 0),
            points,
            warnings: warnings.to_vec(),
            fio: None,
            section,
            picture: None,
            experiment,
        }
    }

    /// Title of reports of its kind of experiment.
    pub fn title(&self) -> &'static str {
        self.experiment.title
    }

    /// Reports of one kind of experiment one after the other; several begin with a comparison.
    pub fn document(reports: &[Report]) -> Document {
        let Some(first) = reports.first() else {
            return Document::default();
        };
        let experiment = first.experiment;
        let mut sections = Vec::new();
        if reports.len() > 1 {
            sections.push(Section {
                blocks: vec![Block::Table(side_by_side(experiment, reports))],
                ..Section::default()
            });
        }
        sections.extend(reports.iter().map(|report| report.section.clone()));
        Document {
            title: match reports {
                [only] if !only.name.is_empty() => format!("{}: {}", experiment.title, only.name),
                _ => experiment.title.to_owned(),
            },
            heading: experiment.heading,
            introduction: experiment.introduction,
            sections,
        }
    }
}

/// The headline figure of each report, such as those of several machines; by the first point of each.
fn side_by_side(experiment: &Experiment, reports: &[Report]) -> Table {
    let Experiment {
        headline,
        baseline,
        arm: noun,
        ..
    } = *experiment;
    let points = reports.iter().filter_map(|report| report.points.first());
    let arms = points.flat_map(|point| &point.comparison.arms);
    let arms = distinct(arms.map(|arm| arm.arm.as_str()));
    let text = |report: &Report, arm: &str| {
        let found = report.points.first()?.comparison.counted(arm)?;
        let median = headline.unit.text(found.median(headline)?);
        Some(match found.ratio(headline, baseline) {
            Some(ratio) => format!("{median}, {}", with_interval(ratio)),
            None => median,
        })
    };
    let row = |arm: &str| {
        let cells = reports
            .iter()
            .map(|report| cell(text(report, arm), |text| text));
        std::iter::once(arm.to_owned()).chain(cells).collect()
    };
    let names = reports.iter().map(|report| report.name.clone());
    Table {
        caption: format!(
            "Side by side: {}, {}, and as a multiple of the {baseline} {noun}'s; the first comparison of each",
            headline.label,
            headline.unit.name(),
        ),
        columns: std::iter::once(noun.to_owned()).chain(names).collect(),
        rows: arms.into_iter().map(row).collect(),
        prose: false,
    }
}

/// Figures that have a value.
pub(crate) fn with_values<const N: usize>(
    figures: [(Figure, Option<f64>); N],
) -> Vec<(Figure, f64)> {
    let figures = figures.into_iter();
    figures
        .filter_map(|(figure, value)| Some((figure, value?)))
        .collect()
}

/// Texts of warnings.
pub(crate) fn texts(warnings: &[Warning]) -> Vec<String> {
    warnings
        .iter()
        .map(|warning| warning.text.clone())
        .collect()
}

/// A ratio and its interval: `×0.24 (0.21–0.27)`.
pub(crate) fn with_interval(ratio: Ratio) -> String {
    if ratio.repeats < 2 {
        return times(ratio.ratio);
    }
    let [low, high] = [ratio.low, ratio.high].map(significant);
    format!("{} ({low}–{high})", times(ratio.ratio))
}

#[cfg(test)]
mod tests;

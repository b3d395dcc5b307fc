//! Description of an experiment, for its comparisons and reports.

use crate::figure::Figure;

/// Titles, introduction and headline figure of a kind of experiment.
#[derive(Debug)]
pub(crate) struct Experiment {
    /// Title of a page.
    pub(crate) title: &'static str,
    /// Heading of a page.
    pub(crate) heading: &'static str,
    /// Introduction of a page.
    pub(crate) introduction: &'static str,
    /// Noun for an arm.
    pub(crate) arm: &'static str,
    /// Figure that matters most: its outliers are reported, and reports are compared by it.
    pub(crate) headline: Figure,
    /// Short name of the baseline in a comparison of reports.
    pub(crate) baseline: &'static str,
}

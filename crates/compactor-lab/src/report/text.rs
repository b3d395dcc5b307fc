//! A report for terminals.

use super::{Report, place, tables};
use crate::text_table::{aligned_left, wrapped};

/// Reports one below the other; several begin with a comparison.
pub fn render(reports: &[Report<'_>]) -> String {
    let mut out = String::new();
    if reports.len() > 1 {
        out.push_str(&tables::side_by_side(reports).to_text());
        out.push('\n');
    }
    for (at, report) in reports.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        one(&mut out, report);
    }
    printable(&out)
}

fn one(out: &mut String, report: &Report<'_>) {
    out.push_str(&format!("{}\n", report.name));
    let mut lines = place::experiment(report);
    lines.extend(place::machine(&report.outcome.environment));
    out.push_str(&aligned_left(&lines));
    for warning in report.warnings {
        out.push_str(&wrapped("  ! ", &warning.text));
    }
    for point in &report.points {
        out.push('\n');
        out.push_str(&wrapped("", &place::pressure(point)));
        out.push_str(&wrapped("", &place::data(point)));
        for doubt in &point.doubts {
            out.push_str(&wrapped("  ! ", &doubt.text));
        }
        for table in tables::of_point(point) {
            out.push('\n');
            out.push_str(&table.to_text());
        }
    }
    for table in report.fio_tables() {
        out.push('\n');
        out.push_str(&table.to_text());
    }
}

/// Without what would steer a terminal: the texts come from a file that anybody may have written.
pub(super) fn printable(text: &str) -> String {
    let steers = |c: char| c.is_control() && c != '\n';
    text.replace(steers, "\u{fffd}")
}

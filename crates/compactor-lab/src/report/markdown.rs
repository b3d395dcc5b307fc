//! A report in GitHub's Markdown, to be put into a README or an issue.

use super::{Report, place, tables};

/// Reports one below the other; several begin with a comparison.
pub fn render(reports: &[Report<'_>]) -> String {
    let mut out = String::new();
    if reports.len() > 1 {
        out.push_str(&tables::side_by_side(reports).to_markdown());
        out.push('\n');
    }
    for (at, report) in reports.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        one(&mut out, report);
    }
    out
}

fn one(out: &mut String, report: &Report<'_>) {
    out.push_str(&format!("### {}\n\n", escaped(&report.name)));
    let mut lines = place::experiment(report);
    lines.extend(place::machine(&report.outcome.environment));
    for (name, value) in lines {
        out.push_str(&format!("- {name}: {}\n", escaped(&value)));
    }
    warnings(out, report.warnings.iter().map(|w| w.text.as_str()));
    for point in &report.points {
        out.push_str(&format!("\n#### {}\n\n", escaped(&place::pressure(point))));
        out.push_str(&format!("{}\n", escaped(&place::data(point))));
        warnings(out, point.doubts.iter().map(|w| w.text.as_str()));
        for table in tables::of_point(point) {
            out.push('\n');
            out.push_str(&table.to_markdown());
        }
    }
    for table in report.fio_tables() {
        out.push('\n');
        out.push_str(&table.to_markdown());
    }
}

pub(super) fn warnings<'a>(out: &mut String, texts: impl Iterator<Item = &'a str>) {
    for (at, text) in texts.enumerate() {
        out.push_str(if at == 0 { "\n" } else { "" });
        out.push_str(&format!("- **Warning:** {}\n", escaped(text)));
    }
}

/// A text on one line that is no markup.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '\\' | '*' | '_' | '`' | '<' | '[' | '&' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

//! A comparison of chunk lengths as one HTML file.

use super::markup::escaped;
use super::palette::numbered;
use super::ratio_bars::{Bar, draw};
use super::{figure, page, table, warnings, where_and_how};
use crate::report::chunk_length::{
    self, ChunkLengthReport, Condition, ConditionReport, ReadFigure, VariantReport,
};

/// Reports one below the other.
pub fn render(reports: &[ChunkLengthReport<'_>]) -> String {
    let mut body = String::new();
    body.push_str("<header><h1>What a read costs in chunks of each length</h1>");
    body.push_str(
        "<p>The same bystander reads the same rows, stored with several chunk lengths and compressors: as \
         fast as it can, then at one rate; alone, and beside a compaction.</p></header>\n",
    );
    for (at, report) in reports.iter().enumerate() {
        body.push_str(&section(report, &format!("c{at}")));
    }
    let title = match reports {
        [only] => format!("Chunk length: {}", only.name),
        _ => "Chunk length".to_owned(),
    };
    page(&title, &body)
}

fn section(report: &ChunkLengthReport<'_>, id: &str) -> String {
    let content = chunk_length::page(report);
    let mut out = format!(
        "<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{}</h2>\n",
        escaped(&report.name)
    );
    out.push_str(&warnings(
        report.doubts.iter().map(|w| w.text.as_str()),
        "About these numbers",
    ));
    let mut tables = content.tables.iter();
    // The figures first, then what shows them.
    out.extend(tables.next().map(table));
    out.extend(picture(report, id));
    out.extend(tables.map(table));
    for sentence in &content.explanations {
        out.push_str(&format!("<p>{}</p>\n", escaped(sentence)));
    }
    out.push_str(&where_and_how(&content.lines));
    out.push_str("</section>\n");
    out
}

/// Bars of the most reads per second and of p99 against the baseline; `None` without one.
fn picture(report: &ChunkLengthReport<'_>, id: &str) -> Option<String> {
    let baseline = report.baseline?.to_string();
    let mut pictures = String::new();
    for condition in [Condition::Alone, Condition::Beside] {
        for (kind, name) in [
            (ReadFigure::ReadsPerS, "reads/s"),
            (ReadFigure::P99Ns, "p99"),
        ] {
            let bars: Vec<Bar> = report
                .variants
                .iter()
                .enumerate()
                .filter_map(|(at, variant)| bar(at, variant, variant.under(condition), kind))
                .collect();
            if bars.is_empty() {
                continue;
            }
            let what = format!("{name} {}", condition.name());
            let word = match (condition, kind) {
                (Condition::Alone, ReadFigure::ReadsPerS) => "ar",
                (Condition::Alone, _) => "ap",
                (Condition::Beside, ReadFigure::ReadsPerS) => "br",
                (Condition::Beside, _) => "bp",
            };
            pictures.push_str(&draw(&bars, (&what, &baseline), &format!("{id}-{word}")));
        }
    }
    if pictures.is_empty() {
        return None;
    }
    Some(figure(
        &format!("<div class=\"grid\">\n{pictures}</div>\n"),
        "The most reads per second, and p99 at the common rate, as a multiple of what they are in the \
         variant that others are compared with, within each repeat; logarithmic. Bars begin at 1, no \
         difference; the thin line with ends is the 95% bootstrap interval over repeats. Where that crosses 1, the \
         repeats do not show a difference. Right is better for reads per second, left for p99.",
    ))
}

fn bar(
    at: usize,
    variant: &VariantReport<'_>,
    report: &ConditionReport,
    figure: ReadFigure,
) -> Option<Bar> {
    Some(Bar {
        name: variant.record.variant.to_string(),
        stroke: numbered(at),
        ratio: report.ratio(figure)?,
    })
}

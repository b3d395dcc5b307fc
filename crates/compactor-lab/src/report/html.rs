//! A report as one HTML file: pictures, tables, and where they come from.
//!
//! The file is complete. It loads nothing and runs nothing, so that it can be sent and kept; pictures are
//! SVG inside it. It is also well-formed XML. Every text goes through `escaped`. Colours
//! follow the reader's preference for light or dark, and never carry a meaning alone.

use super::table::Table;
use super::{PointReport, Report, place, tables};
use markup::escaped;

mod axis;
pub mod chunk_length;
mod curves;
mod headline;
mod legend;
mod markup;
mod palette;
mod ratio_bars;
mod svg;
mod sweep;
mod timeline;

const STYLE: &str = include_str!("html/style.css");

/// Reports one below the other; several begin with a comparison.
pub fn render(reports: &[Report<'_>]) -> String {
    let mut body = String::new();
    body.push_str("<header><h1>What a compaction does to reads beside it</h1>");
    body.push_str(
        "<p>A bystander reads hot rows at random moments while their table is compacted, once in each \
         way of moving the compaction’s bytes. An arm is named by how the compaction reads / how it \
         writes.</p></header>\n",
    );
    if reports.len() > 1 {
        body.push_str("<section>");
        body.push_str(&table(&tables::side_by_side(reports)));
        body.push_str("</section>\n");
    }
    for (at, report) in reports.iter().enumerate() {
        body.push_str(&section(report, &format!("r{at}")));
    }
    let title = match reports {
        [only] => format!("Interference: {}", only.name),
        _ => "Interference".to_owned(),
    };
    page(&title, &body)
}

/// A whole page.
fn page(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n\
         <meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <link rel=\"icon\" href=\"data:,\"/>\n\
         <title>{}</title>\n<style>\n{}{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        escaped(title),
        palette::style(),
    )
}

fn section(report: &Report<'_>, id: &str) -> String {
    let mut out = format!("<section aria-labelledby=\"{id}\">\n");
    out.push_str(&format!("<h2 id=\"{id}\">{}</h2>\n", escaped(&report.name)));
    out.push_str(&headline::of(report));
    out.push_str(&warnings(
        report.warnings.iter().map(|w| w.text.as_str()),
        "About all numbers",
    ));
    if let Some(picture) = sweep::picture(report, id) {
        out.push_str(&picture);
    }
    for (at, point) in report.points.iter().enumerate() {
        out.push_str(&point_section(point, &format!("{id}p{at}")));
    }
    let device = report.fio_tables();
    if !device.is_empty() {
        out.push_str("<h3>What the device gives by itself</h3>\n");
        out.extend(device.iter().map(table));
    }
    let mut lines = place::experiment(report);
    lines.extend(place::machine(&report.outcome.environment));
    out.push_str(&where_and_how(&lines));
    out.push_str("</section>\n");
    out
}

fn where_and_how(lines: &[(&str, String)]) -> String {
    let items = lines.iter().map(|(name, value)| {
        format!(
            "<div><dt>{}</dt><dd>{}</dd></div>\n",
            escaped(name),
            escaped(value)
        )
    });
    format!(
        "<h3>Where and how</h3>\n<dl>\n{}</dl>\n",
        items.collect::<String>()
    )
}

fn point_section(point: &PointReport<'_>, id: &str) -> String {
    let mut out = format!(
        "<h3>{}</h3>\n<p>{}</p>\n",
        escaped(&place::pressure(point)),
        escaped(&place::data(point))
    );
    out.push_str(&warnings(
        point.doubts.iter().map(|w| w.text.as_str()),
        "About these numbers",
    ));
    let pictures = [
        curves::picture(point, id),
        ratio_bars::picture(point, id),
        timeline::picture(point, id),
    ];
    let mut pictures = pictures.into_iter().flatten();
    let mut shown = tables::of_point(point).into_iter();
    // The figures first, then what shows them.
    out.extend(shown.next().map(|first| table(&first)));
    out.extend(pictures.next());
    out.extend(shown.map(|further| table(&further)));
    out.extend(pictures);
    out
}

fn warnings<'a>(texts: impl Iterator<Item = &'a str>, label: &str) -> String {
    let items: String = texts
        .map(|text| format!("<li>{}</li>\n", escaped(text)))
        .collect();
    if items.is_empty() {
        return items;
    }
    format!(
        "<aside class=\"warnings\" aria-label=\"Warnings\">\n<strong>{}: reasons for doubt</strong>\n\
         <ul>\n{items}</ul>\n</aside>\n",
        escaped(label)
    )
}

fn table(table: &Table) -> String {
    let class = if table.prose { " class=\"prose\"" } else { "" };
    let mut out = format!(
        "<div class=\"wide\" tabindex=\"0\"><table{class}>\n<caption><span>{}</span></caption>\n<thead><tr>",
        escaped(&table.caption)
    );
    for column in &table.columns {
        out.push_str(&format!("<th scope=\"col\">{}</th>", escaped(column)));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            let cell = escaped(cell);
            out.push_str(&match at {
                0 => format!("<th scope=\"row\">{cell}</th>"),
                _ => format!("<td>{cell}</td>"),
            });
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
    out
}

/// A picture with what it shows.
fn figure(pictures: &str, caption: &str) -> String {
    format!(
        "<figure>\n{pictures}<figcaption>{}</figcaption>\n</figure>\n",
        escaped(caption)
    )
}

#[cfg(test)]
mod tests;

//! A report as a document: tables, charts and sentences in sections, whatever experiment they are of.
//!
//! It is shown as text for a terminal, as GitHub's Markdown, or as one HTML file. That file loads nothing
//! and runs nothing, so that it can be sent and kept, and it is well-formed XML.

use std::fmt;

use askama::Template;
use askama::filters::Escaper;

use super::units::NONE;
use crate::text_table::{aligned, aligned_left, wrapped};

/// Names and values.
pub type Facts = Vec<(String, String)>;

/// A report.
#[derive(Clone, Debug, Default, Template)]
#[template(path = "report.html")]
pub struct Document {
    /// Title of the page.
    pub title: String,
    /// Heading and introduction, in HTML only.
    pub heading: &'static str,
    /// A sentence or two on the experiment.
    pub introduction: &'static str,
    /// One for each result, after one that compares them.
    pub sections: Vec<Section>,
}

/// The report of one result.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Heading; may be empty.
    pub name: String,
    /// The result in a sentence or two, in HTML only; may be empty.
    pub headline: String,
    /// Facts on where and how it was measured: at the begin of a text, and at the end of a page.
    pub facts: Facts,
    /// Parts of the section.
    pub blocks: Vec<Block>,
}

/// A part of a section.
#[derive(Clone, Debug)]
pub enum Block {
    /// A heading below that of the section.
    Heading(String),
    /// Sentences.
    Paragraph(String),
    /// Reasons not to trust numbers, after what they are about.
    Caveats(&'static str, Vec<String>),
    /// A table.
    Table(Table),
    /// Pictures and their caption, in HTML only.
    Figure {
        /// SVG elements.
        pictures: String,
        /// Explanation of the pictures.
        caption: &'static str,
    },
}

/// A table of texts. The first cell of a row is its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Explanation of the table, and its units.
    pub caption: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows with a cell for each column.
    pub rows: Vec<Vec<String>>,
    /// Whether the second of two columns is of sentences, and not of numbers.
    pub prose: bool,
}

/// A column of a table: its name, and its cell for a row.
pub type Column<'a, R> = (&'a str, &'a dyn Fn(&R) -> String);

impl Table {
    /// A table with a row for each item.
    pub fn new<R>(
        caption: impl Into<String>,
        items: impl IntoIterator<Item = R>,
        columns: &[Column<'_, R>],
    ) -> Table {
        let row = |item: R| columns.iter().map(|(_, cell)| cell(&item)).collect();
        Table {
            caption: caption.into(),
            columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
            rows: items.into_iter().map(row).collect(),
            prose: false,
        }
    }

    /// A table of names and sentences.
    pub fn prose(
        caption: &str,
        columns: [&str; 2],
        rows: impl IntoIterator<Item = (String, String)>,
    ) -> Table {
        Table {
            caption: caption.to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: Vec::from_iter(rows.into_iter().map(|(name, text)| vec![name, text])),
            prose: true,
        }
    }

    /// The table, unless it has no rows.
    pub fn unless_empty(self) -> Option<Block> {
        (!self.rows.is_empty()).then_some(Block::Table(self))
    }

    /// Lines with aligned columns, after the caption.
    pub fn to_text(&self) -> String {
        let mut out = wrapped("", &self.caption);
        if self.prose {
            let sentences = self.rows.iter().filter_map(|row| match row.as_slice() {
                [name, text] => Some((name, text)),
                _ => None,
            });
            out.push_str(&aligned_left(sentences));
        } else {
            let mut lines = vec![self.columns.clone()];
            lines.extend(self.rows.iter().cloned());
            out.push_str(&aligned(&lines));
        }
        out
    }

    fn to_markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| in_markdown(cell)).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let left = |at| at == 0 || self.prose;
        let ends = (0..self.columns.len()).map(|at| if left(at) { "---" } else { "---:" });
        let ends = ends.collect::<Vec<_>>().join("|");
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!(
            "{}\n\n{}|{ends}|\n{rows}",
            self.caption,
            line(&self.columns)
        )
    }
}

/// The text for a number, or for none.
pub fn cell<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), text)
}

impl Document {
    /// The document for terminals.
    pub fn to_text(&self) -> String {
        // The texts come from a file that anybody may have written: nothing may steer the terminal.
        let steers = |c: char| c.is_control() && c != '\n';
        self.joined(Section::to_text).replace(steers, "\u{fffd}")
    }

    /// The document as Markdown, for a README or an issue.
    pub fn to_markdown(&self) -> String {
        self.joined(Section::to_markdown)
    }

    fn joined(&self, text: fn(&Section) -> String) -> String {
        let sections = self.sections.iter().map(text);
        let sections: Vec<String> = sections
            .map(|s| s.trim_start_matches('\n').to_owned())
            .collect();
        sections.join("\n")
    }

    /// The document as an HTML file.
    pub fn to_html(&self) -> String {
        // Only a writer can fail, and a string does not.
        self.render().unwrap_or_default()
    }
}

impl Section {
    fn to_text(&self) -> String {
        let mut out = match self.name.as_str() {
            "" => String::new(),
            name => format!("{name}\n"),
        };
        let facts = self.facts.iter().map(|(name, value)| (name, value));
        out.push_str(&aligned_left(facts));
        for block in &self.blocks {
            match block {
                Block::Heading(text) => out.push_str(&format!("\n{}", wrapped("", text))),
                Block::Paragraph(text) => out.push_str(&wrapped("  ", text)),
                Block::Caveats(_, texts) => out.extend(texts.iter().map(|t| wrapped("  ! ", t))),
                Block::Table(table) => out.push_str(&format!("\n{}", table.to_text())),
                Block::Figure { .. } => {}
            }
        }
        out
    }

    fn to_markdown(&self) -> String {
        let item = |name: &str, text: &str| format!("- {name}: {}\n", in_markdown(text));
        let mut out = match self.name.as_str() {
            "" => String::new(),
            name => format!("### {}\n\n", in_markdown(name)),
        };
        out.extend(self.facts.iter().map(|(name, value)| item(name, value)));
        for block in &self.blocks {
            let text = match block {
                Block::Heading(text) => format!("#### {}\n", in_markdown(text)),
                Block::Paragraph(text) => format!("{}\n", in_markdown(text)),
                Block::Caveats(_, texts) => {
                    texts.iter().map(|text| item("**Warning**", text)).collect()
                }
                Block::Table(table) => table.to_markdown(),
                Block::Figure { .. } => continue,
            };
            out.push_str(&format!("\n{text}"));
        }
        out
    }
}

/// Returns a text on one line that is no markup.
fn in_markdown(text: &str) -> String {
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

/// Escapes texts in elements and attributes. What is no character of XML, and what would turn the direction
/// of the text around it, becomes a replacement character.
#[derive(Clone, Copy, Debug, Default)]
pub struct Xml;

impl Escaper for Xml {
    fn write_escaped_str<W: fmt::Write>(&self, mut to: W, text: &str) -> fmt::Result {
        text.chars().try_for_each(|c| match c {
            '&' => to.write_str("&amp;"),
            '<' => to.write_str("&lt;"),
            '>' => to.write_str("&gt;"),
            '"' => to.write_str("&quot;"),
            '\'' => to.write_str("&#39;"),
            '\n' | '\t' => to.write_char(' '),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}' => {
                to.write_char('\u{fffd}')
            }
            c if c.is_control() => to.write_char('\u{fffd}'),
            c => to.write_char(c),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_markup() {
        let mut out = String::new();
        Xml.write_escaped_str(&mut out, "<a href=\"x\" b='y'>&\n\u{0}\u{202e}é")
            .unwrap();
        let escaped = "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp; \u{fffd}\u{fffd}é";
        assert_eq!(out, escaped);
    }

    #[test]
    fn the_first_line_has_its_indent() {
        let fact = |name: &str| (name.to_owned(), "1".to_owned());
        let document = Document {
            sections: vec![Section {
                facts: vec![fact("a"), fact("long name")],
                ..Section::default()
            }],
            ..Document::default()
        };
        assert_eq!(document.to_text(), "  a          1\n  long name  1\n");
    }

    #[test]
    fn markdown_is_not_broken_by_a_cell() {
        let name: &dyn Fn(&&str) -> String = &|name| (*name).to_owned();
        let one: &dyn Fn(&&str) -> String = &|_| "1".to_owned();
        let table = Table::new("Two", ["a|b\n<c>"], &[("arm", name), ("n", one)]);
        assert_eq!(
            table.to_markdown(),
            "Two\n\n| arm | n |\n|---|---:|\n| a\\|b \\<c> | 1 |\n"
        );
        assert_eq!(table.rows[0].len(), table.columns.len());
    }
}

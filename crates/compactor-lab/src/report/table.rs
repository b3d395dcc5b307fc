//! A table: what it shows, its columns, its rows. The first cell of a row is its name.

use serde::Serialize;

use super::markdown::escaped;
use crate::text_table::{aligned, aligned_left, wrapped};

/// A table of texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Table {
    /// What it shows, and in which units.
    pub caption: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// As many cells in each as there are columns.
    pub rows: Vec<Vec<String>>,
    /// Whether the second of two columns is of sentences, and not of numbers.
    pub prose: bool,
}

impl Table {
    /// A table without rows.
    pub fn new(caption: impl Into<String>, columns: &[&str]) -> Table {
        Table {
            caption: caption.into(),
            columns: columns.iter().map(|&c| c.to_owned()).collect(),
            rows: Vec::new(),
            prose: false,
        }
    }

    /// As lines with aligned columns, the caption above.
    pub fn to_text(&self) -> String {
        let mut out = wrapped("", &self.caption);
        if self.prose {
            let sentences = self.rows.iter().filter_map(|row| match row.as_slice() {
                [name, text] => Some((name.as_str(), text.clone())),
                _ => None,
            });
            out.push_str(&aligned_left(&sentences.collect::<Vec<_>>()));
        } else {
            let mut lines = vec![self.columns.clone()];
            lines.extend(self.rows.iter().cloned());
            out.push_str(&aligned(&lines));
        }
        out
    }

    /// As a table of GitHub's Markdown, the caption above.
    pub fn to_markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let mut out = format!("{}\n\n", self.caption);
        out.push_str(&line(&self.columns));
        let left = |at| at == 0 || self.prose;
        let ends = (0..self.columns.len()).map(|at| if left(at) { "---" } else { "---:" });
        out.push_str(&format!("|{}|\n", ends.collect::<Vec<_>>().join("|")));
        for row in &self.rows {
            out.push_str(&line(row));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_not_broken_by_a_cell() {
        let mut table = Table::new("Two", &["arm", "n"]);
        table.rows.push(vec!["a|b\n<c>".to_owned(), "1".to_owned()]);
        assert_eq!(
            table.to_markdown(),
            "Two\n\n| arm | n |\n|---|---:|\n| a\\|b \\<c> | 1 |\n"
        );
        assert_eq!(table.rows[0].len(), table.columns.len());
    }
}

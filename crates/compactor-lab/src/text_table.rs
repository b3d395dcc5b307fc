//! Numbers and tables for people.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

/// A number with separators between thousands.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number, or `unknown`.
pub fn known(number: Option<u64>) -> String {
    number.map_or_else(|| "unknown".to_owned(), count)
}

/// A number of things: `1 row`, `2 rows`.
pub fn counted(number: u64, noun: &str) -> String {
    format!(
        "{} {noun}{}",
        count(number),
        if number == 1 { "" } else { "s" }
    )
}

/// Lines of cells in columns: the first to the left, the others to the right.
pub fn aligned(rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).add_rows(rows);
    table.discover_columns();
    for (column, at) in table.column_iter_mut().zip(0..) {
        let (padding, alignment) = match at {
            0 => (2, CellAlignment::Left),
            _ => (3, CellAlignment::Right),
        };
        column
            .set_padding((padding, 0))
            .set_cell_alignment(alignment);
    }
    format!("{}\n", table.trim_fmt())
}

/// Lines of a name and a value; values are broken between words and begin in one column.
pub fn aligned_left<'a>(lines: impl Iterator<Item = (&'a String, &'a String)> + Clone) -> String {
    let width = lines.clone().map(|(name, _)| name.chars().count()).max();
    let width = width.unwrap_or(0);
    let line = |(name, value): (&String, &String)| wrapped(&format!("  {name:width$}  "), value);
    lines.map(line).collect()
}

/// Breaks a text between words into lines of 100 columns; `first` precedes it, and as many blanks each
/// further line.
pub fn wrapped(first: &str, text: &str) -> String {
    let indent = " ".repeat(first.chars().count());
    let options = Options::new(100)
        .initial_indent(first)
        .subsequent_indent(&indent)
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit);
    textwrap::fill(text, options) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(count(number), text);
        }
        assert_eq!(
            (counted(1, "row"), counted(0, "row")),
            ("1 row".to_owned(), "0 rows".to_owned())
        );
    }

    #[test]
    fn columns_line_up() {
        let rows = [
            vec!["a".to_owned(), "12".to_owned()],
            vec!["bcd".to_owned(), "3".to_owned()],
        ];
        assert_eq!(aligned(&rows), "  a     12\n  bcd    3\n");
    }

    #[test]
    fn values_line_up() {
        let lines = [("a", "1"), ("bcd", "2 3")].map(|(name, value)| (name.into(), value.into()));
        let lines = lines.iter().map(|(name, value)| (name, value));
        assert_eq!(aligned_left(lines), "  a    1\n  bcd  2 3\n");
    }

    #[test]
    fn long_texts_break_between_words() {
        assert_eq!(wrapped("* ", "a b"), "* a b\n");
        let word = "x".repeat(49);
        let text = [word.as_str(); 3].join(" ");
        assert_eq!(
            wrapped("* ", &text),
            format!("* {word}\n  {word}\n  {word}\n")
        );
        let text = format!("{} y z", "x".repeat(96));
        assert_eq!(
            wrapped("* ", &text),
            format!("* {} y\n  z\n", "x".repeat(96))
        );
        let long = "x".repeat(120);
        assert_eq!(wrapped("* ", &long), format!("* {long}\n"));
    }
}

//! Warnings and errors in a daemon's log.

use std::fs;
use std::path::Path;

use anyhow::Result;

/// Complaints unrelated to the content of our files; an entry must contain all texts of one of these.
///
/// SSTableImporter verifies an SSTable where it is and then moves it; the reader that verified it is closed later, and
/// SSTableReader.GlobalTidy looks for its files under their old names. 3.11 warns of experimental features, and that Java 8
/// has a class that later ones do not.
const EXPECTED: [&[&str]; 4] = [
    &["Could not skip cache", "NoSuchFileException", "/import-"],
    &["SASI indexes are experimental"],
    &["Materialized views are experimental"],
    &["Cannot initialize un-mmaper", "sun.misc.Cleaner"],
];

/// Warnings and errors, each with the lines that belong to it.
#[derive(Debug)]
pub(crate) struct Journal {
    entries: Vec<String>,
}

impl Journal {
    pub(crate) fn read(log: &Path) -> Result<Self> {
        let text = fs::read_to_string(log)?;
        let mut entries: Vec<String> = Vec::new();
        for line in text.lines() {
            let is_entry = ["INFO ", "WARN ", "ERROR", "DEBUG"]
                .iter()
                .any(|level| line.starts_with(level));
            match entries.last_mut() {
                // Lines of a stack trace.
                Some(last) if !is_entry => {
                    last.push('\n');
                    last.push_str(line);
                }
                _ => entries.push(line.to_owned()),
            }
        }
        Ok(Self { entries })
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Errors, and warnings that name the keyspace or an SSTable, after the first `seen` entries.
    pub(crate) fn complaints(&self, seen: usize, keyspace: &str) -> Vec<&str> {
        let is_complaint = |entry: &&String| {
            let is_ours = has_word(entry, keyspace) || entry.contains("-Data.db");
            let is_expected = EXPECTED
                .iter()
                .any(|texts| texts.iter().all(|text| entry.contains(text)));
            (entry.starts_with("ERROR") || (entry.starts_with("WARN") && is_ours)) && !is_expected
        };
        let new = self.entries.iter().skip(seen);
        new.filter(is_complaint).map(String::as_str).collect()
    }
}

/// Whether a text has a word that is not part of a longer one, as "rig" is of "Origin".
fn has_word(text: &str, word: &str) -> bool {
    let is_end = |c: Option<char>| c.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_');
    text.match_indices(word).any(|(at, _)| {
        is_end(text[..at].chars().next_back()) && is_end(text[at + word.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::has_word;

    #[test]
    fn keyspace_matches_whole_words_only() {
        assert!(has_word("compacting rig.kv", "rig"));
        assert!(has_word("/data/rig/kv-1", "rig"));
        assert!(!has_word("Origin of 2 sstables is unknown", "rig"));
        assert!(!has_word("Trigger directory doesn't exist", "rig"));
        assert!(has_word("Origin of rig", "rig"));
    }
}

//! What a daemon complains of in its log.

use std::fs;
use std::path::Path;

use anyhow::Result;

/// Complaints that every daemon of the rig has, with nothing of ours in it.
const EXPECTED: [&str; 0] = [];

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

    /// Errors, and warnings that name something of the table's, after the first `seen` entries.
    pub(crate) fn complaints(&self, seen: usize, keyspace: &str) -> Vec<&str> {
        let is_complaint = |entry: &&String| {
            let is_ours = entry.contains(keyspace) || entry.contains("-Data.db");
            let is_expected = EXPECTED.iter().any(|text| entry.contains(text));
            (entry.starts_with("ERROR") || (entry.starts_with("WARN") && is_ours)) && !is_expected
        };
        let new = self.entries.iter().skip(seen);
        new.filter(is_complaint).map(String::as_str).collect()
    }
}

//! Comparison of our `metadata` with `sstablemetadata`. Both print times as text, in different forms: only their presence
//! is compared, and the numbers that follow.

use crate::compare;

/// The first line in which they differ.
pub(super) fn difference(expected: &str, found: &str) -> Option<String> {
    compare::lines(&comparable(expected), &comparable(found))
}

/// The last line that both have.
const LAST: &str = "IsTransient";

fn comparable(text: &str) -> String {
    let mut lines = Vec::new();
    let mut section = "";
    for line in text.lines() {
        if let Some((label, _)) = line.split_once(": ").or(line.split_once(':'))
            && !line.starts_with(' ')
        {
            section = label;
        }
        match section {
            // The path of the SSTable, and sums that overflow only in Cassandra.
            "SSTable" | "Table" | "Duration" => continue,
            // Cassandra prints a negative number beyond 2038.
            "EncodingStats minLocalDeletionTime" => continue,
            // `sstablemetadata` adds exact times to buckets again, and prints the buckets.
            "Estimated tombstone drop times" if line.starts_with(' ') && !line.contains('|') => {
                continue;
            }
            // Cassandra prints columns in the order of a hash map.
            "StaticColumns" | "RegularColumns" => {
                let (label, columns) = line.split_once(':').unwrap_or((line, ""));
                let mut columns: Vec<&str> = columns.trim().split(", ").collect();
                columns.sort_unstable();
                lines.push(format!("{label}: {}", columns.join(", ")));
            }
            // Neither bound has values.
            "Covered clusterings" if line.ends_with(": [, ]") => {
                lines.push("Covered clusterings: ALL".to_owned());
            }
            // Something was deleted at second 0 of the epoch.
            "SSTable min local deletion time" if line.ends_with("no tombstones (0)") => {
                lines.push(words(&line.replace("no tombstones", "--")));
            }
            _ => lines.push(words(line)),
        }
        if section == LAST {
            break;
        }
    }
    lines.join("\n")
}

/// The words of a line, without separators, in our spelling.
fn words(line: &str) -> String {
    let line = line.replace('(', " ( ").replace(')', " ) ");
    let mut words = line.split_whitespace();
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        if word == "gc_grace_seconds" {
            // Our output has the grace that was used.
            found.pop();
            break;
        }
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if word.split('/').count() == 3 && word.split('/').all(is_digits) {
            found.push("MOMENT".to_owned());
            // The time of day.
            let _ = words.next();
        } else if word.starts_with("1970-01-01T00:00:00Z") {
            // Cassandra prints no date for second 0.
            found.push("--".to_owned());
        } else if word.ends_with('Z') && word.contains('T') && word.split(':').count() == 3 {
            found.push("MOMENT".to_owned());
        } else {
            found.push(spelt(word));
        }
    }
    // Sizes below a KiB and second 0 have no readable form.
    for (word, before) in [("B", 2), ("--", 1)] {
        if let Some(at) = found.iter().position(|found| found == word)
            && found.get(at + 1).is_some_and(|next| next == ")")
        {
            found.drain(at.saturating_sub(before)..=at + 1);
        }
    }
    found.join(" ")
}

fn spelt(word: &str) -> String {
    let package = "org.apache.cassandra.io.compress.";
    match word {
        "kB" => "KiB".to_owned(),
        "MB" => "MiB".to_owned(),
        _ if word.contains('.') && word.parse::<f64>().is_ok() => {
            word.parse::<f64>().unwrap_or_default().to_string()
        }
        _ => word.strip_prefix(package).unwrap_or(word).to_owned(),
    }
}

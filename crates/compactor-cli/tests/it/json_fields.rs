//! The guide's chapter on JSON names every field of the documents, and no other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    compactor, copy_files, data_files, flip_middle, generated, stderr, words, words_and,
};

const CHAPTER: &str = include_str!("../../docs/json.md");
/// Title of the section of parts that several documents have.
const SHARED: &str = "Parts of several documents";

/// Sections by title; the text before the first has none.
fn sections() -> BTreeMap<&'static str, &'static str> {
    let parts = CHAPTER.split("\n## ").enumerate();
    let section = |(number, text): (usize, &'static str)| match number {
        0 => ("", text),
        _ => text.split_once('\n').unwrap(),
    };
    parts.map(section).collect()
}

/// Words in backquotes.
fn quoted(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Words in backquotes in the first column of tables.
fn fields(section: &str) -> BTreeSet<&str> {
    let rows = section.lines().filter_map(|line| line.strip_prefix("| "));
    rows.filter_map(|row| row.split_once(" |"))
        .flat_map(|(first, _)| quoted(first))
        .collect()
}

fn collect_keys(value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                keys.insert(key.clone());
                collect_keys(member, keys);
            }
        }
        Value::Array(elements) => {
            for element in elements {
                collect_keys(element, keys);
            }
        }
        _ => {}
    }
}

/// Keys of the documents that command lines print, by section.
fn printed(directory: &Path) -> BTreeMap<&'static str, BTreeSet<String>> {
    let table = generated(
        directory,
        &words("--sstables 4 --size 64KiB --shape timeseries"),
    );
    let damaged = directory.join("damaged");
    copy_files(&table, &damaged);
    flip_middle(&data_files(&damaged)[0]);
    let table = table.to_str().unwrap();
    let lines: [(&str, &str, &[&str]); 15] = [
        ("generate", "generate --size 64KiB --output more", &[]),
        ("merge", "merge --strip-ttl --output a", &[table]),
        ("swap", "swap a --inputs-to i --dry-run --into", &[table]),
        ("merge", "merge --dry-run --output b", &[table]),
        ("", "merge damaged --output d", &[]),
        (
            "compact",
            "compact --strip-ttl --strategy size-tiered --output e",
            &[table],
        ),
        (
            "compact",
            "compact --dry-run --strategy size-tiered --output g",
            &[table],
        ),
        ("plan", "plan damaged --strategy size-tiered", &[]),
        (
            "upgrade and split",
            "upgrade damaged --sstable-version da --strip-ttl --output h",
            &[],
        ),
        (
            "upgrade and split",
            "upgrade damaged --sstable-version da --dry-run --output i",
            &[],
        ),
        ("upgrade and split", "split damaged --output j", &[]),
        (
            "upgrade and split",
            "split damaged --dry-run --size 16KiB --output k",
            &[],
        ),
        ("verify", "verify damaged", &[]),
        ("scrub", "scrub damaged --output l", &[]),
        ("doctor", "doctor", &[]),
    ];
    let mut printed: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for (section, line, more) in lines {
        let out = compactor(
            directory,
            &[&words(line), more, &["--format", "json"]].concat(),
        );
        let document: Value = serde_json::from_slice(&out.stdout)
            .unwrap_or_else(|error| panic!("{line:?}: {error}: {out:?}"));
        assert_eq!(
            section.is_empty(),
            document.get("error").is_some(),
            "{line:?}: {document}"
        );
        // That of a swap has a state.
        if line.contains("--dry-run") && section != "swap" {
            assert_eq!(document["dry_run"], true, "{line:?}: {document}");
        }
        collect_keys(&document, printed.entry(section).or_default());
    }
    printed
}

#[test]
fn the_guide_names_every_field() {
    let temp = TempDir::new().unwrap();
    let (sections, printed) = (sections(), printed(temp.path()));
    let mut problems = Vec::new();
    for (name, keys) in &printed {
        let section = sections[name];
        let known = &quoted(section) | &quoted(sections[SHARED]);
        let unnamed = keys.iter().filter(|key| !known.contains(key.as_str()));
        problems.extend(unnamed.map(|key| format!("{name:?} has {key}, the chapter does not")));
        let unknown = fields(section)
            .into_iter()
            .filter(|field| !keys.contains(*field));
        problems.extend(unknown.map(|field| format!("{name:?} has no {field}")));
    }
    let all: BTreeSet<&String> = printed.values().flatten().collect();
    let unknown = fields(sections[SHARED]).into_iter();
    problems.extend(
        unknown
            .filter(|field| !all.iter().any(|key| key == field))
            .map(|field| format!("no document has {field}")),
    );
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!(printed.len() + 2, sections.len(), "a section is not tested");
}

#[test]
fn the_guide_names_every_field_of_progress() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &words("--sstables 1 --size 3MiB"));
    // Slow enough for a line.
    let options = "merge --progress json --throughput 1MiB --output out";
    let out = compactor(temp.path(), &words_and(options, &[table.to_str().unwrap()]));
    let stderr = stderr(&out);
    let lines = stderr.lines().filter(|line| line.starts_with('{'));
    let mut keys = BTreeSet::new();
    for line in lines {
        collect_keys(&serde_json::from_str(line).unwrap(), &mut keys);
    }
    let expected = [
        "elapsed_s",
        "partitions",
        "read_uncompressed_bytes",
        "rows",
        "total_uncompressed_bytes",
    ];
    assert!(keys.iter().eq(&expected), "{stderr}");
    let known = quoted(sections()[""]);
    assert!(expected.iter().all(|key| known.contains(key)));
}

//! Folders of the engine import in one direction, and no files import in a cycle.
//!
//! A file imports another if its code contains a path to it: from the crate, through `super`, or through a
//! file below it. `mod` is not an import, so a file below another may extend what that one defines
//! (`cursor/checks.rs` extends `Cursor`), as long as the latter uses nothing of it. Tests are ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Each imports only from itself and those before it.
const FOLDERS: [&str; 7] = ["read", "input", "row", "publish", "write", "merge", "job"];

/// Files by their paths without `.rs`, with their code, or with the files they import.
type Sources = BTreeMap<String, String>;
type Imports = BTreeMap<String, BTreeSet<String>>;

fn sources(directory: &Path, path: &str, found: &mut Sources) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            sources(&entry.path(), &format!("{path}{name}/"), found);
        } else if let Some(name) = name.strip_suffix(".rs")
            && !["lib", "mod", "tests"].contains(&name)
        {
            let text = fs::read_to_string(entry.path()).unwrap();
            found.insert(format!("{path}{name}"), code(&text));
        }
    }
}

/// Code without comments and tests, which come last.
fn code(text: &str) -> String {
    let lines = text.lines().take_while(|line| *line != "#[cfg(test)]");
    let lines = lines.filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

fn imports_of(file: &str, code: &str, sources: &Sources) -> BTreeSet<String> {
    for group in ["crate::{", "super::{"] {
        for after in code.split(group).skip(1) {
            let inside = after.split('}').next().unwrap_or_default();
            assert!(
                !inside.contains("::"),
                "{file}.rs: one import for each file, not {group}{inside}"
            );
        }
    }
    let is_of_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let paths = code.split(|c| !is_of_path(c));
    // Without `pub(super)`.
    let paths = paths.filter(|path| path.contains("::"));
    let named = paths.filter_map(|path| {
        let mut segments = path.split("::").peekable();
        let mut at: Vec<&str> = file.split('/').collect();
        match *segments.peek()? {
            "crate" => {
                segments.next();
                at.clear();
            }
            "super" => {
                while segments.next_if_eq(&"super").is_some() {
                    at.pop();
                }
            }
            first if sources.contains_key(&format!("{file}/{first}")) => {}
            _ => return None,
        }
        at.extend(segments);
        // The rest of the path is within the file.
        let mut parts = (1..=at.len()).rev().map(|len| at[..len].join("/"));
        let named = parts.find(|part| sources.contains_key(part));
        let is_of_folder = FOLDERS.contains(&at[0]);
        assert!(
            named.is_some() || !is_of_folder,
            "{file}.rs: {path} names no file"
        );
        named
    });
    named.filter(|named| named != file).collect()
}

fn imports() -> Imports {
    let mut found = Sources::new();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    sources(&directory, "", &mut found);
    let of = |(file, code): (&String, &String)| (file.clone(), imports_of(file, code, &found));
    found.iter().map(of).collect()
}

#[test]
fn folders_import_one_way() {
    let place = |file: &str| match file {
        "error" => 0,
        _ => {
            let folder = file.split('/').next();
            let place = FOLDERS.iter().position(|known| Some(*known) == folder);
            1 + place.unwrap_or_else(|| panic!("{file} is in no folder of the list"))
        }
    };
    for (file, imported) in imports() {
        for other in imported {
            assert!(
                place(&other) <= place(&file),
                "{file}.rs imports from {other}.rs, against the direction of {FOLDERS:?}"
            );
        }
    }
}

#[test]
fn no_files_import_in_a_cycle() {
    let mut left = imports();
    assert!(left.len() > 50, "{}", left.len());
    // A file that imports none of the remaining files, or is imported by none of them, is not in a cycle.
    let in_none = |left: &Imports| {
        let is_free = |(file, imported): &(&String, &BTreeSet<String>)| {
            let mut others = left.values();
            imported.iter().all(|other| !left.contains_key(other))
                || !others.any(|imported| imported.contains(*file))
        };
        left.iter().find(is_free).map(|(file, _)| file.clone())
    };
    while let Some(file) = in_none(&left) {
        left.remove(&file);
    }
    assert!(left.is_empty(), "in a circle, or between two: {left:#?}");
}

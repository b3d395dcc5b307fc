//! Notes on secondary indexes, whose components and SSTables the node makes itself.

use std::fs;

use compactor_sstable::Component;
use compactor_sstable::descriptor::Descriptor;

use crate::support::{compactor, data_files, generated, json};

/// A table may have tens of thousands of SSTables with indexes.
#[test]
fn components_of_indexes_are_noted_once_for_all_inputs() {
    let temp = tempfile::tempdir().unwrap();
    let table = generated(temp.path(), &["--rows", "300"]);
    for data in data_files(&table) {
        let descriptor = Descriptor::parse(&data).unwrap().descriptor;
        let toc = descriptor.path(Component::Toc);
        let listed = fs::read_to_string(&toc).unwrap();
        fs::write(&toc, listed + "SAI+aa+by_v+Meta.db\n").unwrap();
    }
    let merge = ["merge", table.to_str().unwrap(), "--output", "out"];
    let merged = compactor(temp.path(), &[&merge[..], &["--format", "json"]].concat());
    let report = json(&merged);
    let warnings = report["warnings"].as_array().unwrap().iter();
    let warnings = warnings.map(|warning| warning.as_str().unwrap());
    let of_indexes: Vec<&str> = warnings
        .filter(|warning| warning.contains("SAI+aa+by_v+Meta.db"))
        .collect();
    // They are not there, and the output has none.
    assert_eq!(of_indexes.len(), 2, "{of_indexes:#?}");
    for note in of_indexes {
        assert!(note.contains("-big-Data.db and 2 more inputs: "), "{note}");
    }
}

#[test]
fn a_command_without_outputs_speaks_of_none() {
    let temp = tempfile::tempdir().unwrap();
    let table = generated(temp.path(), &["--rows", "30"]);
    let index = table.join(".by_v");
    fs::create_dir(&index).unwrap();
    fs::write(index.join("oa-1-big-Data.db"), "x").unwrap();
    let out = compactor(temp.path(), &["metadata", table.to_str().unwrap()]);
    let note = String::from_utf8_lossy(&out.stderr);
    assert!(
        note.contains("left alone: secondary index \"by_v\""),
        "{note}"
    );
    assert!(!note.contains("output"), "{note}");
}

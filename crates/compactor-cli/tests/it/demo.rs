//! `compactor demo` from the command line.

use std::path::Path;
use std::process::Output;

use compactor_testkit::machine::disk_directory;
use tempfile::TempDir;

use crate::support::{assert_ends, compactor, is_empty, json, printed, words_and};

fn demo(directory: &Path, arguments: &[&str]) -> Output {
    compactor(directory, &words_and("demo", arguments))
}

#[test]
fn a_direct_merge_leaves_no_pages_resident_a_buffered_one_all() {
    // The current directory is on a disk; /tmp may be a tmpfs.
    let temp = disk_directory();
    let output = demo(temp.path(), &["--size", "3MiB", "--format", "json"]);
    let found = json(&output);
    assert_eq!(found["outputs_are_identical"], true);
    assert_eq!(found["verified"]["damages"], 0);
    let rows = found["direct"]["rows_written"].as_u64().unwrap();
    assert!(rows > 1000 && found["verified"]["rows"] == rows, "{rows}");
    assert_eq!(found["direct"]["merge_counts"].as_array().unwrap().len(), 3);
    let pages = |arm: &str, what: &str| found[arm]["page_cache"][what].as_u64().unwrap();
    let place = &found["place"];
    if place["direct"] == true {
        assert_eq!(found["direct"]["io"]["read_mode"], "direct");
        assert_eq!(found["direct"]["io"]["write_mode"], "direct");
        assert_eq!(pages("direct", "input_pages_resident"), 0);
        assert_eq!(pages("direct", "output_pages_resident"), 0);
        // Only the pages read while opening: the inputs had been evicted.
        let before = pages("buffered", "input_pages_resident_before");
        assert!(before < pages("buffered", "input_pages") / 4, "{before}");
    } else {
        eprintln!("direct I/O does not work here: {place}");
    }
    assert_eq!(
        pages("buffered", "output_pages_resident"),
        pages("buffered", "output_pages")
    );
    assert!(pages("buffered", "input_pages_resident") > 0);
    // The demo removed its files.
    assert!(is_empty(temp.path()));
}

#[test]
fn the_text_shows_both_side_by_side() {
    let temp = disk_directory();
    let directory = temp.path().to_str().unwrap();
    let output = demo(temp.path(), &["--size", "1MiB", "--directory", directory]);
    let text = printed(&output);
    for part in [
        "buffered",
        "time ",
        "output pages left",
        "intact",
        "byte for byte",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_directory_that_cannot_be_used_is_refused() {
    let temp = TempDir::new().unwrap();
    for (arguments, message) in [
        (
            ["--directory", "missing"],
            "missing: No such file or directory",
        ),
        (
            ["--directory", "/proc"],
            "/proc: no file can be created in it",
        ),
        (["--size", "1KiB"], "expected 1MiB to 1TiB"),
    ] {
        let output = demo(temp.path(), &arguments);
        assert_ends(&output, 2, message);
    }
}

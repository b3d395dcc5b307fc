//! `compactor demo` as a person tries it.

use std::process::Command;

use compactor_testkit::machine::disk_directory;
use serde_json::Value;
use tempfile::TempDir;

fn demo(directory: &std::path::Path, arguments: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_compactor"))
        .arg("demo")
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap()
}

#[test]
fn a_direct_merge_leaves_no_pages_a_buffered_one_all_of_them() {
    // The current directory is on a disk where the sources are built, which /tmp need not be.
    let temp = disk_directory();
    let output = demo(temp.path(), &["--size", "3MiB", "--format", "json"]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
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
        // What opening reads, and no more: the inputs had been dropped.
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
    // It cleaned up.
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 0);
}

#[test]
fn the_text_shows_both_side_by_side() {
    let temp = disk_directory();
    let directory = temp.path().to_str().unwrap();
    let output = demo(temp.path(), &["--size", "1MiB", "--directory", directory]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
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
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(message), "{stderr}");
    }
}

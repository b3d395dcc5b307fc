//! `compactor lab chunk-length` from the command line.

use std::path::Path;
use std::process::Command;

use compactor_testkit::machine::disk_directory;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::at_work::AtWork;
use crate::support::{assert_done, assert_ends, is_empty, stderr, stdout, words};

/// Small enough for a test, and too short to mean anything.
const SMALL: &str = "--chunk-lengths 4KiB,64KiB --compressors lz4 --data-size 8MiB --hot-set 1MiB \
    --reader-threads 2 --repeat 1 --warm 0s --measure 1s --memory-limit none";

fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_compactor"))
}

fn chunk_length(directory: &Path) -> Command {
    let mut command = command();
    command.args(["lab", "chunk-length", "--quick", "--directory"]);
    command.arg(directory).args(words(SMALL));
    command
}

#[test]
fn a_comparison_ends_with_a_table_the_json_and_a_page_and_is_shown_again() {
    let (directory, results) = (disk_directory(), TempDir::new().unwrap());
    let json = results.path().join("chunks.json");
    let html = results.path().join("chunks.html");
    let output = chunk_length(directory.path())
        .arg("--json")
        .arg(&json)
        .arg("--html")
        .arg(&html)
        .output()
        .unwrap();
    let found: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(found["experiment"], "chunk_length", "{}", stderr(&output));
    assert_eq!(found["options"]["command"][2], "chunk-length");
    let variant = &found["variants"][0];
    for name in [
        "ratio",
        "chunk_offset_bytes",
        "chunk_offset_bytes_per_gib",
        "hot_bytes",
    ] {
        assert!(variant[name].as_f64().unwrap() > 0.0, "{name}: {variant}");
    }
    assert_eq!(variant["variant"]["chunk_length_bytes"], 4096);
    let runs = found["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4);
    let reading = &runs[3]["compacting"]["at_rate"];
    for name in ["decompressed_bytes", "reader_cpu_s", "compacted_bytes"] {
        assert!(reading[name].is_number(), "{name}: {reading}");
    }
    for name in ["p50_ns", "p99_ns", "p999_ns", "achieved_per_s"] {
        assert!(reading["latency"][name].is_number(), "{name}: {reading}");
    }
    assert!(found["rate_per_s"].as_f64().unwrap() > 0.0);
    // A machine that is too busy to measure on is named in a caveat.
    let counts = |run: &&Value| run["invalid"].as_array().unwrap().is_empty();
    let counted = runs.iter().filter(|run| run["warm_up"] == false);
    let all = counted.clone().filter(counts).count() == 2;
    assert_eq!(output.status.success(), all, "{}", stderr(&output));
    let text = stdout(&output);
    for word in [
        "reads/s",
        "lz4 64 KiB",
        "per GiB",
        "62,000 / 44,000",
        "13.0 / 24.0 ms",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let messages = stderr(&output);
    for word in [
        "are needed in",
        "run 1 of 4: ",
        "left for all",
        "are compared at",
    ] {
        assert!(messages.contains(word), "{word}: {messages}");
    }
    assert!(is_empty(directory.path()));
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("lz4 64 KiB"));

    let report = |arguments: &[&str]| {
        let mut command = command();
        command.args(["lab", "report"]).arg(&json).args(arguments);
        command.output().unwrap()
    };
    let again = report(&["--html", html.to_str().unwrap()]);
    assert_done(&again);
    // The same except for its name.
    let after_name = |text: &str| text.split_once('\n').unwrap().1.to_owned();
    assert_eq!(after_name(&stdout(&again)), after_name(&text));
    let markdown = stdout(&report(&["--format", "markdown"]));
    assert!(markdown.contains("| lz4 64 KiB |"), "{markdown}");
    let figures: Value = serde_json::from_str(&stdout(&report(&["--format", "json"]))).unwrap();
    assert_eq!(
        figures[0]["points"][0]["variants"][0]["variant"]["compressor"],
        "lz4"
    );
    assert_eq!(
        figures[0]["points"][0]["published"][0]["figure"],
        "reads_per_s"
    );
    let other = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../compactor-lab/tests/data/outcome.json"
    );
    let both = report(&[other]);
    assert_ends(&both, 2, "two experiments");
}

#[test]
fn an_interrupt_exits_with_130_and_leaves_nothing() {
    // Interrupted while writing, and while reading during a compaction.
    for (beginning, repeats) in [("at most", "1"), ("run 2", "50")] {
        let directory = disk_directory();
        let mut command = chunk_length(directory.path());
        command.args(["--warm-up", repeats]);
        AtWork::since(&mut command, beginning).leaves_nothing("INT", directory.path());
    }
}

#[test]
fn invalid_options_are_refused() {
    let directory = disk_directory();
    for (options, reason) in [
        ("--chunk-lengths 5000", "powers of two"),
        ("--chunk-lengths 128MiB", "expected"),
        ("--compressors gzip", "is no compressor"),
        ("--compressors lz4,lz4", "named twice"),
        ("--compaction auto/direct", "name the mode"),
        ("--warm-up 0", "--rate"),
        (
            "--backend uring --compaction dontcache/direct",
            "RWF_DONTCACHE",
        ),
    ] {
        let output = command()
            .args(["lab", "chunk-length", "--quick", "--directory"])
            .arg(directory.path())
            .args(words(options))
            .output()
            .unwrap();
        assert_ends(&output, 2, reason);
    }
    assert!(is_empty(directory.path()));
}

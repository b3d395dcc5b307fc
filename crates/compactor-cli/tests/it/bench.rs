//! `compactor bench` as a user runs it. No test asserts a time.

use std::path::Path;
use std::process::Command;

use compactor_testkit::machine::disk_directory;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::at_work::AtWork;
use crate::support::{assert_done, assert_ends, generated, is_empty, stderr, words, words_and};

fn bench(directory: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_compactor"));
    command.args(["bench", "--directory"]).arg(directory);
    command.args(["--size", "2MiB", "--repeat", "2"]);
    command.args(options);
    command
}

#[test]
fn all_arms_alternate_and_write_identical_bytes() {
    let (directory, results) = (disk_directory(), TempDir::new().unwrap());
    let json = results.path().join("bench.json");
    let options = words_and(
        "--shape wide --read-io buffered,dontneed --write-io buffered,trickle --format markdown",
        &["--json", json.to_str().unwrap()],
    );
    let output = bench(directory.path(), &options).output().unwrap();
    assert_done(&output);
    let found: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let arms = found["arms"].as_array().unwrap();
    let names: Vec<&str> = arms.iter().map(|a| a["name"].as_str().unwrap()).collect();
    let expected = [
        "merge buffered/buffered",
        "merge dontneed/trickle",
        "copy buffered/buffered",
        "copy dontneed/trickle",
        "codec",
    ];
    assert_eq!(names, expected);
    let mut orders = Vec::new();
    for arm in arms {
        let runs = arm["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 3, "two repeats and a warm-up");
        for run in runs {
            assert_eq!(run["warnings"].as_array().unwrap().len(), 0, "{run}");
            assert!(run["wall_s"].as_f64().unwrap() > 0.0);
            orders.push(run["order"].as_u64().unwrap());
        }
        let used = &runs[0]["io"];
        assert_eq!(*used, arm["io"], "{}", arm["name"]);
    }
    orders.sort_unstable();
    assert_eq!(orders, (0..15).collect::<Vec<u64>>());
    let (rows, crc) = (&found["output"]["rows"], &found["output"]["crc32"]);
    assert!(rows.as_u64().unwrap() > 1000 && crc.as_u64().is_some());
    assert_eq!(found["figures"].as_array().unwrap().len(), 5);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("| merge dontneed/trickle | "), "{text}");
    assert_ends(&output, 0, "MiB will be in");
    assert!(is_empty(directory.path()));
}

#[test]
fn compactions_write_identical_bytes_at_any_concurrency() {
    let (directory, results) = (disk_directory(), TempDir::new().unwrap());
    let json = results.path().join("bench.json");
    let options = words_and(
        "--sstables 40 --arms compact --concurrent-compactors 1,3 --read-io buffered --write-io buffered --json",
        &[json.to_str().unwrap()],
    );
    let output = bench(directory.path(), &options).output().unwrap();
    assert_done(&output);
    let found: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let arms = found["arms"].as_array().unwrap();
    let compactors: Vec<_> = arms.iter().map(|a| a["compactors"].as_u64()).collect();
    assert_eq!(compactors, [Some(1), Some(3)]);
    for arm in arms {
        let name = arm["name"].as_str().unwrap();
        assert!(
            name.starts_with("compact ") && name.ends_with(" at a time"),
            "{name}"
        );
        let runs = arm["runs"].as_array().unwrap();
        let warnings = runs
            .iter()
            .map(|run| run["warnings"].as_array().unwrap().len());
        assert_eq!(warnings.collect::<Vec<_>>(), [0, 0, 0], "{arm}");
    }
    assert!(is_empty(directory.path()));
}

/// A command that writes a different output, or none, is reported.
#[test]
fn given_sstables_are_merged_in_comparison_with_a_command() {
    let (directory, data) = (disk_directory(), disk_directory());
    let table = generated(data.path(), &words("--sstables 2 --size 1MiB"));
    let files = || std::fs::read_dir(&table).unwrap().count();
    let before = files();
    // The command succeeds without doing anything.
    let idle = r#"echo '{"name":"idle","notes":["a shell"]}'
        while read -r line; do
            echo '{"done":{"wall_s":1.0,"cpu_s":0.5,"peak_rss_bytes":1,"otherwise":[]}}'
        done"#;
    let output = Command::new(env!("CARGO_BIN_EXE_compactor"))
        .args(["bench", "--directory"])
        .arg(directory.path())
        .args(words("--repeat 1 --warm-up 0 --arms merge --warm"))
        .args(["--read-io", "buffered", "--cassandra", idle])
        // Another one of the same name.
        .args(["--cassandra", &idle.replace("1.0", "2.0")])
        .arg(&table)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}{}", stderr(&output));
    let walls = ["idle", "idle (2)"].map(|name| {
        let mut lines = text.lines();
        let line = lines.find_map(|line| line.trim().strip_prefix(&format!("{name} !")));
        line.unwrap_or_default().split_whitespace().nth(1)
    });
    assert_eq!(walls, [Some("1.00"), Some("2.00")], "{text}");
    for part in [
        "idle !",
        "idle repeat 0, idle (2) repeat 0: it left no output",
        "idle: a shell",
        "shape given, ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(is_empty(directory.path()));
    assert_eq!(files(), before, "nothing is created next to inputs");
}

#[test]
fn an_interrupt_exits_with_130_and_leaves_nothing() {
    for (signal, at) in [("INT", "generating"), ("TERM", "run 1 of")] {
        let directory = disk_directory();
        let mut command = bench(directory.path(), &["--warm-up", "100"]);
        AtWork::since(&mut command, at).leaves_nothing(signal, directory.path());
    }
}

#[test]
fn invalid_requests_are_refused_and_leave_nothing() {
    let directory = disk_directory();
    for (options, code, reason) in [
        (&["--read-io", "trickle"][..], 2, "unknown read mode"),
        (
            &words("--read-io direct,buffered,dontneed --write-io direct,buffered"),
            2,
            "the same number of each",
        ),
        (&["--size", "16TiB"], 2, "free space"),
        (&["--cassandra", "exit 1"], 2, "ended"),
        (
            &["--compression", "none", "--chunk-length", "4KiB"],
            2,
            "does not apply to --compression none",
        ),
        (
            &["--concurrent-compactors", "2"],
            2,
            "add compact to --arms",
        ),
        (&["missing-Data.db"], 2, "missing-Data.db"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_compactor"));
        command.args(["bench", "--directory"]).arg(directory.path());
        let output = command.args(options).output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{options:?}: {message}");
        assert!(message.contains(reason), "{options:?}: {message}");
        assert!(is_empty(directory.path()), "{options:?}");
    }
}

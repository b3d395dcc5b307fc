//! `compactor lab interference` as a person uses it.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use compactor_testkit::machine::disk_directory;
use compactor_testkit::{Need, skip_part};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{is_empty, stderr};

/// Small enough for a test, and too short to mean anything.
const SMALL: [&str; 22] = [
    "--arms",
    "idle,buffered/direct",
    "--data-size",
    "8MiB",
    "--hot-set",
    "1MiB",
    "--rate",
    "100",
    "--repeat",
    "1",
    "--warm-up",
    "0",
    "--throughput",
    "4MiB",
    "--before",
    "1s",
    "--after",
    "1s",
    "--least-compaction",
    "0s",
    // Alongside other tests it might get no processor at all.
    "--compaction-priority",
    "normal",
];

fn interference(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_compactor"));
    command.args(["lab", "interference", "--quick", "--directory"]);
    command.arg(directory).args(SMALL);
    command
}

#[test]
fn an_experiment_ends_with_a_table_and_the_json() {
    let (directory, results) = (disk_directory(), TempDir::new().unwrap());
    let json = results.path().join("outcome.json");
    let html = results.path().join("report.html");
    let output = interference(directory.path())
        .args(["--memory-limit", "none"])
        .arg("--json")
        .arg(&json)
        .arg("--html")
        .arg(&html)
        .output()
        .unwrap();
    let found: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let runs = found["points"][0]["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2, "{}", stderr(&output));
    let html = std::fs::read_to_string(&html).unwrap();
    assert!(html.contains("buffered/direct"), "{html}");
    // A machine that is too busy to measure on is named in a caveat.
    let counts = runs
        .iter()
        .all(|run| run["invalid"].as_array().unwrap().is_empty());
    // Charts are of the runs that count.
    let is_any_counted = runs
        .iter()
        .any(|run| run["invalid"].as_array().unwrap().is_empty());
    assert_eq!(html.contains("<svg"), is_any_counted, "{html}");
    assert_eq!(output.status.success(), counts, "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("p99") && text.contains("buffered/direct"),
        "{text}"
    );
    let messages = String::from_utf8(output.stderr).unwrap();
    for word in [
        "hot set: ",
        "run 1 of 2: ",
        "total ops",
        "during",
        "left for all",
    ] {
        assert!(messages.contains(word), "{word}: {messages}");
    }
    assert_eq!(found["options"]["command"][1], "lab");
    assert!(is_empty(directory.path()));
}

/// The cgroup of a process's experiment, wherever it is.
fn cgroup_of(process: u32) -> Option<PathBuf> {
    let name = format!("compactor-lab-{process}");
    let mut directories = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name() == name.as_str() {
                    return Some(entry.path());
                }
                directories.push(entry.path());
            }
        }
    }
    None
}

#[test]
fn interrupted_it_ends_with_130_and_leaves_nothing() {
    let directory = disk_directory();
    let mut child = interference(directory.path())
        .args(["--memory-limit", "512MiB"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut messages = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    let mut is_limited = true;
    while !line.starts_with("run 1") {
        line.clear();
        assert!(messages.read_line(&mut line).unwrap() > 0, "it ended");
        is_limited &= !line.contains("there is no memory limit");
    }
    assert!(!is_empty(directory.path()));
    let process = child.id();
    assert_eq!(cgroup_of(process).is_some(), is_limited);
    if !is_limited {
        skip_part(
            Need::Cgroup,
            "no control group with a memory limit can be created",
        );
    }
    let sent = Command::new("kill")
        .args(["-s", "INT", &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
    let mut rest = String::new();
    messages.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(is_empty(directory.path()), "{rest}");
    assert_eq!(cgroup_of(process), None);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let directory = disk_directory();
    for (options, reason) in [
        (&["--arms", "auto/direct"][..], "name the mode"),
        (&["--arms", "busy"], "is no arm"),
        (&["--sweep", "rate=1,2"], "only the hot set is swept"),
        (&["--memory-limit", "lots"], "expected"),
        (
            &["--backend", "uring", "--arms", "dontcache/direct"],
            "RWF_DONTCACHE",
        ),
        (&["--rate", "0"], "expected"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_compactor"))
            .args(["lab", "interference", "--quick", "--directory"])
            .arg(directory.path())
            .args(options)
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(2),
            "{options:?}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(reason),
            "{options:?}: {}",
            stderr(&output)
        );
    }
    assert!(is_empty(directory.path()));
}

/// Of 3 MiB, nearly two are stored.
#[test]
fn a_merge_keeps_to_its_throughput() {
    let directory = disk_directory();
    let compactor = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_compactor"))
            .args(arguments)
            .current_dir(directory.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        output
    };
    let generate = [
        "generate",
        "--output",
        "data",
        "--size",
        "4MiB",
        "--sstables",
        "1",
    ];
    compactor(&generate);
    let table = std::fs::read_dir(directory.path().join("data/generated")).unwrap();
    let table = table.map(|entry| entry.unwrap().path()).next().unwrap();
    let stored: u64 = std::fs::read_dir(&table)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_name().to_string_lossy().ends_with("-Data.db"))
        .map(|entry| entry.metadata().unwrap().len())
        .sum();
    let output = compactor(&[
        "merge",
        table.to_str().unwrap(),
        "--output",
        "merged",
        "--throughput",
        "1MiB",
        // The last block is not waited for.
        "--readahead",
        "64KiB",
        "--format",
        "json",
    ]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let report = report.get(0).unwrap_or(&report);
    let least = 0.8 * stored as f64 / f64::from(1 << 20);
    let elapsed = report["elapsed_s"].as_f64().unwrap();
    assert!(least > 1.0 && elapsed > least, "{elapsed} s, not {least}");
}

//! `compactor lab interference` from the command line.

use std::path::{Path, PathBuf};
use std::process::Command;

use compactor_testkit::machine::disk_directory;
use compactor_testkit::{Need, skip_part};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::at_work::AtWork;
use crate::support::{
    assert_ends, compactor, data_files, generated, is_empty, json, stderr, words, words_and,
};

/// Small enough for a test, and too short to mean anything.
const SMALL: &str = "--arms idle,buffered/direct --data-size 8MiB --hot-set 1MiB --rate 100 --repeat 1 \
    --warm-up 0 --throughput 4MiB --before 1s --after 1s --least-compaction 0s";
/// At idle priority the compaction might get no CPU time while other tests run.
const PRIORITY: [&str; 2] = ["--compaction-priority", "normal"];

fn interference(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_compactor"));
    command.args(["lab", "interference", "--quick", "--directory"]);
    command.arg(directory).args(words(SMALL)).args(PRIORITY);
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
    // Charts show the valid runs only.
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
fn an_interrupt_exits_with_130_and_leaves_nothing() {
    let directory = disk_directory();
    let mut command = interference(directory.path());
    let at_work = AtWork::since(command.args(["--memory-limit", "512MiB"]), "run 1");
    let is_limited = !at_work.printed.contains("there is no memory limit");
    let process = at_work.child.id();
    assert_eq!(cgroup_of(process).is_some(), is_limited);
    if !is_limited {
        skip_part(
            Need::Cgroup,
            "no control group with a memory limit can be created",
        );
    }
    at_work.leaves_nothing("INT", directory.path());
    assert_eq!(cgroup_of(process), None);
}

#[test]
fn invalid_options_are_refused() {
    let directory = disk_directory();
    for (options, reason) in [
        ("--arms auto/direct", "name the mode"),
        ("--arms busy", "is no arm"),
        ("--sweep rate=1,2", "only the hot set is swept"),
        ("--memory-limit lots", "expected"),
        ("--backend uring --arms dontcache/direct", "RWF_DONTCACHE"),
        ("--rate 0", "expected"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_compactor"))
            .args(["lab", "interference", "--quick", "--directory"])
            .arg(directory.path())
            .args(words(options))
            .output()
            .unwrap();
        assert_ends(&output, 2, reason);
    }
    assert!(is_empty(directory.path()));
}

/// 3 MiB of data compress to almost 2 MiB.
#[test]
fn a_merge_respects_its_throughput_limit() {
    let directory = disk_directory();
    let table = generated(directory.path(), &words("--size 4MiB --sstables 1"));
    let stored: u64 = data_files(&table)
        .iter()
        .map(|data| data.metadata().unwrap().len())
        .sum();
    // There is no wait after the last block.
    let merge = words_and(
        "merge --output merged --throughput 1MiB --readahead 64KiB --format json",
        &[table.to_str().unwrap()],
    );
    let report = json(&compactor(directory.path(), &merge));
    let report = report.get(0).unwrap_or(&report);
    let least = 0.8 * stored as f64 / f64::from(1 << 20);
    let elapsed = report["elapsed_s"].as_f64().unwrap();
    assert!(least > 1.0 && elapsed > least, "{elapsed} s, not {least}");
}

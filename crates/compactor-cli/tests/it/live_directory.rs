//! Merges in the data directory of a running node. A child process that holds a file open, or that changes
//! the directory, simulates the node.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::nobody::Nobody;
use crate::support::node::Node;
use crate::support::{assert_done, assert_ends, compactor, generated, names_in, stderr, words};

fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_compactor"));
    command.args(arguments).current_dir(directory);
    command
}

/// SSTables, some megabytes in all.
fn some_megabytes(directory: &Path) -> PathBuf {
    generated(
        directory,
        &words("--size 3MiB --sstables 2 --compression none"),
    )
}

fn snapshot(table: &Path) -> PathBuf {
    let snapshot = table.join("snapshots/before");
    fs::create_dir_all(&snapshot).unwrap();
    for entry in fs::read_dir(table).unwrap() {
        let entry = entry.unwrap();
        if entry.path().is_file() {
            fs::hard_link(entry.path(), snapshot.join(entry.file_name())).unwrap();
        }
    }
    snapshot
}

#[test]
fn nothing_is_purged_in_a_directory_that_a_node_has_open() {
    let temp = TempDir::new().unwrap();
    let table = some_megabytes(temp.path());
    let snapshot = snapshot(&table);
    let node = Node::with(&table.join("oa-1-big-Data.db"));
    let (table, snapshot) = (table.to_str().unwrap(), snapshot.to_str().unwrap());
    let first = format!("{table}/oa-1-big-Data.db");
    let run = |arguments: &[&str], output: &str| {
        let arguments = [arguments, &["--output", output]].concat();
        compactor(temp.path(), &arguments)
    };
    for arguments in [
        &["merge", table, "--complete"][..],
        &["merge", &first, "--overlapping", table],
        &["compact", table, "--major", "--complete"],
        &["merge", table, "--complete", "--dry-run"],
    ] {
        let out = run(arguments, "refused");
        for words in ["(sleep) has ", "nodetool snapshot"] {
            assert_ends(&out, 4, words);
        }
        assert!(!temp.path().join("refused").exists());
    }
    // Accepted if every tombstone is kept, or if the inputs are a snapshot.
    for (number, arguments) in [
        &["merge", table][..],
        &["merge", table, "--complete", "--no-purge"],
        &["merge", snapshot, "--complete"],
        &["compact", snapshot, "--major", "--complete"],
    ]
    .into_iter()
    .enumerate()
    {
        let out = run(arguments, &format!("out-{number}"));
        assert_done(&out);
    }
    drop(node);
    let out = run(&["merge", table, "--complete"], "stopped");
    assert_done(&out);
}

/// Whether there is a `Data.db` below a directory, in its staging directories.
fn has_data(directory: &Path) -> bool {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| {
        path.to_str().unwrap().ends_with("-Data.db") || path.is_dir() && has_data(&path)
    })
}

/// Starts a run that takes seconds, and changes the inputs' directory while it is running.
fn changed_meanwhile(arguments: &[&str], change: impl Fn(&Path)) -> (TempDir, Output) {
    let temp = TempDir::new().unwrap();
    let table = some_megabytes(temp.path());
    let arguments = [
        &[arguments[0], table.to_str().unwrap()],
        &arguments[1..],
        &["--output", "out", "--throughput", "2MiB"],
    ]
    .concat();
    let mut child = command(temp.path(), &arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let output = temp.path().join("out");
    // The output is being written: the inputs are open.
    while !has_data(&output) {
        assert!(Instant::now() < deadline, "the run does not begin");
        if child.try_wait().unwrap().is_some() {
            panic!("{}", stderr(&child.wait_with_output().unwrap()));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    change(&table);
    let out = child.wait_with_output().unwrap();
    (temp, out)
}

fn published(temp: &TempDir) -> Vec<String> {
    match temp.path().join("out") {
        output if output.exists() => names_in(&output),
        _ => Vec::new(),
    }
}

fn remove_second(table: &Path) {
    for name in names_in(table) {
        if name.starts_with("oa-2-") {
            fs::remove_file(table.join(name)).unwrap();
        }
    }
}

fn add_third(table: &Path) {
    fs::write(table.join("oa-3-big-Data.db"), "x").unwrap();
}

#[test]
fn inputs_that_the_node_compacted_during_the_merge_are_not_merged() {
    for arguments in [&["merge"][..], &["compact", "--major"]] {
        let (temp, out) = changed_meanwhile(arguments, remove_second);
        assert_eq!(out.status.code(), Some(4), "{}", stderr(&out));
        let says = stderr(&out);
        assert!(
            says.contains("oa-2-big-") && says.contains(" is gone"),
            "{says}"
        );
        assert_eq!(published(&temp), [""; 0]);
    }
}

#[test]
fn a_flush_during_the_merge_is_refused_if_tombstones_were_purged() {
    for arguments in [
        &["merge", "--complete"][..],
        &["compact", "--major", "--complete"],
    ] {
        let (temp, out) = changed_meanwhile(arguments, add_third);
        assert_ends(&out, 4, "oa-3-big-Data.db has appeared");
        assert_eq!(published(&temp), [""; 0]);
    }
    let (temp, out) = changed_meanwhile(&["merge"], add_third);
    assert_done(&out);
    assert!(!published(&temp).is_empty());
}

#[test]
fn a_transaction_that_began_during_the_merge_is_refused() {
    let name = "oa_txn_compaction_7cc16910-c6a1-11e6-9d2c-b5d4e8a16a52.log";
    let begin = |table: &Path| fs::write(table.join(name), "").unwrap();
    let (temp, out) = changed_meanwhile(&["merge"], begin);
    assert_ends(&out, 4, "a transaction is in progress");
    assert_eq!(published(&temp), [""; 0]);
}

/// Needs root, as tests in a container have: drops privileges so that the node's open files cannot be listed.
#[test]
fn nothing_is_purged_where_a_node_may_be_at_work() {
    let temp = TempDir::new().unwrap();
    let Some(nobody) = Nobody::in_directory(temp.path()) else {
        return;
    };
    let table = some_megabytes(temp.path());
    let snapshot = snapshot(&table);
    let log = temp.path().join("cassandra.log");
    fs::write(&log, "").unwrap();
    let mut node = Command::new("tail").arg("-f").arg(&log).spawn().unwrap();
    let (table, snapshot) = (table.to_str().unwrap(), snapshot.to_str().unwrap());
    let first = format!("{table}/oa-1-big-Data.db");
    let mut outcomes = Vec::new();
    for arguments in [
        &["merge", table, "--complete"][..],
        &["merge", &first, "--overlapping", table],
        &["compact", table, "--major", "--complete", "--dry-run"],
        &["merge", table, "--dry-run"],
        &["merge", table, "--complete", "--no-purge", "--dry-run"],
        &["merge", snapshot, "--complete", "--dry-run"],
    ] {
        outcomes.push(nobody.run(&[arguments, &["--output", "out"]].concat()));
    }
    node.kill().unwrap();
    node.wait().unwrap();
    for out in &outcomes[..3] {
        for words in [
            // Another process of this machine may look like one, too.
            "looks like a Cassandra node",
            "as root",
            "nodetool snapshot",
        ] {
            assert_ends(out, 4, words);
        }
    }
    for out in &outcomes[3..] {
        assert_done(out);
    }
}

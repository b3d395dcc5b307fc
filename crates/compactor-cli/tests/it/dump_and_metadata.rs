//! `compactor dump` and `compactor metadata` as a user runs them.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::{assert_ends, copy_files, json, printed as stdout, stderr, words_and};

fn compactor() -> Command {
    Command::new(env!("CARGO_BIN_EXE_compactor"))
}

fn run(args: &[&str], inputs: &[&Path]) -> Output {
    compactor()
        .args(args)
        .args(inputs)
        .output()
        .expect("compactor runs")
}

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../compactor/testdata/dump")
        .join(name)
}

#[test]
fn a_directory_is_dumped_like_its_sstables() {
    let directory = case("oa_composite_key");
    let data = directory.join("oa-1-big-Data.db");
    let of_file = stdout(&run(&["dump"], &[&data]));
    assert_eq!(of_file.lines().count(), 8);
    assert_eq!(stdout(&run(&["dump", "-l"], &[&directory])), of_file);
    assert_eq!(stdout(&run(&["dump"], &[&data, &data])), of_file.repeat(2));
}

#[test]
fn short_options_are_those_of_sstabledump() {
    let directory = case("oa_composite_key");
    let keys = stdout(&run(&["dump", "-e"], &[&directory]));
    assert_eq!(keys.lines().count(), 8);
    assert!(
        keys.lines().any(|line| line == r#"["a","1","ff00"]"#),
        "{keys}"
    );
    let one = stdout(&run(&["dump", "-k", "a:1:ff00", "-t"], &[&directory]));
    assert_eq!(one.lines().count(), 1);
    assert!(one.contains(r#""liveness_info":{"tstamp":"5"}"#), "{one}");
    let others = stdout(&run(
        &["dump", "-x", "a:1:ff00", "-x", "a:1:"],
        &[&directory],
    ));
    assert_eq!(others.lines().count(), 6);
    assert_eq!(stdout(&run(&["dump", "-o"], &[&directory])), "");
}

#[test]
fn a_key_that_is_not_found_is_named() {
    let (one, other) = (case("oa_composite_key"), case("oa_ttl_edges"));
    let output = run(
        &["dump", "-k", "a:1:", "-k", "1", "-k", "nowhere"],
        &[&one, &other],
    );
    assert_eq!(output.stdout.split(|byte| *byte == b'\n').count(), 3);
    assert_eq!(output.status.code(), Some(1));
    let messages = stderr(&output);
    assert!(
        messages.contains(r#"no partition with key "nowhere""#),
        "{messages}"
    );
    assert_eq!(messages.lines().count(), 1, "{messages}");
}

#[test]
fn a_closed_stdout_is_not_an_error() {
    let many = vec![case("nb_random_mixed_2"); 40];
    let mut child = compactor()
        .arg("dump")
        .args(&many)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("compactor runs");
    let mut first = [0u8; 100];
    child
        .stdout
        .take()
        .expect("stdout")
        .read_exact(&mut first)
        .expect("a beginning");
    let output = child.wait_with_output().expect("an end");
    assert!(output.status.success(), "{:?}", output.status);
    assert_eq!(stderr(&output), "");
}

#[test]
fn exit_codes_distinguish_damage_from_wrong_usage() {
    let directory = tempfile::tempdir().expect("a directory");
    copy_files(&case("oa_ttl_edges"), directory.path());
    let data = directory.path().join("oa-1-big-Data.db");
    let statistics = directory.path().join("oa-1-big-Statistics.db");
    let bytes = std::fs::read(&statistics).expect("Statistics.db");
    std::fs::write(&statistics, &bytes[..bytes.len() - 1]).expect("Statistics.db");
    for command in ["dump", "metadata"] {
        let output = run(&[command], &[&data]);
        assert_eq!(
            output.status.code(),
            Some(3),
            "{command}: {}",
            stderr(&output)
        );
        let output = run(&[command], &[&directory.path().join("oa-2-big-Nothing")]);
        assert_ne!(output.status.code(), Some(0));
        let output = run(&[command], &[&directory.path().join("..").join("..")]);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{command}: {}",
            stderr(&output)
        );
        assert_eq!(run(&[command], &[]).status.code(), Some(2));
    }
}

#[test]
fn one_unreadable_sstable_does_not_hide_the_metadata_of_the_others() {
    let directory = tempfile::tempdir().expect("a directory");
    copy_files(&case("oa_ttl_edges"), directory.path());
    let statistics = directory.path().join("oa-1-big-Statistics.db");
    let bytes = std::fs::read(&statistics).expect("Statistics.db");
    std::fs::write(&statistics, &bytes[..bytes.len() - 1]).expect("Statistics.db");
    let sound = case("nb_range_touching");
    let output = run(
        &["metadata", "--format", "json"],
        &[directory.path(), &sound],
    );
    assert_ends(&output, 3, "oa-1-big-Statistics.db");
    let all: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(all[0]["version"], "nb");
    assert_eq!(all.as_array().map(Vec::len), Some(1));
}

#[test]
fn metadata_of_several_is_an_array() {
    let (one, other) = (case("oa_ttl_edges"), case("nb_range_touching"));
    let json = stdout(&run(&["metadata", "--format", "json"], &[&one, &other]));
    let all: Value = serde_json::from_str(&json).expect("JSON");
    let versions: Vec<&str> = all
        .as_array()
        .expect("an array")
        .iter()
        .filter_map(|s| s["version"].as_str())
        .collect();
    assert_eq!(versions, ["oa", "nb"]);
    assert_eq!(all[0]["compression"]["chunk_length"], 16384);
    assert_eq!(
        all[0]["header"]["regular_columns"][0]["type"]["cql"],
        "text"
    );

    let text = stdout(&run(&["metadata"], &[&one, &other]));
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("SSTable: "))
            .count(),
        2
    );
    assert!(text.contains("\nSSTables: 2\n"), "{text}");
}

#[test]
fn droppable_tombstones_follow_grace_and_clock() {
    let directory = case("oa_ttl_edges");
    let droppable = |grace: &str| {
        let args = "metadata --format json --now 1700000640 --gc-grace-seconds";
        let all = json(&run(&words_and(args, &[grace]), &[&directory]));
        all[0]["estimated_droppable_tombstones"].as_f64()
    };
    assert_eq!(droppable("0"), Some(1.35));
    assert_eq!(droppable("864000"), Some(0.0));
}

/// Known but unsupported versions are not reported as damage, whatever the file contains.
#[test]
fn an_unsupported_version_is_not_reported_as_damage() {
    let source = case("nb_range_touching");
    let mut unsupported = 0;
    for version in ["ma", "mc", "md", "me", "na", "oa", "pa"] {
        let directory = tempfile::tempdir().expect("a directory");
        for entry in std::fs::read_dir(&source).expect("testdata") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy();
            let name = name.replacen("nb-", &format!("{version}-"), 1);
            std::fs::copy(&path, directory.path().join(name)).expect("copied");
        }
        let data = directory.path().join(format!("{version}-1-big-Data.db"));
        let dump = run(&["dump"], &[&data]);
        if !stderr(&dump).contains("not supported") {
            continue;
        }
        unsupported += 1;
        for command in ["dump", "metadata", "verify"] {
            let output = run(&[command], &[&data]);
            let message = stderr(&output);
            assert!(
                matches!(output.status.code(), Some(0 | 2)),
                "{command} {version}: {:?} {message}",
                output.status
            );
            assert!(!message.contains("damaged"), "{message}");
        }
    }
    eprintln!("{unsupported} versions are not supported");
}

/// Messages of read-only commands do not mention written output.
#[test]
fn damage_found_by_reading_does_not_mention_writing() {
    let directory = tempfile::tempdir().expect("a directory");
    copy_files(&case("oa_ttl_edges"), directory.path());
    let statistics = directory.path().join("oa-1-big-Statistics.db");
    std::fs::write(&statistics, b"not statistics").expect("Statistics.db");
    for command in ["dump", "metadata"] {
        let output = run(&[command], &[directory.path()]);
        assert_eq!(output.status.code(), Some(3));
        let message = stderr(&output);
        assert!(message.contains("compactor verify"), "{message}");
        assert!(!message.contains("written"), "{message}");
    }
}

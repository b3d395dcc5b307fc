//! `compactor scrub` as a person meets it: what it prints and how it ends.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{stderr, stdout};

fn compactor(command: &str, args: &[&dyn AsRef<OsStr>]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_compactor"))
        .arg(command)
        .args(args.iter().map(|arg| arg.as_ref()))
        .output()
        .unwrap()
}

/// A table of one SSTable of a thousand rows.
fn table(directory: &Path) -> PathBuf {
    let generated = compactor(
        "generate",
        &[
            &"--shape",
            &"kv",
            &"--rows",
            &"1000",
            &"--sstables",
            &"1",
            &"--output",
            &directory,
        ],
    );
    assert!(generated.status.success(), "{}", stderr(&generated));
    data_files(directory).remove(0)
}

fn data_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(data_files(&path));
        } else if path.to_string_lossy().ends_with("-Data.db") {
            found.push(path);
        }
    }
    found
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_sound_sstable_ends_with_0_and_nothing_lost() {
    let place = tempfile::tempdir().unwrap();
    let data = table(&place.path().join("t"));
    let out = place.path().join("out");
    let output = compactor("scrub", &[&data, &"--output", &out, &"--verify"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stdout(&output).contains("NOTHING LOST"),
        "{}",
        stdout(&output)
    );
    assert_eq!(data_files(&out).len(), 1);
}

#[test]
fn losses_are_listed_and_end_with_3() {
    let place = tempfile::tempdir().unwrap();
    let data = table(&place.path().join("t"));
    flip(&data, 3000);
    let before = fs::read(&data).unwrap();
    let out = place.path().join("out");
    let output = compactor("scrub", &[&data, &"--output", &out]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("lost: partition at position 0"), "{text}");
    assert!(text.contains("SALVAGED IN PART"), "{text}");
    let files = data_files(&out);
    assert_eq!(compactor("verify", &[&files[0]]).status.code(), Some(0));
    assert_eq!(fs::read(&data).unwrap(), before);

    let again = compactor("scrub", &[&data, &"--dry-run", &"--format", &"json"]);
    assert_eq!(again.status.code(), Some(3));
    let document: serde_json::Value = serde_json::from_str(&stdout(&again)).unwrap();
    let report = &document["sstables"][0];
    assert_eq!(document["lossy"], 1);
    assert!(report["output"].is_null());
    let loss = &report["losses"][0];
    assert_eq!(loss["kind"], "partition");
    assert_eq!(loss["file_offset"], 0);
    assert!(loss["token"].is_i64() && loss["partition_key"].is_string());
    assert_eq!(report["loss_count"], report["partitions_lost"]);
}

#[test]
fn one_that_cannot_be_read_does_not_keep_the_others_from_it() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("t");
    let data = table(&directory);
    let name = data.file_name().unwrap().to_str().unwrap();
    let second = data.with_file_name("oa-77-big-Data.db");
    for entry in fs::read_dir(data.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        let prefix = name.strip_suffix("Data.db").unwrap();
        if let Some(suffix) = file.strip_prefix(prefix) {
            let to = second.with_file_name(format!("oa-77-big-{suffix}"));
            fs::copy(&path, to).unwrap();
        }
    }
    flip(&second.with_file_name("oa-77-big-Statistics.db"), 3);
    let out = place.path().join("out");
    let output = compactor("scrub", &[&data.parent().unwrap(), &"--output", &out]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("Statistics.db"),
        "{}",
        stderr(&output)
    );
    assert_eq!(data_files(&out).len(), 1);
}

#[test]
fn an_output_is_asked_for_and_not_put_beside_the_input() {
    let place = tempfile::tempdir().unwrap();
    let data = table(&place.path().join("t"));
    assert_eq!(compactor("scrub", &[&data]).status.code(), Some(2));
    let beside = data.parent().unwrap();
    let output = compactor("scrub", &[&data, &"--output", &beside]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
}

//! `compactor generate` from the command line.

use std::fs;
use std::process::Command;

use compactor_testkit::machine::has_strace;
use tempfile::TempDir;

use crate::support::{assert_done, assert_ends, compactor, json, names_in, words, words_and};

#[test]
fn generated_sstables_can_be_merged() {
    let temp = TempDir::new().unwrap();
    let arguments = [
        "generate", "--output", "data", "--rows", "1000", "--format", "json",
    ];
    let report = json(&compactor(temp.path(), &arguments));
    assert_eq!(report["rows"], 3000);
    assert_eq!(report["shape"], "kv");
    assert_eq!(report["compression"]["chunk_length_bytes"], 16384);
    let directory = report["table_directory"].as_str().unwrap();
    let arguments = words_and(
        "merge --output merged --complete --format json --progress none",
        &[directory],
    );
    let merged = json(&compactor(temp.path(), &arguments));
    assert_eq!(merged["partitions_written"], 500 + 3 * 500);
    let compression = &merged["output_compression"];
    assert_eq!(compression["compressor"], "LZ4Compressor");
    assert_eq!(compression["chunk_length_bytes"], 16384);
    // gc_grace_seconds and compression come from schema.cql, so there is no warning.
    assert_eq!(merged["warnings"].as_array().unwrap().len(), 0, "{merged}");
}

#[test]
fn the_summary_names_the_directory_on_its_last_line() {
    let temp = TempDir::new().unwrap();
    let arguments = words("generate --output data --shape timeseries --ttl 1d --rows 2000");
    let output = compactor(temp.path(), &arguments);
    assert_done(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    let directory = temp.path().join(text.lines().last().unwrap());
    let schema = std::fs::read_to_string(directory.join("schema.cql")).unwrap();
    assert!(schema.contains("default_time_to_live = 86400"), "{schema}");
    assert!(directory.join("oa-3-big-Data.db").exists());
}

#[test]
fn wrong_usage_exits_with_2_and_advice() {
    let temp = TempDir::new().unwrap();
    for (arguments, message) in [
        ("--ttl 1d", "--ttl is for --shape timeseries, not for kv"),
        (
            "--shape counters --value-length 8",
            "--value-length is for --shape kv, wide, tombstones, maps, collections or timeseries, not",
        ),
        (
            "--shape counters --updates 0.5",
            "--updates is for --shape wide, tombstones, maps or collections, not for counters",
        ),
        ("--shape timeseries --ttl 1y", "expected 1s to 7300d"),
        ("--overlap 2", "expected 0 to 1"),
        (
            "--compression none --chunk-length 4KiB",
            "does not apply to --compression none",
        ),
        ("--chunk-length 5000", "power of two"),
        ("--rows 5 --size 1MiB", "cannot be used with"),
        ("--sstable-version na", "choose nb, oa, pa, da or ea"),
    ] {
        let mut all = vec!["generate", "--output", "data"];
        all.extend(words(arguments));
        let output = compactor(temp.path(), &all);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(message), "{arguments:?}: {stderr}");
    }
    assert!(!temp.path().join("data").exists());
}

/// The next identical run removes the files of a killed one.
#[test]
fn a_run_that_is_killed_leaves_nothing_or_everything() {
    if !has_strace() {
        return;
    }
    let generate = words("generate --output data --rows 100");
    let (all, names) = {
        let temp = TempDir::new().unwrap();
        assert_done(&compactor(temp.path(), &generate));
        let table = names_in(&temp.path().join("data/generated")).remove(0);
        let table = temp.path().join("data/generated").join(table);
        let file = |name: String| (fs::read(table.join(&name)).unwrap(), name);
        let files: Vec<_> = names_in(&table).into_iter().map(file).collect();
        (files, table.file_name().unwrap().to_owned())
    };
    // While the SSTables are written, and while they are published.
    for (call, when, code) in [
        ("fsync", 2, 0),
        ("renameat2", 1, 0),
        ("renameat2", 9, 0),
        ("renameat2", 23, 0),
        // The log, after its COMMIT.
        ("unlink", 1, 2),
    ] {
        let temp = TempDir::new().unwrap();
        let killed = Command::new("strace")
            .args(["-f", "-qq", "-o", "/dev/null"])
            .args(["-e", &format!("trace={call}")])
            .arg(format!("--inject={call}:signal=KILL:when={when}"))
            .arg(env!("CARGO_BIN_EXE_compactor"))
            .args(&generate)
            .current_dir(temp.path())
            .output()
            .unwrap();
        assert!(!killed.status.success(), "{call} {when}");
        let table = temp.path().join("data/generated").join(&names);
        assert!(
            names_in(&table)
                .iter()
                .any(|name| name.starts_with(".compactor-"))
        );
        let next = compactor(temp.path(), &generate);
        assert_eq!(next.status.code(), Some(code), "{call} {when}: {next:?}");
        let found: Vec<_> = names_in(&table)
            .into_iter()
            .map(|name| (fs::read(table.join(&name)).unwrap(), name))
            .collect();
        assert_eq!(found, all, "{call} {when}");
        let again = compactor(temp.path(), &generate);
        assert_ends(&again, 2, "already exists and is not empty");
    }
}

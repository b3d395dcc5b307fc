//! `compactor compact` from the command line.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    assert_done, assert_ends, assert_prints, compactor, data_files, flip_middle, generated, json,
    names_in, rows, text, words, words_and,
};

/// Wide partitions, with deletions of every kind.
const WIDE: &str = "--shape wide --size 60KiB --rows-per-partition 50 --deletions 0.2 --sstables";

pub fn paths(list: &Value) -> Vec<PathBuf> {
    let list = list.as_array().unwrap().iter();
    list.map(|path| PathBuf::from(path.as_str().unwrap()))
        .collect()
}

/// Options with which all tombstones are purgeable: the deletions are from 2025.
const PURGE: [&str; 4] = [
    "--complete",
    "--gc-before",
    "4000000000",
    "--now=2000000000",
];

/// Dump of the rows of `inputs` after a single merge.
pub fn merged(directory: &Path, inputs: &[PathBuf], output: &str, options: &[&str]) -> String {
    let mut arguments = vec!["merge"];
    arguments.extend(inputs.iter().map(|path| path.to_str().unwrap()));
    arguments.extend(["--flat", "--output", output]);
    arguments.extend(options);
    let out = compactor(directory, &arguments);
    assert_done(&out);
    let [data] = &data_files(&directory.join(output))[..] else {
        panic!("one output");
    };
    rows(data)
}

#[test]
fn compacted_rows_equal_those_of_one_merge_at_any_concurrency() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &words_and(WIDE, &["11"]));
    let inputs = data_files(&table);
    for purging in [true, false] {
        let purge: &[&str] = if purging {
            &PURGE
        } else {
            &["--no-purge", "--now=2000000000"]
        };
        let mut bytes: Vec<Vec<Vec<u8>>> = Vec::new();
        for concurrent in ["1", "4"] {
            let output = format!("out-{purging}-{concurrent}");
            let mut arguments = words_and(
                "compact --flat --min-threshold 2 --max-threshold 3 --verify --format json",
                &[
                    table.to_str().unwrap(),
                    "--output",
                    &output,
                    "--concurrent-compactors",
                    concurrent,
                ],
            );
            arguments.extend(purge);
            let report = json(&compactor(temp.path(), &arguments));
            // 3 + 3 + 3 + 2, then 3, then the remaining two.
            assert!(report["rounds"].as_u64().unwrap() >= 2, "{report}");
            assert!(report["compactions"].as_u64().unwrap() >= 5, "{report}");
            assert_eq!(report["sstables_before"], 11);
            let mut replaced = paths(&report["untouched"]);
            let mut left = paths(&report["untouched"]);
            for output in report["outputs"].as_array().unwrap() {
                left.push(temp.path().join(output["data_path"].as_str().unwrap()));
            }
            for replacement in report["replacements"].as_array().unwrap() {
                replaced.extend(paths(&replacement["replaces"]));
            }
            let count = replaced.len();
            let all: BTreeSet<PathBuf> = replaced.into_iter().collect();
            assert_eq!((count, all), (11, inputs.iter().cloned().collect()));
            assert_eq!(report["sstables_after"], left.len());
            // No intermediate SSTable and no staging directory is left.
            let output = temp.path().join(&output);
            let made = data_files(&output);
            assert_eq!(made.len(), report["outputs"].as_array().unwrap().len());
            let names = names_in(&output);
            assert!(!names.iter().any(|name| name.starts_with('.')), "{names:?}");
            bytes.push(made.iter().map(|data| fs::read(data).unwrap()).collect());
            let one = merged(
                temp.path(),
                &left,
                &format!("one-{purging}-{concurrent}"),
                purge,
            );
            let direct = merged(
                temp.path(),
                &inputs,
                &format!("direct-{purging}-{concurrent}"),
                purge,
            );
            assert!(one == direct, "purging {purging}, {concurrent} at once");
        }
        assert!(bytes[0] == bytes[1], "purging {purging}");
    }
    assert_eq!(data_files(&table), inputs);
}

#[test]
fn a_major_compaction_is_one_merge() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &words_and(WIDE, &["5"]));
    let mut arguments = words_and(
        "compact --flat --output out --major --format json",
        &[table.to_str().unwrap()],
    );
    arguments.extend(PURGE);
    let report = json(&compactor(temp.path(), &arguments));
    let outputs = report["outputs"].as_array().unwrap();
    assert_eq!(
        (
            outputs.len(),
            paths(&report["replacements"][0]["replaces"]).len()
        ),
        (1, 5)
    );
    assert!(report["purged"].as_u64().unwrap() > 0, "{report}");
    merged(temp.path(), &data_files(&table), "merged", &PURGE);
    let read = |directory: &str| fs::read(&data_files(&temp.path().join(directory))[0]).unwrap();
    assert!(read("out") == read("merged"));
}

#[test]
fn a_dry_run_reports_the_plan_and_writes_nothing() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &words_and(WIDE, &["9"]));
    let arguments = words_and(
        "compact --output out --dry-run --max-threshold 4",
        &[table.to_str().unwrap()],
    );
    let out = compactor(temp.path(), &arguments);
    assert_done(&out);
    let shown = text(&out.stdout);
    assert!(
        shown.contains("round 1:") && shown.contains("4 SSTables unrepaired of"),
        "{shown}"
    );
    let with_json: Vec<&str> = arguments
        .iter()
        .copied()
        .chain(["--format", "json"])
        .collect();
    let plan = json(&compactor(temp.path(), &with_json));
    let first: Vec<&Value> = plan["compactions"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|planned| planned["round"] == 1)
        .collect();
    assert_eq!(first.len(), 2);
    assert!(
        first
            .iter()
            .all(|planned| planned["inputs"].as_array().unwrap().len() == 4)
    );

    // Inputs of a later round are named by the compaction that writes them.
    let to_the_end: Vec<&str> = with_json
        .iter()
        .copied()
        .chain(["--min-threshold", "2", "--min-sstable-size", "1GiB"])
        .collect();
    let plan = json(&compactor(temp.path(), &to_the_end));
    let (mut named, mut taken) = (BTreeSet::new(), BTreeSet::new());
    let planned = plan["compactions"].as_array().unwrap();
    for compaction in planned {
        for input in compaction["inputs"].as_array().unwrap() {
            match (input["data_path"].as_str(), input["output_of"].as_u64()) {
                (Some(path), None) => assert!(named.insert(path.to_owned())),
                (None, Some(number)) => {
                    assert!(number < compaction["number"].as_u64().unwrap());
                    assert!(taken.insert(number));
                }
                _ => panic!("{input}"),
            }
        }
    }
    assert_eq!(named.len(), 9);
    assert_eq!(taken, (1..planned.len() as u64).collect());
    assert!(!temp.path().join("out").exists());
}

/// All rows are live and expire before the limit. A merge keeps them, so the SSTable must not be dropped unread.
#[test]
fn a_purge_limit_later_than_the_clock_drops_no_live_sstable() {
    let temp = TempDir::new().unwrap();
    let made = words(
        "generate --shape timeseries --rows 300 --rows-per-partition 50 --ttl 7d --expired 0 --sstables 4 \
         --now 1780000000 --output data --format json",
    );
    let made = json(&compactor(temp.path(), &made));
    let table = made["table_directory"].as_str().unwrap();
    let all = words("--now 1780000000 --complete --format json --output");
    let of = |command: &[&str], output: &str, limit: &[&str]| {
        let arguments = [command, &[table], &all, &[output], limit].concat();
        json(&compactor(temp.path(), &arguments))
    };
    let later = ["--gc-before", "4294967293"];
    let expected = of(&["merge"], "expected", &[])["rows_written"].clone();
    assert!(expected.as_u64().unwrap() > 0);
    let merged = of(&["merge"], "merged", &later);
    assert_eq!(merged["rows_written"], expected, "{merged}");
    for strategy in ["size-tiered", "leveled", "time-window"] {
        let compacted = of(&["compact", "--strategy", strategy], strategy, &later);
        assert_eq!(compacted["purged"], 0, "{compacted}");
        let mut replacements = compacted["replacements"].as_array().unwrap().iter();
        assert!(
            replacements.all(|one| !one["outputs"].as_array().unwrap().is_empty()),
            "{compacted}"
        );
    }
}

#[test]
fn nothing_to_compact_is_success() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &words_and(WIDE, &["3"]));
    let arguments = ["compact", table.to_str().unwrap(), "--output", "out"];
    let out = compactor(temp.path(), &arguments);
    assert_done(&out);
    assert_prints(&out, "nothing was compacted of 3 SSTables");
    assert!(!temp.path().join("out").exists());
}

#[test]
fn a_damaged_sstable_is_skipped_and_the_others_are_compacted() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &words_and(WIDE, &["5"]));
    let damaged = data_files(&table)[1].clone();
    flip_middle(&damaged);
    let arguments = words_and(
        "compact --flat --output out --format json",
        &[table.to_str().unwrap()],
    );
    let out = compactor(temp.path(), &arguments);
    assert_eq!(out.status.code(), Some(3), "{}", text(&out.stderr));
    let name = damaged.file_name().unwrap().to_str().unwrap();
    assert!(text(&out.stderr).contains(name), "{}", text(&out.stderr));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(paths(&report["failed"][0]["inputs"]), [&*damaged]);
    assert_eq!(paths(&report["untouched"]), [&*damaged]);
    let replaces = &report["replacements"][0]["replaces"];
    assert_eq!(replaces.as_array().unwrap().len(), 4, "{report}");
    assert_eq!(data_files(&temp.path().join("out")).len(), 1);
}

/// An SSTable that cannot be read forbids purging: reported once, with what to do.
#[test]
fn nothing_is_purged_if_an_sstable_is_unreadable() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &words_and(WIDE, &["12"]));
    let damaged = data_files(&table)[1].clone();
    let index = damaged.to_str().unwrap().replace("-Data.db", "-Index.db");
    fs::remove_file(index).unwrap();
    let compact = |output: &str, more: &[&str]| {
        let mut arguments = vec!["compact", table.to_str().unwrap(), "--output", output];
        arguments.extend(["--max-threshold", "4", "--complete", "--format", "json"]);
        arguments.extend(more);
        let out = compactor(temp.path(), &arguments);
        assert_eq!(out.status.code(), Some(3), "{}", text(&out.stderr));
        let report: Value = serde_json::from_slice(&out.stdout).unwrap();
        (report, text(&out.stderr))
    };
    let (report, stderr) = compact("none", &[]);
    let failed = report["failed"].as_array().unwrap();
    let beside = |failed: &&Value| failed["unreadable_overlapping"] == damaged.to_str().unwrap();
    assert!(failed.iter().filter(beside).count() > 1, "{report}");
    assert_eq!(stderr.matches("corrupt sstable").count(), 1, "{stderr}");
    assert!(stderr.contains("use --no-purge"), "{stderr}");

    let (report, stderr) = compact("others", &["--no-purge"]);
    assert_eq!(paths(&report["failed"][0]["inputs"]), [&*damaged]);
    assert!(
        report["failed"][0]["unreadable_overlapping"].is_null(),
        "{report}"
    );
    assert!(!stderr.contains("--no-purge"), "{stderr}");
    assert!(report["compactions"].as_u64().unwrap() > 1, "{report}");
}

#[test]
fn options_are_refused_as_by_cassandra() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &words_and(WIDE, &["3"]));
    let table = table.to_str().unwrap();
    for (options, words) in [
        (
            &["--min-threshold", "1"][..],
            "Min compaction threshold cannot be less than 2 (got 1)",
        ),
        (
            &["--bucket-low", "2"],
            "bucket_high value (1.5) is less than or equal to the bucket_low value (2.0)",
        ),
        (
            &["--bucket-high", "x"],
            "x is not a parsable float for bucket_high",
        ),
        (
            &["--strategy", "leveled", "--fanout-size", "0"],
            "fanout_size must be larger than 0, but was 0",
        ),
        (
            &["--strategy", "leveled", "--sstable-size", "1500KiB"],
            "whole number of MiB",
        ),
        (
            &["--strategy", "leveled", "--bucket-low", "2"],
            "bucket_low",
        ),
        (
            &["--strategy", "LevelledCompactionStrategy"],
            "there is no strategy \"LevelledCompactionStrategy\": name size-tiered",
        ),
        (&["--major", "--fanout-size", "4"], "cannot be used with"),
    ] {
        let mut arguments = vec!["compact", table, "--output", "out"];
        arguments.extend(options);
        let out = compactor(temp.path(), &arguments);
        assert_ends(&out, 2, words);
    }
    let out = compactor(temp.path(), &["compact", table, "--output", table]);
    assert_eq!(out.status.code(), Some(4), "{}", text(&out.stderr));
}

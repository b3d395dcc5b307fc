//! `compactor split` and `merge --max-sstable-size` from the command line.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    assert_done, assert_prints, compactor, data_files, flip, generated, json, rows, text, words,
    words_and,
};

fn report(directory: &Path, arguments: &[&str]) -> Value {
    json(&compactor(
        directory,
        &[arguments, &["--format", "json"]].concat(),
    ))
}

/// Three SSTables of wide partitions.
const WIDE: [&str; 4] = ["--shape", "wide", "--size", "600KiB"];

fn paths(reports: &Value) -> Vec<PathBuf> {
    let reports = reports.as_array().unwrap().iter();
    reports
        .map(|o| PathBuf::from(o["data_path"].as_str().unwrap()))
        .collect()
}

#[test]
fn each_sstable_is_split_without_loss_of_rows() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &WIDE);
    let all = table.to_str().unwrap();
    let size = 64 << 10;
    for (output, options) in [
        ("as-they-are", "--verify"),
        ("nb", "--sstable-version nb --compression zstd"),
        ("ea", "--sstable-version ea --threads 1"),
        (
            "plain",
            "--compression none --write-io buffered --read-io buffered",
        ),
    ] {
        let mut arguments = vec!["split", all, "--output", output, "--size", "64KiB"];
        arguments.extend(words(options));
        let report = report(temp.path(), &arguments);
        assert_eq!(report["sstables"], 3);
        let split = report["split"].as_array().unwrap();
        assert_eq!(split.len(), 3, "{report}");
        let mut written = Vec::new();
        for split in split {
            let input = PathBuf::from(split["input"]["data_path"].as_str().unwrap());
            let outputs = paths(&split["outputs"]);
            assert!(outputs.len() > 1, "{output}: {split}");
            let whole = outputs[..outputs.len() - 1].iter();
            for path in whole.map(|path| temp.path().join(path)) {
                assert!(
                    fs::metadata(&path).unwrap().len() > size,
                    "{}",
                    path.display()
                );
            }
            let divided = outputs.iter().map(|path| rows(&temp.path().join(path)));
            assert!(
                divided.collect::<String>() == rows(&input),
                "{output}: rows differ"
            );
            written.extend(outputs.into_iter().map(|path| temp.path().join(path)));
        }
        written.sort();
        assert_eq!(written, data_files(&temp.path().join(output)), "{output}");
    }
}

#[test]
fn small_sstables_are_skipped() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &WIDE);
    let all = table.to_str().unwrap();
    let lengths = data_files(&table)
        .into_iter()
        .map(|p| fs::metadata(p).unwrap().len());
    let largest = lengths.max().unwrap();
    let larger = data_files(&table)
        .iter()
        .filter(|p| fs::metadata(p).unwrap().len() > largest - 1)
        .count();
    let size = (largest - 1).to_string();
    let arguments = ["split", all, "--output", "out", "--size", &size];
    let planned = compactor(temp.path(), &[&arguments[..], &["--dry-run"]].concat());
    assert_done(&planned);
    assert_prints(&planned, "would split");
    assert!(!temp.path().join("out").exists());
    let report = report(temp.path(), &arguments);
    assert_eq!(report["split"].as_array().unwrap().len(), larger);
    assert_eq!(report["skipped"].as_array().unwrap().len(), 3 - larger);

    // The default size is 50 MiB, as in `sstablesplit`.
    let out = compactor(temp.path(), &["split", all, "--output", "none"]);
    assert_done(&out);
    let printed = text(&out.stdout);
    assert_eq!(printed.matches("skipped").count(), 3, "{printed}");
    assert!(
        printed.contains("no SSTable is larger than 50MiB"),
        "{printed}"
    );
    assert!(!temp.path().join("none").exists());
}

#[test]
fn a_damaged_sstable_is_skipped_and_the_others_are_split() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &WIDE);
    let damaged = data_files(&table)[1].clone();
    flip(
        &damaged,
        fs::metadata(&damaged).unwrap().len() as usize - 100,
    );
    let out = compactor(
        temp.path(),
        &words_and(
            "split --output out --size 64KiB --format json",
            &[table.to_str().unwrap()],
        ),
    );
    assert_eq!(out.status.code(), Some(3), "{}", text(&out.stderr));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(report["split"].as_array().unwrap().len(), 2);
    let failed = report["failed"][0]["data_path"].as_str().unwrap();
    assert_eq!(Path::new(failed), damaged);
    // Several of its outputs were complete when the damage was found.
    let split = report["split"].as_array().unwrap().iter();
    let written: usize = split.map(|s| s["outputs"].as_array().unwrap().len()).sum();
    assert_eq!(data_files(&temp.path().join("out")).len(), written);
}

#[test]
fn an_empty_sstable_is_damaged_not_small() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &WIDE);
    let empty = data_files(&table)[1].clone();
    fs::write(&empty, "").unwrap();
    let out = compactor(
        temp.path(),
        &words_and(
            "split --output out --size 1GiB --format json",
            &[table.to_str().unwrap()],
        ),
    );
    assert_eq!(out.status.code(), Some(3), "{}", text(&out.stderr));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(report["skipped"].as_array().unwrap().len(), 2);
    let failed = report["failed"][0]["data_path"].as_str().unwrap();
    assert_eq!(Path::new(failed), empty);
}

#[test]
fn invalid_sizes_and_the_inputs_own_directory_are_refused() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &WIDE);
    let all = table.to_str().unwrap();
    for size in ["0", "-1", "1023", "many"] {
        let out = compactor(
            temp.path(),
            &["split", all, "--output", "out", "--size", size],
        );
        assert_eq!(out.status.code(), Some(2), "{size}: {}", text(&out.stderr));
    }
    let out = compactor(
        temp.path(),
        &["split", all, "--output", all, "--size", "64KiB"],
    );
    assert_eq!(out.status.code(), Some(4), "{}", text(&out.stderr));
}

#[test]
fn a_merge_limits_the_size_of_outputs() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &WIDE);
    let all = table.to_str().unwrap();
    let one = report(
        temp.path(),
        &["merge", all, "--output", "one", "--complete"],
    );
    let arguments = words_and(
        "merge --output many --complete --max-sstable-size 64KiB --verify",
        &[all],
    );
    let many = report(temp.path(), &arguments);
    let (one, many) = (paths(&one["outputs"]), paths(&many["outputs"]));
    assert!(one.len() == 1 && many.len() > 3, "{many:?}");
    let divided = many.iter().map(|path| rows(&temp.path().join(path)));
    assert!(divided.collect::<String>() == rows(&temp.path().join(&one[0])));
    let again = [&arguments[..], &["--replace-output"]].concat();
    let printed = compactor(temp.path(), &again);
    assert_prints(&printed, "merged 3 SSTables into");
}

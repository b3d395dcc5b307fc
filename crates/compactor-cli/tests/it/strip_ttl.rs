//! `--strip-ttl` from the command line.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::support::{
    assert_done, assert_ends, assert_prints, compactor, data_files, generated, json, stderr,
    stdout, words, words_and,
};

/// Time long after all generated data has expired and its grace period has passed.
const LATER: [&str; 2] = ["--now", "1900000000"];

/// A time series of rows with a TTL, half of which have expired already.
fn time_series(directory: &Path) -> PathBuf {
    let options = "--size 100KiB --shape timeseries --ttl 1d --expired 0.5 --now 1800000000";
    generated(directory, &words(options))
}

/// Numbers of rows and of TTLs in the dumps of all SSTables of a directory.
fn rows_and_ttls(directory: &Path) -> (usize, usize) {
    let (mut rows, mut ttls) = (0, 0);
    for data in data_files(directory) {
        let mut arguments = vec!["dump", data.to_str().unwrap()];
        arguments.extend(LATER);
        let out = compactor(directory, &arguments);
        assert_done(&out);
        let text = stdout(&out);
        rows += text.matches("\"type\":\"row\"").count();
        let of_ttl = [
            "\"ttl\"",
            "\"expires_at\"",
            "\"expired\"",
            "\"deletion_info\"",
        ];
        ttls += of_ttl
            .map(|word| text.matches(word).count())
            .iter()
            .sum::<usize>();
    }
    (rows, ttls)
}

fn merge<'a>(table: &'a Path, output: &'a str, options: &[&'a str]) -> Vec<&'a str> {
    let table = table.to_str().unwrap();
    let mut arguments = vec!["merge", table, "--complete", "--flat", "--output", output];
    arguments.extend(LATER);
    arguments.extend(options);
    arguments
}

#[test]
fn all_data_of_a_backup_is_restored() {
    let temp = TempDir::new().unwrap();
    let table = time_series(temp.path());
    let (rows, ttls) = rows_and_ttls(&table);
    assert!(rows > 100 && ttls >= rows, "{rows} {ttls}");
    let out = compactor(temp.path(), &merge(&table, "purged", &[]));
    assert_prints(&out, "nothing is left, so there is no output");
    assert!(!stdout(&out).contains("TTL removed"));

    let out = compactor(
        temp.path(),
        &merge(&table, "planned", &["--strip-ttl", "--dry-run"]),
    );
    assert_prints(&out, "TTL         removed");
    assert!(!stdout(&out).contains("drop unread"), "{}", stdout(&out));

    let out = compactor(
        temp.path(),
        &merge(&table, "text", &["--strip-ttl", "--verify"]),
    );
    let text = stdout(&out);
    let line = text.lines().nth(1).unwrap();
    assert!(line.starts_with("TTL removed from "), "{text}");
    assert!(line.ends_with(" rows: they never expire"), "{text}");
    assert!(text.contains("purged      nothing"), "{text}");
    assert!(text.contains("strip the table on every replica"), "{text}");
    assert!(text.contains("default_time_to_live"), "{text}");
    let (rows_written, ttls) = rows_and_ttls(&temp.path().join("text"));
    assert_eq!(ttls, 0);

    // Identical bytes for any number of threads.
    let expected = fs::read(&data_files(&temp.path().join("text"))[0]).unwrap();
    for threads in ["1", "2", "3", "8"] {
        let options = ["--strip-ttl", "--threads", threads, "--format", "json"];
        let report = json(&compactor(temp.path(), &merge(&table, threads, &options)));
        assert_eq!(
            report["rows_written"].as_u64().unwrap(),
            rows_written as u64
        );
        let removed = &report["ttl_removed"];
        assert_eq!(removed["rows"].as_u64().unwrap(), rows as u64);
        assert!(removed["cells"].as_u64().unwrap() >= rows as u64);
        let found = fs::read(&data_files(&temp.path().join(threads))[0]).unwrap();
        assert!(found == expected, "{threads} threads");
    }
    let options = ["--strip-ttl", "--format", "json", "--no-purge"];
    let again = temp.path().join("text");
    let report = json(&compactor(temp.path(), &merge(&again, "again", &options)));
    assert_eq!(
        report["ttl_removed"],
        serde_json::json!({"cells": 0, "rows": 0})
    );
    let out = compactor(
        temp.path(),
        &merge(&again, "again-text", &["--strip-ttl", "--no-purge"]),
    );
    assert_prints(&out, "TTL removed from nothing");
    assert!(
        json(&compactor(
            temp.path(),
            &merge(&again, "not", &options[1..])
        ))["ttl_removed"]
            .is_null()
    );
}

/// Even if the strategy has nothing to do: an SSTable that kept its TTLs would win over the stripped copies.
#[test]
fn a_compaction_leaves_no_ttl() {
    let temp = TempDir::new().unwrap();
    let table = time_series(temp.path());
    let (rows, _) = rows_and_ttls(&table);
    for (output, options, outputs) in [
        ("major", "--major", 1),
        ("tiered", "--min-threshold 2 --max-threshold 2", 1),
        ("alone", "--min-threshold 4", 3),
    ] {
        let mut arguments = words_and(
            "compact --flat",
            &[table.to_str().unwrap(), "--output", output],
        );
        arguments.extend(["--strip-ttl", "--complete"]);
        if output != "major" {
            arguments.extend(["--strategy", "SizeTieredCompactionStrategy"]);
        }
        arguments.extend(LATER);
        arguments.extend(words(options));
        let planned = compactor(temp.path(), &[&arguments[..], &["--dry-run"]].concat());
        assert_done(&planned);
        let planned = stdout(&planned);
        assert!(!planned.contains("nothing to compact"), "{planned}");
        let report = json(&compactor(
            temp.path(),
            &[&arguments[..], &["--format", "json"]].concat(),
        ));
        assert_eq!(report["untouched"], serde_json::json!([]), "{output}");
        assert_eq!(report["ttl_removed"]["rows"].as_u64().unwrap(), rows as u64);
        assert_eq!(
            report["outputs"].as_array().unwrap().len(),
            outputs,
            "{output}"
        );
        let (left, ttls) = rows_and_ttls(&temp.path().join(output));
        assert_eq!(ttls, 0, "{output}");
        // SSTables that are not merged contain versions of the same rows.
        assert_eq!(
            left == rows,
            output == "alone",
            "{output}: {left} of {rows}"
        );
    }
    let mut arguments = words_and("compact --flat --output text", &[table.to_str().unwrap()]);
    arguments.extend(["--strip-ttl", "--major"]);
    let out = compactor(temp.path(), &arguments);
    assert_prints(&out, " rows: they never expire\n");
}

#[test]
fn an_upgrade_may_change_nothing_but_ttls() {
    let temp = TempDir::new().unwrap();
    let table = time_series(temp.path());
    let (rows, _) = rows_and_ttls(&table);
    let upgrade = |output: &str, options: &[&str]| {
        let arguments = ["upgrade", table.to_str().unwrap(), "--output", output];
        compactor(temp.path(), &[&arguments[..], options].concat())
    };
    let refused = upgrade("out", &[]);
    assert_ends(&refused, 2, "--strip-ttl");
    let out = upgrade("out", &["--strip-ttl"]);
    assert_prints(&out, " rows: they never expire\n");
    assert_prints(&out, "strip the table on every replica");
    assert_eq!(rows_and_ttls(&temp.path().join("out")), (rows, 0));
    let names = |directory: &Path| -> Vec<_> {
        let files = data_files(directory).into_iter();
        files
            .map(|path| path.file_name().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&temp.path().join("out")), names(&table));
    let options = ["--strip-ttl", "--sstable-version", "nb", "--format", "json"];
    let report = json(&upgrade("nb", &options));
    assert_eq!(report["ttl_removed"]["rows"].as_u64().unwrap(), rows as u64);
}

#[test]
fn contradictory_options_are_refused() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &words("--size 100KiB --shape counters"));
    let table = table.to_str().unwrap();
    for command in ["merge", "compact", "upgrade"] {
        let mut arguments = vec![command, table, "--output", command, "--strip-ttl"];
        if command == "compact" {
            arguments.push("--major");
        }
        let out = compactor(temp.path(), &arguments);
        assert_eq!(out.status.code(), Some(2), "{command}");
        assert!(stderr(&out).contains("counters"), "{}", stderr(&out));
        let written = temp.path().join(command);
        assert!(!written.exists() || data_files(&written).is_empty());
    }
    for arguments in [
        &words_and("split --output out --size 50MiB --strip-ttl", &[table])[..],
        &["scrub", table, "--output", "out", "--strip-ttl"],
    ] {
        let out = compactor(temp.path(), arguments);
        assert_ends(&out, 2, "unexpected argument '--strip-ttl'");
    }
}

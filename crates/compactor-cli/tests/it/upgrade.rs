//! `compactor upgrade` from the command line.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    assert_ends, assert_prints, compactor, data_files, flip_middle, generated, json, names_in,
    rows, stderr, stdout, text, words, words_and,
};

/// Three SSTables of wide partitions.
const WIDE: [&str; 4] = ["--shape", "wide", "--size", "200KiB"];

#[test]
fn each_sstable_keeps_its_rows_and_id() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &WIDE);
    for (directory, options) in [
        ("nb", "--sstable-version nb --compression zstd"),
        (
            "pa",
            "--sstable-version pa --chunk-length 4KiB --compression lz4",
        ),
        ("plain", "--compression none --concurrent 3 --verify"),
    ] {
        let mut arguments = words_and(
            "upgrade --format json",
            &[table.to_str().unwrap(), "--output", directory],
        );
        arguments.extend(words(options));
        let out = compactor(temp.path(), &arguments);
        let report = json(&out);
        assert_eq!(report["sstables"], 3);
        assert_eq!(report["upgraded"].as_array().unwrap().len(), 3);
        let (before, after) = (data_files(&table), data_files(&temp.path().join(directory)));
        assert_eq!(after.len(), 3);
        for (before, after) in before.iter().zip(&after) {
            let id = |path: &Path| {
                let name = path.file_name().unwrap().to_str().unwrap();
                name.split('-').nth(1).unwrap().to_owned()
            };
            assert_eq!(id(before), id(after));
            assert!(
                rows(before) == rows(after),
                "{directory}: {}",
                after.display()
            );
        }
        let again = compactor(temp.path(), &arguments);
        assert_eq!(again.status.code(), Some(4), "{}", text(&again.stderr));
    }
}

#[test]
fn a_dry_run_reports_the_outputs_and_writes_nothing() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &WIDE);
    let arguments = words_and(
        "upgrade --sstable-version nb --output out --dry-run",
        &[table.to_str().unwrap()],
    );
    let out = compactor(temp.path(), &arguments);
    assert_prints(&out, "oa-3-big-Data.db: Data.db of ");
    assert_prints(&out, ", to version nb");
    let out = compactor(
        temp.path(),
        &[&arguments[..], &["--format", "json"]].concat(),
    );
    let plan = json(&out);
    assert_eq!(plan["dry_run"], true);
    assert_eq!(plan["failed"].as_array().unwrap().len(), 0);
    assert_eq!(plan["upgrade"].as_array().unwrap().len(), 3);
    // The exit code is that of the run.
    fs::remove_file(table.join("oa-2-big-Statistics.db")).unwrap();
    let out = compactor(temp.path(), &arguments);
    assert_prints(&out, "oa-3-big-Data.db");
    assert_ends(&out, 3, "oa-2-big-Statistics.db");
    assert!(!temp.path().join("out").exists());
}

#[test]
fn nothing_of_a_table_with_transactions_expires() {
    let temp = TempDir::new().unwrap();
    let expired = words("--shape timeseries --size 1MiB --ttl 1h --now 1700000000");
    let table = generated(temp.path(), &expired);
    let schema = table.join("schema.cql");
    let text = fs::read_to_string(&schema).unwrap();
    let with = text.replace(" WITH ", " WITH transactional_mode = 'full' AND ");
    assert_ne!(with, text);
    let run = |arguments: &str| {
        let out = compactor(
            temp.path(),
            &words_and(arguments, &[table.to_str().unwrap()]),
        );
        assert!(out.status.success(), "{}", stderr(&out));
        stdout(&out).contains("has transactions (Accord)")
    };
    let lines = |directory: &Path| {
        let files = data_files(directory).into_iter();
        let text: String = files.map(|data| rows(&data)).collect();
        let lines: BTreeSet<String> = text.lines().map(str::to_owned).collect();
        lines
    };
    let before = lines(&table);
    let after = |directory: &str| lines(&temp.path().join(directory));
    assert!(!run("upgrade --sstable-version pa --output expired"));
    assert!(
        after("expired") != before,
        "what has expired becomes tombstones"
    );
    fs::write(&schema, with).unwrap();
    assert!(run("upgrade --sstable-version pa --output kept"));
    assert!(after("kept") == before);
    assert!(run("split --size 64KiB --output split"));
    assert!(after("split") == before);
}

#[test]
fn a_chunk_length_alone_keeps_the_compressor_and_its_options() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &WIDE);
    let upgrade = |from: &str, to: &str, options: &str| {
        let arguments = format!("upgrade {from} --output {to} {options}");
        compactor(temp.path(), &words(&arguments))
    };
    let table = table.to_str().unwrap();
    let level = "--compression zstd --compression-level 7";
    assert!(upgrade(table, "zstd", level).status.success());
    assert!(
        upgrade(table, "plain", "--compression none")
            .status
            .success()
    );
    for (from, compressor) in [(table, "LZ4Compressor"), ("zstd", "ZstdCompressor")] {
        let to = format!("{compressor}-4");
        assert!(upgrade(from, &to, "--chunk-length 4KiB").status.success());
        let compression = |directory: &str| {
            let found = json(&compactor(
                temp.path(),
                &["metadata", "--format", "json", directory],
            ));
            found[0]["compression"].clone()
        };
        let (before, after) = (compression(from), compression(&to));
        assert_eq!(after["compressor"], compressor, "{after}");
        assert_eq!(after["options"], before["options"]);
        assert_eq!(
            (&before["chunk_length"], &after["chunk_length"]),
            (&16384.into(), &4096.into())
        );
    }
    let refused = upgrade("plain", "out", "--chunk-length 4KiB");
    assert_ends(&refused, 2, "a chunk length needs a compressor");
    // Before anything is merged.
    let plan = words("compact plain --major --output out --dry-run --chunk-length 4KiB");
    assert_ends(
        &compactor(temp.path(), &plan),
        2,
        "a chunk length needs a compressor",
    );
    let refused = upgrade("plain", "out", "--chunk-length 5000");
    assert_ends(
        &refused,
        2,
        "a chunk length of 5000 bytes: a power of two from 1KiB",
    );
}

#[test]
fn a_damaged_sstable_is_skipped_and_the_others_are_written() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &WIDE);
    let damaged = data_files(&table)[1].clone();
    flip_middle(&damaged);
    let arguments = words_and(
        "upgrade --output out --sstable-version nb --concurrent 2",
        &[table.to_str().unwrap()],
    );
    let other = words_and(
        "upgrade --output other --sstable-version nb --concurrent 2 --format json",
        &[table.to_str().unwrap()],
    );
    let out = compactor(temp.path(), &other);
    assert_eq!(out.status.code(), Some(3), "{}", text(&out.stderr));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(report["failed"].as_array().unwrap().len(), 1);
    assert_eq!(report["failed"][0]["data_path"], damaged.to_str().unwrap());
    assert!(!report["failed"][0]["error"].as_str().unwrap().is_empty());

    let out = compactor(temp.path(), &arguments);
    assert_ends(&out, 3, "from another replica");
    let name = damaged.file_name().unwrap().to_str().unwrap();
    assert!(text(&out.stderr).contains(name), "{}", text(&out.stderr));
    assert_prints(&out, "upgraded 2 of 3 SSTables");
    assert_eq!(data_files(&temp.path().join("out")).len(), 2);
    // Nothing else is left there.
    let names = names_in(&temp.path().join("out"));
    assert!(!names.iter().any(|name| name.starts_with('.')), "{names:?}");
}

#[test]
fn a_change_must_be_requested() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &WIDE);
    let table = table.to_str().unwrap();
    let out = compactor(temp.path(), &["upgrade", table, "--output", "out"]);
    assert_ends(&out, 2, "--sstable-version");
    let arguments = words_and("upgrade --sstable-version nb", &[table, "--output", table]);
    let out = compactor(temp.path(), &arguments);
    assert_eq!(out.status.code(), Some(4), "{}", text(&out.stderr));
}

/// Advice is printed below each failure, and once for consecutive failures with the same advice.
#[test]
fn advice_is_below_its_error() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &WIDE);
    let damage = |name: &str, change: fn(&mut Vec<u8>)| {
        let path = table.join(name);
        let mut bytes = fs::read(&path).unwrap();
        change(&mut bytes);
        fs::write(path, bytes).unwrap();
    };
    let flip = |bytes: &mut Vec<u8>| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
    };
    damage("oa-1-big-Data.db", flip);
    damage("oa-2-big-Statistics.db", |bytes| bytes.truncate(30));
    damage("oa-3-big-Statistics.db", |bytes| bytes.truncate(30));
    let upgrade = words_and(
        "upgrade --output out --sstable-version nb",
        &[table.to_str().unwrap()],
    );
    let out = compactor(temp.path(), &upgrade);
    assert_eq!(out.status.code(), Some(3), "{}", text(&out.stderr));
    let stderr = text(&out.stderr);
    let at = |words: &str| {
        let found: Vec<usize> = stderr.match_indices(words).map(|(at, _)| at).collect();
        assert_eq!(found.len(), 1, "{words}: {stderr}");
        found[0]
    };
    let lines = [
        at("oa-1-big-Data.db: corrupt"),
        at("`compactor scrub` writes what can be read"),
        at("oa-2-big-Statistics.db: corrupt"),
        at("oa-3-big-Statistics.db: corrupt"),
        at("No file can be read without this one"),
    ];
    assert!(lines.is_sorted(), "{stderr}");
}

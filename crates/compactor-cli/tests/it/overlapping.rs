//! Validation of SSTables named with `--overlapping`, and its cost.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use tempfile::TempDir;

use crate::support::{
    assert_done, assert_ends, compactor, data_files, generated, json, stderr, words_and,
};

/// Two SSTables with deletions.
fn table(directory: &Path, version: &str) -> PathBuf {
    let directory = directory.join(version);
    fs::create_dir(&directory).unwrap();
    let two = "--shape wide --size 100KiB --sstables 2 --sstable-version";
    generated(&directory, &words_and(two, &[version]))
}

/// Merges the second SSTable with the first as an overlapping SSTable.
fn merge(table: &Path, output: &str) -> Output {
    let data = data_files(table);
    let (one, two) = (data[0].to_str().unwrap(), data[1].to_str().unwrap());
    let arguments = [two, "--overlapping", one, "--output", output];
    compactor(table, &words_and("merge --gc-grace-seconds 0", &arguments))
}

#[test]
fn a_damaged_overlapping_sstable_is_not_trusted() {
    let temp = TempDir::new().unwrap();
    for version in ["nb", "pa", "ea"] {
        let table = table(temp.path(), version);
        assert_done(&merge(&table, "sound"));
        let mut tried = 0;
        for entry in fs::read_dir(&table).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            // Most keys of a BTI SSTable are only in Data.db, so a missing bit in its filter is not detected.
            let is_believed =
                name.ends_with("Statistics.db") || (name.ends_with("Filter.db") && version != "ea");
            if !is_believed || !name.contains("-1-") {
                continue;
            }
            let good = fs::read(&path).unwrap();
            for at in [good.len() / 3, good.len() / 2, good.len() * 3 / 4] {
                let mut bad = good.clone();
                bad[at] ^= 1;
                fs::write(&path, bad).unwrap();
                let refused = merge(&table, "refused");
                let stderr = stderr(&refused);
                assert_eq!(refused.status.code(), Some(3), "{name} {at}: {stderr}");
                assert!(!table.join("refused").exists(), "{name} {at}");
                tried += 1;
            }
            fs::write(&path, good).unwrap();
        }
        assert_eq!(tried, if version == "ea" { 3 } else { 6 }, "{version}");
    }
}

/// Tombstones that still shadow rows of the partitions would be purged.
#[test]
fn a_filter_that_lost_bits_is_not_trusted() {
    let temp = TempDir::new().unwrap();
    for (version, format) in [("pa", "big"), ("ea", "bti")] {
        let table = table(temp.path(), version);
        let filter = table.join(format!("{version}-1-{format}-Filter.db"));
        let mut bytes = fs::read(&filter).unwrap();
        bytes[8..].fill(0);
        fs::write(&filter, bytes).unwrap();
        let refused = merge(&table, "refused");
        assert_ends(&refused, 3, "filter.bits");
    }
}

/// Bytes after the first damage are not read: they may be endless.
#[test]
fn the_check_ends_with_the_first_damage() {
    let temp = TempDir::new().unwrap();
    let table = table(temp.path(), "nb");
    let index = fs::OpenOptions::new()
        .write(true)
        .open(table.join("nb-1-big-Index.db"))
        .unwrap();
    index.set_len(1 << 40).unwrap();
    // A process that has the file open is taken for a running node.
    drop(index);
    let refused = merge(&table, "refused");
    assert_eq!(refused.status.code(), Some(3));
}

/// Merges the first SSTable with the second as an overlapping SSTable, whose data is newer; nothing is purged.
fn merge_with_newer_overlapping(table: &Path, output: &str, options: &[&str]) -> Output {
    let mut arguments = words_and(
        "merge pa-1-big-Data.db --overlapping pa-2-big-Data.db --no-purge --verify --format json",
        &["--output", output],
    );
    arguments.extend(options);
    compactor(table, &arguments)
}

/// Numbers of rows written and shadowed.
fn left(out: &Output) -> (u64, u64) {
    let report = json(out);
    let shadowed = report["purged"]["shadowed"].as_u64().unwrap();
    (report["rows_written"].as_u64().unwrap(), shadowed)
}

const PROVIDE: &str = "--provide-overlapping-tombstones";

#[test]
fn overlapping_sstables_remove_what_they_shadow() {
    let temp = TempDir::new().unwrap();
    let table = table(temp.path(), "pa");
    let merged =
        |name: &str, options: &[&str]| left(&merge_with_newer_overlapping(&table, name, options));
    let none = merged("none", &[]);
    let row = merged("row", &[PROVIDE, "row"]);
    let cell = merged("cell", &[PROVIDE, "cell"]);
    assert_eq!(none.1, 0);
    assert!(
        cell.0 <= row.0 && row.0 <= none.0,
        "{none:?} {row:?} {cell:?}"
    );
    assert!(cell.1 > row.1, "{row:?} {cell:?}");

    // The schema has it too, and the option overrides it.
    let schema = table.join("schema.cql");
    let text = fs::read_to_string(&schema).unwrap();
    let place = text.rfind(';').unwrap();
    let compaction = "compaction = {'class': 'LeveledCompactionStrategy', \
                      'provide_overlapping_tombstones': 'CELL'}";
    let and = if text.contains(" WITH ") {
        "AND"
    } else {
        "WITH"
    };
    let text = format!("{} {and} {compaction};", &text[..place]);
    fs::write(&schema, text).unwrap();
    assert_eq!(merged("as-schema", &[]), cell);
    assert_eq!(merged("not-as-schema", &[PROVIDE, "none"]), none);

    for nobody in [["pa-1-big-Data.db", PROVIDE, "row"], [".", PROVIDE, "CELL"]] {
        let mut arguments = vec!["merge", "--output", "../refused"];
        arguments.extend(nobody);
        arguments.extend((nobody[0] == ".").then_some("--complete"));
        let refused = compactor(&table, &arguments);
        assert_ends(&refused, 2, "needs --overlapping");
    }
}

/// An overlapping SSTable is validated against its checksums like an input.
#[test]
fn damage_in_a_shadowing_sstable_is_an_error() {
    let temp = TempDir::new().unwrap();
    let table = table(temp.path(), "pa");
    let data = table.join("pa-2-big-Data.db");
    let good = fs::read(&data).unwrap();
    for at in [5, good.len() / 2, good.len() - 9] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&data, bad).unwrap();
        let believed = merge_with_newer_overlapping(&table, &format!("{at}"), &[]);
        assert_eq!(left(&believed).1, 0);
        let refused = merge_with_newer_overlapping(&table, "refused", &[PROVIDE, "cell"]);
        let stderr = stderr(&refused);
        assert_eq!(refused.status.code(), Some(3), "{at}: {stderr}");
        assert!(stderr.contains("pa-2-big-Data.db"), "{at}: {stderr}");
        assert!(stderr.contains("at offset"), "{at}: {stderr}");
        assert!(!table.join("refused").exists());
    }
}

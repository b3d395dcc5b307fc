//! What is believed of SSTables named with `--overlapping`, and what it takes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

fn compactor(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_compactor"))
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap()
}

/// Generates two SSTables with deletions; returns their directory.
fn generated(directory: &Path, version: &str) -> PathBuf {
    let arguments = [
        "generate",
        "--shape",
        "wide",
        "--size",
        "100KiB",
        "--sstables",
        "2",
        "--sstable-version",
        version,
        "--output",
        version,
        "--format",
        "json",
    ];
    let out = compactor(directory, &arguments);
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    directory.join(report["table_directory"].as_str().unwrap())
}

/// Merges the second SSTable beside the first.
fn merge(table: &Path, output: &str) -> Output {
    let data = |id: u32| -> String {
        let mut found = fs::read_dir(table).unwrap().map(|e| e.unwrap().path());
        let path = found.find(|p| {
            let name = p.file_name().unwrap().to_str().unwrap();
            name.ends_with("-Data.db") && name.contains(&format!("-{id}-"))
        });
        path.unwrap().to_str().unwrap().to_owned()
    };
    let (one, two) = (data(1), data(2));
    let arguments = [
        "merge",
        &two,
        "--overlapping",
        &one,
        "--output",
        output,
        "--gc-grace-seconds",
        "0",
    ];
    compactor(table, &arguments)
}

#[test]
fn a_damaged_overlapping_sstable_is_not_believed() {
    let temp = TempDir::new().unwrap();
    for version in ["nb", "pa", "ea"] {
        let table = generated(temp.path(), version);
        let sound = merge(&table, "sound");
        let stderr = String::from_utf8_lossy(&sound.stderr).into_owned();
        assert_eq!(sound.status.code(), Some(0), "{stderr}");
        let mut tried = 0;
        for entry in fs::read_dir(&table).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            // The keys of a BTI file are in its data alone, and so is what its filter is held against.
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
                let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
                assert_eq!(refused.status.code(), Some(3), "{name} {at}: {stderr}");
                assert!(!table.join("refused").exists(), "{name} {at}");
                tried += 1;
            }
            fs::write(&path, good).unwrap();
        }
        assert_eq!(tried, if version == "ea" { 3 } else { 6 }, "{version}");
    }
}

/// Whatever lies behind the first damage is not walked: it may have no end.
#[test]
fn the_check_ends_with_the_first_damage() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), "nb");
    let index = fs::OpenOptions::new()
        .write(true)
        .open(table.join("nb-1-big-Index.db"))
        .unwrap();
    index.set_len(1 << 40).unwrap();
    let refused = merge(&table, "refused");
    assert_eq!(refused.status.code(), Some(3));
}

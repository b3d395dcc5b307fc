//! Merges of more SSTables than the process may have descriptors.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::support::{json, paths_in, words, words_and};

/// Runs the command with a limit of open files.
fn limited(directory: &Path, limit: u32, arguments: &[&str]) -> Output {
    Command::new("sh")
        .args(["-c", &format!("ulimit -n {limit} && exec \"$@\""), "sh"])
        .arg(env!("CARGO_BIN_EXE_compactor"))
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap()
}

#[test]
fn few_descriptors_are_enough_for_many_sstables() {
    let temp = TempDir::new().unwrap();
    let arguments = words(
        "generate --shape wide --size 8KiB --sstables 150 --rows-per-partition 20 \
         --output data --format json",
    );
    let report = json(&limited(temp.path(), 1024, &arguments));
    let table = report["table_directory"].as_str().unwrap();
    let mut bytes = Vec::new();
    // The last case has more intermediate SSTables at a time than descriptors.
    for (output, limit, passes) in [("one", 1024, 1), ("several", 160, 2), ("many", 64, 7)] {
        let arguments = words_and(
            "merge --flat --complete --now=2000000000 --format json",
            &[table, "--output", output],
        );
        let report = json(&limited(temp.path(), limit, &arguments));
        assert!(
            report["passes"].as_u64().unwrap() >= passes,
            "{}",
            report["passes"]
        );
        assert_eq!(report["passes"] == 1, passes == 1, "{}", report["passes"]);
        let directory = temp.path().join(output);
        let mut names = paths_in(&directory);
        // It contains the time of writing.
        names.retain(|path| !path.ends_with("compactor-run.json"));
        assert!(
            names
                .iter()
                .all(|name| !name.to_string_lossy().contains("/.compactor"))
        );
        bytes.push(
            names
                .iter()
                .map(|name| fs::read(name).unwrap())
                .collect::<Vec<_>>(),
        );
    }
    assert!(bytes[0] == bytes[1] && bytes[0] == bytes[2]);
    let arguments = words_and(
        "compact --output major --major --complete --now=2000000000 --format json",
        &[table],
    );
    let report = json(&limited(temp.path(), 160, &arguments));
    assert!(
        report["passes"].as_u64().unwrap() > 1,
        "{}",
        report["passes"]
    );
    let data = report["outputs"][0]["data_path"].as_str().unwrap();
    assert!(bytes[0].contains(&fs::read(temp.path().join(data)).unwrap()));
    // Concurrent compactions share the descriptors: there are enough for one, and for some five.
    for limit in [128, 306] {
        let output = format!("tiered{limit}");
        let arguments = words_and(
            "compact --max-threshold 4 --threads 32 --verify --complete --now=2000000000 --format json",
            &[table, "--output", &output],
        );
        let report = json(&limited(temp.path(), limit, &arguments));
        assert!(report["compactions"].as_u64().unwrap() > 37, "{report}");
    }
}

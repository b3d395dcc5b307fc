//! Snapshots of tables with several data directories: each has a part of the SSTables, and `manifest.json` lists all.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    assert_done, assert_ends, assert_prints, compactor, copy_files, data_files, generated, json,
    names_in, words, words_and,
};

/// Five SSTables, the first of which is in one data directory and the others in the other.
struct Snapshot {
    temp: TempDir,
    directories: [PathBuf; 2],
}

impl Snapshot {
    fn new() -> Snapshot {
        let temp = TempDir::new().unwrap();
        let table = generated(temp.path(), &words("--rows 200 --sstables 5"));
        let name = table.file_name().unwrap();
        let directories = ["data1", "data2"].map(|disk| {
            temp.path()
                .join(disk)
                .join("ks")
                .join(name)
                .join("snapshots/s")
        });
        copy_files(&table, &directories[0]);
        fs::create_dir_all(&directories[1]).unwrap();
        let names = names_in(&table);
        let data = names.iter().filter(|name| name.ends_with("-Data.db"));
        let snapshot = Snapshot { temp, directories };
        let index = ".by_v/oa-9-big-Data.db".to_owned();
        let files: Vec<&String> = data.chain([&index]).collect();
        snapshot.describe(&serde_json::json!({"files": files, "ephemeral": false}).to_string());
        for name in names.iter().filter(|name| name.contains("-1-")) {
            let [from, to] = &snapshot.directories;
            fs::rename(from.join(name), to.join(name)).unwrap();
        }
        snapshot
    }

    /// Writes the manifest of the first directory.
    fn describe(&self, manifest: &str) {
        fs::write(self.directories[0].join("manifest.json"), manifest).unwrap();
    }

    fn run(&self, line: &str, inputs: &[&Path]) -> Output {
        let inputs = inputs.iter().map(|path| path.to_str().unwrap());
        let inputs: Vec<&str> = inputs.chain(["--output", "out"]).collect();
        let _ = fs::remove_dir_all(self.temp.path().join("out"));
        compactor(self.temp.path(), &words_and(line, &inputs))
    }
}

#[test]
fn an_incomplete_snapshot_is_not_purged() {
    let snapshot = Snapshot::new();
    let [first, second] = snapshot.directories.each_ref().map(PathBuf::as_path);
    for line in [
        "merge --complete",
        "compact --major --complete",
        "merge --complete --dry-run",
    ] {
        let missing = "manifest.json: 1 of the snapshot's 5 SSTables";
        let refused = snapshot.run(line, &[first]);
        assert_ends(&refused, 4, missing);
        assert_ends(&refused, 4, "oa-1-big-Data.db");
        assert_done(&snapshot.run(line, &[first, second]));
    }
    // The other directory alone has no manifest.
    let schema = first.join("schema.cql");
    let schema = ["--schema", schema.to_str().unwrap()];
    let line = words_and("merge --complete --format json", &schema).join(" ");
    let merged = json(&snapshot.run(&line, &[second]));
    let warnings = merged["warnings"].to_string();
    assert!(warnings.contains("no manifest.json"), "{warnings}");
    assert_done(&snapshot.run("merge", &[first]));
    assert_done(&snapshot.run("merge --complete --no-purge", &[first]));
    let overlapping = ["--overlapping", second.to_str().unwrap()];
    assert_done(&snapshot.run(&words_and("merge", &overlapping).join(" "), &[first]));
    // For a single file, the other SSTables of its directory are named, and those of the other directory are not.
    let one = &data_files(first)[0];
    let overlapping = ["--overlapping", first.to_str().unwrap()];
    let refused = snapshot.run(&words_and("merge", &overlapping).join(" "), &[one]);
    assert_ends(&refused, 4, "1 of the snapshot's 5 SSTables");

    let of_many = ["nb-7", "nb-8", "nb-9", "nb-10", "nb-11"].map(|id| format!("{id}-big-Data.db"));
    snapshot.describe(&serde_json::json!({ "files": of_many }).to_string());
    let refused = snapshot.run("merge --complete", &[first, second]);
    assert_ends(&refused, 4, "and 2 more");
}

/// Cassandra 6.0 writes the manifest of all SSTables into the snapshot's directory in each data directory.
#[test]
fn each_data_directory_may_have_the_manifest_of_the_snapshot() {
    let snapshot = Snapshot::new();
    let [first, second] = snapshot.directories.each_ref().map(PathBuf::as_path);
    let ids = |ids: &[&str]| -> Vec<String> {
        let names = ids.iter().map(|id| format!("oa-{id}-big-Data.db"));
        names.collect()
    };
    let at = "2026-11-29T18:10:38.201Z";
    let describe = |directory: &Path, files: &[String], at: &str| {
        let manifest = serde_json::json!({ "files": files, "created_at": at, "expires_at": null });
        fs::write(directory.join("manifest.json"), manifest.to_string()).unwrap();
    };
    describe(first, &ids(&["1", "2", "3", "4", "5"]), at);
    describe(second, &ids(&["5", "4", "3", "2", "1"]), at);
    let missing = "1 of the snapshot's 5 SSTables";
    assert_ends(&snapshot.run("merge --complete", &[first]), 4, missing);
    let refused = snapshot.run("merge --complete", &[second]);
    assert_ends(&refused, 4, "4 of the snapshot's 5 SSTables");
    for line in ["merge --complete", "compact --major --complete"] {
        assert_done(&snapshot.run(line, &[first, second]));
    }
    let overlapping = ["--overlapping", second.to_str().unwrap()];
    let beside = words_and("merge", &overlapping).join(" ");
    assert_done(&snapshot.run(&beside, &[first]));
    // Two lists are of two snapshots.
    describe(second, &ids(&["1", "2", "3", "4"]), at);
    let refused = snapshot.run("merge --complete", &[first, second]);
    assert_ends(&refused, 4, missing);
    // Another node's snapshot of equal names.
    describe(
        second,
        &ids(&["1", "2", "3", "4", "5"]),
        "2026-11-29T18:10:38.202Z",
    );
    let refused = snapshot.run("merge --complete", &[first, second]);
    assert_ends(&refused, 4, missing);
    assert_ends(&snapshot.run(&beside, &[first]), 4, missing);
}

/// Data directories that were rewritten separately may have SSTables of one name.
#[test]
fn a_name_that_is_listed_twice_is_looked_for_in_two_directories() {
    let snapshot = Snapshot::new();
    let [first, second] = snapshot.directories.each_ref().map(PathBuf::as_path);
    for name in names_in(second) {
        let other = name.replacen("-1-", "-2-", 1);
        fs::rename(second.join(name), second.join(other)).unwrap();
    }
    let files = ["2", "2", "3", "4", "5"].map(|id| format!("oa-{id}-big-Data.db"));
    snapshot.describe(&serde_json::json!({ "files": files }).to_string());
    let missing = "1 of the snapshot's 5 SSTables";
    assert_ends(&snapshot.run("merge --complete", &[first]), 4, missing);
    assert_done(&snapshot.run("merge --complete", &[first, second]));
}

/// Nodes give equal names to their SSTables.
#[test]
fn the_sstables_of_one_snapshot_are_not_taken_for_those_of_another() {
    let snapshot = Snapshot::new();
    let [first, second] = snapshot.directories.each_ref().map(PathBuf::as_path);
    let others = [first, second].map(|directory| {
        let below = directory.strip_prefix(snapshot.temp.path()).unwrap();
        let other = snapshot.temp.path().join("other-node").join(below);
        copy_files(directory, &other);
        other
    });
    let all = [first, second, &others[0], &others[1]];
    let run = |inputs: &[&Path]| snapshot.run("merge --complete --dry-run", inputs);
    assert_done(&run(&all));
    // Each node has an SSTable 1 in its second data directory.
    let missing = "1 of the snapshot's 5 SSTables";
    assert_ends(&run(&all[..3]), 4, missing);
    for name in names_in(&others[0])
        .iter()
        .filter(|name| name.contains("-3-"))
    {
        fs::remove_file(others[0].join(name)).unwrap();
    }
    let refused = run(&all);
    assert_ends(&refused, 4, missing);
    assert_ends(&refused, 4, "oa-3-big-Data.db");
    // Snapshots of one node have hard links to the same files.
    let later = first.with_file_name("later");
    fs::create_dir(&later).unwrap();
    for name in names_in(first) {
        fs::hard_link(first.join(&name), later.join(&name)).unwrap();
    }
    let listed = data_files(&later);
    let listed = listed
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap());
    let manifest = serde_json::json!({ "files": listed.collect::<Vec<_>>() }).to_string();
    fs::remove_file(later.join("manifest.json")).unwrap();
    fs::write(later.join("manifest.json"), manifest).unwrap();
    assert_done(&run(&[first, second, &later]));
}

#[test]
fn a_manifest_that_cannot_be_read_is_a_note() {
    let snapshot = Snapshot::new();
    let [first, second] = snapshot.directories.each_ref().map(PathBuf::as_path);
    let deep = "[".repeat(100_000);
    for odd in [
        "",
        "[]",
        "{\"files\": 7}",
        "{\"files\": [\"\\u0000\", 7]}",
        "\0",
        &deep,
    ] {
        snapshot.describe(odd);
        let merged = json(&snapshot.run("merge --complete --format json", &[first, second]));
        let warnings = merged["warnings"].to_string();
        assert!(
            warnings.contains("is not the manifest of a snapshot"),
            "{odd}: {warnings}"
        );
    }
    snapshot.describe("{\"files\": [\"\\u0000\", \"\", \"/\", \"nb-1-big-Index.db\"]}");
    json(&snapshot.run("merge --complete --format json", &[first, second]));
    let manifest = first.join("manifest.json");
    fs::remove_file(&manifest).unwrap();
    fs::create_dir(&manifest).unwrap();
    let merged = json(&snapshot.run("merge --complete --format json", &[first, second]));
    let warnings = merged["warnings"].to_string();
    assert!(warnings.contains("is not a file of at most"), "{warnings}");
}

/// The schema and the manifest are in the directory of one disk, and the SSTables in that of another.
#[test]
fn a_directory_may_have_only_the_schema_and_the_manifest() {
    let snapshot = Snapshot::new();
    let [first, second] = snapshot.directories.each_ref().map(PathBuf::as_path);
    for name in names_in(first)
        .iter()
        .filter(|name| name.starts_with("oa-"))
    {
        fs::rename(first.join(name), second.join(name)).unwrap();
    }
    let verify = |inputs: &[&Path]| {
        let inputs: Vec<&str> = inputs.iter().map(|path| path.to_str().unwrap()).collect();
        compactor(snapshot.temp.path(), &words_and("verify", &inputs))
    };
    let merge = "merge --complete --format json";
    for inputs in [[first, second], [second, first]] {
        json(&snapshot.run(merge, &inputs));
        assert_done(&snapshot.run("compact --dry-run", &inputs));
        assert_done(&snapshot.run("upgrade --compression zstd", &inputs));
        assert_done(&verify(&inputs));
    }
    assert_ends(&verify(&[first]), 2, "no SSTables here");
    assert_ends(&snapshot.run("merge", &[first]), 2, "no SSTables here");
    assert_ends(
        &snapshot.run("merge", &[first, first]),
        2,
        "no SSTables here",
    );
    // Its manifest counts.
    fs::rename(
        second.join("oa-1-big-Data.db"),
        snapshot.temp.path().join("moved"),
    )
    .unwrap();
    for name in names_in(second)
        .iter()
        .filter(|name| name.starts_with("oa-1-"))
    {
        fs::remove_file(second.join(name)).unwrap();
    }
    assert_ends(
        &snapshot.run(merge, &[first, second]),
        4,
        "oa-1-big-Data.db",
    );
    // The manifest of another table does not count.
    let other = snapshot
        .temp
        .path()
        .join("data1/ks/other-05a9c7e45d291272abc5f3bdacee24cf/snapshots/s");
    copy_files(first, &other);
    assert_ends(
        &snapshot.run("merge", &[&other, second]),
        2,
        "inputs are not of one table",
    );
    // Without either file the directory is not taken for one of a snapshot.
    fs::remove_file(first.join("schema.cql")).unwrap();
    assert_done(&snapshot.run("merge", &[first, second]));
    fs::remove_file(first.join("manifest.json")).unwrap();
    assert_ends(
        &snapshot.run("merge", &[first, second]),
        2,
        "no SSTables here",
    );
}

/// A node has a strategy of its own for each data directory.
#[test]
fn sstables_of_several_data_directories_are_compacted_separately() {
    let snapshot = Snapshot::new();
    let [first, second] = snapshot.directories.each_ref().map(PathBuf::as_path);
    let plan = |inputs: &[&Path], options: &str| {
        let inputs = inputs.iter().map(|path| path.to_str().unwrap());
        let inputs: Vec<&str> = inputs.chain(words(options)).collect();
        compactor(snapshot.temp.path(), &words_and("plan", &inputs))
    };
    let planned = json(&plan(&[first, second], "--format json"));
    assert_eq!(planned["tasks"].as_array().map(Vec::len), Some(1));
    let task = &planned["tasks"][0];
    assert_eq!(task["inputs"].as_array().map(Vec::len), Some(4));
    let of = |directory: &Path| directory.ancestors().nth(2).unwrap().to_owned();
    assert_eq!(task["directory"], of(first).to_str().unwrap());
    let mut idle = planned["idle"].as_array().unwrap().iter();
    assert!(idle.any(|idle| idle["directory"] == of(second).to_str().unwrap()));
    let idle = format!("unrepaired in {}: no more", of(second).display());
    assert_prints(&plan(&[first, second], ""), &idle);
    let alone = json(&plan(&[first], "--format json"));
    assert_eq!(alone["tasks"][0]["directory"], Value::Null);

    for (line, outputs, untouched) in [("compact", 1, 1), ("compact --major", 2, 0)] {
        let line = format!("{line} --complete --format json");
        let report = json(&snapshot.run(&line, &[first, second]));
        assert_eq!(report["outputs"].as_array().map(Vec::len), Some(outputs));
        assert_eq!(
            report["untouched"].as_array().map(Vec::len),
            Some(untouched)
        );
        let warnings = report["warnings"].to_string();
        assert!(warnings.contains("2 data directories"), "{warnings}");
    }
    // Copies belong to no data directory.
    let copies = ["copy1", "copy2"].map(|name| snapshot.temp.path().join(name));
    copy_files(first, &copies[0]);
    copy_files(second, &copies[1]);
    let planned = json(&plan(&[&copies[0], &copies[1]], "--format json"));
    assert_eq!(
        planned["tasks"][0]["inputs"].as_array().map(Vec::len),
        Some(5)
    );
}

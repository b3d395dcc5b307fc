//! `compactor doctor` in directories of different kinds.

use std::path::Path;
use std::process::Output;

use compactor_testkit::machine::disk_directory;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{assert_ends, compactor, is_empty, json, stdout, words_and};

fn doctor(directory: &Path, arguments: &[&str]) -> Output {
    compactor(directory, &words_and("doctor", arguments))
}

fn found(directory: &Path, arguments: &[&str]) -> Value {
    json(&doctor(directory, &words_and("--format json", arguments)))
}

#[test]
fn auto_chooses_modes_that_work() {
    let temp = disk_directory();
    let found = found(temp.path(), &[]);
    assert_eq!(found["writable"]["status"], "works");
    assert_eq!(
        found["directory"],
        temp.path().canonicalize().unwrap().to_str().unwrap()
    );
    let direct = found["direct_io"]["status"] == "works";
    let mode = if direct { "direct" } else { "dontneed" };
    assert_eq!(found["auto"]["read"]["mode"], mode, "{found}");
    assert_eq!(found["auto"]["write"]["mode"], mode, "{found}");
    assert_eq!(direct, found["direct_io_alignment"].is_object());
    let uring = found["io_uring"]["status"] == "works";
    assert_eq!(
        found["auto"]["backend"]["mode"],
        if uring { "uring" } else { "threads" }
    );
    assert!(is_empty(temp.path()), "it leaves nothing behind");
}

#[test]
fn text_and_json_agree() {
    let temp = disk_directory();
    let found = found(temp.path(), &[]);
    let text = stdout(&doctor(temp.path(), &[]));
    let mark_of = |label: &str| {
        let line = text.lines().find(|l| l.contains(label)).unwrap();
        line.trim_start().split(' ').next().unwrap().to_owned()
    };
    for (label, field) in [
        ("direct I/O ", "direct_io"),
        ("io_uring ", "io_uring"),
        ("RWF_DONTCACHE ", "dontcache"),
        ("cachestat ", "cachestat"),
        ("writable ", "writable"),
    ] {
        let mark = match found[field]["status"].as_str().unwrap() {
            "works" => "[+]",
            "fails" => "[-]",
            _ => "[?]",
        };
        assert_eq!(mark_of(label), mark, "{text}");
    }
    let mode = found["auto"]["read"]["mode"].as_str().unwrap();
    let line = text.lines().find(|l| l.contains("--read-io ")).unwrap();
    assert!(line.contains(mode), "{text}");
}

#[test]
fn tmpfs_is_reported_as_memory() {
    let shm = Path::new("/dev/shm");
    if !shm.is_dir() {
        eprintln!("no /dev/shm here");
        return;
    }
    let found = found(shm, &["."]);
    if found["mount"]["file_system"] == "tmpfs" {
        assert_eq!(found["direct_io"]["status"], "fails");
        assert_eq!(found["auto"]["read"]["mode"], "dontneed");
        assert!(
            found["advice"][0].as_str().unwrap().contains("in memory"),
            "{found}"
        );
    }
}

#[test]
fn a_file_stands_for_its_directory() {
    let temp = disk_directory();
    std::fs::write(temp.path().join("nb-1-big-Data.db"), b"x").unwrap();
    let found = found(temp.path(), &["nb-1-big-Data.db"]);
    assert_eq!(
        found["directory"],
        temp.path().canonicalize().unwrap().to_str().unwrap()
    );
}

#[test]
fn a_missing_directory_is_named() {
    let temp = TempDir::new().unwrap();
    let output = doctor(temp.path(), &["missing"]);
    assert_ends(&output, 2, "missing: no such file or directory");
}

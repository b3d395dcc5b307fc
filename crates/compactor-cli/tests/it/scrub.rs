//! `compactor scrub` from the command line: its output and exit codes.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use compactor_testkit::machine::has_strace;

use crate::support::{
    assert_done, assert_ends, assert_prints, data_files, flip, generated, stderr, stdout, words,
};

fn run(command: &str, arguments: &[&dyn AsRef<OsStr>]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_compactor"))
        .arg(command)
        .args(arguments.iter().map(|argument| argument.as_ref()))
        .output()
        .unwrap()
}

/// The `Data.db` of a table of one SSTable of a thousand rows.
fn table(directory: &Path) -> PathBuf {
    let table = generated(directory, &words("--rows 1000 --sstables 1"));
    data_files(&table).remove(0)
}

#[test]
fn an_intact_sstable_exits_with_0_and_nothing_lost() {
    let place = tempfile::tempdir().unwrap();
    let data = table(place.path());
    let out = place.path().join("out");
    let output = run("scrub", &[&data, &"--output", &out, &"--verify"]);
    assert_done(&output);
    assert_prints(&output, "NOTHING LOST");
    assert_eq!(data_files(&out).len(), 1);
}

#[test]
fn losses_are_listed_and_exit_with_3() {
    let place = tempfile::tempdir().unwrap();
    let data = table(place.path());
    flip(&data, 3000);
    let before = fs::read(&data).unwrap();
    let out = place.path().join("out");
    let output = run("scrub", &[&data, &"--output", &out]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("lost: partition at position 0"), "{text}");
    assert!(text.contains("SALVAGED IN PART"), "{text}");
    let files = data_files(&out);
    assert_eq!(run("verify", &[&files[0]]).status.code(), Some(0));
    assert_eq!(fs::read(&data).unwrap(), before);

    let again = run("scrub", &[&data, &"--dry-run", &"--format", &"json"]);
    assert_eq!(again.status.code(), Some(3));
    let document: serde_json::Value = serde_json::from_str(&stdout(&again)).unwrap();
    let report = &document["sstables"][0];
    assert_eq!(document["lossy"], 1);
    assert!(report["output"].is_null());
    let loss = &report["losses"][0];
    assert_eq!(loss["kind"], "partition");
    assert_eq!(loss["file_offset"], 0);
    assert!(loss["token"].is_i64() && loss["partition_key"].is_string());
    assert_eq!(report["loss_count"], report["partitions_lost"]);
}

/// Also those that are not listed: partitions missing from a truncated Data.db are found in the index.
#[test]
fn all_partitions_beyond_the_end_of_the_data_are_counted() {
    let place = tempfile::tempdir().unwrap();
    let options = words("--rows 4000 --sstables 1 --compression none");
    let data = data_files(&generated(place.path(), &options)).remove(0);
    let file = fs::File::options().write(true).open(&data).unwrap();
    file.set_len(file.metadata().unwrap().len() / 4).unwrap();
    let output = run("scrub", &[&data, &"--dry-run", &"--format", &"json"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let document: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    let report = &document["sstables"][0];
    let count = |name: &str| report[name].as_u64().unwrap();
    let kept = count("partitions_good") + count("partitions_cut");
    assert_eq!(kept + count("partitions_lost"), 4000, "{report}");
}

#[test]
fn an_unreadable_sstable_does_not_prevent_scrubbing_the_others() {
    let place = tempfile::tempdir().unwrap();
    let data = table(place.path());
    let name = data.file_name().unwrap().to_str().unwrap();
    let second = data.with_file_name("oa-77-big-Data.db");
    for entry in fs::read_dir(data.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        let prefix = name.strip_suffix("Data.db").unwrap();
        if let Some(suffix) = file.strip_prefix(prefix) {
            let to = second.with_file_name(format!("oa-77-big-{suffix}"));
            fs::copy(&path, to).unwrap();
        }
    }
    flip(&second.with_file_name("oa-77-big-Statistics.db"), 3);
    let out = place.path().join("out");
    let table = data.parent().unwrap();
    let output = run("scrub", &[&table, &"--output", &out, &"--concurrent=2"]);
    assert_ends(&output, 3, "Statistics.db");
    assert_eq!(data_files(&out).len(), 1);
}

#[test]
fn an_output_is_required_and_may_not_be_next_to_the_input() {
    let place = tempfile::tempdir().unwrap();
    let data = table(place.path());
    assert_eq!(run("scrub", &[&data]).status.code(), Some(2));
    let beside = data.parent().unwrap();
    let output = run("scrub", &[&data, &"--output", &beside]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
}

/// Tens of thousands of SSTables would take hours.
#[test]
fn directories_are_not_listed_for_each_sstable() {
    if !has_strace() {
        return;
    }
    for command in [words("scrub"), words("split --size 1KiB")] {
        let lists = |sstables: &str| {
            let place = tempfile::tempdir().unwrap();
            let table = generated(place.path(), &["--rows", "100", "--sstables", sstables]);
            let trace = place.path().join("trace");
            let done = Command::new("strace")
                .args(["-f", "--seccomp-bpf", "-qq", "-e", "trace=openat", "-o"])
                .args([&trace, Path::new(env!("CARGO_BIN_EXE_compactor"))])
                .args(&command)
                .args([&table, Path::new("--output"), &place.path().join("out")])
                .output()
                .unwrap();
            assert_done(&done);
            // Ids are looked up there as well, and nothing else of an SSTable is.
            let parent = table.parent().unwrap().canonicalize().unwrap();
            let opened = format!("\"{}\", ", parent.display());
            let traced = fs::read_to_string(&trace).unwrap();
            traced.lines().filter(|line| line.contains(&opened)).count()
        };
        let of_one = lists("1");
        assert!(of_one > 0);
        assert_eq!(lists("4"), of_one, "{command:?}");
    }
}

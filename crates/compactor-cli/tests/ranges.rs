//! `compactor merge --sub-compactions`: the same files, and what is said of them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn compactor(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_compactor"));
    command.args(args).output().unwrap()
}

fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap();
    entries
        .map(|entry| entry.unwrap().path())
        // It says when they were written.
        .filter(|path| !path.ends_with("compactor-run.json"))
        .map(|path| {
            let name = PathBuf::from(path.file_name().unwrap());
            (name, fs::read(&path).unwrap())
        })
        .collect()
}

#[test]
fn one_output_or_one_for_each_range() {
    let temp = tempfile::tempdir().unwrap();
    let path = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    let generated = compactor(&[
        "generate",
        "--output",
        &path("data"),
        "--sstables",
        "2",
        "--size",
        "3MiB",
        "--format",
        "json",
    ]);
    assert!(generated.status.success(), "{generated:?}");
    let generated: serde_json::Value = serde_json::from_slice(&generated.stdout).unwrap();
    let data = generated["sstables"][0]["data_path"].as_str().unwrap();
    let table = Path::new(data).parent().unwrap().to_str().unwrap();
    let merge = |output: &str, more: &[&str]| {
        let output = path(output);
        let mut args = vec![
            "merge", table, "--flat", "--output", &output, "--memory", "4MiB",
        ];
        args.extend(more);
        compactor(&args)
    };
    let whole = merge("whole", &["--sub-compactions", "1"]);
    let text = String::from_utf8(whole.stdout).unwrap();
    assert!(whole.status.success() && !text.contains("ranges"), "{text}");
    let cut = merge("cut", &["--sub-compactions", "3", "--format", "json"]);
    assert!(cut.status.success(), "{cut:?}");
    let report: serde_json::Value = serde_json::from_slice(&cut.stdout).unwrap();
    assert!(report["ranges"].as_u64().unwrap() > 2, "{report}");
    let warnings = report["warnings"].to_string();
    assert!(!warnings.contains("not cut"), "{report}");
    assert!(files(&temp.path().join("cut")) == files(&temp.path().join("whole")));

    let two = merge("two", &["--sub-compactions", "2", "--output-per-range"]);
    let text = String::from_utf8(two.stdout).unwrap();
    assert!(two.status.success(), "{text}");
    assert!(text.contains("into 2 of them"), "{text}");
    assert!(text.contains("  ranges      "), "{text}");

    assert!(!text.contains("asked for"), "{text}");
    let many = merge("many", &["--sub-compactions", "100", "--output-per-range"]);
    let text = String::from_utf8(many.stdout).unwrap();
    let note = "note: outputs asked for: 100, written: ";
    assert!(many.status.success() && text.contains(note), "{text}");

    let uncut = merge(
        "uncut",
        &["--sub-compactions", "2", "--max-sstable-size", "1GiB"],
    );
    let text = String::from_utf8(uncut.stdout).unwrap();
    let note = "note: the merge was not cut into ranges: outputs of a greatest size";
    assert!(uncut.status.success() && text.contains(note), "{text}");

    for wrong in [
        &["--output-per-range"][..],
        &["--sub-compactions", "0"],
        &["--sub-compactions", "-1"],
        &[
            "--sub-compactions",
            "2",
            "--output-per-range",
            "--max-sstable-size",
            "1GiB",
        ],
    ] {
        let refused = merge("refused", wrong);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(!temp.path().join("refused").exists());
    }
}

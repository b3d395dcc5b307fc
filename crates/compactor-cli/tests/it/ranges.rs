//! `compactor merge` with several threads: the same files, and what is said of them; and several outputs.

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
        // It contains the time of writing.
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
    let whole = merge("whole", &["--threads", "1"]);
    let text = String::from_utf8(whole.stdout).unwrap();
    assert!(whole.status.success() && !text.contains("ranges"), "{text}");
    let cut = merge("cut", &["--threads", "3", "--format", "json"]);
    assert!(cut.status.success(), "{cut:?}");
    let report: serde_json::Value = serde_json::from_slice(&cut.stdout).unwrap();
    assert!(report["ranges"].as_u64().unwrap() > 2, "{report}");
    let warnings = report["warnings"].to_string();
    assert!(!warnings.contains("split"), "{report}");
    assert!(
        report["serial"]["order_s"].as_f64().unwrap() > 0.0,
        "{report}"
    );
    assert!(files(&temp.path().join("cut")) == files(&temp.path().join("whole")));

    let two = merge("two", &["--outputs", "2"]);
    let text = String::from_utf8(two.stdout).unwrap();
    assert!(two.status.success(), "{text}");
    assert!(text.contains("into 2 of them"), "{text}");
    assert!(text.contains("  ranges      "), "{text}");

    assert!(!text.contains("were requested"), "{text}");
    let many = merge("many", &["--outputs", "64"]);
    let text = String::from_utf8(many.stdout).unwrap();
    assert!(many.status.success(), "{text}");
    assert!(text.contains("into 64 of them"), "{text}");

    for wrong in [
        &["--outputs", "0"][..],
        &["--outputs", "-1"],
        &["--outputs", "2", "--max-sstable-size", "1GiB"],
    ] {
        let refused = merge("refused", wrong);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(!temp.path().join("refused").exists());
    }
}

//! `compactor merge` with several threads: identical files, and the messages about ranges; and several outputs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::{compactor, generated, json, names_in, words};

fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut names = names_in(directory);
    // The record contains the time of writing.
    names.retain(|name| name != "compactor-run.json");
    let file = |name: String| {
        let bytes = fs::read(directory.join(&name)).unwrap();
        (name, bytes)
    };
    names.into_iter().map(file).collect()
}

#[test]
fn one_output_or_one_for_each_range() {
    let temp = tempfile::tempdir().unwrap();
    let path = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    let table = generated(temp.path(), &words("--sstables 2 --size 3MiB"));
    let table = table.to_str().unwrap();
    let merge = |output: &str, more: &[&str]| {
        let output = path(output);
        let mut args = vec![
            "merge", table, "--flat", "--output", &output, "--memory", "4MiB",
        ];
        args.extend(more);
        compactor(temp.path(), &args)
    };
    let whole = merge("whole", &["--threads", "1"]);
    let text = String::from_utf8(whole.stdout).unwrap();
    assert!(whole.status.success() && !text.contains("ranges"), "{text}");
    let cut = merge("cut", &["--threads", "3", "--format", "json"]);
    let report = json(&cut);
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

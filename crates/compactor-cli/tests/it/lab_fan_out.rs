//! `compactor lab fan-out` from the command line.

use std::path::Path;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{assert_done, assert_ends, compactor, is_empty, stdout, words_and};

fn lab(words: &[&str]) -> Output {
    compactor(Path::new("."), &words_and("lab", words))
}

fn fan_out(directory: &Path, words: &[&str]) -> Output {
    let directory = directory.to_str().unwrap();
    lab(&[&["fan-out", "--quick", "--directory", directory], words].concat())
}

#[test]
fn a_comparison_ends_with_tables_the_json_and_a_page_and_is_shown_again() {
    let directory = tempfile::tempdir_in("/dev/shm")
        .or_else(|_| TempDir::new())
        .unwrap();
    let results = TempDir::new().unwrap();
    let path = |name: &str| results.path().join(name).to_str().unwrap().to_owned();
    let (json, html) = (path("fan-out.json"), path("fan-out.html"));
    let small = ["--dataset", "6MiB", "--flush-size", "512KiB", "--seed", "7"];
    let output = fan_out(
        directory.path(),
        &[&small[..], &["--json", &json, "--html", &html]].concat(),
    );
    assert_done(&output);
    assert!(is_empty(directory.path()));
    let text = stdout(&output);
    for word in [
        "m=4, 6 MiB",
        "level count",
        "formula",
        "published",
        "verified SSTables",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let found: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(found["experiment"], "fan_out");
    assert_eq!(found["options"]["seed"], 7);
    for run in found["runs"].as_array().unwrap() {
        assert_eq!(run["damaged_sstables"], 0, "{run}");
        for name in ["measured", "simulated"] {
            assert!(
                run[name]["compacted_bytes"].as_f64().unwrap() > 0.0,
                "{run}"
            );
        }
    }
    assert!(std::fs::read_to_string(&html).unwrap().contains("<svg"));
    let again = lab(&["report", &json]);
    // The same except for its name.
    let after_name = |text: &str| text.split_once('\n').unwrap().1.to_owned();
    assert_eq!(after_name(&stdout(&again)), after_name(&text));
}

#[test]
fn wrong_options_are_refused_by_name() {
    let directory = TempDir::new().unwrap();
    for (words, name) in [
        (["--sstable-size", "1.5MiB"], "--sstable-size"),
        (["--sstable-size", "100KiB"], "--sstable-size"),
        (["--flush-size", "1KiB"], "--flush-size"),
        (["--dataset", "1MiB"], "--dataset"),
        (["--duration", "1h"], "--duration"),
        (["--ttl", "1s"], "--ttl"),
        (["--seed", "-1"], "--seed"),
    ] {
        let output = fan_out(directory.path(), &words);
        assert_ends(&output, 2, name);
    }
    assert!(is_empty(directory.path()));
}

#[test]
fn help_has_an_example() {
    let help = stdout(&lab(&["fan-out", "--help"]));
    assert!(help.contains("compactor lab fan-out --quick"), "{help}");
}

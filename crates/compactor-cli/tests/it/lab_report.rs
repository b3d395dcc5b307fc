//! `compactor lab report` of saved results.

use std::path::Path;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{assert_ends, compactor, printed, words_and};

const EXAMPLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../compactor-lab/tests/data/outcome.json"
);

const CHUNK_LENGTH: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../compactor-lab/tests/data/chunk_length.json"
);

fn report(directory: &Path, arguments: &[&str]) -> Output {
    compactor(directory, &words_and("lab report", arguments))
}

#[test]
fn the_same_figures_in_every_form() {
    let temp = TempDir::new().unwrap();
    let text = printed(&report(temp.path(), &[EXAMPLE, "--html", "report.html"]));
    // p99 of the two valid runs of three, in ms.
    assert!(text.contains("2 of 3"), "{text}");
    assert!(text.contains("0.425–0.446"), "{text}");
    let html = std::fs::read_to_string(temp.path().join("report.html")).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("0.425–0.446"));
    let markdown = printed(&report(temp.path(), &[EXAMPLE, "--format", "markdown"]));
    assert!(
        markdown.contains("| direct/direct | 2 of 3 |"),
        "{markdown}"
    );
    let json = printed(&report(
        temp.path(),
        &[EXAMPLE, EXAMPLE, "--format", "json"],
    ));
    let json: Value = serde_json::from_str(&json).unwrap();
    let arm = &json[1]["points"][0]["arms"][2];
    assert_eq!(
        (&arm["arm"], &arm["counted"]),
        (&"direct/direct".into(), &2.into())
    );
    let p99 = arm["figures"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["figure"] == "p99_ns");
    assert_eq!(p99.unwrap()["least"], 425_461.0);
}

#[test]
fn a_picture_has_all_arms_over_time() {
    let temp = TempDir::new().unwrap();
    printed(&report(temp.path(), &[EXAMPLE, "--svg", "p99.svg"]));
    let svg = std::fs::read_to_string(temp.path().join("p99.svg")).unwrap();
    assert!(svg.starts_with("<svg xmlns=") && svg.contains("prefers-color-scheme:dark"));
    for arm in ["idle", "buffered/buffered", "direct/direct"] {
        assert!(svg.contains(&format!(">{arm}</text>")), "{svg}");
    }
    for other in [&[EXAMPLE, EXAMPLE][..], &[CHUNK_LENGTH]] {
        let arguments = [other, &["--svg", "none.svg"]].concat();
        let output = report(temp.path(), &arguments);
        assert_ends(&output, 2, "--svg needs a single result");
        assert!(!temp.path().join("none.svg").exists());
    }
}

#[test]
fn files_that_are_not_results_are_refused() {
    let temp = TempDir::new().unwrap();
    let write = |name: &str, text: &str| std::fs::write(temp.path().join(name), text).unwrap();
    write(
        "later.json",
        "{\"format_version\": 77, \"points\": \"of another shape\"}",
    );
    write("other.json", "{\"jobs\": []}");
    write(
        "cut.json",
        &std::fs::read_to_string(EXAMPLE).unwrap()[..5000],
    );
    for (file, reason) in [
        ("later.json", "of format 77"),
        (
            "other.json",
            "not what `compactor lab interference --json` writes",
        ),
        (
            "cut.json",
            "not what `compactor lab interference --json` writes",
        ),
        ("missing.json", "missing.json: no such file"),
    ] {
        let output = report(temp.path(), &[file, "--html", "x.html"]);
        assert_ends(&output, 2, reason);
        assert!(!temp.path().join("x.html").exists());
    }
}

/// Output of `compactor lab fio --json`.
const FIO: &str = r#"{"fio_version":"fio-3.33","directory":"/data","options":{
"profiles":["ceiling-sequential-read","ceiling-sequential-write"],"repeats":1,"hot_bytes":1,
"input_bytes":1,"rate_bytes_per_s":1,"reads_per_thread":1,"runtime_s":1},"end":"complete","runs":[
{"profile":"ceiling-sequential-read","repeat":0,"failure":null,"jobs":[{"name":"sequential-read",
"bytes_per_s":671088640.0,"requests_per_s":640.0,"mean_ns":1e5,"p50_ns":1e5,"p99_ns":2e6,"p999_ns":3e6,
"max_ns":4e6}]},
{"profile":"ceiling-sequential-write","repeat":0,"failure":null,"jobs":[{"name":"sequential-write",
"bytes_per_s":335544320.0,"requests_per_s":320.0,"mean_ns":1e5,"p50_ns":1e5,"p99_ns":2e6,"p999_ns":3e6,
"max_ns":4e6}]}]}"#;

#[test]
fn the_report_contains_the_ceilings_of_the_device() {
    let temp = TempDir::new().unwrap();
    std::fs::write(temp.path().join("fio.json"), FIO).unwrap();
    let arguments = [EXAMPLE, "--ceilings", "fio.json", "--html", "report.html"];
    let text = printed(&report(temp.path(), &arguments));
    // 64 MiB/s of 640.
    let row = |line: &&str| line.contains("direct/direct") && line.contains("10.0%");
    assert!(text.lines().any(|line| row(&line)), "{text}");
    let html = std::fs::read_to_string(temp.path().join("report.html")).unwrap();
    assert!(html.contains("The device by itself"));
    let markdown = printed(&report(
        temp.path(),
        &[EXAMPLE, "--ceilings", "fio.json", "--format", "markdown"],
    ));
    assert!(markdown.contains("| ceiling-sequential-read | 1 | 640 |"));
    for (arguments, reason) in [
        (
            &[EXAMPLE, EXAMPLE, "--ceilings", "fio.json"][..],
            "one result",
        ),
        (
            &[EXAMPLE, "--ceilings", EXAMPLE],
            "not what `compactor lab fio",
        ),
    ] {
        let output = report(temp.path(), arguments);
        assert_eq!(output.status.code(), Some(2));
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains(reason), "{message}");
    }
}

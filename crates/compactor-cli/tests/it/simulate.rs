//! `compactor simulate` from the command line.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::text;

fn simulate(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_compactor"))
        .arg("simulate")
        .args(arguments)
        .output()
        .unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let out = simulate(&[arguments, &["--format", "json"]].concat());
    assert!(out.status.success(), "{}", text(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// A simulation of leveled compaction, and the analytical model.
#[test]
fn a_simulation_has_figures_and_the_model() {
    let found = json(&[
        "leveled",
        "--ingest",
        "1MiB/s",
        "--ttl",
        "2h",
        "--gc-grace-seconds",
        "60",
        "--sstable-size",
        "160MiB",
        "--fanout-size",
        "10",
        "--duration",
        "8h",
    ]);
    assert_eq!(found["strategy"], "LeveledCompactionStrategy");
    let number = |name: &str| found[name].as_f64().unwrap();
    assert!(number("write_mb_per_s") > 2.0);
    // 1 MiB/s: the same number.
    assert!((number("write_amplification") - number("write_mb_per_s")).abs() < 0.1);
    assert!(number("levels") > 1.0 && number("dataset_bytes") > 7e9);
    let model = &found["model"];
    // ln(7200 / 160) / ln(10).
    assert!((model["levels"].as_f64().unwrap() - 1.653).abs() < 0.001);
    assert!((model["write_mb_per_s"].as_f64().unwrap() - 19.19).abs() < 0.01);
    assert!(found["samples"].as_array().unwrap().len() > 100);
}

#[test]
fn strategies_are_compared_in_one_table_and_one_page() {
    let temp = TempDir::new().unwrap();
    let page = temp.path().join("page.html");
    let compare = [
        "--compare",
        "size-tiered,leveled,unified:scaling_parameters=L4,T4",
        "--duration",
        "10h",
    ];
    let html = ["--html", page.to_str().unwrap()];
    let out = simulate(&[&compare[..], &html].concat());
    assert!(out.status.success(), "{}", text(&out.stderr));
    let table = text(&out.stdout);
    for name in ["size-tiered", "leveled", "unified scaling_parameters=L4,T4"] {
        assert!(table.contains(name), "{table}");
    }
    let page = fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("<svg").count(), 6);
    let runs = json(&compare);
    assert_eq!(runs["runs"].as_array().unwrap().len(), 3);
}

#[test]
fn an_option_is_swept() {
    let sweep = |option| json(&["leveled", "--duration", "10h", "--sweep", option]);
    let found = sweep("fanout-size=3..6");
    let values = found["runs"].as_array().unwrap().iter();
    let values: Vec<&Value> = values.map(|run| &run["value"]).collect();
    assert_eq!(values, [3.0, 4.0, 5.0, 6.0]);
    let flushes = sweep("flush-size=64MiB,256MiB");
    assert_eq!(flushes["runs"][1]["name"], "flush-size 256MiB");
    assert_ne!(flushes["runs"][0]["sstables"], Value::Null);
    let durations = simulate(&["leveled", "--sweep", "duration=1h,2h"]);
    assert!(!text(&durations.stdout).contains("30d"), "{durations:?}");
    let others = sweep("tombstone-threshold=0.2,0.4");
    assert_eq!(others["runs"][0]["name"], "tombstone-threshold 0.2");
}

#[test]
fn a_table_is_simulated_from_its_sstables() {
    let temp = TempDir::new().unwrap();
    let out = Command::new(env!("CARGO_BIN_EXE_compactor"))
        .args(["generate", "--size", "20KiB", "--sstables", "5"])
        .args(["--output", "data", "--format", "json"])
        .current_dir(temp.path())
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    let table = temp
        .path()
        .join(report["table_directory"].as_str().unwrap());
    let found = json(&[
        "size-tiered",
        "--duration",
        "1h",
        "--from",
        table.to_str().unwrap(),
    ]);
    // The five SSTables are compacted at the start.
    assert!(found["compactions"]["merges"].as_u64().unwrap() > 0);
    assert!(text(found["caveats"][0].as_str().unwrap().as_bytes()).contains("estimated"));
    std::fs::write(table.join("oa-2-big-Statistics.db"), "x").unwrap();
    let from = table.to_str().unwrap();
    let damaged = simulate(&["size-tiered", "--duration", "1h", "--from", from]);
    assert_eq!(damaged.status.code(), Some(3), "{damaged:?}");
    let stdout = text(&damaged.stdout);
    assert!(stdout.contains("since unreadable: 1 SSTable"), "{stdout}");
}

#[test]
fn bad_options_are_refused_by_name() {
    let cases: [(&[&str], &str); 28] = [
        (
            &["leveled:fanout_size=4", "--fanout-size", "5"],
            "fanout_size is set twice, to 4 and 5",
        ),
        (
            &[
                "leveled",
                "--fanout-size",
                "5",
                "--sweep",
                "fanout_size=2..4",
            ],
            "--fanout-size and --sweep fanout-size",
        ),
        (
            &["leveled:fanout_size=4", "--sweep", "fanout-size=2,3"],
            "fanout_size is set twice",
        ),
        (
            &["leveled", "--ttl", "1d", "--sweep", "ttl=1d,2d"],
            "--ttl and --sweep ttl",
        ),
        (
            &["leveled", "--ingest", "1MiB/s", "--sweep", "ingest=1MiB/s"],
            "--ingest and --sweep ingest",
        ),
        (
            &["leveled", "--sweep", "updates=0,x"],
            "updates x: invalid value 'x' for '--updates <PART>'",
        ),
        (
            &["leveled", "--sweep", "distribution=foo"],
            "[possible values: uniform, zipf, time-ordered]",
        ),
        (
            &["leveled", "--sweep", "updates=0,1"],
            "updates 1: updates and deletes find too few rows",
        ),
        (
            &["leveled", "--row-size", "1GiB", "--flush-size", "1MiB"],
            "greater than a flush",
        ),
        (&[], "STRATEGY"),
        (&["levelled"], "is no strategy"),
        (
            &["leveled", "--fanout-size", "0"],
            "fanout_size must be larger than 0",
        ),
        (&["leveled", "--fanout-size", "x"], "fanout_size"),
        (
            &["leveled", "--sstable-size", "100KB"],
            "sstable_size_in_mb",
        ),
        (
            &["leveled", "--strategy-option", "fanout=4"],
            "[fanout] are not understood",
        ),
        (
            &["leveled", "--scaling-parameters", "T4"],
            "--scaling-parameters is no option",
        ),
        (
            &["size-tiered", "--min-threshold", "1"],
            "cannot be less than 2",
        ),
        (
            &[
                "size-tiered",
                "--min-threshold",
                "9",
                "--max-threshold",
                "8",
            ],
            "cannot be greater",
        ),
        (&["unified", "--scaling-parameters", "Q6"], "Q6"),
        (
            &["time-window", "--window", "90s"],
            "a window is a number of minutes",
        ),
        (
            &["level-count", "--levels", "8"],
            "level_count must be between 1 and 7",
        ),
        (&["leveled", "--updates", "1.5"], "0 to 1"),
        (&["leveled", "--ingest", "0"], "1B/s"),
        (
            &["leveled", "--updates", "0.6", "--deletes", "0.6"],
            "together",
        ),
        (&["leveled", "--zipf-exponent", "1"], "--distribution zipf"),
        (&["leveled", "--duration", "1s"], "first flush"),
        (&["leveled", "--sweep", "ttl=1h..5h"], "whole numbers"),
        (
            &["leveled", "--sweep", "fanout-size=9..2"],
            "not be greater than TO",
        ),
    ];
    for (arguments, words) in cases {
        let out = simulate(arguments);
        let printed = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{arguments:?}: {printed}");
        assert!(printed.contains(words), "{arguments:?}: {printed}");
        assert!(out.stdout.is_empty(), "{arguments:?}");
    }
}

/// Not the code of the signal's default action, which process 1 of a container ignores.
#[test]
fn an_interrupted_simulation_exits_with_130() {
    for name in ["INT", "TERM", "HUP"] {
        // Signals are sent once SIGTERM is caught.
        let script = format!(
            "env --default-signal=HUP {} simulate leveled --duration 1000d --ingest 100MiB/s \
                --compaction-throughput none --format json & \
             for look in $(seq 500); do \
                grep -q 'SigCgt:.*[4-7c-f]...$' /proc/$!/status && break; sleep 0.01; \
             done; \
             kill -s {name} $!; wait $!",
            env!("CARGO_BIN_EXE_compactor")
        );
        let out = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(
            out.status.code(),
            Some(130),
            "{name}: {}",
            text(&out.stderr)
        );
        assert_eq!(text(&out.stdout), "", "{name}");
    }
}

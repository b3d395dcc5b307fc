//! `compactor compact` with each strategy.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::compact::{merged, paths};
use crate::support::{
    assert_done, assert_ends, compactor, data_files, generated, json, rows, words, words_and,
};

const SSTABLES: usize = 9;

const NOW: [&str; 1] = ["--now=2000000000"];

/// Strategies and options that produce several outputs, with levels or shards.
const STRATEGIES: [(&str, &str); 5] = [
    ("size-tiered", "--min-threshold 2 --max-threshold 3"),
    ("leveled", "--sstable-size 1MiB --fanout-size 2"),
    (
        "time-window",
        "--strategy-option compaction_window_unit=HOURS --strategy-option compaction_window_size=4 \
         --max-threshold 4",
    ),
    (
        "unified",
        "--scaling-parameters T2 --strategy-option base_shard_count=4 \
         --strategy-option min_sstable_size=0B",
    ),
    (
        "level-count",
        "--strategy-option level_count=2 --strategy-option min_sstable_size_in_mb=1",
    ),
];

/// Generates a table whose partitions are each in several SSTables.
fn table(directory: &Path) -> PathBuf {
    let sstables = SSTABLES.to_string();
    let options = words_and("--size 600KiB --compression none --sstables", &[&sstables]);
    generated(directory, &options)
}

fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(directory).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        let name = PathBuf::from(path.file_name().unwrap());
        // The record of a run contains directories and times.
        let is_record = path.extension().is_some_and(|e| e == "json");
        let bytes = if is_record {
            Vec::new()
        } else {
            fs::read(&path).unwrap()
        };
        (name, bytes)
    });
    files.collect()
}

struct Compacted {
    report: Value,
    output: PathBuf,
    /// SSTables of the table afterwards.
    left: Vec<PathBuf>,
}

fn compact(
    directory: &Path,
    table: &Path,
    strategy: usize,
    name: &str,
    more: &[&str],
) -> Compacted {
    let (class, options) = STRATEGIES[strategy];
    let mut arguments = vec!["compact", "--flat", table.to_str().unwrap()];
    arguments.extend(["--output", name, "--strategy", class, "--now=2000000000"]);
    arguments.extend(["--verify", "--format", "json"]);
    arguments.extend(words(options));
    arguments.extend(more);
    let report = json(&compactor(directory, &arguments));
    let output = directory.join(name);
    let mut left = data_files(&output);
    assert_eq!(left.len(), report["outputs"].as_array().unwrap().len());
    left.extend(paths(&report["untouched"]));
    Compacted {
        report,
        output,
        left,
    }
}

fn plan(directory: &Path, sstables: &[PathBuf], strategy: usize) -> Value {
    let (class, options) = STRATEGIES[strategy];
    let mut arguments = vec!["plan"];
    arguments.extend(sstables.iter().map(|path| path.to_str().unwrap()));
    arguments.extend(["--strategy", class, "--now=2000000000", "--format", "json"]);
    arguments.extend(words(options));
    json(&compactor(directory, &arguments))
}

#[test]
fn nothing_is_pending_and_no_row_is_lost_at_any_concurrency() {
    let temp = TempDir::new().unwrap();
    let table = table(temp.path());
    let inputs = data_files(&table);
    let expected = merged(temp.path(), &inputs, "expected", &NOW);
    for (number, (class, _)) in STRATEGIES.iter().enumerate() {
        let run = |name: &str, concurrent: &str| {
            let name = format!("{class}-{name}");
            let more = ["--concurrent-compactors", concurrent, "--threads", "4"];
            compact(temp.path(), &table, number, &name, &more)
        };
        let compacted = run("one", "1");
        let report = &compacted.report;
        assert!(report["compactions"].as_u64().unwrap() > 0, "{report}");
        assert_eq!(report["sstables_after"], compacted.left.len());
        // Each input is untouched or replaced once.
        let mut known = paths(&report["untouched"]);
        let mut published = Vec::new();
        for replacement in report["replacements"].as_array().unwrap() {
            known.extend(paths(&replacement["replaces"]));
            published.extend(paths(&replacement["outputs"]));
        }
        assert_eq!(known.len(), SSTABLES, "{class}");
        let known: BTreeSet<PathBuf> = known.into_iter().collect();
        assert_eq!(known, inputs.iter().cloned().collect(), "{class}");
        assert_eq!(published.len(), data_files(&compacted.output).len());

        let left = plan(temp.path(), &compacted.left, number);
        assert_eq!(left["tasks"].as_array().unwrap().len(), 0, "{left}");
        let all = format!("{class}-all");
        let found = merged(temp.path(), &compacted.left, &all, &NOW);
        assert!(found == expected, "{class}");
        // Identical bytes and names.
        let other = run("other", "4");
        assert!(
            files(&compacted.output) == files(&other.output),
            "{class}: {:?}, {:?}",
            files(&compacted.output).keys(),
            files(&other.output).keys()
        );
    }
}

#[test]
fn levels_and_shards_are_those_of_the_strategy() {
    let temp = TempDir::new().unwrap();
    let table = table(temp.path());
    let leveled = compact(temp.path(), &table, 1, "leveled", &[]);
    let mut by_level: BTreeMap<i64, u64> = BTreeMap::new();
    for output in leveled.report["outputs"].as_array().unwrap() {
        *by_level
            .entry(output["level"].as_i64().unwrap())
            .or_default() += 1;
    }
    assert!(!by_level.contains_key(&0), "{by_level:?}");
    assert!(by_level.len() > 1, "{by_level:?}");
    // The level in Statistics.db.
    for output in leveled.report["outputs"].as_array().unwrap() {
        let path = output["data_path"].as_str().unwrap();
        let shown = compactor(temp.path(), &["metadata", path, "--format", "json"]);
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        let level = output["level"].as_i64().unwrap();
        assert!(
            shown.contains(&format!("\"sstable_level\": {level},"))
                || shown.contains(&format!("\"level\": {level},")),
            "{shown}"
        );
    }
    let unified = compact(temp.path(), &table, 3, "unified", &[]);
    let outputs = unified.report["outputs"].as_array().unwrap().len();
    assert!(
        outputs >= 4 && outputs.is_multiple_of(4),
        "{}",
        unified.report
    );
    // All inputs were merged into all shards, so the outputs replace them as one set.
    let sets = unified.report["replacements"].as_array().unwrap().len();
    assert_eq!(sets, 1, "{}", unified.report);
}

#[test]
fn max_compactions_limits_the_compactions() {
    let temp = TempDir::new().unwrap();
    let table = table(temp.path());
    let compacted = compact(temp.path(), &table, 0, "one", &["--max-compactions", "1"]);
    assert_eq!(compacted.report["compactions"], 1);
    let warnings = compacted.report["warnings"].to_string();
    assert!(warnings.contains("--max-compactions"), "{warnings}");
    let all = compact(
        temp.path(),
        &table,
        0,
        "all",
        &["--max-compactions", "1000"],
    );
    let warnings = all.report["warnings"].to_string();
    assert!(!warnings.contains("--max-compactions"), "{warnings}");
}

/// The first round of a dry run equals the output of `plan`.
#[test]
fn a_dry_run_forecasts_all_rounds() {
    let temp = TempDir::new().unwrap();
    let table = table(temp.path());
    for (number, (class, options)) in STRATEGIES.iter().enumerate() {
        let mut arguments = vec!["compact", table.to_str().unwrap(), "--output", "out"];
        arguments.extend(["--strategy", class, "--now=2000000000", "--dry-run"]);
        arguments.extend(["--format", "json"]);
        arguments.extend(words(options));
        let forecast = json(&compactor(temp.path(), &arguments));
        let forecast = forecast["compactions"].as_array().unwrap();
        let first: Vec<&Value> = forecast.iter().filter(|c| c["round"] == 1).collect();
        let planned = plan(temp.path(), &data_files(&table), number);
        let planned = planned["tasks"].as_array().unwrap();
        assert_eq!(first.len(), planned.len(), "{class}");
        for (first, planned) in first.iter().zip(planned) {
            assert_eq!(first["reason"], planned["reason"], "{class}");
            assert_eq!(first["data_bytes"], planned["bytes"], "{class}");
        }
        assert!(!temp.path().join("out").exists());
    }
}

/// Both strategies look for expired SSTables periodically. The plan assumes that the check is due.
#[test]
fn expired_sstables_are_dropped_unread() {
    let temp = TempDir::new().unwrap();
    let options = "--shape timeseries --sstables 3 --size 20KiB --ttl 1d --now=1700000000";
    let table = generated(temp.path(), &words(options));
    for class in ["time-window", "unified"] {
        let chosen = ["--strategy", class, "--now=2000000000", "--format", "json"];
        let planned = json(&compactor(&table, &words_and("plan .", &chosen)));
        assert_eq!(planned["tasks"][0]["kind"], "drop_expired", "{planned}");
        let output = temp.path().join(class);
        let complete = ["compact", ".", "--complete", "--output"];
        let arguments = [&complete[..], &[output.to_str().unwrap()], &chosen].concat();
        let report = json(&compactor(&table, &arguments));
        assert_eq!(report["compactions"], 1, "{report}");
        assert_eq!(report["outputs"].as_array().map(Vec::len), Some(0));
    }
}

/// Six SSTables, in which everything has expired by [`NOW`], of six windows.
const WINDOWS: &str = "--shape timeseries --sstables 6 --size 20KiB --rows-per-partition 10 --ttl 30d \
                       --now=1700000000";

const BY_WINDOWS: &str = "compact --complete --strategy time-window --window 30m --gc-grace-seconds 0 --format json \
                          --now=2000000000 --output";

/// Merges would keep them, in one output of all windows.
#[test]
fn unrepaired_sstables_are_not_selected_as_expired_if_only_repaired_ones_are_purged() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &words(WINDOWS));
    let option = "--strategy-option=only_purge_repaired_tombstones=true";
    for (number, more) in [option, "--only-purge-repaired-tombstones"]
        .iter()
        .enumerate()
    {
        let output = format!("out{number}");
        let arguments = words_and(BY_WINDOWS, &[&output, more, table.to_str().unwrap()]);
        let report = json(&compactor(temp.path(), &arguments));
        assert_eq!(report["compactions"], 0, "{report}");
    }
}

/// The option of the strategy is one of the purge.
#[test]
fn merges_follow_the_options_of_the_strategy() {
    let temp = TempDir::new().unwrap();
    let options = "--shape tombstones --sstables 4 --size 20KiB --overlap 1";
    let table = generated(temp.path(), &words(options));
    let compact = |output: &str, more: &[&str]| {
        let line =
            "compact --complete --gc-grace-seconds 0 --strategy size-tiered --format json --output";
        let named = [&[output], more, &[table.to_str().unwrap()]].concat();
        compactor(temp.path(), &words_and(line, &named))
    };
    let deletions = |output: &str| {
        let files = data_files(&temp.path().join(output).join("generated/tombstones"));
        let rows: String = files.iter().map(|file| rows(file)).collect();
        rows.matches("deletion_info").count()
    };
    let only_repaired = "--strategy-option=only_purge_repaired_tombstones=TRUE";
    assert_done(&compact("purged", &[]));
    assert_eq!(deletions("purged"), 0);
    assert_done(&compact("kept", &[only_repaired]));
    assert!(deletions("kept") > 0);
    let twice = [only_repaired, "--only-purge-repaired-tombstones=false"];
    assert_ends(&compact("twice", &twice), 2, "set twice");
    let provide = "--strategy-option=provide_overlapping_tombstones=row";
    assert_ends(&compact("provide", &[provide]), 2, "merge instead");
}

/// Older data of an overlapping SSTable that stays keeps SSTables from being dropped, each in its window.
#[test]
fn overlapping_sstables_keep_expired_ones_apart() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &words(WINDOWS));
    let place = temp.path().join("older");
    fs::create_dir(&place).unwrap();
    let older = "--shape timeseries --sstables 1 --size 100KiB --rows-per-partition 10 --ttl 30d --now=1600000000";
    let older = generated(&place, &words(older));
    let merge = "merge --strip-ttl --now=1600000000 --flat --output live";
    assert_done(&compactor(
        &place,
        &words_and(merge, &[older.to_str().unwrap()]),
    ));
    let live = place.join("live");
    let overlapping = ["--overlapping", live.to_str().unwrap()];
    let line = BY_WINDOWS.replace("--complete ", "");
    let arguments = [&["out"], &overlapping[..], &[table.to_str().unwrap()]].concat();
    let report = json(&compactor(temp.path(), &words_and(&line, &arguments)));
    assert_eq!(report["compactions"], 0, "{report}");
}

/// There is nothing to import, but the table has them until they are moved away.
#[test]
fn sstables_of_which_nothing_is_left_are_swapped_out() {
    for command in ["compact --strategy time-window", "merge"] {
        let temp = TempDir::new().unwrap();
        let expired = "--shape timeseries --size 50KiB --ttl 1h --expired 1 --now 1780000000";
        let table = generated(temp.path(), &words(expired));
        let line = format!("{command} --complete --output out --format json");
        let arguments = words_and(&line, &[NOW[0], table.to_str().unwrap()]);
        let report = json(&compactor(temp.path(), &arguments));
        assert_eq!(report["outputs"], serde_json::json!([]), "{command}");
        let swap = report["commands"][0]["argv"].as_array();
        let swap = swap.unwrap_or_else(|| panic!("{command}: no command in {report}"));
        let swap: Vec<&str> = swap.iter().skip(1).filter_map(Value::as_str).collect();
        assert_done(&compactor(temp.path(), &swap));
        assert!(data_files(&table).is_empty(), "{command}");
    }
}

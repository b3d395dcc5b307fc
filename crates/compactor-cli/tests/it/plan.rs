//! `compactor plan` from the command line.

use std::fs;
use std::path::Path;

use compactor_sstable::Component;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::statistics::Statistics;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    assert_ends, assert_prints, compactor, data_files, generated, json, text, words, words_and,
};

/// SSTables of similar size.
const ALIKE: &str = "--size 20KiB --sstables";

fn plan(table: &Path, options: &[&str]) -> Value {
    json(&compactor(
        table,
        &words_and("plan . --format json", options),
    ))
}

#[test]
fn each_strategy_has_its_own_plan() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &words_and(ALIKE, &["5"]));
    let inputs = |plan: &Value| plan["tasks"][0]["inputs"].as_array().map_or(0, Vec::len);

    let size_tiered = plan(&table, &[]);
    assert_eq!(size_tiered["strategy"], "SizeTieredCompactionStrategy");
    assert_eq!(inputs(&size_tiered), 5);
    assert_eq!(size_tiered["pending_tasks"], 1);
    let fewer = plan(&table, &["--strategy-option", "min_threshold=6"]);
    assert_eq!(inputs(&fewer), 0);
    let why = fewer["idle"][0]["reason"].as_str().unwrap();
    assert!(why.contains("min_threshold is 6"), "{why}");

    let leveled = plan(
        &table,
        &words("--strategy LeveledCompactionStrategy --release 5.0"),
    );
    assert_eq!(inputs(&leveled), 5);
    assert_eq!(leveled["release"], "5.0");
    // They are far smaller than an SSTable of L1.
    assert_eq!(leveled["tasks"][0]["level"], 0);

    let unified = plan(
        &table,
        &words("--strategy UnifiedCompactionStrategy --strategy-option scaling_parameters=T4"),
    );
    assert_eq!(inputs(&unified), 5);
    let shown = compactor(&table, &["plan", "."]);
    let shown = text(&shown.stdout);
    assert!(shown.contains("merge 5 SSTables"), "{shown}");
    assert!(shown.contains("pending tasks"), "{shown}");
}

#[test]
fn options_are_refused_as_by_cassandra() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &words_and(ALIKE, &["2"]));
    for (arguments, expected) in [
        (
            "--strategy LevelledCompactionStrategy",
            "LevelledCompactionStrategy",
        ),
        (
            "--strategy LeveledCompactionStrategy --strategy-option fanout_size=0",
            "fanout_size",
        ),
        ("--strategy-option min_treshold=4", "min_treshold"),
        ("--strategy-option min_threshold", "NAME=VALUE"),
        (
            "--strategy-option min_threshold=4 --min-threshold 2",
            "min_threshold is set twice",
        ),
        (".", "named twice"),
    ] {
        let out = compactor(&table, &words_and("plan .", &words(arguments)));
        assert_ends(&out, 2, expected);
    }
}

/// Each strategy has its own options; without `--strategy` it is the schema's.
#[test]
fn options_are_those_of_the_strategy() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &words_and(ALIKE, &["5"]));
    let unified = words("--strategy unified --min-sstable-size 50MiB --sstable-size 1GiB");
    assert_eq!(
        plan(&table, &unified)["strategy"],
        "UnifiedCompactionStrategy"
    );
    let schema = table.join("schema.cql");
    let text = fs::read_to_string(&schema).unwrap();
    let of_size_tiered =
        "SizeTieredCompactionStrategy', 'max_threshold': '32', 'min_threshold': '4'";
    let text = text.replace(of_size_tiered, "UnifiedCompactionStrategy'");
    fs::write(&schema, text).unwrap();
    let of_schema = plan(&table, &words("--sstable-size 1GiB"));
    assert_eq!(of_schema["strategy"], "UnifiedCompactionStrategy");
    for (arguments, expected) in [
        (
            "--strategy size-tiered --sstable-size 1GiB",
            "--sstable-size is no option of SizeTiered",
        ),
        ("--window 1d", "--window is no option of Unified"),
        ("--min-sstable-size many", "--min-sstable-size: \"many\""),
    ] {
        let out = compactor(&table, &words_and("plan .", &words(arguments)));
        assert_ends(&out, 2, expected);
    }
}

/// A 6.0 node in 5.0 compatibility mode writes SSTable versions of 5.0.
#[test]
fn the_release_is_one_that_has_the_options() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &words_and(ALIKE, &["5"]));
    let unified = words("--strategy unified");
    assert_eq!(plan(&table, &unified)["release"], "5.0");
    let of_6 = words("--strategy unified --strategy-option parallelize_output_shards=true");
    assert_eq!(plan(&table, &of_6)["release"], "6.0");
    let arguments = words_and("compact . --dry-run --output ../out", &of_6);
    let out = compactor(&table, &arguments);
    assert_prints(&out, "the rules of Cassandra 6.0 apply");
    let of_5 = [&of_6[..], &["--release", "5.0"]].concat();
    let out = compactor(&table, &words_and("plan .", &of_5));
    assert_ends(&out, 2, "parallelize_output_shards");
}

/// Outputs of a merge report no share, and must be planned like the inputs.
#[test]
fn a_reported_share_of_the_tokens_of_a_node_does_not_matter() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &words_and(ALIKE, &["5"]));
    let tasks = || plan(&table, &words("--strategy unified"))["tasks"].clone();
    let before = tasks();
    for data in data_files(&table) {
        let file = Descriptor::parse(&data).unwrap().descriptor;
        let path = file.path(Component::Statistics);
        let mut bytes = fs::read(&path).unwrap();
        let mut statistics = Statistics::parse(&bytes, file.version).unwrap();
        statistics.stats.token_space_coverage = 0.001;
        bytes.clear();
        statistics.write(&mut bytes, file.version).unwrap();
        fs::write(&path, bytes).unwrap();
    }
    assert_eq!(tasks(), before);
}

/// Even if nothing is compacted that would be written in that format.
#[test]
fn a_contradiction_is_refused_before_anything_is_compacted() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &words_and(ALIKE, &["2"]));
    for (options, words) in [
        (
            &["--sstable-version", "ea", "--sstable-format", "big"],
            "of format bti, not big",
        ),
        (
            &["--strategy-option", "enabled=false", "--min-threshold", "9"],
            "enabled: false",
        ),
    ] {
        let arguments = [&["compact", ".", "--output", "../out"][..], options].concat();
        let out = compactor(&table, &arguments);
        assert_ends(&out, 2, words);
        assert!(out.stdout.is_empty(), "{}", text(&out.stdout));
    }
}

#[test]
fn a_damaged_sstable_is_skipped_and_named() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &words_and(ALIKE, &["5"]));
    let statistics = fs::read_dir(&table)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_str().unwrap().ends_with("-Statistics.db"))
        .unwrap();
    let mut bytes = fs::read(&statistics).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    fs::write(&statistics, bytes).unwrap();
    let out = compactor(&table, &["plan", ".", "--format", "json"]);
    assert_eq!(out.status.code(), Some(3));
    let name = statistics.file_name().unwrap().to_str().unwrap();
    assert!(text(&out.stderr).contains(name), "{}", text(&out.stderr));
    let plan: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(plan["sstables"], 4);
    assert_eq!(plan["tasks"][0]["inputs"].as_array().unwrap().len(), 4);
}

#[test]
fn what_is_not_supported_is_not_called_damaged() {
    let temp = TempDir::new().unwrap();
    let table = generated(temp.path(), &words_and(ALIKE, &["2"]));
    let data = data_files(&table);
    let edit = |data: &Path, edit: fn(&mut Statistics)| {
        let descriptor = Descriptor::parse(data).unwrap().descriptor;
        let path = descriptor.path(Component::Statistics);
        let mut statistics =
            Statistics::parse(&fs::read(&path).unwrap(), descriptor.version).unwrap();
        edit(&mut statistics);
        let mut bytes = Vec::new();
        statistics.write(&mut bytes, descriptor.version).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    };
    edit(&data[0], |statistics| {
        let name = "org.apache.cassandra.dht.LocalPartitioner";
        statistics.validation.partitioner = name.to_owned();
    });
    let table = table.to_str().unwrap();
    let commands = [
        &["plan", table][..],
        &[
            "simulate",
            "size-tiered",
            "--duration",
            "1h",
            "--from",
            table,
        ],
    ];
    for command in commands {
        assert_ends(&compactor(temp.path(), command), 2, "LocalPartitioner");
    }
    let damaged = edit(&data[1], |_| ());
    fs::write(damaged, "x").unwrap();
    for command in commands {
        assert_ends(&compactor(temp.path(), command), 3, "LocalPartitioner");
    }
}

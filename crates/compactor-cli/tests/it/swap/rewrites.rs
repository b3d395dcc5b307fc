//! Swaps of what `upgrade`, `split` and `scrub` wrote, each SSTable on its own.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tempfile::TempDir;

use super::Table;
use crate::support::{
    assert_ends, compactor, copy_files, data_files, flip_middle, generated, json, names_in,
    paths_in, printed, rows, words, words_and,
};

/// The report of a run that may have failed.
fn report_of(out: &Output) -> Value {
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Runs the command for the swap that a report has.
fn swap_as_printed(directory: &Path, report: &Value) -> String {
    let commands = report["commands"].as_array().unwrap();
    let [swap] = &commands[..] else {
        panic!("{commands:?}");
    };
    assert_eq!(swap["purpose"], "swap");
    let argv: Vec<String> = serde_json::from_value(swap["argv"].clone()).unwrap();
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    printed(&compactor(directory, &argv[1..]))
}

fn all_rows(table: &Table, names: &[&str]) -> Vec<String> {
    let paths = names.iter().map(|name| table.directory().join(name));
    paths.map(|path| rows(&path)).collect()
}

/// The table with a third SSTable, which is damaged.
fn with_a_damaged_one() -> Table {
    let table = Table::new();
    table.flush("3", "3");
    flip_middle(&table.directory().join("oa-3-big-Data.db"));
    table
}

#[test]
fn what_was_upgraded_is_swapped_and_what_is_damaged_stays() {
    let table = with_a_damaged_one();
    let before = all_rows(&table, &["oa-1-big-Data.db", "oa-2-big-Data.db"]);
    let directory = table.directory();
    let line = "--output out --sstable-version nb --format json";
    let out = table.run("upgrade", &words_and(line, &[directory.to_str().unwrap()]));
    assert_ends(&out, 3, "oa-3-big-Data.db");
    let swapped = swap_as_printed(table.temp.path(), &report_of(&out));
    assert!(swapped.starts_with("swapped 2 SSTables for 2"), "{swapped}");
    let names = ["nb-4-big-Data.db", "nb-5-big-Data.db"];
    assert_eq!(
        table.data_names(),
        [&names[..], &["oa-3-big-Data.db"]].concat()
    );
    assert!(all_rows(&table, &names) == before);
    let inputs = names_in(&table.temp.path().join("out-inputs"));
    assert_eq!(inputs, names_in(&table.snapshot()));
}

#[test]
fn the_parts_of_a_split_take_the_place_of_the_whole() {
    let temp = TempDir::new().unwrap();
    let directory = temp
        .path()
        .join("data/ks/t-0123456789abcdef0123456789abcdef");
    let shape = words("--sstables 1 --shape kv --size 100KiB");
    copy_files(&generated(temp.path(), &shape), &directory);
    let whole = data_files(&directory);
    let line = "split --output out --size 16KiB --format json";
    let out = compactor(
        temp.path(),
        &words_and(line, &[directory.to_str().unwrap()]),
    );
    let before: Vec<String> = whole.iter().map(|path| rows(path)).collect();
    let swapped = swap_as_printed(temp.path(), &json(&out));
    let parts = data_files(&directory);
    assert!(parts.len() > 2, "{swapped}");
    assert!(parts.iter().all(|part| !whole.contains(part)), "{parts:?}");
    let keys = |rows: &str| rows.matches("\"partition\"").count();
    let after = parts.iter().map(|path| keys(&rows(path))).sum::<usize>();
    assert_eq!(after, keys(&before[0]), "{before:?}");
}

/// Nothing is left of the SSTable: Cassandra's scrub removes such a one too.
#[test]
fn a_scrub_that_salvaged_nothing_takes_the_damaged_sstable_away() {
    let table = with_a_damaged_one();
    let damaged = table.directory().join("oa-3-big-Data.db");
    let index = table.directory().join(".by_v");
    fs::create_dir(&index).unwrap();
    fs::write(index.join("oa-1-big-Data.db"), "x").unwrap();
    let line = "--output out --format json";
    let out = table.run("scrub", &words_and(line, &[damaged.to_str().unwrap()]));
    let report = report_of(&out);
    assert_eq!(
        (out.status.code(), &report["sstables"][0]["output"]),
        (Some(3), &Value::Null)
    );
    let swapped = swap_as_printed(table.temp.path(), &report);
    assert!(swapped.starts_with("swapped 1 SSTable for 0"), "{swapped}");
    assert!(swapped.contains("rows were lost"), "{swapped}");
    assert_eq!(table.data_names(), ["oa-1-big-Data.db", "oa-2-big-Data.db"]);
    assert!(
        table
            .temp
            .path()
            .join("out-inputs/oa-3-big-Data.db")
            .exists()
    );
}

/// A record of an earlier run in the same directory would swap what that one wrote.
#[test]
fn a_run_without_outputs_leaves_no_record() {
    let table = with_a_damaged_one();
    let damaged = table.directory().join("oa-3-big-Data.db");
    let out = table.temp.path().join("out");
    table.merge(&table.snapshot(), &["--flat"]);
    for path in paths_in(&out) {
        let name = path.file_name().unwrap().to_string_lossy();
        if name.starts_with("oa-") {
            fs::remove_file(&path).unwrap();
        }
    }
    assert!(out.join("compactor-run.json").exists());
    let line = "--output out --sstable-version nb";
    let ended = table.run("upgrade", &words_and(line, &[damaged.to_str().unwrap()]));
    assert_ends(&ended, 3, "oa-3-big-Data.db");
    assert_ends(
        &table.swap(&words("--dry-run")),
        2,
        "leaves nothing to swap",
    );
}

/// The record of the upgrade, which is swapped already, is above that of the merge.
#[test]
fn the_later_of_two_runs_into_one_directory_is_swapped() {
    let table = Table::new();
    let directory = table.directory();
    let input = directory.to_str().unwrap();
    let line = "--output out --chunk-length 4KiB";
    printed(&table.run("upgrade", &words_and(line, &[input])));
    printed(&table.swap(&[]));
    assert_eq!(table.data_names(), ["oa-3-big-Data.db", "oa-4-big-Data.db"]);
    fs::remove_dir_all(table.temp.path().join("inputs")).unwrap();
    table.merge(&directory, &["--complete"]);
    // As a copy of the directory may have it.
    let record = fs::File::options()
        .append(true)
        .open(table.temp.path().join("out/compactor-run.json"));
    let later = SystemTime::now() + Duration::from_secs(60);
    record.unwrap().set_modified(later).unwrap();
    let swapped = printed(&table.swap(&[]));
    assert!(swapped.starts_with("swapped 2 SSTables for 1"), "{swapped}");
    assert_eq!(table.data_names(), ["oa-5-big-Data.db"]);

    // And the other way round.
    fs::remove_dir_all(table.temp.path().join("inputs")).unwrap();
    printed(&table.run("upgrade", &words_and(line, &[input])));
    let swapped = printed(&table.swap(&[]));
    assert!(swapped.starts_with("swapped 1 SSTable for 1"), "{swapped}");
    assert_eq!(table.data_names(), ["oa-6-big-Data.db"]);
}

#[test]
fn a_later_run_of_another_table_into_one_directory_does_not_hide_the_first() {
    let table = Table::new();
    let directory = table.directory();
    let other = directory.with_file_name("u-0123456789abcdef0123456789abcde0");
    fs::create_dir_all(&other).unwrap();
    for path in table.sstable_files() {
        fs::copy(&path, other.join(path.file_name().unwrap())).unwrap();
    }
    table.merge(&directory, &["--complete"]);
    let line = "--output out --sstable-version nb";
    printed(&table.run("upgrade", &words_and(line, &[other.to_str().unwrap()])));
    let swapped = printed(&table.swap(&[]));
    assert!(swapped.starts_with("swapped 2 SSTables for 1"), "{swapped}");
}

/// Regression test: the paths of the outputs, as the first swap named them, led to the table from another working
/// directory, and what was there was removed.
#[test]
fn a_repeated_swap_removes_nothing_but_the_outputs_of_its_run() {
    let table = Table::new();
    let directory = table.directory();
    let into = directory.to_str().unwrap();
    printed(&table.run("scrub", &words_and("--output out", &[into])));
    let out = table.temp.path().join("out");
    let arguments = words_and("swap . --inputs-to ../inputs", &["--into", into]);
    printed(&compactor(&out, &arguments));
    let names = ["oa-3-big-Data.db", "oa-4-big-Data.db"];
    assert_eq!(table.data_names(), names);
    let again = "swap ../../../out --into . --inputs-to ../../../inputs";
    let done = printed(&compactor(&directory, &words(again)));
    assert!(done.starts_with("already swapped"), "{done}");
    assert_eq!(table.data_names(), names);
}

#[test]
fn the_printed_command_has_no_way_back_in_its_paths() {
    let table = Table::new();
    let here = table.temp.path().join("here");
    fs::create_dir(&here).unwrap();
    let directory = table.directory();
    let line = "upgrade --output ../out --sstable-version nb --format json";
    let out = compactor(&here, &words_and(line, &[directory.to_str().unwrap()]));
    let swapped = swap_as_printed(&here, &json(&out));
    assert!(swapped.starts_with("swapped 2 SSTables for 2"), "{swapped}");
    printed(&table.run(
        "scrub",
        &words_and("--output back", &[directory.to_str().unwrap()]),
    ));
    let line = "swap ../back --inputs-to ../new/inputs";
    let arguments = words_and(line, &["--into", directory.to_str().unwrap()]);
    printed(&compactor(&here, &arguments));
    assert!(table.temp.path().join("new/inputs").exists());
}

//! `compactor swap` from the command line. A child process that holds a file open simulates the node.

mod rewrites;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::node::Node;
use crate::support::{
    assert_done, assert_ends, compactor, json, names_in, paths_in, printed as stdout, stderr,
    words, words_and,
};

const INPUTS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../compactor-sstable/testdata/oa-range_nested/inputs"
);

/// The table's directory in another data directory.
const OTHER: &str = "data2/ks/t-0123456789abcdef0123456789abcdef";

/// A table's directory with SSTables 1 and 2, and a snapshot of them.
struct Table {
    temp: TempDir,
}

/// Length, time of the last change and inode of each file below a directory.
type Files = BTreeMap<PathBuf, (u64, i64, u64)>;

fn files(directory: &Path, files: &mut Files) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::metadata(&path).unwrap();
        if metadata.is_dir() {
            self::files(&path, files);
        } else {
            files.insert(path, (metadata.len(), metadata.mtime(), metadata.ino()));
        }
    }
}

impl Table {
    fn new() -> Table {
        let table = Table {
            temp: TempDir::new().unwrap(),
        };
        fs::create_dir_all(table.snapshot()).unwrap();
        for number in ["1", "2"] {
            table.flush(number, number);
        }
        for path in table.sstable_files() {
            let name = path.file_name().unwrap();
            fs::hard_link(&path, table.snapshot().join(name)).unwrap();
        }
        table
    }

    fn directory(&self) -> PathBuf {
        let name = "data/ks/t-0123456789abcdef0123456789abcdef";
        self.temp.path().join(name)
    }

    fn snapshot(&self) -> PathBuf {
        self.directory().join("snapshots/before")
    }

    /// Copies the SSTable `from` of the test data into the table under the id `id`.
    fn flush(&self, from: &str, id: &str) {
        for entry in fs::read_dir(format!("{INPUTS}/{from}")).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let name = name.replacen(&format!("oa-{from}-"), &format!("oa-{id}-"), 1);
            fs::copy(entry.path(), self.directory().join(name)).unwrap();
        }
    }

    /// Moves an SSTable to the table's directory in another data directory, where a snapshot has it too.
    fn in_other_data_directory(&self, id: &str) -> PathBuf {
        let other = self.temp.path().join(OTHER);
        let snapshot = other.join("snapshots/before");
        fs::create_dir_all(&snapshot).unwrap();
        for path in self.sstable_files() {
            let name = path.file_name().unwrap();
            if name.to_str().unwrap().starts_with(&format!("oa-{id}-")) {
                fs::hard_link(&path, snapshot.join(name)).unwrap();
                fs::rename(&path, other.join(name)).unwrap();
            }
        }
        other
    }

    /// Adds what tells a node's data directories from copies.
    fn is_of_node(&self) {
        let system = ["data", "data2"].map(|data| self.temp.path().join(data).join("system"));
        fs::create_dir_all(&system[1]).unwrap();
        let local = system[0].join("local-7ad54392bcdd35a684174e047860b377");
        fs::create_dir_all(&local).unwrap();
        fs::write(local.join("oa-1-big-Data.db"), "").unwrap();
    }

    fn sstable_files(&self) -> Vec<PathBuf> {
        let mut paths = paths_in(&self.directory());
        paths.retain(|path| path.is_file());
        paths
    }

    fn data_names(&self) -> Vec<String> {
        let mut names = names_in(&self.directory());
        names.retain(|name| name.ends_with("-Data.db"));
        names
    }

    /// Path of a file of the output, at any depth below the output directory.
    fn output(&self, name: &str) -> PathBuf {
        let mut all = Files::new();
        files(&self.temp.path().join("out"), &mut all);
        let mut paths = all.into_keys();
        paths.find(|path| path.ends_with(name)).unwrap()
    }

    fn run(&self, command: &str, arguments: &[&str]) -> Output {
        compactor(self.temp.path(), &words_and(command, arguments))
    }

    fn merge(&self, input: &Path, options: &[&str]) {
        let output = ["--output", "out", "--gc-grace-seconds", "864000"];
        let arguments = [&[input.to_str().unwrap()], &output[..], options].concat();
        let out = self.run("merge", &arguments);
        assert_done(&out);
    }

    fn swap(&self, options: &[&str]) -> Output {
        let directory = self.directory();
        let into = directory.to_str().unwrap();
        let arguments = [&["out", "--into", into, "--inputs-to", "inputs"], options].concat();
        self.run("swap", &arguments)
    }

    /// Swaps, and asserts the exit code, the words on stderr, and that nothing has changed.
    fn refused(&self, code: i32, words: &str) {
        let (mut before, mut after) = (Files::new(), Files::new());
        files(self.temp.path(), &mut before);
        for options in [&["--dry-run"][..], &[]] {
            let out = self.swap(options);
            let stderr = stderr(&out);
            assert_eq!(out.status.code(), Some(code), "{stderr}");
            assert!(stderr.contains(words), "{stderr}");
        }
        files(self.temp.path(), &mut after);
        assert_eq!(before, after);
    }
}

#[test]
fn a_snapshot_is_merged_and_swapped_in() {
    let table = Table::new();
    table.merge(&table.snapshot(), &["--complete"]);

    let (mut before, mut after) = (Files::new(), Files::new());
    files(table.temp.path(), &mut before);
    let planned: Value = json(&table.swap(&["--dry-run", "--format", "json"]));
    files(table.temp.path(), &mut after);
    assert_eq!(before, after);
    assert_eq!(planned["state"], "planned");

    let done: Value = json(&table.swap(&["--format", "json"]));
    assert_eq!(done["state"], "done");
    assert_eq!(done["inputs"], planned["inputs"]);
    assert_eq!(done["outputs"], planned["outputs"]);
    for report in [&planned, &done] {
        assert!(
            report["warnings"].to_string().contains("KeyCache-*"),
            "{report}"
        );
    }
    assert_eq!(table.data_names(), ["oa-3-big-Data.db"]);
    let inputs = names_in(&table.temp.path().join("inputs"));
    let snapshot = names_in(&table.snapshot());
    assert_eq!(inputs, snapshot);
    let directory = table.directory();
    let verified = table.run("verify", &[directory.to_str().unwrap()]);
    assert_done(&verified);

    let again = stdout(&table.swap(&[]));
    assert!(
        again.starts_with("already swapped: 2 SSTables for 1") && !again.contains("not used"),
        "{again}"
    );
    let into = directory.to_str().unwrap();
    let arguments = ["out", "--into", into, "--inputs-to", "elsewhere"];
    let elsewhere = stdout(&table.run("swap", &arguments));
    assert!(
        elsewhere.contains("--inputs-to elsewhere is not used"),
        "{elsewhere}"
    );
}

/// Regression test: commands that README once advised moved the flushed SSTable away and gave its name to the output.
#[test]
fn an_sstable_flushed_after_the_merge_is_kept_under_its_name() {
    let table = Table::new();
    table.merge(&table.snapshot(), &[]);
    // The output has the same name.
    assert!(table.output("oa-3-big-Data.db").exists());
    table.flush("3", "3");
    let flushed = fs::read(table.directory().join("oa-3-big-Data.db")).unwrap();
    stdout(&table.swap(&[]));
    assert_eq!(table.data_names(), ["oa-3-big-Data.db", "oa-4-big-Data.db"]);
    assert_eq!(
        fs::read(table.directory().join("oa-3-big-Data.db")).unwrap(),
        flushed
    );
    assert!(!table.temp.path().join("inputs/oa-3-big-Data.db").exists());
}

/// The flushed SSTable may contain rows that were shadowed only by the purged tombstones.
#[test]
fn an_sstable_flushed_after_a_purging_merge_is_refused() {
    let table = Table::new();
    table.merge(&table.snapshot(), &["--complete"]);
    table.flush("3", "3");
    table.refused(4, "nodetool import");
}

/// The overlapping SSTable, whose tombstones the merge applied, was replaced by another of the same name.
#[test]
fn a_replaced_overlapping_sstable_is_refused() {
    let table = Table::new();
    table.flush("3", "3");
    let first = table.directory().join("oa-1-big-Data.db");
    let directory = table.directory();
    table.merge(&first, &["--overlapping", directory.to_str().unwrap()]);
    for path in table.sstable_files() {
        if path.to_str().unwrap().contains("oa-3-") {
            fs::remove_file(path).unwrap();
        }
    }
    table.flush("2", "3");
    table.refused(4, "oa-3-big-Data.db");
}

/// Outputs of two tables below one directory, and the same directories the next night.
#[test]
fn each_table_has_its_own_record_and_directories_can_be_reused() {
    let table = Table::new();
    let other = table
        .temp
        .path()
        .join("data/ks/u-0123456789abcdef0123456789abcde0");
    fs::create_dir_all(&other).unwrap();
    for path in table.sstable_files() {
        fs::copy(&path, other.join(path.file_name().unwrap())).unwrap();
    }
    table.merge(&table.directory(), &["--complete"]);
    table.merge(&other, &["--complete"]);
    stdout(&table.swap(&[]));
    let into_other = words_and("out --inputs-to of_u", &["--into", other.to_str().unwrap()]);
    stdout(&table.run("swap", &into_other));
    // If the directory does not name the table, an option must.
    let anonymous = table.temp.path().join("anonymous");
    fs::rename(&other, &anonymous).unwrap();
    let out = table.run(
        "swap",
        &words_and(
            "out --inputs-to of_u",
            &["--into", anonymous.to_str().unwrap()],
        ),
    );
    assert_ends(&out, 2, "outputs of several tables");

    table.flush("3", "7");
    table.merge(&table.directory(), &["--complete"]);
    let out = table.swap(&[]);
    assert_ends(&out, 4, "an earlier swap");
    fs::remove_dir_all(table.temp.path().join("inputs")).unwrap();
    stdout(&table.swap(&[]));
    assert_eq!(table.data_names().len(), 1);
}

/// SSTables that were named to the merge as overlapping are accepted, and others are refused.
#[test]
fn overlapping_sstables_of_the_merge_are_accepted() {
    let table = Table::new();
    table.flush("3", "3");
    let first = table.directory().join("oa-1-big-Data.db");
    let directory = table.directory();
    table.merge(&first, &["--overlapping", directory.to_str().unwrap()]);
    table.flush("3", "9");
    table.refused(4, "oa-9-big-Data.db");
    for path in table.sstable_files() {
        if path.to_str().unwrap().contains("oa-9-") {
            fs::remove_file(path).unwrap();
        }
    }
    stdout(&table.swap(&[]));
    assert_eq!(
        table.data_names(),
        ["oa-2-big-Data.db", "oa-3-big-Data.db", "oa-4-big-Data.db"]
    );
}

/// One of two data directories of a table is merged and swapped. The SSTables of the other are not moved.
#[test]
fn overlapping_sstables_are_looked_for_in_their_own_data_directory() {
    let table = Table::new();
    let (here, other) = (table.directory(), table.in_other_data_directory("2"));
    let named = words_and(
        "--provide-overlapping-tombstones row --overlapping",
        &[OTHER],
    );
    table.merge(&here.join("oa-1-big-Data.db"), &named);
    // The paths of the merge were relative to its own directory.
    let arguments = ["--into", here.to_str().unwrap()];
    let arguments = words_and("swap ../out --inputs-to inputs --dry-run", &arguments);
    let elsewhere = table.temp.path().join("data");
    assert_done(&compactor(&elsewhere, &arguments));

    let inputs = "data2/ks/u-0123456789abcdef0123456789abcde0";
    let options = words_and(
        "out --inputs-to",
        &[inputs, "--into", here.to_str().unwrap()],
    );
    assert_ends(&table.run("swap", &options), 2, "of a node's tables");

    let data = other.join("oa-2-big-Data.db");
    let away = table.temp.path().join("away");
    fs::rename(&data, &away).unwrap();
    table.refused(4, "oa-2-big-Data.db is no longer in ");
    // A copy does not belong to the table.
    let copies = table.temp.path().join("copies");
    fs::rename(&other, &copies).unwrap();
    fs::rename(&away, copies.join("oa-2-big-Data.db")).unwrap();
    table.refused(4, "oa-2-big-Data.db is no longer in ");
    fs::rename(&copies, &other).unwrap();
    assert_done(&table.swap(&[]));
    assert_eq!(table.data_names(), ["oa-3-big-Data.db"]);
    assert!(data.exists());
}

#[test]
fn an_sstable_flushed_into_another_data_directory_after_a_purging_merge_is_refused() {
    for named in ["", "/snapshots/before"] {
        let table = Table::new();
        let other = table.in_other_data_directory("2");
        let named = format!("{OTHER}{named}");
        table.merge(
            &table.directory().join("oa-1-big-Data.db"),
            &["--overlapping", &named],
        );
        // New SSTables in backups and snapshots are ignored.
        let late = other.join("oa-9-big-Data.db");
        for below in ["backups", "snapshots/later"] {
            fs::create_dir_all(other.join(below)).unwrap();
            fs::copy(
                other.join("oa-2-big-Data.db"),
                other.join(below).join("oa-9-big-Data.db"),
            )
            .unwrap();
        }
        assert_done(&table.swap(&["--dry-run"]));
        fs::hard_link(other.join("backups/oa-9-big-Data.db"), &late).unwrap();
        table.refused(4, "that the run did not see (1), such as oa-9-big-Data.db");
        fs::remove_file(late).unwrap();
        // The snapshot may have been cleared.
        fs::remove_dir_all(other.join("snapshots")).unwrap();
        assert_done(&table.swap(&[]));
    }
}

#[test]
fn ids_follow_those_of_the_nodes_other_data_directories() {
    let table = Table::new();
    table.flush("3", "9");
    table.in_other_data_directory("9");
    table.is_of_node();
    table.merge(&table.directory(), &[]);
    assert_done(&table.swap(&[]));
    assert_eq!(table.data_names(), ["oa-10-big-Data.db"]);
}

#[test]
fn sstables_in_the_nodes_other_data_directories_keep_a_merge_and_a_swap_from_purging() {
    let table = Table::new();
    let other = table.in_other_data_directory("2");
    table.is_of_node();
    let here = table.directory();
    let line = words("merge --complete --output out --dry-run");
    let run = |options: &[&str]| {
        let input = [here.to_str().unwrap()];
        compactor(table.temp.path(), &[&line[..], &input, options].concat())
    };
    let why = "oa-2-big-Data.db is in another data directory of the same node";
    assert_ends(&run(&["--gc-grace-seconds", "9"]), 4, why);
    assert_done(&run(&["--no-purge"]));
    assert_done(&run(&["--gc-grace-seconds", "9", OTHER]));
    table.merge(&here, &["--overlapping", OTHER]);
    let away = table.temp.path().join("away");
    fs::rename(&other, &away).unwrap();
    table.merge(&here, &["--complete", "--replace-output"]);
    fs::rename(&away, &other).unwrap();
    table.refused(4, "that the run did not see (1), such as oa-2-big-Data.db");
}

#[test]
fn incremental_backups_alone_are_not_complete() {
    let table = Table::new();
    let backups = table.directory().join("backups");
    fs::rename(table.snapshot(), &backups).unwrap();
    let line = words("merge --complete --output out --dry-run");
    let run = |options: &[&str]| {
        let inputs = [backups.to_str().unwrap()];
        compactor(table.temp.path(), &[&line[..], &inputs, options].concat())
    };
    let grace = ["--gc-grace-seconds", "9"];
    // As long as no SSTable was compacted away, and none was there before.
    assert_done(&run(&grace));
    table.flush("3", "9");
    assert_ends(&run(&grace), 4, "while incremental backups were enabled");
    assert_done(&run(&["--no-purge"]));
    let directory = table.directory();
    assert_done(&run(&[&grace[..], &[directory.to_str().unwrap()]].concat()));
}

#[test]
fn a_running_node_is_refused() {
    let table = Table::new();
    table.merge(&table.snapshot(), &["--complete"]);
    let node = Node::with(&table.directory().join("oa-1-big-Index.db"));
    table.refused(4, "(sleep) has ");
    drop(node);
    // A process that copies the snapshot is not taken for a node.
    let _reader = Node::with(&table.snapshot().join("oa-1-big-Data.db"));
    stdout(&table.swap(&[]));
}

#[test]
fn an_existing_file_at_the_destination_of_an_input_is_refused() {
    let table = Table::new();
    table.merge(&table.snapshot(), &["--complete"]);
    let inputs = table.temp.path().join("inputs");
    fs::create_dir(&inputs).unwrap();
    fs::write(inputs.join("oa-1-big-Filter.db"), "mine").unwrap();
    table.refused(4, "there is another file of this name");
}

#[test]
fn a_transaction_in_progress_is_refused() {
    let table = Table::new();
    table.merge(&table.snapshot(), &["--complete"]);
    let name = "nb_txn_compaction_7cc16910-c6a1-11e6-9d2c-b5d4e8a16a52.log";
    fs::write(table.directory().join(name), "").unwrap();
    table.refused(4, name);
}

#[test]
fn missing_or_replaced_inputs_are_refused() {
    let table = Table::new();
    table.merge(&table.snapshot(), &["--complete"]);
    let statistics = table.directory().join("oa-1-big-Statistics.db");
    let bytes = fs::read(&statistics).unwrap();
    fs::remove_file(&statistics).unwrap();
    fs::write(&statistics, &bytes).unwrap();
    table.refused(4, "repair state or the level");
    fs::remove_file(&statistics).unwrap();
    fs::hard_link(table.snapshot().join("oa-1-big-Statistics.db"), &statistics).unwrap();

    let data = table.directory().join("oa-2-big-Data.db");
    fs::remove_file(&data).unwrap();
    fs::copy(table.snapshot().join("oa-2-big-Data.db"), &data).unwrap();
    table.refused(4, "is not the file that the run read");
    fs::remove_file(&data).unwrap();
    table.refused(4, "1 of the run's 2 input SSTables");
}

/// A copy that preserves times, as made by `cp -p`, is accepted like the original.
#[test]
fn a_merge_of_a_copy_is_swapped_in() {
    let table = Table::new();
    let copy = table.temp.path().join("copy");
    let copied = Command::new("cp")
        .args(["-rp", "--"])
        .arg(table.snapshot())
        .arg(&copy)
        .status()
        .unwrap();
    assert!(copied.success());
    table.merge(&copy, &["--complete"]);
    stdout(&table.swap(&[]));
    assert_eq!(table.data_names(), ["oa-3-big-Data.db"]);
}

#[test]
fn outputs_that_differ_from_the_record_are_refused() {
    let table = Table::new();
    table.merge(&table.snapshot(), &["--complete"]);
    let data = table.output("oa-3-big-Data.db");
    let bytes = fs::read(&data).unwrap();
    fs::write(&data, &bytes[1..]).unwrap();
    table.refused(4, "is not what the run wrote");
    fs::write(&data, &bytes).unwrap();
    let digest = table.output("oa-3-big-Digest.crc32");
    let text = fs::read_to_string(&digest).unwrap();
    let other: String = text.chars().rev().collect();
    fs::write(&digest, other).unwrap();
    table.refused(4, "holds another digest");
    fs::write(&digest, text).unwrap();
    // Of the same length, with another modification time.
    let mut changed = bytes.clone();
    changed[bytes.len() / 2] ^= 1;
    fs::write(&data, changed).unwrap();
    table.refused(4, "was changed, and is damaged");
    fs::write(&data, &bytes).unwrap();
    let other = table
        .output("oa-3-big-TOC.txt")
        .with_file_name("oa-3-big-SAI+x.db");
    fs::write(&other, "").unwrap();
    table.refused(4, "is not in the record of the run");
    fs::remove_file(&other).unwrap();
    let record = table.output("compactor-run.json");
    let text = fs::read(&record).unwrap();
    fs::remove_file(&record).unwrap();
    table.refused(2, "leaves nothing to swap");
    fs::write(&record, text).unwrap();
    stdout(&table.swap(&[]));
}

#[test]
fn a_directory_for_the_inputs_that_has_other_sstables_is_refused() {
    let table = Table::new();
    table.merge(&table.snapshot(), &["--complete"]);
    fs::create_dir(table.temp.path().join("inputs")).unwrap();
    fs::write(table.temp.path().join("inputs/oa-7-big-TOC.txt"), "").unwrap();
    table.refused(4, "has other SSTables, such as oa-7-big-TOC.txt");
    let directory = table.directory();
    let into = directory.to_str().unwrap();
    let other = "data/other/u-0123456789abcdef0123456789abcde0";
    fs::create_dir_all(table.temp.path().join(other)).unwrap();
    let backups = format!("{into}/backups");
    for read_by_a_node in [into, &backups, "data/ks", other] {
        let out = table.run(
            "swap",
            &["out", "--into", into, "--inputs-to", read_by_a_node],
        );
        assert_eq!(out.status.code(), Some(2), "{}", stderr(&out));
        assert!(
            stderr(&out).contains("which it reads")
                || stderr(&out).contains("which the node reads")
        );
    }
    // A node would read such a directory instead of the table's.
    let name = into.rsplit_once('-').unwrap().0;
    for next_to_table in [name, &format!("{name}/old"), "data/other/u"] {
        let out = table.run(
            "swap",
            &["out", "--into", into, "--inputs-to", next_to_table],
        );
        assert_ends(&out, 4, "instead of its own");
    }
    // Names of directories that no node reads do not matter.
    let elsewhere = format!("inputs/ks/{}", directory.file_name().unwrap().display());
    let arguments = ["--into", into, "--inputs-to", &elsewhere];
    assert_done(&table.run("swap", &words_and("out --dry-run", &arguments)));
    let snapshot = table.snapshot();
    let out = table.run(
        "swap",
        &words_and("out --inputs-to ./out/ks/t", &["--into", into]),
    );
    assert_ends(&out, 2, "this is in the run's own output directory");
    let out = table.run(
        "swap",
        &words_and(
            "out --inputs-to new",
            &["--into", snapshot.to_str().unwrap()],
        ),
    );
    assert_ends(&out, 2, "is a snapshot or backup");
}

#[test]
fn indexes_are_reported_and_their_components_are_moved_with_the_inputs() {
    let table = Table::new();
    let component = "oa-1-big-SAI+aa+by_v+Meta.db";
    fs::write(table.directory().join(component), "x").unwrap();
    let hidden = table.directory().join(".by_w");
    fs::create_dir(&hidden).unwrap();
    fs::write(hidden.join("oa-1-big-Data.db"), "x").unwrap();
    table.merge(&table.snapshot(), &["--complete"]);
    let text = stdout(&table.swap(&[]));
    assert!(text.contains("storage-attached"), "{text}");
    assert!(text.contains("(by_w) stay as they are"), "{text}");
    assert!(!table.directory().join(component).exists());
    assert!(table.temp.path().join("inputs").join(component).exists());
    assert!(hidden.join("oa-1-big-Data.db").exists());
}

/// Only SSTables that the compaction replaces are moved away; the others are kept.
#[test]
fn a_compaction_is_swapped_in() {
    let table = Table::new();
    for id in 3..=5 {
        table.flush("3", &id.to_string());
    }
    let directory = table.directory();
    let directory = directory.to_str().unwrap();
    let compact = "compact --output out --complete --gc-grace-seconds 864000 --min-threshold 2 \
        --max-threshold 4 --format json";
    let out = table.run(compact, &[directory]);
    let report = json(&out);
    let of = |list: &Value| list.as_array().unwrap().len();
    let (untouched, outputs) = (of(&report["untouched"]), of(&report["outputs"]));
    let swapped: Value = json(&table.swap(&["--format", "json"]));
    assert_eq!(of(&swapped["inputs"]), 5 - untouched);
    assert_eq!(of(&swapped["outputs"]), outputs);
    assert_eq!(table.data_names().len(), untouched + outputs);
}

/// If the merge has no output, the inputs are moved away and nothing replaces them.
#[test]
fn a_merge_without_outputs_is_swapped_in() {
    let temp = TempDir::new().unwrap();
    let run = |arguments: &[&str]| stdout(&compactor(temp.path(), arguments));
    let made = run(&words(
        "generate --shape timeseries --rows 100 --sstables 2 --ttl 60s --expired 1 \
         --output made --format json",
    ));
    let made: Value = serde_json::from_str(&made).unwrap();
    let table = made["table_directory"].as_str().unwrap();
    run(&words_and(
        "merge --complete --now 4100000000 --gc-before 4000000000 --output out",
        &[table],
    ));
    let text = run(&["swap", "out", "--into", table, "--inputs-to", "inputs"]);
    assert!(text.starts_with("swapped 2 SSTables for 0"), "{text}");
    let left: Vec<_> = fs::read_dir(temp.path().join(table))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["schema.cql"]);
    assert!(temp.path().join("inputs/oa-2-big-Data.db").exists());
    let again = run(&["swap", "out", "--into", table, "--inputs-to", "inputs"]);
    assert!(again.starts_with("already swapped"), "{again}");
}

//! `compactor merge` from the command line: its messages, files and exit codes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use compactor_testkit::campaign;

use crate::support::{
    assert_done, assert_ends, compactor, copy_files, data_files, generated, names_in, paths_in,
    text, words, words_and,
};

const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../compactor-sstable/testdata");
/// The option that a schema makes unnecessary.
const GRACE: &str = "--gc-grace-seconds=864000";

/// A directory with copies of SSTables that Cassandra wrote.
struct Dir {
    temp: tempfile::TempDir,
}

impl Dir {
    fn new() -> Dir {
        Dir {
            temp: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    /// Copies input `number` of a case into a directory of that number; returns its `Data.db`.
    fn input(&self, case: &str, number: u32) -> PathBuf {
        let from = Path::new(TESTDATA)
            .join(case)
            .join("inputs")
            .join(number.to_string());
        let to = self.path(&number.to_string());
        copy_files(&from, &to);
        data_files(&to).remove(0)
    }

    fn names(&self, directory: &str) -> Vec<String> {
        match self.path(directory) {
            directory if directory.exists() => names_in(&directory),
            _ => Vec::new(),
        }
    }

    /// Files that were written, by name, without the record of the run.
    fn outputs(&self) -> Files {
        let names = self.names("out").into_iter();
        names
            .filter(|name| name != "compactor-run.json")
            .map(|name| {
                let bytes = fs::read(self.path("out").join(&name)).unwrap();
                (name, bytes)
            })
            .collect()
    }

    /// Files that a merge of intact inputs writes.
    fn expected(&self, inputs: &[&Path]) -> Files {
        let out = merge(
            inputs,
            &self.path("out"),
            &["--complete", "--gc-before", "0"],
        );
        assert_done(&out);
        let files = self.outputs();
        fs::remove_dir_all(self.path("out")).unwrap();
        files
    }
}

type Files = BTreeMap<String, Vec<u8>>;

fn merge(inputs: &[&Path], output: &Path, more: &[&str]) -> Output {
    let mut arguments = words_and("merge --output", &[output.to_str().unwrap()]);
    arguments.extend(more);
    arguments.extend(inputs.iter().map(|path| path.to_str().unwrap()));
    compactor(Path::new("."), &arguments)
}

fn sstable_files(data: &Path) -> Vec<PathBuf> {
    paths_in(data.parent().unwrap())
}

#[test]
fn merges_and_reports() {
    let dir = Dir::new();
    let inputs = [1, 2, 3].map(|n| dir.input("oa-range_nested", n));
    let inputs: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
    let out = merge(
        &inputs,
        &dir.path("out"),
        &["--complete", "--gc-before", "0", "--verify"],
    );
    assert_done(&out);
    let summary = text(&out.stdout);
    assert!(summary.starts_with("merged 3 SSTables into "), "{summary}");
    // The components, and the record of the run.
    assert_eq!(dir.names("out").len(), 9, "{:?}", dir.names("out"));
    assert!(dir.names("out").contains(&"oa-4-big-Data.db".to_owned()));
    assert!(dir.names("out").contains(&"compactor-run.json".to_owned()));

    let json = merge(
        &inputs,
        &dir.path("out"),
        &words_and(
            "--complete --replace-output --format json --progress none --sstable-version nb",
            &[GRACE],
        ),
    );
    // The directories' names do not contain a table.
    let notes = text(&json.stderr);
    assert!(
        notes.starts_with("warning: ") && notes.lines().count() == 1,
        "{notes}"
    );
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(report["output_version"], "nb");
    // The id follows that of the existing SSTable, which is replaced.
    assert_eq!(dir.names("out").len(), 9, "{:?}", dir.names("out"));
    assert!(dir.names("out").contains(&"nb-5-big-Data.db".to_owned()));

    let dry = merge(
        &inputs,
        &dir.path("dry"),
        &["--complete", GRACE, "--dry-run"],
    );
    assert_eq!(dry.status.code(), Some(0));
    assert!(
        text(&dry.stdout).starts_with("would merge 3 SSTables"),
        "{}",
        text(&dry.stdout)
    );
    let dry = merge(&inputs, &dir.path("dry"), &["--dry-run", "--outputs", "2"]);
    let plan = text(&dry.stdout);
    assert!(plan.contains("  outputs     at most 2"), "{plan}");
    assert!(!dir.path("dry").exists());
}

/// Outcome of a merge of a changed SSTable: refused, without output; or with the output of the intact one, if the merge
/// does not need the changed file and reports it.
#[derive(Debug, PartialEq)]
enum Outcome {
    Refused,
    DoneWithout,
}

/// Merges two inputs after `file` of one was changed.
fn outcome(dir: &Dir, inputs: &[&Path], file: &Path, expected: &Files, what: &str) -> Outcome {
    // Nothing is old enough to be dropped unread.
    let out = merge(
        inputs,
        &dir.path("out"),
        &["--complete", "--gc-before", "0"],
    );
    let message = text(&out.stdout) + &text(&out.stderr);
    assert!(!message.contains("panicked"), "{what}: {message}");
    if out.status.success() {
        // Reported by its path, or as a component that is missing or is not in TOC.txt.
        let directory = file.parent().unwrap().to_str().unwrap();
        let is_reported = |line: &str| line.starts_with("note: ") && line.contains(directory);
        assert!(message.lines().any(is_reported), "{what}: {message}");
        assert!(dir.outputs() == *expected, "{what}: other outputs");
        fs::remove_dir_all(dir.path("out")).unwrap();
        return Outcome::DoneWithout;
    }
    assert!(
        matches!(out.status.code(), Some(2 | 3)),
        "{what}: {message}"
    );
    // Damage is reported where it is detected: a bad offset in CompressionInfo.db leads to a wrong chunk of Data.db.
    let directory = file.parent().unwrap().to_str().unwrap();
    assert!(message.contains(directory), "{what}: {message}");
    assert_eq!(dir.names("out"), [""; 0], "{what}");
    Outcome::Refused
}

/// Components that a merge does not need, since it writes its own.
fn is_needed(file: &Path) -> bool {
    let name = file.to_str().unwrap();
    ![
        "Filter.db",
        "Summary.db",
        "CRC.db",
        "Digest.crc32",
        "TOC.txt",
    ]
    .iter()
    .any(|component| name.ends_with(component))
}

#[test]
fn a_flipped_bit_stops_the_merge_or_is_reported() {
    for case in campaign::some_of(["pa-range_nested", "nb-range_nested", "oa-range_nested"]) {
        let dir = Dir::new();
        let (first, second) = (dir.input(case, 1), dir.input(case, 2));
        let expected = dir.expected(&[&first, &second]);
        for file in sstable_files(&first) {
            let good = fs::read(&file).unwrap();
            // A summary of one sample has an interval that nothing contradicts.
            let skipped = if file.to_str().unwrap().ends_with("Summary.db") {
                4
            } else {
                0
            };
            let step = ((good.len() - skipped) / 6).max(1);
            for at in (skipped..good.len()).step_by(step) {
                let mut bad = good.clone();
                bad[at] ^= 1 << (at % 8);
                fs::write(&file, &bad).unwrap();
                let place = format!("{} byte {at}", file.display());
                let outcome = outcome(&dir, &[&first, &second], &file, &expected, &place);
                if is_needed(&file) {
                    assert_eq!(outcome, Outcome::Refused, "{place}");
                }
                assert_eq!(fs::read(&file).unwrap(), bad, "{place}");
            }
            fs::write(&file, &good).unwrap();
        }
    }
}

#[test]
fn truncated_missing_and_swapped_files() {
    let dir = Dir::new();
    let (first, second) = (
        dir.input("pa-range_nested", 1),
        dir.input("pa-range_nested", 2),
    );
    let expected = dir.expected(&[&first, &second]);
    let files = sstable_files(&first);
    let others = sstable_files(&second);
    let check = |what: &str, path: &Path| {
        let place = format!("{what} {}", path.display());
        let outcome = outcome(&dir, &[&first, &second], path, &expected, &place);
        if is_needed(path) {
            assert_eq!(outcome, Outcome::Refused, "{place}");
        }
        outcome
    };
    for (file, other) in files.iter().zip(&others) {
        let good = fs::read(file).unwrap();
        let is_toc = file.to_str().unwrap().ends_with("TOC.txt");
        for len in [0, good.len() / 2, good.len() - 1] {
            if is_toc && len == good.len() - 1 {
                // The last line needs no line feed.
                continue;
            }
            fs::write(file, &good[..len]).unwrap();
            check("truncated", file);
        }
        let theirs = fs::read(other).unwrap();
        if theirs != good {
            fs::write(file, &theirs).unwrap();
            check("swapped", file);
        }
        fs::remove_file(file).unwrap();
        if !is_needed(file) {
            assert_eq!(check("missing", file), Outcome::DoneWithout);
        } else {
            check("missing", file);
        }
        fs::write(file, &good).unwrap();
    }
}

/// Inputs, options, and part of the message.
type Case<'a> = (Vec<&'a Path>, &'a str, &'a str);

#[test]
fn invalid_requests_are_refused() {
    let dir = Dir::new();
    let first = dir.input("oa-range_nested", 1);
    // Two tables of one shape: only their directories distinguish them.
    let in_table = |name: &str, number: u32| {
        let data = dir.input("oa-range_nested", number);
        let table = dir
            .path("ks")
            .join(format!("{name}-1c6ace40fad111e7b9cf00000000000{number}"));
        fs::create_dir_all(table.parent().unwrap()).unwrap();
        fs::rename(data.parent().unwrap(), &table).unwrap();
        table.join(data.file_name().unwrap())
    };
    let (one_table, other_table) = (in_table("a", 2), in_table("b", 3));
    fs::create_dir(dir.path("empty")).unwrap();
    let (out, empty, nowhere) = (dir.path("out"), dir.path("empty"), dir.path("nowhere"));
    let below = dir.path("ks");
    let cases: [Case<'_>; 9] = [
        (vec![&empty], "", "no SSTables here"),
        (
            vec![&below],
            "",
            "/ks/a-1c6ace40fad111e7b9cf000000000002 has some",
        ),
        (vec![&nowhere], "", "nowhere"),
        (vec![&first, &first], "", "named twice"),
        (vec![&one_table, &other_table], "", "not of one table"),
        (vec![&first], "--chunk-length 3000", "power of two"),
        (
            vec![&first],
            "--sstable-version zz",
            "unknown SSTable version",
        ),
        (
            vec![&first],
            "--sstable-version na",
            "choose nb, oa, pa, da or ea",
        ),
        (
            vec![&first],
            "--sstable-version oa --sstable-format bti",
            "one of format big, not bti",
        ),
    ];
    for (inputs, options, message) in cases {
        let result = merge(&inputs, &out, &words(options));
        assert_ends(&result, 2, message);
        assert!(!out.exists(), "{message}");
    }
    // The directory of an input is refused as the output directory.
    let beside = merge(&[&first], first.parent().unwrap(), &[]);
    assert_eq!(beside.status.code(), Some(4), "{}", text(&beside.stderr));
}

#[test]
fn versions_that_are_not_supported_are_named() {
    let dir = Dir::new();
    let data = dir.input("nb-range_nested", 1);
    for version in ["zz", "la"] {
        let renamed = data.with_file_name(format!("{version}-1-big-Data.db"));
        fs::copy(&data, &renamed).unwrap();
        let out = merge(&[&renamed], &dir.path("out"), &[]);
        assert_ends(&out, 2, version);
        fs::remove_file(renamed).unwrap();
    }
}

/// An SSTable of another table does not decide what may be purged.
#[test]
fn overlapping_sstables_must_be_of_the_same_table() {
    let dir = Dir::new();
    let first = dir.input("oa-range_nested", 1);
    let foreign = dir.path("foreign");
    copy_files(&Path::new(TESTDATA).join("nb-statics/inputs/1"), &foreign);
    let overlapping = ["--overlapping", foreign.to_str().unwrap(), GRACE];
    let refused = merge(&[&first], &dir.path("out"), &overlapping);
    let message = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{message}");
    assert!(message.contains("column \"v\""), "{message}");
    assert!(message.contains("foreign"), "{message}");
    assert!(!dir.path("out").exists());

    // An SSTable with the same types may be of another table, which only the user can know.
    let second = dir.input("oa-range_nested", 2);
    let overlapping = ["--overlapping", second.to_str().unwrap(), GRACE];
    let doubted = merge(&[&first], &dir.path("out"), &overlapping);
    let message = text(&doubted.stderr);
    assert_eq!(doubted.status.code(), Some(0), "{message}");
    assert!(
        message.contains("warning: ") && message.contains("KEYSPACE/TABLE-ID"),
        "{message}"
    );
    let alone = merge(&[&first], &dir.path("alone"), &[]);
    assert!(!text(&alone.stderr).contains("KEYSPACE/TABLE-ID"));
}

/// `--complete` is refused if the directory has SSTables that are not inputs.
#[test]
fn complete_is_refused_if_there_are_other_sstables() {
    let dir = Dir::new();
    let first = dir.input("oa-range_nested", 1);
    let second = dir.input("oa-range_nested", 2);
    copy_files(second.parent().unwrap(), first.parent().unwrap());
    let refused = merge(&[&first], &dir.path("out"), &["--complete", GRACE]);
    assert_ends(&refused, 4, "oa-2-big-Data.db");
    let directory = first.parent().unwrap();
    let all = merge(&[directory], &dir.path("out"), &["--complete", GRACE]);
    assert_done(&all);
    let overlapping = directory.to_str().unwrap();
    let one = merge(
        &[&first],
        &dir.path("one"),
        &["--overlapping", overlapping, GRACE],
    );
    assert_done(&one);
    // A Data.db that is gone is not passed over because its directory was named.
    let second = first.with_file_name("oa-2-big-Data.db");
    let data = fs::read(&second).unwrap();
    fs::remove_file(&second).unwrap();
    let gone = merge(&[directory], &dir.path("gone"), &["--complete", GRACE]);
    assert_ends(&gone, 3, "oa-2-big-Data.db");
    fs::write(&second, data).unwrap();
    // A transaction log of a node forbids reading, unless it is committed and lists nothing to delete.
    let log = directory.join("oa_txn_compaction_7cc16910-c6a1-11e6-9d2c-b5d4e8a16a52.log");
    fs::write(&log, "COMMIT:[,0,0][2613697770]\n").unwrap();
    let over = merge(&[directory], &dir.path("over"), &["--complete", GRACE]);
    assert_done(&over);
    fs::write(&log, "").unwrap();
    let live = merge(&[directory], &dir.path("out"), &["--complete", GRACE]);
    assert_eq!(live.status.code(), Some(4), "{}", text(&live.stderr));
    // It also forbids writing: a node might delete the files that the log lists.
    let busy = dir.path("busy");
    fs::create_dir(&busy).unwrap();
    fs::rename(&log, busy.join(log.file_name().unwrap())).unwrap();
    let beside = merge(&[directory], &busy, &["--complete", GRACE]);
    assert_eq!(beside.status.code(), Some(4), "{}", text(&beside.stderr));
    assert_eq!(fs::read_dir(&busy).unwrap().count(), 1);
}

/// A node loads all SSTables in a table directory, so outputs are refused there: next to the inputs and above their
/// snapshot.
#[test]
fn an_output_that_a_node_would_load_is_refused() {
    let dir = Dir::new();
    let data = dir.input("oa-range_nested", 1);
    for below in ["snapshots/nightly", "backups"] {
        let table = dir.path(&below.replace('/', "-"));
        let held = table.join(below);
        copy_files(data.parent().unwrap(), &held);
        for output in [&held, &table] {
            let refused = merge(&[&held], output, &[]);
            assert_ends(&refused, 4, "--output");
        }
        let elsewhere = dir.path(&format!("elsewhere-{}", below.len()));
        let merged = merge(&[&held], &elsewhere, &[]);
        assert_done(&merged);
    }
}

/// Versions before `oa` hold no time after January 2038.
#[test]
fn expirations_that_the_output_cannot_hold_are_refused() {
    let dir = Dir::new();
    let options = "--shape timeseries --size 64KiB --sstables 1 --now 2200000000";
    let table = generated(dir.temp.path(), &words(options));
    for (version, code) in [("nb", 2), ("oa", 0)] {
        let out = merge(
            &[&table],
            &dir.path(version),
            &["--sstable-version", version],
        );
        let stderr = text(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{stderr}");
        assert_eq!(code == 2, stderr.contains("January 2038"), "{stderr}");
        assert_eq!(dir.names(version).is_empty(), code == 2);
    }
}

/// Where two files contradict one another, the digest shows which one is damaged.
#[test]
fn an_error_names_the_damaged_file() {
    let dir = Dir::new();
    let table = generated(dir.temp.path(), &["--rows", "200"]);
    let file = |suffix: &str| table.join(format!("oa-1-big-{suffix}"));
    let merge_says = || {
        let out = merge(&[table.as_path()], &dir.path("out"), &["--complete"]);
        assert_eq!(out.status.code(), Some(3));
        assert!(dir.names("out").is_empty());
        text(&out.stderr)
    };

    // The second chunk begins one byte later than it does.
    let info = fs::read(file("CompressionInfo.db")).unwrap();
    let mut moved = info.clone();
    let second = info.len() - 8 * 12 + 7;
    moved[second] ^= 1;
    fs::write(file("CompressionInfo.db"), &moved).unwrap();
    let stderr = merge_says();
    assert!(
        stderr.contains("oa-1-big-Data.db: corrupt chunk."),
        "{stderr}"
    );
    assert!(
        stderr.contains("CompressionInfo.db or CRC.db is damaged instead"),
        "{stderr}"
    );
    fs::write(file("CompressionInfo.db"), &info).unwrap();

    // Both are damaged, and the smaller one is read first.
    let statistics = fs::read(file("Statistics.db")).unwrap();
    fs::write(file("Statistics.db"), &statistics[..statistics.len() / 2]).unwrap();
    let data = fs::read(file("Data.db")).unwrap();
    let mut flipped = data.clone();
    flipped[data.len() / 2] ^= 1;
    fs::write(file("Data.db"), &flipped).unwrap();
    let stderr = merge_says();
    assert!(
        stderr.contains("oa-1-big-Data.db is damaged as well, or is the only damaged file"),
        "{stderr}"
    );
    // With only one of them damaged there is nothing to add.
    fs::write(file("Data.db"), &data).unwrap();
    assert!(!merge_says().contains("Digest.crc32"));
    fs::write(file("Statistics.db"), &statistics).unwrap();
    fs::write(file("Data.db"), &flipped).unwrap();
    let stderr = merge_says();
    let verdict = ["Digest.crc32 has", "Digest.crc32 says"];
    assert!(
        !verdict.iter().any(|words| stderr.contains(words)),
        "{stderr}"
    );
}

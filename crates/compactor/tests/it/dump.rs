//! Compares `compactor::dump` with the output of Cassandra's `sstabledump -l` for the same SSTables.
//!
//! `testdata/dump` holds some; with `COMPACTOR_GOLDEN_DIR` set to a directory that the interop
//! crate's `interop-inputs` filled, all SSTables there are compared as well.

use std::path::{Path, PathBuf};
use std::{env, fs};

use compactor::NoObserver;
use compactor::dump::{DumpOptions, dump, dump_keys};
use compactor_io::{Io, IoOptions, ReadMode};
use serde_json::Value;

fn io() -> Io {
    Io::new(IoOptions::default()).expect("an I/O layer")
}

fn options(now_s: i64) -> DumpOptions {
    DumpOptions {
        read_mode: ReadMode::Buffered,
        ..DumpOptions::new(now_s)
    }
}

fn dumped(io: &Io, data: &Path, options: &DumpOptions) -> String {
    let mut out = Vec::new();
    dump(io, data, options, &NoObserver, &mut out)
        .unwrap_or_else(|e| panic!("{}: {e}", data.display()));
    String::from_utf8(out).expect("UTF-8")
}

/// The first `Data.db` in a directory.
fn data_in(directory: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(directory).ok()?;
    let mut paths = entries.map(|entry| entry.expect("an entry").path());
    paths.find(|path| path.to_string_lossy().ends_with("-Data.db"))
}

fn now_of(meta: &Path) -> i64 {
    let meta = fs::read_to_string(meta).expect("meta.json");
    let meta: Value = serde_json::from_str(&meta).expect("JSON");
    meta["now_s"].as_i64().expect("now_s")
}

/// Compares text first, since the order of fields is Cassandra's, then values.
fn compare(io: &Io, data: &Path, expected: &Path, now_s: i64, differing: &mut Vec<String>) {
    let expected = fs::read_to_string(expected).expect("the expected dump");
    let found = dumped(io, data, &options(now_s));
    if found.trim_end_matches('\n') == expected.trim_end_matches('\n') {
        return;
    }
    let (found, expected): (Vec<&str>, Vec<&str>) =
        (found.lines().collect(), expected.lines().collect());
    let parse = |line: &&str| serde_json::from_str::<Value>(line).expect("JSON");
    let pair = found.iter().zip(&expected).find(|(a, b)| a != b);
    let (a, b) = pair.map_or(("", ""), |(a, b)| (*a, *b));
    let values_differ = found.len() != expected.len()
        || found
            .iter()
            .zip(&expected)
            .any(|(a, b)| parse(a) != parse(b));
    let at = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    let excerpt = |text: &str| {
        let bytes = text.as_bytes();
        let end = bytes.len().min(at + 80);
        String::from_utf8_lossy(&bytes[at.saturating_sub(120).min(end)..end]).into_owned()
    };
    differing.push(format!(
        "{}: {}; {} lines for {}\n  found    {}\n  expected {}",
        data.display(),
        if values_differ {
            "values differ"
        } else {
            "only the text differs"
        },
        found.len(),
        expected.len(),
        excerpt(a),
        excerpt(b)
    ));
}

/// All SSTables below a golden directory, with Cassandra's dump and the clock at that time.
fn golden_cases(root: &Path) -> Vec<(PathBuf, PathBuf, i64)> {
    let mut cases = Vec::new();
    let list = |path: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(path).into_iter().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
        paths.sort();
        paths
    };
    for scenario in list(root).iter().flat_map(|version| list(version)) {
        if !scenario.join("meta.json").exists() {
            continue;
        }
        let now_s = now_of(&scenario.join("meta.json"));
        let mut directories = list(&scenario.join("inputs"));
        directories.push(scenario.join("compacted"));
        for directory in directories {
            let expected = PathBuf::from(format!("{}.sstabledump.jsonl", directory.display()));
            if let Some(data) = data_in(&directory).filter(|_| expected.exists()) {
                cases.push((data, expected, now_s));
            }
        }
    }
    cases
}

#[test]
fn equals_sstabledump_on_all_golden_files() {
    let Some(root) = env::var_os("COMPACTOR_GOLDEN_DIR") else {
        return;
    };
    let io = io();
    let cases = golden_cases(Path::new(&root));
    assert!(!cases.is_empty(), "no SSTables in COMPACTOR_GOLDEN_DIR");
    let mut differing = Vec::new();
    for (data, expected, now_s) in &cases {
        compare(&io, data, expected, *now_s, &mut differing);
    }
    println!("{} SSTables compared", cases.len());
    assert!(
        differing.is_empty(),
        "{} differ:\n{}",
        differing.len(),
        differing.join("\n")
    );
}

#[test]
fn equals_sstabledump_on_committed_files() {
    let io = io();
    let mut differing = Vec::new();
    let mut cases = 0;
    for entry in fs::read_dir(testdata()).expect("testdata") {
        let directory = entry.expect("an entry").path();
        if let Some(data) = data_in(&directory) {
            let now_s = now_of(&directory.join("meta.json"));
            compare(
                &io,
                &data,
                &directory.join("expected.jsonl"),
                now_s,
                &mut differing,
            );
            cases += 1;
        }
    }
    assert_eq!(cases, 10);
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/dump")
}

fn case(name: &str) -> PathBuf {
    data_in(&testdata().join(name)).expect("a Data.db")
}

/// Each line's partition key and its rows.
fn parsed(dump: &str) -> Vec<(Value, Vec<Value>)> {
    let lines = dump
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let split = |line: Value| {
        (
            line["partition"]["key"].clone(),
            line["rows"].as_array().expect("rows").clone(),
        )
    };
    lines.map(split).collect()
}

#[test]
fn keys_are_selected_and_excluded() {
    let (io, data) = (io(), case("oa_composite_key"));
    let all = parsed(&dumped(&io, &data, &options(0)));
    assert_eq!(all.len(), 8);
    let keys = |list: &[&str]| list.iter().map(|k| (*k).to_owned()).collect::<Vec<_>>();

    let chosen = DumpOptions {
        keys: keys(&["a:1:", "ключ:3:ff00", "ab:2:"]),
        ..options(0)
    };
    let found: Vec<Value> = parsed(&dumped(&io, &data, &chosen))
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    // In the order of the file, not of the options.
    let expected = r#"[["ab","2",""],["ключ","3","ff00"],["a","1",""]]"#;
    assert_eq!(
        Value::Array(found),
        serde_json::from_str::<Value>(expected).expect("JSON")
    );

    let both = DumpOptions {
        keys: keys(&["a:1:", "ab:2:", "nowhere"]),
        exclude: keys(&["ab:2:"]),
        ..options(0)
    };
    let mut out = Vec::new();
    let summary = dump(&io, &data, &both, &NoObserver, &mut out).expect("a dump");
    assert_eq!(
        (summary.partitions, summary.missing_keys),
        (1, keys(&["nowhere"]))
    );

    let without = DumpOptions {
        exclude: keys(&["ab:2:", ":0:"]),
        ..options(0)
    };
    assert_eq!(parsed(&dumped(&io, &data, &without)).len(), 6);
}

#[test]
fn keys_alone_come_from_the_index() {
    let (io, data) = (io(), case("oa_composite_key"));
    let mut out = Vec::new();
    let summary = dump_keys(&io, &data, &options(0), &NoObserver, &mut out).expect("keys");
    assert_eq!(summary.partitions, 8);
    let lines = String::from_utf8(out).expect("UTF-8");
    let lines: Vec<Value> = lines
        .lines()
        .map(|l| serde_json::from_str(l).expect("JSON"))
        .collect();
    let keys: Vec<Value> = parsed(&dumped(&io, &data, &options(0)))
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    assert_eq!(lines, keys);
}

#[test]
fn a_truncated_index_is_damage() {
    let io = io();
    let directory = tempfile::tempdir().expect("a directory");
    for entry in fs::read_dir(testdata().join("oa_composite_key")).expect("testdata") {
        let path = entry.expect("an entry").path();
        fs::copy(
            &path,
            directory.path().join(path.file_name().expect("a name")),
        )
        .expect("copy");
    }
    let index = directory.path().join("oa-1-big-Index.db");
    let bytes = fs::read(&index).expect("Index.db");
    fs::write(&index, &bytes[..bytes.len() - 1]).expect("Index.db");
    let data = directory.path().join("oa-1-big-Data.db");
    let mut out = Vec::new();
    let error = dump_keys(&io, &data, &options(0), &NoObserver, &mut out).expect_err("damage");
    assert_eq!(error.kind(), compactor::ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains("Index.db"), "{error}");
    assert_eq!(String::from_utf8(out).expect("UTF-8").lines().count(), 7);
}

#[test]
fn raw_timestamps_and_the_clock() {
    let (io, data) = (io(), case("oa_ttl_edges"));
    // The first row expires at 1700000099; cells do so at that second, rows one later.
    for (now_s, row, cell) in [
        (1_700_000_098, false, false),
        (1_700_000_099, false, true),
        (1_700_000_100, true, true),
    ] {
        let raw = DumpOptions {
            raw_timestamps: true,
            ..options(now_s)
        };
        let partitions = parsed(&dumped(&io, &data, &raw));
        let liveness = &partitions[0].1[0]["liveness_info"];
        assert_eq!(liveness["tstamp"], "10");
        assert_eq!(liveness["expires_at"], "1700000099");
        assert_eq!(liveness["expired"], row, "{now_s}");
        assert_eq!(partitions[1].1[0]["cells"][0]["expired"], cell, "{now_s}");
    }
}

#[test]
fn tombstones_alone() {
    let io = io();
    let only = |now_s| DumpOptions {
        tombstones_only: true,
        ..options(now_s)
    };
    // Rows and cells with TTLs, only the first of which has expired.
    let partitions = parsed(&dumped(&io, &case("oa_ttl_edges"), &only(1_700_000_099)));
    assert!(partitions.len() >= 2);
    assert!(
        partitions.iter().all(|(_, rows)| rows.len() == 1),
        "{partitions:?}"
    );
    assert_eq!(dumped(&io, &case("oa_ttl_edges"), &only(1_700_000_098)), "");
    // Nothing is printed if nothing is deleted.
    assert_eq!(dumped(&io, &case("oa_composite_key"), &only(0)), "");
    // Range tombstone markers are printed, rows are not.
    for (_, rows) in parsed(&dumped(&io, &case("nb_range_touching"), &only(0))) {
        let is_marker = |row: &Value| {
            row["type"]
                .as_str()
                .is_some_and(|t| t.starts_with("range_tombstone"))
        };
        assert!(!rows.is_empty() && rows.iter().all(is_marker), "{rows:?}");
    }
    // A deleted partition is printed, live rows in it are not.
    let partitions = parsed(&dumped(&io, &case("nb_partition_deletions"), &only(0)));
    assert!(!partitions.is_empty());
    assert!(
        partitions.iter().all(|(_, rows)| rows.is_empty()),
        "{partitions:?}"
    );
}

#[test]
fn damage_is_an_error_after_the_readable_rows() {
    let io = io();
    let directory = tempfile::tempdir().expect("a directory");
    let source = testdata().join("pa_type_nested");
    for entry in fs::read_dir(source).expect("testdata") {
        let path = entry.expect("an entry").path();
        fs::copy(
            &path,
            directory.path().join(path.file_name().expect("a name")),
        )
        .expect("copy");
    }
    let data = data_in(directory.path()).expect("a Data.db");
    let mut bytes = fs::read(&data).expect("Data.db");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&data, bytes).expect("Data.db");
    let mut out = Vec::new();
    let error = dump(&io, &data, &options(0), &NoObserver, &mut out).expect_err("damage");
    assert_eq!(error.kind(), compactor::ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains("Data.db"), "{error}");
}

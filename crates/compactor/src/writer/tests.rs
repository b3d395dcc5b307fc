mod refusals;

use std::collections::BTreeMap;
use std::path::PathBuf;

use compactor_sstable::Version;
use compactor_sstable::types::CqlType;

use super::*;
use crate::ErrorKind;
use crate::table::{Purging, Table};
use compactor_check::dump::{DumpOptions, dump};
use compactor_check::verify::{VerifyOptions, verify};
use compactor_engine::merge::NoObserver;

const SCHEMA: &str = "CREATE TYPE ks.address (street text, number int);
CREATE TABLE ks.t (a int, b text, c timestamp, d int, s set<int> static, o text static,
    v int, l list<text>, m map<text, int>, u address, f frozen<list<int>>,
    PRIMARY KEY ((a, b), c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC);";

fn key(a: i32, c: i64, d: i32) -> Vec<(&'static str, Value)> {
    vec![
        ("a", a.into()),
        ("b", "x".into()),
        ("c", Value::Timestamp(c)),
        ("d", d.into()),
    ]
}

fn with(
    mut row: Vec<(&'static str, Value)>,
    more: &[(&'static str, Value)],
) -> Vec<(&'static str, Value)> {
    row.extend_from_slice(more);
    row
}

/// Output of `compactor dump` for each SSTable, which must be intact.
fn dumps(directory: &Path) -> Vec<serde_json::Value> {
    let table = Table::open(directory).unwrap();
    let io = Resources::default().io().unwrap();
    let dump_of = |path: &PathBuf| {
        let report = verify(&io, path, &VerifyOptions::default(), &mut NoObserver).unwrap();
        assert!(!report.is_damaged(), "{:#?}", report.findings);
        let mut out = Vec::new();
        let mut options = DumpOptions::new(0);
        options.raw_timestamps = true;
        dump(&io, path, &options, &NoObserver, &mut out).unwrap();
        let lines = serde_json::Deserializer::from_slice(&out).into_iter();
        serde_json::Value::Array(lines.map(Result::unwrap).collect())
    };
    table.sstables().iter().map(dump_of).collect()
}

fn cell<'j>(row: &'j serde_json::Value, name: &str) -> &'j serde_json::Value {
    let cells = row["cells"].as_array().unwrap();
    cells.iter().find(|cell| cell["name"] == name).unwrap()
}

#[test]
fn rows_are_written_in_order_with_all_kinds_of_columns() {
    let temp = tempfile::tempdir().unwrap();
    let mut writer = SstableWriter::new(SCHEMA)
        .unwrap()
        .open(temp.path())
        .unwrap();
    let address = Value::Udt(vec![("number".to_owned(), Some(7.into()))]);
    for (c, d) in [(5, 2), (9, 1), (5, 1)] {
        let row = with(
            key(1, c, d),
            &[
                ("v", d.into()),
                ("l", Value::List(vec!["x".into(), "w".into()])),
                (
                    "m",
                    Value::Map(vec![("b".into(), 2.into()), ("a".into(), 1.into())]),
                ),
                ("u", address.clone()),
                ("f", Value::List(vec![3.into(), 1.into()])),
                ("o", "owner".into()),
            ],
        );
        writer.add_row_with(row, RowTimes::at(1_000_000)).unwrap();
    }
    let only_static = [
        ("a", Value::from(1)),
        ("b", "x".into()),
        ("s", Value::Set(vec![2.into(), 1.into()])),
    ];
    writer
        .add_row_with(only_static, RowTimes::at(2_000_000))
        .unwrap();
    let expiring = RowTimes::at(3).with_ttl(77);
    writer.add_row_with(key(2, 1, 1), expiring).unwrap();
    let written = writer.finish().unwrap();
    // Equal static rows are written once.
    assert_eq!((written.sstables.len(), written.rows), (1, 5));
    assert_eq!(written.next_steps.commands[0].purpose, "import");

    let [dump] = &dumps(&temp.path().join("ks/t"))[..] else {
        panic!();
    };
    let partitions: BTreeMap<_, _> = dump
        .as_array()
        .unwrap()
        .iter()
        .map(|partition| {
            (
                partition["partition"]["key"][0].as_str().unwrap(),
                &partition["rows"],
            )
        })
        .collect();
    let rows = partitions["1"].as_array().unwrap();
    let clusterings: Vec<_> = rows[1..]
        .iter()
        .map(|row| row["clustering"][1].as_i64().unwrap())
        .collect();
    assert_eq!(rows[0]["type"], "static_block");
    assert_eq!(cell(&rows[0], "o")["value"], "owner");
    assert_eq!(clusterings, [1, 1, 2]);
    let row = &rows[3];
    assert_eq!(cell(row, "v")["value"], 2);
    assert_eq!(cell(row, "f")["value"], serde_json::json!([3, 1]));
    let elements = |name: &str| -> Vec<&serde_json::Value> {
        let cells = row["cells"].as_array().unwrap().iter();
        cells
            .filter(|cell| cell["name"] == name && cell.get("path").is_some())
            .map(|cell| &cell["value"])
            .collect()
    };
    assert_eq!(elements("l"), ["x", "w"]);
    assert_eq!(elements("m"), [1, 2]);
    assert_eq!(elements("u"), [7]);
    let deletion = row["cells"]
        .as_array()
        .unwrap()
        .iter()
        .find(|cell| cell["name"] == "m")
        .unwrap();
    assert_eq!(deletion["deletion_info"]["marked_deleted"], "999999");
    assert_eq!(partitions["2"][0]["liveness_info"]["ttl"], 77);
}

#[test]
fn the_later_values_of_rows_added_twice_win() {
    let temp = tempfile::tempdir().unwrap();
    let options = SstableWriter::new(SCHEMA).unwrap().flat(true);
    let mut writer = options.open(temp.path()).unwrap();
    let list = |value: &str| Value::List(vec![value.into()]);
    for (row, timestamp) in [
        (
            with(key(1, 1, 1), &[("v", 2.into()), ("l", list("new"))]),
            20,
        ),
        (
            with(
                key(1, 1, 1),
                &[
                    ("v", 1.into()),
                    ("f", Value::List(Vec::new())),
                    ("l", list("old")),
                ],
            ),
            10,
        ),
        (with(key(2, 1, 1), &[("v", 1.into())]), 10),
        (with(key(2, 1, 1), &[("v", 2.into())]), 10),
        (with(key(2, 1, 1), &[("v", 2.into())]), 10),
    ] {
        writer.add_row_with(row, RowTimes::at(timestamp)).unwrap();
    }
    let written = writer.finish().unwrap();
    assert_eq!((written.sstables.len(), written.rows), (1, 2));
    let dumps = dumps(temp.path());
    let partitions: Vec<_> = dumps
        .iter()
        .flat_map(|dump| dump.as_array().unwrap())
        .collect();
    let first = partitions
        .iter()
        .find(|p| p["partition"]["key"][0] == "1")
        .unwrap();
    let row = &first["rows"][0];
    assert_eq!(row["liveness_info"]["tstamp"], "20");
    assert_eq!(cell(row, "v")["value"], 2);
    assert_eq!(cell(row, "f")["tstamp"], "10");
    let text = row.to_string();
    assert!(text.contains("new") && !text.contains("old"), "{text}");
    let merged = Table::open(temp.path())
        .unwrap()
        .merge()
        .into(temp.path().join("merged"))
        .unwrap();
    assert_eq!(merged.reports[0].rows_written, 2);
}

#[test]
fn more_rows_than_memory_become_several_sstables() {
    let temp = tempfile::tempdir().unwrap();
    let resources = Resources {
        memory_bytes: 64 << 10,
        ..Resources::default()
    };
    let form = OutputForm {
        version: Some(Version::Da),
        ..OutputForm::default()
    };
    let options = SstableWriter::new(SCHEMA)
        .unwrap()
        .resources(resources)
        .form(form);
    let mut writer = options.open(temp.path()).unwrap();
    for number in 0..3000i32 {
        let row = with(
            key(
                number.wrapping_mul(7919) % 50,
                i64::from(number % 7),
                number,
            ),
            &[("v", number.into())],
        );
        writer.add_row(row).unwrap();
    }
    let written = writer.finish().unwrap();
    assert!(written.sstables.len() > 3, "{}", written.sstables.len());
    assert_eq!(written.rows, 3000);
    let directory = temp.path().join("ks/t");
    assert_eq!(dumps(&directory).len(), written.sstables.len());
    let merged = Table::open(&directory)
        .unwrap()
        .merge()
        .into(temp.path().join("merged"))
        .unwrap();
    assert_eq!(
        merged.partitions_written(),
        99.min(merged.partitions_written())
    );
    assert_eq!(merged.reports[0].rows_written, 3000);
}

/// The order of list elements is that of their paths.
#[test]
fn time_uuids_ascend_and_are_of_version_1() {
    let ticks = ticks_of(1_700_000_000_000_000);
    let text = CqlType::TimeUuid
        .to_text(&time_uuid(ticks, FIXED_NODE))
        .unwrap();
    assert_eq!(&text[13..15], "-1", "{text}");
    let is_less = |a, b| {
        CqlType::TimeUuid
            .compare(&time_uuid(a, FIXED_NODE), &time_uuid(b, FIXED_NODE))
            .is_lt()
    };
    assert!((0..70_000).all(|n| is_less(ticks + n, ticks + n + 1)));
    assert!(is_less(ticks, ticks + (1 << 50)));
}

fn open(directory: &Path, schema: &str) -> SstableWriter {
    let options = SstableWriter::new(schema).unwrap().flat(true);
    options.now_s(1_700_000_000).open(directory).unwrap()
}

fn rows_of(directories: &[PathBuf]) -> Vec<String> {
    let table = Table::open_all(directories, None).unwrap();
    let rows = table.rows_at(&Resources::default(), 1_700_000_001).unwrap();
    rows.map(|row| row.unwrap().to_json().unwrap()).collect()
}

/// CQL has one name for `DateType` and `TimestampType`, and only the latter has times before 1970 first.
#[test]
fn a_merge_keeps_the_order_of_dates() {
    let temp = tempfile::tempdir().unwrap();
    let schema = "CREATE TABLE ks.t (k int, c 'org.apache.cassandra.db.marshal.DateType', v int, PRIMARY KEY (k, c));";
    let inputs = [[0, -5, 5], [-5, 7, -7]].map(|times| {
        let directory = temp.path().join(format!("{times:?}"));
        let mut writer = open(&directory, schema);
        for time in times {
            let row = [
                ("k", 1.into()),
                ("c", Value::Timestamp(time)),
                ("v", 1.into()),
            ];
            writer.add_row(row).unwrap();
        }
        writer.finish().unwrap();
        directory
    });
    let of_node = "CREATE TABLE ks.t (k int, c timestamp, v int, PRIMARY KEY (k, c));";
    std::fs::write(inputs[0].join("schema.cql"), of_node).unwrap();
    let output = temp.path().join("merged");
    let table = Table::open_all(&inputs, None).unwrap();
    table.merge().flat(true).into(&output).unwrap();
    assert_eq!(dumps(&output)[0][0]["rows"].as_array().unwrap().len(), 5);
}

/// One writer reconciles rows like a merge of the outputs of separate writers.
#[test]
fn rows_added_twice_are_reconciled_as_a_merge_does() {
    const SCHEMA: &str = "CREATE TYPE ks.p (x int, y text);
CREATE TABLE ks.t (k int, c decimal, st int static, ss set<int> static, v int, w text, s set<decimal>,
    m map<text, int>, l list<int>, u p, f frozen<set<int>>, PRIMARY KEY (k, c));";
    let decimal = |unscaled: u8, scale| Value::Decimal {
        unscaled: vec![unscaled],
        scale,
    };
    let mut random = 12345u32;
    let mut next = move |below: u32| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 16) % below
    };
    let temp = tempfile::tempdir().unwrap();
    for case in 0..12 {
        let case = temp.path().join(case.to_string());
        let one = case.join("one");
        let mut writer = open(&one, SCHEMA);
        let mut each = Vec::new();
        for number in 0..12 {
            let mut row = vec![("k", Value::from(next(2) as i32))];
            let clustering = match next(2) {
                0 => decimal(10, 1),
                _ => decimal(1, 0),
            };
            let is_static = next(5) == 0;
            if !is_static {
                row.push(("c", clustering));
            }
            let int = |next: &mut dyn FnMut(u32) -> u32| Value::from(next(3) as i32);
            if is_static || next(2) == 0 {
                row.push(("st", int(&mut next)));
            }
            if next(3) == 0 {
                let set = (0..next(3)).map(|_| int(&mut next)).collect();
                row.push(("ss", Value::Set(set)));
            }
            if !is_static {
                if next(2) == 0 {
                    row.push(("v", int(&mut next)));
                }
                if next(2) == 0 {
                    row.push(("w", ["", "a", "b"][next(3) as usize].into()));
                }
                if next(2) == 0 {
                    let set = (0..next(3)).map(|_| decimal(next(3) as u8, 0)).collect();
                    row.push(("s", Value::Set(set)));
                }
                if next(2) == 0 {
                    let map =
                        (0..next(3)).map(|n| (["a", "b", "c"][n as usize].into(), int(&mut next)));
                    row.push(("m", Value::Map(map.collect())));
                }
                if next(3) == 0 {
                    row.push(("f", Value::Set(vec![int(&mut next)])));
                }
                if next(2) == 0 {
                    let y = (next(2) == 0).then(|| "y".into());
                    let fields = vec![("x".to_owned(), Some(int(&mut next))), ("y".to_owned(), y)];
                    row.push(("u", Value::Udt(fields)));
                }
            }
            let times =
                RowTimes::at(i64::from(next(3))).with_ttl([0, 0, 100, 200][next(4) as usize]);
            writer.add_row_with(row.clone(), times).unwrap();
            let own = case.join(format!("own{number}"));
            let mut writer = open(&own, SCHEMA);
            writer.add_row_with(row, times).unwrap();
            writer.finish().unwrap();
            each.push(own);
        }
        let written = writer.finish().unwrap();
        assert_eq!(written.sstables.len(), 1);
        dumps(&one);
        let merged = case.join("merged");
        let schema = case.join("schema.cql");
        std::fs::write(&schema, SCHEMA).unwrap();
        let table = Table::open_all(&each, Some(&schema)).unwrap();
        let purging = Purging {
            now_s: Some(1_700_000_001),
            ..Purging::default()
        };
        let merge = table.merge().flat(true).purging(purging);
        merge.into(&merged).unwrap();
        let without_bytes_of_decimals = |dump: &[serde_json::Value]| {
            let text = serde_json::to_string(dump).unwrap();
            let text = text.replace("\"1.0\"", "\"1\"").replace("[1.0]", "[1]");
            // Positions depend on the lengths of clusterings.
            let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
            without_positions(&mut value);
            value
        };
        assert_eq!(
            without_bytes_of_decimals(&dumps(&one)),
            without_bytes_of_decimals(&dumps(&merged)),
        );
    }
}

fn without_positions(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Array(values) => values.iter_mut().for_each(without_positions),
        serde_json::Value::Object(fields) => {
            fields.remove("position");
            fields.values_mut().for_each(without_positions);
        }
        _ => {}
    }
}

/// Elements of lists with equal timestamps are all kept, in the order in which they were added.
#[test]
fn lists_of_equal_timestamps_are_joined() {
    let temp = tempfile::tempdir().unwrap();
    let mut writer = open(temp.path(), SCHEMA);
    for (value, timestamp) in [("old", 1), ("b", 2), ("a", 2)] {
        let row = with(key(1, 1, 1), &[("l", Value::List(vec![value.into()]))]);
        writer.add_row_with(row, RowTimes::at(timestamp)).unwrap();
    }
    assert_eq!(writer.finish().unwrap().sstables.len(), 1);
    let rows = rows_of(&[temp.path().to_owned()]);
    assert!(rows[0].ends_with(r#""l": ["b", "a"]}"#), "{rows:?}");
}

/// A static column that is set with each row of a partition does not cause an SSTable per row.
#[test]
fn static_columns_of_many_rows_are_one_static_row() {
    let temp = tempfile::tempdir().unwrap();
    let mut writer = open(temp.path(), SCHEMA);
    for number in 0..500 {
        let row = with(key(1, 1, number), &[("o", number.to_string().into())]);
        writer.add_row_with(row, RowTimes::at(7)).unwrap();
    }
    let written = writer.finish().unwrap();
    assert_eq!((written.sstables.len(), written.rows), (1, 501));
    let rows = rows_of(&[temp.path().to_owned()]);
    assert_eq!(rows[0], r#"{"key": 1, "key2": "x", "o": "99"}"#);
}

/// After a failed write rows are lost, so the others must not be published as a complete SSTable.
#[test]
fn after_a_failed_write_nothing_is_published() {
    let temp = tempfile::tempdir().unwrap();
    let resources = Resources {
        memory_bytes: 1,
        ..Resources::default()
    };
    let options = SstableWriter::new(SCHEMA).unwrap().resources(resources);
    let mut writer = options.flat(true).open(temp.path()).unwrap();
    writer.add_row(key(1, 1, 1)).unwrap();
    let is_staging = |entry: &std::fs::DirEntry| entry.file_type().unwrap().is_dir();
    let mut entries = std::fs::read_dir(temp.path()).unwrap().map(Result::unwrap);
    let staging = entries.find(is_staging).unwrap().path();
    let moved = temp.path().join("moved");
    std::fs::rename(&staging, &moved).unwrap();
    writer.add_row(key(2, 1, 1)).unwrap_err();
    std::fs::rename(&moved, &staging).unwrap();
    let error = writer.add_row(key(3, 1, 1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(writer.finish().is_err());
    let entries = std::fs::read_dir(temp.path()).unwrap().map(Result::unwrap);
    let names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
    let is_data = |name: &std::ffi::OsString| name.to_string_lossy().ends_with("Data.db");
    assert!(!names.iter().any(is_data), "{names:?}");
}

/// A load may take longer than the TTL of its first rows.
#[test]
fn ttls_start_when_a_row_is_added() {
    let temp = tempfile::tempdir().unwrap();
    let options = SstableWriter::new(SCHEMA).unwrap().flat(true);
    let mut writer = options.open(temp.path()).unwrap();
    let second = || now_us() / 1_000_000;
    let begin = second();
    while second() < begin + 2 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let row = with(key(1, 1, 1), &[("l", Value::List(Vec::new()))]);
    let times = RowTimes::default().with_ttl(100);
    writer.add_row_with(row, times).unwrap();
    writer.finish().unwrap();
    let dumps = dumps(temp.path());
    let row = &dumps[0][0]["rows"][0];
    let seconds = |value: &serde_json::Value| value.as_str().unwrap().parse::<i64>().unwrap();
    let expires_at = &row["liveness_info"]["expires_at"];
    let deleted_at = &row["cells"][0]["deletion_info"]["local_delete_time"];
    assert!(seconds(expires_at) >= begin + 102, "{row}");
    assert!(seconds(deleted_at) >= begin + 2, "{row}");
}

#[test]
fn sstables_of_another_table_are_not_replaced() {
    let temp = tempfile::tempdir().unwrap();
    let one = "CREATE TABLE ks.one (k int PRIMARY KEY, v int);";
    let mut writer = open(temp.path(), one);
    writer.add_row([("k", 1.into()), ("v", 1.into())]).unwrap();
    writer.finish().unwrap();
    let replacing = |schema: &str| {
        let options = SstableWriter::new(schema).unwrap().flat(true);
        options
            .existing_output(ExistingOutput::Replace)
            .open(temp.path())
    };
    let other = "CREATE TABLE ks.other (k int PRIMARY KEY, w text);";
    let error = replacing(other).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("not of table other"), "{error}");
    drop(replacing(one).unwrap());
}

/// Lists of two writers are merged like elements of equal timestamps in one writer.
#[test]
fn list_elements_of_two_writers_are_joined() {
    let temp = tempfile::tempdir().unwrap();
    let schema = "CREATE TABLE ks.t (k int PRIMARY KEY, l list<text>);";
    let directories = ["a", "b"].map(|element| {
        let directory = temp.path().join(element);
        let options = SstableWriter::new(schema).unwrap().flat(true);
        let mut writer = options.open(&directory).unwrap();
        // As if both had started at the same time.
        writer.last_ticks = ticks_of(1_700_000_000_000_000);
        let list = Value::List(vec![element.into()]);
        let row = [("k", 1.into()), ("l", list)];
        writer.add_row_with(row, RowTimes::at(5)).unwrap();
        writer.finish().unwrap();
        directory
    });
    let rows = rows_of(&directories);
    assert!(
        rows == [r#"{"key": 1, "l": ["a", "b"]}"#] || rows == [r#"{"key": 1, "l": ["b", "a"]}"#],
        "{rows:?}"
    );
}

/// The default version is nb, whose releases do not have the compressor of this schema.
#[test]
fn a_compressor_of_a_later_release_is_not_named() {
    let temp = tempfile::tempdir().unwrap();
    let schema = "CREATE TABLE ks.t (k int PRIMARY KEY, v text)
        WITH compression = {'class': 'ZstdDictionaryCompressor'};";
    let mut writer = SstableWriter::new(schema)
        .unwrap()
        .open(temp.path())
        .unwrap();
    writer
        .add_row([("k", Value::from(1)), ("v", "x".into())])
        .unwrap();
    writer.finish().unwrap();
    let directory = temp.path().join("ks/t");
    assert_eq!(dumps(&directory).len(), 1);
    let table = Table::open(&directory).unwrap();
    let data = table.sstables()[0].to_str().unwrap();
    let info = std::fs::read(data.replace("Data.db", "CompressionInfo.db")).unwrap();
    assert!(
        info.windows(16).any(|part| part == b"\0\x0eZstdCompressor"),
        "{info:x?}"
    );
}

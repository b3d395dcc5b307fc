use std::collections::BTreeMap;
use std::path::PathBuf;

use compactor_sstable::Version;
use compactor_sstable::types::CqlType;

use super::*;
use crate::ErrorKind;
use crate::dump::{DumpOptions, dump};
use crate::merge::NoObserver;
use crate::table::Table;
use crate::verify::{VerifyOptions, verify};

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

/// What `compactor dump` prints of each SSTable, which must be sound.
fn dumps(directory: &Path) -> Vec<serde_json::Value> {
    let table = Table::open(directory).unwrap();
    let io = Resources::default().io().unwrap();
    let dump_of = |path: &PathBuf| {
        let report = verify(&io, path, &VerifyOptions::default(), &mut NoObserver).unwrap();
        assert!(!report.is_damaged(), "{:#?}", report.findings);
        let mut out = Vec::new();
        let mut options = DumpOptions::new(0);
        options.raw_timestamps = true;
        dump(&io, path, &options, &mut out).unwrap();
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
    // Equal static rows are one.
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
fn of_rows_added_twice_the_later_values_count() {
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
    // Of equal timestamps the reader decides.
    assert_eq!((written.sstables.len(), written.rows), (2, 3));
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

#[test]
fn rows_that_are_not_of_the_table_are_refused_and_leave_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let mut writer = SstableWriter::new(SCHEMA)
        .unwrap()
        .open(temp.path())
        .unwrap();
    for (row, why) in [
        (key(1, 1, 1)[1..].to_vec(), "column a of the primary key"),
        (key(1, 1, 1)[..3].to_vec(), "column d of the primary key"),
        (with(key(1, 1, 1), &[("w", 1.into())]), "no column w"),
        (
            with(key(1, 1, 1), &[("v", 1i64.into())]),
            "column v: expected int, found bigint",
        ),
        (
            with(key(1, 1, 1), &[("v", 1.into()), ("v", 2.into())]),
            "column v: it is set twice",
        ),
        (
            with(key(1, 1, 1), &[("d", 1.into())]),
            "column d: it is set twice",
        ),
        (
            with(
                key(1, 1, 1),
                &[("u", Value::Udt(vec![("zip".to_owned(), None)]))],
            ),
            "no field zip",
        ),
        (
            with(key(1, 1, 1), &[("m", Value::Set(Vec::new()))]),
            "found set",
        ),
        (
            with(
                key(1, 1, 1)[..1].to_vec(),
                &[("b", "x".repeat(70_000).into())],
            ),
            "70000 bytes",
        ),
    ] {
        let error = writer.add_row(row).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(why), "{error}");
    }
    let late = RowTimes::default().with_ttl(MAX_TTL_S + 1);
    assert!(writer.add_row_with(key(1, 1, 1), late).is_err());
    let written = writer.finish().unwrap();
    assert_eq!((written.sstables.len(), written.rows), (0, 0));
}

#[test]
fn tables_that_only_nodes_can_write_are_refused() {
    for (schema, why) in [
        (
            "CREATE TABLE ks.t (k int PRIMARY KEY, n counter)",
            "counters",
        ),
        (
            "CREATE TABLE ks.t (k int PRIMARY KEY, v int) WITH COMPACT STORAGE",
            "COMPACT STORAGE",
        ),
        (
            "CREATE TABLE ks.t (k int PRIMARY KEY, v unknown)",
            "column v",
        ),
        ("nothing", ""),
    ] {
        let error = SstableWriter::new(schema).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

/// The order of list elements is that of their paths.
#[test]
fn time_uuids_ascend_and_are_of_version_1() {
    let ticks = ticks_of(1_700_000_000_000_000);
    let text = CqlType::TimeUuid.to_text(&time_uuid(ticks)).unwrap();
    assert_eq!(&text[13..15], "-1", "{text}");
    let is_less = |a, b| {
        CqlType::TimeUuid
            .compare(&time_uuid(a), &time_uuid(b))
            .is_lt()
    };
    assert!((0..70_000).all(|n| is_less(ticks + n, ticks + n + 1)));
    assert!(is_less(ticks, ticks + (1 << 50)));
}

use std::fs;

use compactor_sstable::Component;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::statistics::{HeaderType, Statistics};

use super::*;
use crate::writer::RowTimes;
use crate::{ErrorKind, SstableWriter};

const SCHEMA: &str = "CREATE TABLE ks.t (k text, c int, st int static, v int, s set<text>,
    PRIMARY KEY (k, c));";

fn write(directory: &std::path::Path, rows: &[(&str, i32, i32, i64)]) {
    let options = SstableWriter::new(SCHEMA).unwrap().flat(true);
    let mut writer = options.open(directory).unwrap();
    for (k, c, v, timestamp_us) in rows {
        let row = [
            ("k", (*k).into()),
            ("c", (*c).into()),
            ("v", (*v).into()),
            ("s", Value::Set(vec!["x".into()])),
            ("st", (*v).into()),
        ];
        let times = RowTimes::at(*timestamp_us);
        writer.add_row_with(row, times).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn rows_are_merged_and_typed() {
    let temp = tempfile::tempdir().unwrap();
    let (first, second) = (temp.path().join("1"), temp.path().join("2"));
    write(&first, &[("a", 1, 10, 1), ("a", 2, 20, 1), ("b", 1, 1, 1)]);
    write(&second, &[("a", 2, 21, 2)]);
    let schema = temp.path().join("schema.cql");
    std::fs::write(&schema, SCHEMA).unwrap();
    let table = Table::open_all(&[first, second], Some(&schema)).unwrap();
    let rows = table.rows(&Resources::default()).unwrap();
    let rows: Vec<Row> = rows.collect::<Result<_>>().unwrap();
    let texts: Vec<String> = rows.iter().map(|row| row.to_json().unwrap()).collect();
    assert_eq!(
        texts,
        [
            r#"{"k": "a", "st": 21}"#,
            r#"{"k": "a", "c": 1, "v": 10, "s": ["x"]}"#,
            r#"{"k": "a", "c": 2, "v": 21, "s": ["x"]}"#,
            r#"{"k": "b", "st": 1}"#,
            r#"{"k": "b", "c": 1, "v": 1, "s": ["x"]}"#,
        ]
    );
    let row = &rows[2];
    assert_eq!(row.get("k"), Some(&Value::from("a")));
    assert_eq!(row.get("c"), Some(&Value::from(2)));
    assert_eq!(row.get("v"), Some(&Value::from(21)));
    assert_eq!((row.get("st"), row.get("other")), (None, None));
    assert!(rows[0].is_static() && rows[0].clustering().is_empty());
    let (name, column) = row.columns().last().unwrap();
    assert_eq!(
        (name, column.timestamp_us, column.expires_at_s),
        ("s", 2, None)
    );
}

/// Most JSON libraries have numbers of 64 bits.
#[test]
fn json_has_all_digits_and_escaped_names() {
    let temp = tempfile::tempdir().unwrap();
    let schema =
        r#"CREATE TABLE ks.t ("a ""key" text PRIMARY KEY, n varint, d decimal, f double);"#;
    let options = SstableWriter::new(schema).unwrap().flat(true);
    let mut writer = options.open(temp.path()).unwrap();
    let decimal = Value::Decimal {
        unscaled: vec![0x11; 12],
        scale: 400,
    };
    let row = [
        ("a \"key", Value::from("\"")),
        ("n", Value::VarInt(vec![0x11; 12])),
        ("d", decimal),
        ("f", f64::NAN.into()),
    ];
    writer.add_row(row).unwrap();
    let long = [
        ("a \"key", Value::from("long")),
        ("n", Value::VarInt(vec![0x11; 70_000])),
    ];
    writer.add_row(long).unwrap();
    writer.finish().unwrap();
    let path = temp.path().join("schema.cql");
    std::fs::write(&path, schema).unwrap();
    let table = Table::open(temp.path()).unwrap();
    let mut rows = table.rows(&Resources::default()).unwrap();
    assert!(rows.column_names().eq(["a \"key", "d", "f", "n"]));
    let rows: Vec<Row> = rows.by_ref().collect::<Result<_>>().unwrap();
    let is_long = |row: &&Row| row.get("d").is_none();
    let json = rows
        .iter()
        .find(|row| !is_long(row))
        .unwrap()
        .to_json()
        .unwrap();
    let refused = rows.iter().find(is_long).unwrap().to_json().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert!(
        refused.to_string().contains("column n as JSON"),
        "{refused}"
    );
    let expected = r#"{"a \"key": "\"", "d": 5.281877500950955839569596689E-373, "f": null, "n": 5281877500950955839569596689}"#;
    assert_eq!(json, expected);
}

/// A row whose liveness has expired is hidden in a view; in a table its cells are visible.
#[test]
fn rows_of_a_view_need_their_liveness() {
    let temp = tempfile::tempdir().unwrap();
    let base = "CREATE TABLE ks.t (k int PRIMARY KEY, v int);";
    let view = "CREATE MATERIALIZED VIEW ks.w AS SELECT k, v FROM ks.t WHERE k IS NOT NULL \
                PRIMARY KEY (k);";
    let options = SstableWriter::new(base).unwrap().flat(true).now_s(1000);
    let mut writer = options.open(temp.path()).unwrap();
    let key = ("k", Value::from(1));
    let row = [key.clone(), ("v", 2.into())];
    writer.add_row_with(row, RowTimes::at(5)).unwrap();
    writer
        .add_row_with([key], RowTimes::at(5).with_ttl(10))
        .unwrap();
    assert_eq!(writer.finish().unwrap().rows, 1);
    for (now_s, schema, count) in [
        (1009, base, 1),
        (1010, base, 1),
        (1009, view, 1),
        (1010, view, 0),
    ] {
        let mut table = Table::open(temp.path()).unwrap();
        let schema = compactor_sstable::schema::Schema::parse(schema);
        let schema = schema.unwrap().tables.pop().unwrap();
        table.schema = Some(("schema.cql".into(), schema));
        let rows = table.rows_at(&Resources::default(), now_s).unwrap();
        assert_eq!(rows.map(Result::unwrap).count(), count, "{now_s}");
    }
}

#[test]
fn names_of_key_columns_are_not_those_of_other_columns() {
    let temp = tempfile::tempdir().unwrap();
    let schema = "CREATE TABLE ks.t (id int, c int, key text, column1 int, \"Big\" int, PRIMARY KEY (id, c));";
    let options = SstableWriter::new(schema).unwrap().flat(true);
    let mut writer = options.open(temp.path()).unwrap();
    let row = [
        ("id", Value::Int(1)),
        ("c", 2.into()),
        ("key", "x".into()),
        ("column1", 3.into()),
        ("Big", 4.into()),
    ];
    writer.add_row(row).unwrap();
    writer.finish().unwrap();
    let table = Table::open(temp.path()).unwrap();
    let mut rows = table.rows(&Resources::default()).unwrap();
    let row = rows.next().unwrap().unwrap();
    assert_eq!(
        row.to_json().unwrap(),
        r#"{"key2": 1, "column2": 2, "\"Big\"": 4, "column1": 3, "key": "x"}"#
    );
    assert_eq!(row.get("key"), Some(&Value::from("x")));
}

/// The columns are those of the schema: a dropped one is hidden, even if it was written after the drop.
#[test]
fn columns_are_those_of_the_schema() {
    let temp = tempfile::tempdir().unwrap();
    let created = "CREATE TABLE ks.t (k int, c int, old int, v int, PRIMARY KEY (k, c));";
    let options = SstableWriter::new(created).unwrap().flat(true);
    let mut writer = options.open(temp.path()).unwrap();
    let row = [("k", 1.into()), ("c", 2.into()), ("old", 3.into())];
    writer.add_row_with(row, RowTimes::at(5)).unwrap();
    writer.finish().unwrap();
    let schema = "ALTER TABLE ks.t DROP old USING TIMESTAMP 4; ALTER TABLE ks.t ADD s int static; \
                  ALTER TABLE ks.t ADD w set<int>;";
    fs::write(temp.path().join("schema.cql"), created.to_owned() + schema).unwrap();
    let table = Table::open(temp.path()).unwrap();
    let mut rows = table.rows(&Resources::default()).unwrap();
    assert!(rows.column_names().eq(["k", "c", "s", "v", "w"]));
    let row = rows.next().unwrap().unwrap();
    assert_eq!(row.to_json().unwrap(), r#"{"k": 1, "c": 2}"#);
    assert_eq!((row.get("old"), row.columns().count()), (None, 0));
}

/// A snapshot of a view has its key in CQL, but not the types of its columns.
#[test]
fn key_columns_of_a_view_have_their_names() {
    let temp = tempfile::tempdir().unwrap();
    let stored = "CREATE TABLE ks.w (v int, k int, c int, x int, PRIMARY KEY ((v, k), c));";
    let options = SstableWriter::new(stored).unwrap().flat(true);
    let mut writer = options.open(temp.path()).unwrap();
    let row = [("v", 1), ("k", 2), ("c", 3), ("x", 4)];
    let row = row.map(|(name, value)| (name, Value::Int(value)));
    writer.add_row(row).unwrap();
    writer.finish().unwrap();
    let view = "CREATE MATERIALIZED VIEW ks.w AS SELECT * FROM ks.t WHERE v IS NOT NULL \
                PRIMARY KEY ((v, k), c);";
    fs::write(temp.path().join("schema.cql"), view).unwrap();
    let table = Table::open(temp.path()).unwrap();
    let mut rows = table.rows(&Resources::default()).unwrap();
    assert!(rows.column_names().eq(["v", "k", "c", "x"]));
    let row = rows.next().unwrap().unwrap();
    assert_eq!(row.get("k"), Some(&Value::Int(2)));
    let json = r#"{"v": 1, "k": 2, "c": 3, "x": 4}"#;
    assert_eq!(row.to_json().unwrap(), json);
}

fn with_statistics(data: &std::path::Path, change: impl FnOnce(&mut Statistics)) {
    let file = Descriptor::parse(data).unwrap().descriptor;
    let path = file.path(Component::Statistics);
    let mut statistics = Statistics::parse(&fs::read(&path).unwrap(), file.version).unwrap();
    change(&mut statistics);
    let mut bytes = Vec::new();
    statistics.write(&mut bytes, file.version).unwrap();
    fs::write(&path, bytes).unwrap();
}

#[test]
fn values_that_are_not_of_their_types_end_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let schema = "CREATE TABLE ks.t (k int, c int, v blob, PRIMARY KEY (k, c));";
    let options = SstableWriter::new(schema).unwrap().flat(true);
    let mut writer = options.open(temp.path()).unwrap();
    for (c, v) in [(1, b"a"), (2, b"\xff"), (3, b"b")] {
        let row = [
            ("k", 1.into()),
            ("c", c.into()),
            ("v", Value::Blob(v.to_vec())),
        ];
        writer.add_row(row).unwrap();
    }
    let written = writer.finish().unwrap();
    with_statistics(&written.sstables[0].data_path, |statistics| {
        statistics.header.regular_columns[0].column_type = HeaderType::new(CqlType::Utf8);
    });
    let table = Table::open(temp.path()).unwrap();
    let rows = table.rows(&Resources::default()).unwrap();
    let read: Vec<_> = rows
        .map(|row| row.ok().and_then(|row| row.get("v").cloned()))
        .collect();
    assert_eq!(read, [Some("a".into()), None, Some("b".into())]);
}

/// A node with incremental repair has both, and a query reads both.
#[test]
fn repaired_and_unrepaired_sstables_are_read_together() {
    let temp = tempfile::tempdir().unwrap();
    let directories = ["1", "2"].map(|name| temp.path().join(name));
    for (directory, v) in directories.iter().zip([10, 20]) {
        write(directory, &[("a", v, v, 1)]);
    }
    let table = Table::open_all(&directories, None).unwrap();
    with_statistics(&table.sstables()[1], |statistics| {
        statistics.stats.repaired_at = 1_700_000_000_000;
    });
    // The static row and a row of each.
    assert_eq!(table.rows(&Resources::default()).unwrap().count(), 3);
}

/// The consumer may be dropped at any time.
#[test]
fn rows_need_not_be_read_to_their_end() {
    let temp = tempfile::tempdir().unwrap();
    let rows: Vec<(String, i32)> = (0..20_000).map(|n| (format!("{n}"), n)).collect();
    let rows: Vec<_> = rows.iter().map(|(k, n)| (k.as_str(), *n, *n, 1)).collect();
    write(temp.path(), &rows);
    let table = Table::open(temp.path()).unwrap();
    for count in [0, 1, 100, 30_000, 50_000] {
        let read = table.rows(&Resources::default()).unwrap();
        let read = read.take(count).collect::<Result<Vec<Row>>>().unwrap();
        assert_eq!(read.len(), count.min(2 * rows.len()));
    }
    // Without a schema the names are CQL's own.
    let mut read = table.rows(&Resources::default()).unwrap();
    let row = read.find(|row| row.as_ref().is_ok_and(|row| !row.is_static()));
    let row = row.unwrap().unwrap();
    assert!(row.get("key").is_some() && row.get("column1").is_some());
}

#[test]
fn damage_is_an_error_after_which_nothing_comes() {
    let temp = tempfile::tempdir().unwrap();
    write(temp.path(), &[("a", 1, 10, 1)]);
    let table = Table::open(temp.path()).unwrap();
    let data = &table.sstables()[0];
    let mut bytes = std::fs::read(data).unwrap();
    bytes[5] ^= 1;
    std::fs::write(data, bytes).unwrap();
    let mut rows = table.rows(&Resources::default()).unwrap();
    let error = rows.next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(rows.next().is_none());
}

//! User types in SSTables before 4.0, whose headers do not state which are frozen if Cassandra 3.0 wrote them.
use std::fs;
use std::path::{Path, PathBuf};

use compactor::scrub::{ScrubOptions, scrub};
use compactor::table::Row;
use compactor::verify::{VerifyOptions, verify};
use compactor::writer::RowTimes;
use compactor::{Compression, NoObserver, OutputForm, SstableWriter, Table, Value};
use compactor_io::{Io, IoOptions};
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::statistics::{HeaderType, SerializationHeader, Statistics};
use compactor_sstable::{Component, Version};
use tempfile::TempDir;

use crate::support::damage::copy_as_old;
use crate::support::find_sstables;

const FROZEN: &str = "CREATE TYPE ks.u (a int, b text);
    CREATE TABLE ks.t (k frozen<u>, k2 int, c frozen<u>, d frozen<u>, s frozen<u> static, a int, f frozen<u>, z set<int>,
        PRIMARY KEY ((k, k2), c, d)) WITH CLUSTERING ORDER BY (c ASC, d DESC);";

const NOT_FROZEN: &str = "CREATE TYPE ks.u (a int, b text);
    CREATE TABLE ks.t (k int, c int, s u static, a int, f u, g frozen<u>, z set<int>, PRIMARY KEY (k, c));";

fn user_value(a: i32, b: Option<&str>) -> Value {
    let b = b.map(|b| Value::Text(b.into()));
    Value::Udt(vec![("a".into(), Some(a.into())), ("b".into(), b)])
}

/// Writes rows, the first of which lack the column `f`.
fn written(schema: &str, directory: &Path, rows: i32, lacking: i32) -> PathBuf {
    let mut form = OutputForm::default();
    form.version = Some(Version::Nb);
    form.compression = Some(Compression::None);
    let options = SstableWriter::new(schema).unwrap().flat(true).form(form);
    let mut writer = options.open(directory).unwrap();
    let is_frozen = schema == FROZEN;
    for number in 0..rows {
        let key = |value: i32| {
            if is_frozen {
                user_value(value, None)
            } else {
                value.into()
            }
        };
        let mut row = vec![
            ("k", key(number / 5)),
            ("c", key(number)),
            ("a", number.into()),
            ("s", user_value(number, Some("static"))),
            ("z", Value::Set(vec![number.into()])),
        ];
        if is_frozen {
            row.extend([("k2", 1.into()), ("d", key(number))]);
        } else {
            row.push(("g", user_value(number, None)));
        }
        if number >= lacking {
            row.push(("f", user_value(number, (number % 2 == 0).then_some("x"))));
        }
        writer.add_row_with(row, RowTimes::at(5)).unwrap();
    }
    writer.finish().unwrap();
    find_sstables(directory).remove(0)
}

/// Copies an uncompressed SSTable as one that Cassandra 3 wrote: 3.0 if `is_implicit`.
fn as_of_cassandra_3(data: &Path, directory: &Path, is_implicit: bool) -> PathBuf {
    copy_as_old(data, directory, Version::Mc, |statistics| {
        if is_implicit {
            types_of(&mut statistics.header).for_each(|header_type| {
                header_type.text = without_frozen(&header_type.text);
            });
        }
    })
}

/// Removes each `FrozenType` around a user type, whose fields are of one simple type each.
fn without_frozen(text: &str) -> String {
    const PACKAGE: &str = "org.apache.cassandra.db.marshal.";
    let wrapped = format!("{PACKAGE}FrozenType({PACKAGE}UserType(");
    let mut parts = text.split(&wrapped);
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |out, part| {
        let bare = part.replacen("))", ")", 1);
        format!("{out}{PACKAGE}UserType({bare}")
    })
}

fn types_of(header: &mut SerializationHeader) -> impl Iterator<Item = &mut HeaderType> {
    let columns = header.static_columns.iter_mut();
    let columns = columns.chain(&mut header.regular_columns);
    let types = columns.map(|column| &mut column.column_type);
    types
        .chain(&mut header.clustering_types)
        .chain([&mut header.key_type])
}

fn rows(inputs: &[PathBuf]) -> Vec<String> {
    let table = Table::open_all(inputs, None).unwrap();
    let rows = table.rows_at(&compactor::Resources::default(), 0).unwrap();
    rows.map(|row: Result<Row, _>| row.unwrap().to_json().unwrap())
        .collect()
}

fn check(schema: &str, is_implicit: bool) {
    for (count, lacking) in [(40, 25), (1, 0), (5, 5)] {
        let temp = TempDir::new().unwrap();
        let at = |name: &str| temp.path().join(name);
        let new = written(schema, &at("new"), count, lacking);
        let old = as_of_cassandra_3(&new, &at("old"), is_implicit);
        let io = Io::new(IoOptions::default()).unwrap();
        let report = verify(&io, &old, &VerifyOptions::default(), &mut NoObserver).unwrap();
        assert!(report.findings.is_empty(), "{:#?}", report.findings);

        let expected = rows(std::slice::from_ref(&new));
        assert_eq!(rows(std::slice::from_ref(&old)), expected);
        // The types agree with those of the schema and of a newer SSTable.
        fs::write(at("old/schema.cql"), schema).unwrap();
        let table = Table::open_all(&[old.clone(), new.clone()], None).unwrap();
        table.merge().flat(true).into(at("merged")).unwrap();
        let merged = find_sstables(&at("merged"));
        assert_eq!(rows(&merged), expected);
        let header = |data: &Path| {
            let descriptor = Descriptor::parse(data).unwrap().descriptor;
            let bytes = fs::read(descriptor.path(Component::Statistics)).unwrap();
            let mut header = Statistics::parse(&bytes, descriptor.version)
                .unwrap()
                .header;
            let types = types_of(&mut header).map(|header_type| header_type.text.clone());
            types.collect::<Vec<_>>()
        };
        assert_eq!(header(&merged[0]), header(&new));

        let options = ScrubOptions::new(at("scrubbed"));
        scrub(&io, &old, &options, &mut NoObserver).unwrap();
        assert_eq!(rows(&find_sstables(&at("scrubbed"))), expected);
    }
}

#[test]
fn frozen_ones_of_3_0_are_read_as_such() {
    check(FROZEN, true);
}

#[test]
fn others_stay_as_stated() {
    check(NOT_FROZEN, false);
    check(FROZEN, false);
}

/// Without any value of `h`, those of `f` and `g` can be taken for those of `g` and `h`.
#[test]
fn rows_that_do_not_tell_are_refused() {
    let schema = "CREATE TYPE ks.u (a int, b text);
        CREATE TABLE ks.t (k int PRIMARY KEY, f frozen<u>, g text, h text);";
    let temp = TempDir::new().unwrap();
    let mut form = OutputForm::default();
    form.version = Some(Version::Nb);
    form.compression = Some(Compression::None);
    let options = SstableWriter::new(schema).unwrap().flat(true).form(form);
    let mut writer = options.open(temp.path().join("new")).unwrap();
    let row = [
        ("k", 1.into()),
        ("f", user_value(1, Some("x"))),
        ("g", Value::Text("y".into())),
    ];
    writer.add_row_with(row, RowTimes::at(5)).unwrap();
    writer.finish().unwrap();
    let new = find_sstables(&temp.path().join("new")).remove(0);
    let old = as_of_cassandra_3(&new, &temp.path().join("old"), true);
    let io = Io::new(IoOptions::default()).unwrap();
    let error = verify(&io, &old, &VerifyOptions::default(), &mut NoObserver).unwrap_err();
    assert!(
        error.to_string().contains("nodetool upgradesstables"),
        "{error}"
    );
}

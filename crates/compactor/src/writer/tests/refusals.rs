//! Schemas, options and rows that are refused.

use super::*;

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
        (
            vec![
                ("a", 1.into()),
                ("b", "x".repeat(65_530).into()),
                ("c", Value::Timestamp(1)),
                ("d", 1.into()),
            ],
            "a partition key of 65540 bytes",
        ),
    ] {
        let error = writer.add_row(row).unwrap_err();
        // Nothing of the refused row is kept.
        assert_eq!(writer.buffer.len_in_memory(), 0);
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
        ("nothing", "schema: expected"),
    ] {
        let error = SstableWriter::new(schema).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn times_that_a_version_cannot_store_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    let in_version = |name: &str, version, now_s| {
        let form = OutputForm {
            version: Some(version),
            ..OutputForm::default()
        };
        let options = SstableWriter::new(SCHEMA).unwrap().form(form).now_s(now_s);
        options.flat(true).open(temp.path().join(name))
    };
    let max = [i64::from(i32::MAX) - 1, 4_294_967_293];
    for (version, max) in [Version::Nb, Version::Oa].into_iter().zip(max) {
        for now_s in [i64::MIN, -1, max + 1, i64::MAX] {
            let error = in_version("refused", version, now_s).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        }
        let name = version.to_string();
        let mut writer = in_version(&name, version, max - 10).unwrap();
        let late = writer.add_row_with(key(1, 1, 1), RowTimes::default().with_ttl(11));
        assert!(late.unwrap_err().to_string().contains(&max.to_string()));
        for (row, timestamp) in [i64::MIN + 1, -1, 0, i64::MAX].into_iter().enumerate() {
            let row = with(key(1, 1, row as i32), &[("m", Value::Map(Vec::new()))]);
            let times = RowTimes::at(timestamp).with_ttl(10);
            writer.add_row_with(row, times).unwrap();
        }
        let reserved = writer.add_row_with(key(1, 1, 1), RowTimes::at(i64::MIN));
        assert!(reserved.unwrap_err().to_string().contains("reserved"));
        assert_eq!(writer.finish().unwrap().rows, 4);
        let directory = temp.path().join(name);
        let [dump] = &dumps(&directory)[..] else {
            panic!();
        };
        let rows = dump[0]["rows"].as_array().unwrap();
        let times = rows
            .iter()
            .map(|row| row["liveness_info"]["tstamp"].as_str());
        let expected = ["-9223372036854775807", "-1", "0", "9223372036854775807"];
        assert!(times.eq(expected.map(Some)), "{rows:?}");
        let table = Table::open(&directory).unwrap();
        let count = |now_s| table.rows_at(&Resources::default(), now_s).unwrap().count();
        assert_eq!((count(max - 1), count(max)), (4, 0));
    }
}

/// Bloom filters of Cassandra 3 have other bits: a node would find hardly any of the rows.
#[test]
fn versions_of_old_releases_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    for version in [Version::Ma, Version::Me, Version::Na] {
        let form = OutputForm {
            version: Some(version),
            ..OutputForm::default()
        };
        let output = temp.path().join(version.to_string());
        let options = SstableWriter::new(SCHEMA).unwrap().form(form);
        let error = options.open(&output).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("choose nb, oa"), "{error}");
    }
}

#[test]
fn values_that_readers_would_refuse_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    let schema = "CREATE TABLE ks.t (k int PRIMARY KEY, v blob, l list<blob>)";
    let mut writer = open(temp.path(), schema);
    let longest = 256 << 20;
    let long = || Value::Blob(vec![0; longest + 1]);
    for (column, value) in [("v", long()), ("l", Value::List(vec![long()]))] {
        let row = [("k", Value::from(1)), (column, value)];
        let error = writer.add_row(row).unwrap_err().to_string();
        assert!(error.contains("268435457 bytes"), "{error}");
    }
    assert_eq!(writer.finish().unwrap().rows, 0);
}

#[test]
fn tables_that_cassandra_would_not_create_are_refused() {
    let unnamed =
        "CREATE TYPE address (street text); CREATE TABLE t (k int PRIMARY KEY, u address);";
    for (schema, why) in [
        (unnamed, "column u: its user-defined type has no keyspace"),
        (
            "CREATE TABLE ks.t (k duration PRIMARY KEY, v int);",
            "column k: a duration cannot be in the primary key",
        ),
        (
            "CREATE TABLE ks.t (k frozen<list<duration>> PRIMARY KEY, v int);",
            "column k: a duration cannot be in the primary key",
        ),
        (
            "CREATE TABLE ks.t (k vector<duration, 2> PRIMARY KEY, v int);",
            "column k: a duration cannot be in the primary key",
        ),
        (
            "CREATE TABLE ks.t (k int, c set<int>, v int, PRIMARY KEY (k, c));",
            "column c: a collection or user-defined type in the primary key must be frozen",
        ),
        (
            "CREATE TABLE ks.t (k int PRIMARY KEY, s set<frozen<list<duration>>>);",
            "column s: a set cannot have durations",
        ),
        (
            "CREATE TABLE ks.t (k int PRIMARY KEY, m frozen<list<frozen<map<duration, int>>>>);",
            "column m: a duration cannot be the key of a map",
        ),
        (
            "CREATE TABLE ks.t (k int PRIMARY KEY, m map<int, counter>);",
            "column m: a counter cannot be part of another type",
        ),
        (
            "CREATE TABLE ks.t (k int PRIMARY KEY, s int static);",
            "t has static columns, but no clustering columns",
        ),
    ] {
        let temp = tempfile::tempdir().unwrap();
        let output = temp.path().join("out");
        let error = match SstableWriter::new(schema) {
            Ok(options) => options.open(&output).unwrap_err(),
            Err(error) => error,
        };
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(!output.exists());
    }
}

#[test]
fn clustering_columns_have_a_maximum_total_length() {
    let temp = tempfile::tempdir().unwrap();
    let schema = "CREATE TABLE ks.t (k int, a text, b text, PRIMARY KEY (k, a, b));";
    let mut writer = open(temp.path(), schema);
    let mut add = |len: usize| {
        let text = |len| Value::from("x".repeat(len));
        writer.add_row([("k", 1.into()), ("a", text(40_000)), ("b", text(len))])
    };
    let error = add(25_536).unwrap_err();
    assert!(error.to_string().contains("65536 bytes"), "{error}");
    add(25_535).unwrap();
}

//! Rows that `SstableWriter` writes: Cassandra's verifier accepts them, and a scan by Cassandra returns the same as for
//! its own SSTable of the same rows inserted with `INSERT`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use compactor::table::{OutputForm, Resources};
use compactor::writer::RowTimes;
use compactor::{SstableWriter, Value};
use interop::{Cassandra, Mode, Table};

use crate::support::{five, has_five, server};

const NOW_S: i64 = 1_700_000_000;
const ROWS: i32 = 400;

/// Non-frozen lists are missing: the paths of their elements are generated.
const COLUMNS: &str = "a int, b text, c timestamp, d int, st text static, ss set<int> static,
    v int, t text, bl blob, bo boolean, ti tinyint, si smallint, bi bigint, fl float, dou double,
    va varint, de decimal, da date, tm time, du duration, uu uuid, tu timeuuid, ine inet,
    s set<int>, m map<text, int>, u address, fu frozen<address>, fli frozen<list<int>>,
    fs frozen<set<text>>, tup tuple<int, text>, PRIMARY KEY ((a, b), c, d)";

#[test]
fn rows_match_inserts() {
    if let Some(mut cassandra) = server(Mode::Pa) {
        same_as_inserts(&mut cassandra).expect("the rows are compared");
    }
}

#[test]
fn rows_match_inserts_in_cassandra_5() {
    if !has_five() {
        return;
    }
    for mode in [Mode::Oa, Mode::Da] {
        let mut cassandra = five(mode);
        same_as_inserts(&mut cassandra).expect("the rows are compared");
    }
}

fn same_as_inserts(cassandra: &mut Cassandra) -> Result<()> {
    let place = tempfile::tempdir()?;
    let table = Table::new("written", "t");
    let address = "CREATE TYPE written.address (street text, number int)";
    let create =
        format!("CREATE TABLE written.t ({COLUMNS}) WITH CLUSTERING ORDER BY (c DESC, d ASC)");
    cassandra.set_now(NOW_S)?;
    cassandra.cql(&[
        "CREATE KEYSPACE written WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        address,
        &create,
    ])?;
    let theirs = place.path().join("theirs");
    std::fs::create_dir(&theirs)?;
    let mut form = OutputForm::default();
    form.version = Some(cassandra.mode().version().parse()?);
    let mut writer = SstableWriter::new(&format!("{address};\n{create};"))?
        .form(form)
        .now_s(NOW_S)
        .flat(true)
        .open(place.path().join("ours"))?;
    let mut statements = Vec::new();
    for number in 0..ROWS {
        let row = row(number);
        let timestamp_us = NOW_S * 1_000_000 + i64::from(number);
        let mut times = RowTimes::at(timestamp_us);
        let mut using = format!("USING TIMESTAMP {timestamp_us}");
        if number % 7 == 0 {
            times = times.with_ttl(1000 + number as u32);
            using += &format!(" AND TTL {}", 1000 + number);
        }
        let names: Vec<&str> = row.iter().map(|(name, _)| *name).collect();
        let values: Vec<String> = row.iter().map(|(_, value)| cql(value)).collect();
        statements.push(format!(
            "INSERT INTO written.t ({}) VALUES ({}) {using}",
            names.join(", "),
            values.join(", ")
        ));
        writer.add_row_with(row, times)?;
    }
    cassandra.cql(&statements)?;
    let expected = cassandra.flush(&table, &theirs, 1)?;
    let written = writer.finish()?;
    read_as_inserted(&expected)?;
    assert_eq!(written.sstables.len(), 1);
    let data: &Path = &written.sstables[0].data_path;
    let findings = cassandra.verify(&table, data)?;
    assert!(findings.is_empty(), "{findings:#?}");
    let (ours, theirs) = (
        cassandra.dump(&table, data)?,
        cassandra.dump(&table, &expected)?,
    );
    let different = ours.lines().zip(theirs.lines()).find(|(a, b)| a != b);
    assert_eq!(different, None);
    assert_eq!(ours.lines().count(), theirs.lines().count());
    // Some rows are added twice, and partitions have a static row.
    assert!((360..360 + 20).contains(&written.rows), "{}", written.rows);
    Ok(())
}

/// Checks that Cassandra's SSTable has the inserted values.
fn read_as_inserted(data: &Path) -> Result<()> {
    let mut expected: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
    let mut expected_static = expected.clone();
    for number in 0..ROWS {
        let row = row(number);
        let key = format!("{:?}", &row[..2]);
        let own = format!("{:?}", &row[..4]);
        expected.entry(own.clone()).or_default();
        for (name, value) in row.into_iter().skip(4) {
            let row = match name {
                "st" | "ss" => expected_static.entry(key.clone()).or_default(),
                _ => expected.entry(own.clone()).or_default(),
            };
            row.insert(name.to_owned(), sorted(value));
        }
    }
    let table = compactor::Table::open(data)?;
    let mut found = (BTreeMap::new(), BTreeMap::new());
    for row in table.rows_at(&Resources::default(), NOW_S)? {
        let row = row?;
        row.to_json()?;
        let key = row.partition_key();
        let mut names = vec![("a", key[0].clone()), ("b", key[1].clone())];
        let values: BTreeMap<String, Value> = row
            .columns()
            .map(|(name, column)| (name.to_owned(), column.value.clone()))
            .collect();
        if row.is_static() {
            found.0.insert(format!("{names:?}"), values);
            continue;
        }
        let clustering = row.clustering().iter().flatten().cloned();
        names.extend(["c", "d"].into_iter().zip(clustering));
        found.1.insert(format!("{names:?}"), values);
    }
    assert_eq!(found.0, expected_static);
    assert_eq!(found.1, expected);
    Ok(())
}

/// Sorts sets and maps, whose elements ascend when they are read.
fn sorted(value: Value) -> Value {
    let order = |value: &Value| match value {
        Value::Int(number) => (*number, String::new()),
        Value::Text(text) => (0, text.clone()),
        other => unreachable!("{other:?}"),
    };
    match value {
        Value::Set(mut values) => {
            values.sort_by_key(order);
            values.dedup();
            Value::Set(values)
        }
        Value::Map(mut pairs) => {
            pairs.sort_by_key(|(key, _)| order(key));
            Value::Map(pairs)
        }
        other => other,
    }
}

/// A row with about every third column left out; some rows occur twice.
fn row(number: i32) -> Vec<(&'static str, Value)> {
    let n = number % (ROWS - 40);
    let byte = n as u8;
    let is_set = |column: i32| (n + column) % 3 != 0;
    let address = Value::Udt(vec![
        ("street".to_owned(), Some(format!("street {n}").into())),
        ("number".to_owned(), (n % 2 == 0).then(|| n.into())),
    ]);
    let mut uuid = [byte; 16];
    uuid[6] = 0x10 | (byte & 0xf);
    uuid[8] = 0x80 | (byte & 0x3f);
    let more = [
        ("v", Value::from(n - 200)),
        ("t", format!("tëxt '{n}'").into()),
        ("bl", vec![byte; n as usize % 40].into()),
        ("bo", (n % 2 == 0).into()),
        ("ti", (n as i8).into()),
        ("si", (n as i16 * 77).into()),
        ("bi", (i64::from(n) << 40).into()),
        ("fl", (n as f32 / 3.0).into()),
        ("dou", (f64::from(n) / -3.0).into()),
        ("va", Value::VarInt(vec![1, byte])),
        (
            "de",
            Value::Decimal {
                unscaled: vec![1, byte],
                scale: 3,
            },
        ),
        ("da", Value::Date(n - 100)),
        ("tm", Value::Time(i64::from(n) * 1_000_000_007)),
        (
            "du",
            Value::Duration {
                months: n,
                days: 2,
                nanoseconds: 3,
            },
        ),
        ("uu", Value::Uuid([byte; 16])),
        ("tu", Value::Uuid(uuid)),
        ("ine", Value::Inet([10, 0, 0, byte].into())),
        ("s", Value::Set(vec![n.into(), (-n).into(), 5.into()])),
        (
            "m",
            Value::Map(vec![
                (format!("{n}").into(), 1.into()),
                ("a".into(), n.into()),
            ]),
        ),
        ("u", address.clone()),
        ("fu", address),
        ("fli", Value::List(vec![n.into(), 1.into(), n.into()])),
        ("fs", Value::Set(vec![format!("{n}").into(), "b".into()])),
        (
            "tup",
            Value::Tuple(vec![Some(n.into()), (n % 2 == 0).then(|| "x".into())]),
        ),
        ("st", format!("static {n}").into()),
        ("ss", Value::Set(vec![n.into()])),
    ];
    let mut row = vec![
        ("a", Value::from(n % 5)),
        ("b", if n % 2 == 0 { "x" } else { "" }.into()),
        ("c", Value::Timestamp(i64::from(n % 11) * 1000)),
        ("d", n.into()),
    ];
    let more = more.into_iter().zip(0..);
    row.extend(
        more.filter(|(_, column)| is_set(*column))
            .map(|(cell, _)| cell),
    );
    row
}

/// A value as a CQL literal.
fn cql(value: &Value) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let optional = |value: &Option<Value>| value.as_ref().map_or("null".to_owned(), cql);
    let all = |values: &[Value]| values.iter().map(cql).collect::<Vec<_>>().join(", ");
    match value {
        Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Blob(bytes) => format!("0x{}", hex(bytes)),
        Value::Boolean(value) => value.to_string(),
        Value::TinyInt(value) => value.to_string(),
        Value::SmallInt(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::BigInt(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::VarInt(bytes) => (i32::from(bytes[0]) << 8 | i32::from(bytes[1])).to_string(),
        Value::Decimal { unscaled, .. } => {
            let unscaled = i32::from(unscaled[0]) << 8 | i32::from(unscaled[1]);
            format!("{}.{:03}", unscaled / 1000, unscaled % 1000)
        }
        Value::Timestamp(millis) => millis.to_string(),
        // An integer literal of a date counts days from -2^31.
        Value::Date(days) => (i64::from(*days) + (1 << 31)).to_string(),
        Value::Time(nanos) => nanos.to_string(),
        Value::Duration {
            months,
            days,
            nanoseconds,
        } => format!("{months}mo{days}d{nanoseconds}ns"),
        Value::Uuid(bytes) => {
            let hex = hex(bytes);
            [
                &hex[..8],
                &hex[8..12],
                &hex[12..16],
                &hex[16..20],
                &hex[20..],
            ]
            .join("-")
        }
        Value::Inet(address) => format!("'{address}'"),
        Value::List(values) => format!("[{}]", all(values)),
        Value::Set(values) => format!("{{{}}}", all(values)),
        Value::Map(pairs) => {
            let pairs = pairs
                .iter()
                .map(|(key, value)| format!("{}: {}", cql(key), cql(value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
        Value::Tuple(fields) => {
            let fields: Vec<String> = fields.iter().map(optional).collect();
            format!("({})", fields.join(", "))
        }
        Value::Udt(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| format!("{name}: {}", optional(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        other => unreachable!("{other:?}"),
    }
}

//! Merged rows read as Rust types equal those of a merge into an SSTable, and reading never hangs.
use std::fs;
use std::path::{Path, PathBuf};

use compactor::dump::{DumpOptions, dump};
use compactor::generate::{Amount, GenerateOptions, Shape, generate};
use compactor::table::Row;
use compactor::writer::RowTimes;
use compactor::{
    ErrorKind, NoObserver, OutputForm, Purging, Resources, Scope, SstableWriter, Table, Value,
};
use compactor_io::IoOptions;
use compactor_sstable::Version;
use compactor_testkit::campaign;
use serde_json::Value as Json;
use tempfile::TempDir;

const NOW_S: i64 = 1_780_000_000;

/// `Data.db` of three SSTables.
fn generated(shape: Shape, directory: &Path, bytes: u64) -> Vec<PathBuf> {
    let mut options = GenerateOptions::new(shape, directory);
    options.amount = Amount::Bytes(bytes);
    if shape != Shape::KeyValue {
        options.rows_per_partition = 100;
    }
    options.now_s = NOW_S;
    let report = generate(IoOptions::default(), options, &mut NoObserver).unwrap();
    report
        .sstables
        .iter()
        .map(|s| s.data_path.clone())
        .collect()
}

/// In small pieces, so that there are many ranges.
fn resources() -> Resources {
    let mut resources = Resources::default();
    resources.threads = 3;
    resources.memory_bytes = 16 << 20;
    resources
}

fn rows(table: &Table) -> Vec<Row> {
    let rows = table.rows_at(&resources(), NOW_S).unwrap();
    rows.map(Result::unwrap).collect()
}

fn texts(table: &Table) -> Vec<String> {
    rows(table)
        .iter()
        .map(|row| row.to_json().unwrap())
        .collect()
}

fn form(version: Version) -> OutputForm {
    let mut form = OutputForm::default();
    form.version = Some(version);
    form
}

/// Merges, and purges everything that is not live.
fn merge(inputs: &[PathBuf], output: &Path, form: OutputForm) -> Table {
    let mut purging = Purging::default();
    purging.scope = Scope::Complete;
    purging.now_s = Some(NOW_S);
    purging.gc_before_s = Some(NOW_S + 1);
    let table = Table::open_all(inputs, None).unwrap();
    let merge = table.merge().purging(purging).flat(true).form(form);
    merge.into(output).unwrap();
    let schema = inputs[0].parent().unwrap().join("schema.cql");
    fs::copy(schema, output.join("schema.cql")).unwrap();
    Table::open(output).unwrap()
}

/// A column's name, its value or number of elements, and its timestamp.
type Summary = (String, Json, i64);

/// Rows of a `compactor dump`.
fn dumped(table: &Table) -> Vec<Vec<Summary>> {
    let io = resources().io().unwrap();
    let mut out = Vec::new();
    let mut options = DumpOptions::new(NOW_S);
    options.raw_timestamps = true;
    dump(&io, &table.sstables()[0], &options, &NoObserver, &mut out).unwrap();
    let partitions = serde_json::Deserializer::from_slice(&out).into_iter::<Json>();
    let mut rows = Vec::new();
    for partition in partitions.map(Result::unwrap) {
        for row in partition["rows"].as_array().unwrap() {
            let mut columns: Vec<Summary> = Vec::new();
            let time = |of: &Json| {
                of["tstamp"]
                    .as_str()
                    .map(|time| time.parse::<i64>().unwrap())
            };
            let of_row = time(&row["liveness_info"]);
            for cell in row["cells"].as_array().unwrap() {
                let name = cell["name"].as_str().unwrap().to_owned();
                let timestamp = time(cell).or(of_row).unwrap();
                if cell.get("path").is_none() {
                    columns.push((name, cell["value"].clone(), timestamp));
                    continue;
                }
                match columns.last_mut() {
                    Some((last, count, greatest)) if *last == name => {
                        *greatest = timestamp.max(*greatest);
                        *count = (count.as_u64().unwrap() + 1).into();
                    }
                    _ => columns.push((name, 1.into(), timestamp)),
                }
            }
            columns.sort_by(|a, b| a.0.cmp(&b.0));
            rows.push(columns);
        }
    }
    rows
}

fn read(row: &Row) -> Vec<Summary> {
    let json: Json = serde_json::from_str(&row.to_json().unwrap()).unwrap();
    let mut columns: Vec<_> = row
        .columns()
        .map(|(name, column)| {
            let value = match &column.value {
                Value::List(values) | Value::Set(values) => values.len().into(),
                Value::Map(pairs) => pairs.len().into(),
                _ => json[name].clone(),
            };
            (name.to_owned(), value, column.timestamp_us)
        })
        .collect();
    columns.sort_by(|a, b| a.0.cmp(&b.0));
    columns
}

#[test]
fn rows_are_those_of_a_merged_sstable() {
    for shape in campaign::some_of(Shape::ALL) {
        let temp = TempDir::new().unwrap();
        let inputs = generated(shape, temp.path(), 200 << 10);
        let table = Table::open_all(&inputs, None).unwrap();
        let expected = texts(&table);
        assert!(expected.len() > 100);
        let output = |version: Version| temp.path().join(version.to_string());
        for version in [Version::Nb, Version::Oa, Version::Da] {
            let merged = merge(&inputs, &output(version), form(version));
            assert!(texts(&merged) == expected, "{shape:?} {version}");
        }
        let merged = Table::open(output(Version::Oa)).unwrap();
        let read: Vec<_> = rows(&table).iter().map(read).collect();
        let dumped = dumped(&merged);
        assert_eq!(read.len(), dumped.len(), "{shape:?}");
        // A dump shows the first bytes of a counter's context, as sstabledump does.
        let has_values = shape != Shape::Counters;
        for (read, dumped) in read.iter().zip(&dumped).filter(|_| has_values) {
            assert_eq!(read, dumped, "{shape:?}");
        }
        // Each in another version.
        let mut mixed = Vec::new();
        let schema = inputs[0].parent().unwrap().join("schema.cql");
        let versions = [Version::Nb, Version::Pa, Version::Ea];
        for (input, version) in inputs.iter().zip(versions) {
            let output = temp.path().join(format!("mixed-{version}"));
            let table = Table::open_all(std::slice::from_ref(input), None).unwrap();
            let mut purging = Purging::default();
            purging.now_s = Some(NOW_S);
            let merge = table
                .merge()
                .purging(purging)
                .flat(true)
                .form(form(version));
            merge.into(&output).unwrap();
            mixed.extend_from_slice(Table::open(&output).unwrap().sstables());
        }
        assert!(
            texts(&Table::open_all(&mixed, Some(&schema)).unwrap()) == expected,
            "{shape:?}"
        );
    }
}

#[test]
fn damage_anywhere_ends_the_rows() {
    for shape in [Shape::Wide, Shape::Collections, Shape::Counters] {
        let temp = TempDir::new().unwrap();
        let inputs = generated(shape, temp.path(), 300 << 10);
        let path = &inputs[1];
        let sound = fs::read(path).unwrap();
        let mut expected = None;
        for number in 0..24 {
            let mut bytes = sound.clone();
            let at = number * (sound.len() - 1) / 23;
            match number % 3 {
                0 => bytes[at] ^= 0x10,
                1 => bytes[at..(at + 40).min(sound.len())].fill(0xff),
                _ => bytes.truncate(at),
            }
            fs::write(path, bytes).unwrap();
            let table = Table::open_all(&inputs, None).unwrap();
            let result = table.rows_at(&resources(), NOW_S).and_then(|rows| {
                let mut read = 0;
                for row in rows {
                    row?;
                    read += 1;
                }
                Ok(read)
            });
            match result {
                Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}"),
                Ok(read) => assert_eq!(*expected.get_or_insert(read), read),
            }
        }
        assert_eq!(expected, None, "{shape:?}");
    }
}

/// Dropping the rows joins the threads, whatever they are doing.
#[test]
fn rows_can_be_dropped_anywhere() {
    let temp = TempDir::new().unwrap();
    let inputs = generated(Shape::Collections, temp.path(), 2 << 20);
    let table = Table::open_all(&inputs, None).unwrap();
    let threads = || fs::read_dir("/proc/self/task").unwrap().count();
    let mut before = 0;
    for number in 0..40 {
        let mut several: Vec<_> = (0..2)
            .map(|_| table.rows_at(&resources(), NOW_S).unwrap())
            .collect();
        for _ in 0..number * 100 {
            for rows in &mut several {
                rows.next().unwrap().unwrap();
            }
        }
        drop(several);
        if number == 0 {
            before = threads();
        }
    }
    // Other threads belong to tests that run concurrently.
    assert!(threads() < before + 30);
}

#[test]
fn many_columns_and_long_values_are_read_as_they_were_written() {
    let temp = TempDir::new().unwrap();
    let columns: Vec<String> = (0..200).map(|n| format!("c{n:03}")).collect();
    let declared: Vec<String> = columns.iter().map(|name| format!("{name} blob")).collect();
    let schema = format!(
        "CREATE TABLE ks.t (k int, c text, {}, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC);",
        declared.join(", ")
    );
    let row = |number: usize| {
        let clustering = "x".repeat([0, 1, 65_535][number % 3]);
        let mut row = vec![("k", Value::from(1)), ("c", clustering.as_str().into())];
        for (index, name) in columns
            .iter()
            .enumerate()
            .filter(|(index, _)| index % (number + 1) == 0)
        {
            let len = match index {
                0 => 3 << 20,
                60 => 70_000,
                _ => index % 7,
            };
            row.push((name, vec![number as u8; len].into()));
        }
        row
    };
    for version in [Version::Nb, Version::Oa, Version::Da] {
        let directory = temp.path().join(version.to_string());
        let options = SstableWriter::new(&schema)
            .unwrap()
            .flat(true)
            .form(form(version));
        let mut writer = options.open(&directory).unwrap();
        for number in [1, 0, 2] {
            writer.add_row(row(number)).unwrap();
        }
        writer.finish().unwrap();
        fs::write(directory.join("schema.cql"), &schema).unwrap();
        let read = rows(&Table::open(&directory).unwrap());
        assert_eq!(read.len(), 3);
        for (read, number) in read.iter().zip([2, 1, 0]) {
            let expected = row(number);
            assert!(
                expected
                    .iter()
                    .all(|(name, value)| read.get(name) == Some(value))
            );
            assert_eq!(read.columns().count(), expected.len() - 2);
        }
    }
}

#[test]
fn columns_have_their_times() {
    let temp = TempDir::new().unwrap();
    let schema = "CREATE TABLE ks.t (k int PRIMARY KEY, v int, s set<int>);";
    let write = |name: &str, rows: &[(i32, RowTimes)]| {
        let options = SstableWriter::new(schema).unwrap().flat(true).now_s(NOW_S);
        let directory = temp.path().join(name);
        let mut writer = options.open(&directory).unwrap();
        for (k, times) in rows {
            let set = Value::Set(vec![1.into(), 2.into()]);
            let row = [("k", Value::from(*k)), ("v", (*k).into()), ("s", set)];
            writer.add_row_with(row, *times).unwrap();
        }
        writer.finish().unwrap();
        directory
    };
    let inputs = [
        write(
            "expired",
            &[
                (1, RowTimes::at(9).with_ttl(10)),
                (2, RowTimes::at(9).with_ttl(10)),
            ],
        ),
        write(
            "others",
            &[
                (1, RowTimes::at(8)),
                (2, RowTimes::at(10)),
                (3, RowTimes::at(11).with_ttl(99)),
            ],
        ),
    ];
    let table = Table::open_all(&inputs, None).unwrap();
    let at = |seconds: i64| -> Vec<(i32, i64, Option<i64>, Option<i64>)> {
        let rows = table.rows_at(&resources(), NOW_S + seconds).unwrap();
        let mut times: Vec<_> = rows
            .map(|row| {
                let row = row.unwrap();
                let Some(&Value::Int(k)) = row.get("key") else {
                    panic!("{row:?}");
                };
                let [(_, set), (_, value)] = [("s", 1), ("v", 0)].map(|(name, at)| {
                    let (own, column) = row.columns().nth(at).unwrap();
                    assert_eq!(own, name);
                    (own, column)
                });
                assert_eq!(set.timestamp_us, value.timestamp_us);
                (k, value.timestamp_us, value.expires_at_s, set.expires_at_s)
            })
            .collect();
        times.sort_unstable();
        times
    };
    let third = (3, 11, Some(NOW_S + 99), None);
    assert_eq!(
        at(0),
        [(1, 9, Some(NOW_S + 10), None), (2, 10, None, None), third]
    );
    // Expired cells still shadow older values.
    assert_eq!(at(50), [(2, 10, None, None), third]);
    assert_eq!(at(99), [(2, 10, None, None)]);
}

#[test]
fn more_sstables_than_memory_allows_are_refused() {
    let temp = TempDir::new().unwrap();
    let mut inputs = Vec::new();
    for number in 0..12 {
        let options = SstableWriter::new("CREATE TABLE ks.t (k int PRIMARY KEY);").unwrap();
        let directory = temp.path().join(number.to_string());
        let mut writer = options.flat(true).open(&directory).unwrap();
        writer.add_row([("k", Value::from(number))]).unwrap();
        writer.finish().unwrap();
        inputs.push(directory);
    }
    let table = Table::open_all(&inputs, None).unwrap();
    let mut small = resources();
    small.memory_bytes = 1 << 20;
    let error = table.rows(&small).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(
        error.to_string().starts_with("12 SSTables, of which"),
        "{error}"
    );
    assert_eq!(table.rows(&resources()).unwrap().count(), 12);
}

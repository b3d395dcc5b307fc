//! Rows of a table, merged, with values as Rust types.

use std::iter::FusedIterator;
use std::sync::Arc;

use compactor_engine::job::{MergeJob, MergedRows, Scope};
use compactor_engine::read::{RowRef, hex};
use compactor_sstable::Error as FormatError;
use compactor_sstable::data::cell::{Cell, NO_TTL};
use compactor_sstable::data::clustering::ValueSpan;
use compactor_sstable::data::counter;
use compactor_sstable::data::deletion_time::NO_DELETION_TIME;
use compactor_sstable::schema::{ColumnKind, Table as TableSchema};
use compactor_sstable::statistics::SerializationHeader;
use compactor_sstable::types::json::push_name;
use compactor_sstable::types::{CqlType, MarshalError, Value};

use super::purging::unix_now_s;
use super::{Resources, Table};
use crate::MergeRequest;
use crate::Result;

/// Reads the rows of a [`Table`] as a query of its SSTables would return them: merged, without what is
/// deleted or has expired.
///
/// A value that is not of its type is an error in place of its row, and the next rows follow: Cassandra stores some
/// that it cannot read, such as text with surrogates. Any other error is the last item.
#[derive(Debug)]
pub struct Rows {
    rows: MergedRows,
    columns: Arc<RowColumns>,
    now_s: i64,
    /// Values of the partition key; `None` before the first partition.
    key: Option<Arc<[Value]>>,
    /// The static row is next.
    static_is_next: bool,
    spans: Vec<ValueSpan>,
    /// The error is of a row that was read, and the next ones can be.
    is_past_row: bool,
    has_ended: bool,
}

/// Names and types of all columns.
#[derive(Debug)]
struct RowColumns {
    /// Names of the partition key columns and of the clustering columns.
    key_names: [Vec<String>; 2],
    header: SerializationHeader,
    /// Rows of a materialized view exist only as long as their liveness, if its key has a column from outside the
    /// base table's key (`View.enforceStrictLiveness`). Every view is treated as one of these, since its CQL does not show it.
    is_view: bool,
}

/// A row, or the static row of a partition.
#[derive(Clone, Debug)]
pub struct Row {
    columns: Arc<RowColumns>,
    key: Arc<[Value]>,
    clustering: Vec<Option<Value>>,
    is_static: bool,
    /// Columns that are set, each with its index in the header.
    cells: Vec<(usize, Column)>,
}

/// A column of a row.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Column {
    /// Its value; of a counter, its sum.
    pub value: Value,
    /// Microseconds since 1970; of a collection that is not frozen, the greatest of its elements'.
    pub timestamp_us: i64,
    /// Seconds since 1970 at which it expires; `None` if it does not, or is a collection that is not frozen.
    pub expires_at_s: Option<i64>,
}

impl Table {
    /// Reads the rows. Memory does not depend on their number.
    ///
    /// Rows of a materialized view without liveness are left out, as Cassandra does if the view's key has a
    /// column outside its table's key. If the schema does not create that table, every view is taken for one of this
    /// kind; rows of others may be missing then.
    ///
    /// # Errors
    /// SSTables that cannot be opened, or are too many for one pass. Damage of their data is an error of
    /// the iterator.
    pub fn rows(&self, resources: &Resources) -> Result<Rows> {
        self.rows_at(resources, unix_now_s())
    }

    /// As [`Table::rows`], but expiry is evaluated at this time, seconds since 1970.
    ///
    /// # Errors
    /// As [`Table::rows`].
    pub fn rows_at(&self, resources: &Resources, now_s: i64) -> Result<Rows> {
        let mut request = MergeRequest::new(self.sstables.clone(), "");
        request.now_s = now_s;
        request.table = self.schema().cloned();
        resources.apply(&mut request);
        // What is deleted here hides nothing elsewhere from these rows.
        request.scope = Scope::Complete;
        request.gc_before_s = Some(now_s);
        let rows = MergeJob::open_to_read(resources.io()?, request)?.rows()?;
        let header = rows.header().clone();
        Ok(Rows {
            columns: Arc::new(RowColumns {
                key_names: [ColumnKind::PartitionKey, ColumnKind::Clustering]
                    .map(|kind| key_names(self.schema(), kind, &header)),
                header,
                is_view: (self.schema())
                    .is_some_and(|schema| schema.strict_liveness != Some(false)),
            }),
            rows,
            now_s,
            key: None,
            static_is_next: false,
            spans: Vec::new(),
            is_past_row: false,
            has_ended: false,
        })
    }
}

/// Names of key columns, which SSTables do not store: without a schema those that CQL gives them
/// (`CFMetaData.DEFAULT_KEY_ALIAS`, `DEFAULT_COLUMN_ALIAS`), except names of other columns.
fn key_names(
    schema: Option<&TableSchema>,
    kind: ColumnKind,
    header: &SerializationHeader,
) -> Vec<String> {
    let named = schema.map(|schema| schema.columns_of(kind));
    if let Some(columns) = named.filter(|columns| !columns.is_empty()) {
        return columns.iter().map(|column| column.name.clone()).collect();
    }
    let (count, name) = match (kind, &header.key_type.cql_type) {
        (ColumnKind::Clustering, _) => (header.clustering_types.len(), "column"),
        (_, CqlType::Composite(types)) => (types.len(), "key"),
        _ => (1, "key"),
    };
    let columns = || header.static_columns.iter().chain(&header.regular_columns);
    let is_free = |name: &String| !columns().any(|column| column.name == name.as_bytes());
    let names = (1..).map(|number| match (kind, number) {
        (ColumnKind::PartitionKey, 1) => name.to_owned(),
        _ => format!("{name}{number}"),
    });
    names.filter(is_free).take(count).collect()
}

impl Iterator for Rows {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        if self.has_ended {
            return None;
        }
        let row = self.read();
        self.has_ended = match &row {
            Ok(row) => row.is_none(),
            Err(_) => !std::mem::take(&mut self.is_past_row),
        };
        row.transpose()
    }
}

impl FusedIterator for Rows {}

impl Rows {
    /// Names of all columns: those of the partition key, the clustering, static and regular ones.
    pub fn column_names(&self) -> impl Iterator<Item = &str> {
        let columns = &self.columns;
        let keys = columns.key_names.iter().flatten().map(String::as_str);
        let header = &columns.header;
        let statics = 0..header.static_columns.len();
        let regulars = 0..header.regular_columns.len();
        let indexes = statics
            .map(|n| (true, n))
            .chain(regulars.map(|n| (false, n)));
        keys.chain(
            indexes.filter_map(|(is_static, n)| Some(columns.header_column(is_static, n)?.0)),
        )
    }

    fn read(&mut self) -> Result<Option<Row>> {
        loop {
            let cursor = self.rows.cursor();
            let Some(key) = &self.key else {
                if !cursor.next_partition()? {
                    return Ok(None);
                }
                let key = self.columns.key_values(cursor.key());
                let located = |e: FormatError| e.with_partition(|| hex(cursor.key()));
                self.key = Some(key.map_err(located)?);
                self.static_is_next = true;
                continue;
            };
            let row = if std::mem::take(&mut self.static_is_next) {
                cursor.static_row()
            } else {
                cursor.next_unfiltered()?;
                if cursor.row().is_none() && cursor.marker().is_none() {
                    self.key = None;
                    continue;
                }
                cursor.row()
            };
            let Some(row) = row else { continue };
            let read = self.columns.row(&row, self.now_s, &mut self.spans);
            let located = |e: FormatError| e.with_partition(|| hex(cursor.key()));
            self.is_past_row = read.is_err();
            if let Some((clustering, cells)) = read.map_err(located)? {
                return Ok(Some(Row {
                    columns: Arc::clone(&self.columns),
                    key: Arc::clone(key),
                    clustering,
                    is_static: row.head.is_static(),
                    cells,
                }));
            }
        }
    }
}

type Clustering = Vec<Option<Value>>;
/// Columns by their index in the header.
type Cells = Vec<(usize, Column)>;

impl RowColumns {
    fn key_values(&self, key: &[u8]) -> Result<Arc<[Value]>, FormatError> {
        let values = self.header.key_type.cql_type.key_values(key);
        let values = values.map_err(|e| invalid("partition key", &e))?;
        values
            .into_iter()
            .map(|(part, bytes)| Value::read(part, bytes).map_err(|e| invalid("partition key", &e)))
            .collect()
    }

    /// Clustering and columns of a row; `None` if nothing of it is live.
    fn row(
        &self,
        row: &RowRef<'_>,
        now_s: i64,
        spans: &mut Vec<ValueSpan>,
    ) -> Result<Option<(Clustering, Cells)>, FormatError> {
        let content = row.read()?;
        let mut cells = Vec::new();
        for found in content.columns() {
            let column = self.header_column(row.head.is_static(), found.index);
            let Some((name, cql_type)) = column else {
                continue;
            };
            let live = found.cells.iter().filter(|cell| is_live(cell, now_s));
            let live: Vec<&Cell> = live.collect();
            let read = match live[..] {
                [] => continue,
                [cell] if !cql_type.is_multi_cell() => {
                    let expires = cell.local_deletion_time != NO_DELETION_TIME;
                    simple(cql_type, cell.value.of(row.bytes)).map(|value| Column {
                        value,
                        timestamp_us: cell.timestamp,
                        expires_at_s: expires.then_some(cell.local_deletion_time),
                    })
                }
                _ => complex(cql_type, &live, row.bytes).map(|value| Column {
                    value,
                    timestamp_us: live.iter().map(|cell| cell.timestamp).max().unwrap_or(0),
                    expires_at_s: None,
                }),
            };
            cells.push((found.index, read.map_err(|e| invalid(name, &e))?));
        }
        let liveness = &content.start.liveness;
        let has_liveness = !liveness.is_empty()
            && !liveness.is_expired()
            && liveness.local_expiration_time > now_s;
        let is_there = if row.head.is_static() {
            !cells.is_empty()
        } else {
            has_liveness || !(cells.is_empty() || self.is_view)
        };
        if !is_there {
            return Ok(None);
        }
        let mut clustering = Vec::new();
        if !row.head.is_static() {
            let bytes = row.clustering_bytes();
            // It was parsed before, when the row was found.
            let parsed = row.layout.clustering.parse_row(bytes, &mut 0, spans);
            debug_assert!(parsed.is_ok());
            let types = self.header.clustering_types.iter();
            for (span, header_type) in spans.iter().zip(types) {
                let value = span
                    .of(bytes)
                    .map(|value| Value::read(&header_type.cql_type, value));
                clustering.push(value.transpose().map_err(|e| invalid("clustering", &e))?);
            }
        }
        Ok(Some((clustering, cells)))
    }

    fn header_column(&self, is_static: bool, index: usize) -> Option<(&str, &CqlType)> {
        let columns = if is_static {
            &self.header.static_columns
        } else {
            &self.header.regular_columns
        };
        let column = columns.get(index)?;
        let name = std::str::from_utf8(&column.name).unwrap_or("a column");
        Some((name, &column.column_type.cql_type))
    }
}

fn is_live(cell: &Cell, now_s: i64) -> bool {
    match cell.local_deletion_time {
        NO_DELETION_TIME => true,
        time => cell.ttl != NO_TTL && time > now_s,
    }
}

fn simple(cql_type: &CqlType, bytes: &[u8]) -> Result<Value, MarshalError> {
    match cql_type {
        CqlType::CounterColumn => {
            cql_type.validate(bytes)?;
            let total = counter::Context::parse(bytes).map_or(0, |context| context.total());
            Ok(Value::BigInt(total))
        }
        _ => Value::read(cql_type, bytes),
    }
}

/// A collection or user-defined type of the cells of its elements.
fn complex(cql_type: &CqlType, cells: &[&Cell], bytes: &[u8]) -> Result<Value, MarshalError> {
    let value = |cell: &Cell, of: &CqlType| Value::read(of, cell.value.of(bytes));
    let path = |cell: &Cell, of: &CqlType| Value::read(of, cell.path.of(bytes));
    let cells = cells.iter().copied();
    Ok(match cql_type {
        CqlType::List { element, .. } => Value::List(
            cells
                .map(|cell| value(cell, element))
                .collect::<Result<_, _>>()?,
        ),
        CqlType::Set { element, .. } => Value::Set(
            cells
                .map(|cell| path(cell, element))
                .collect::<Result<_, _>>()?,
        ),
        CqlType::Map {
            key, value: values, ..
        } => {
            let pairs = cells.map(|cell| Ok((path(cell, key)?, value(cell, values)?)));
            Value::Map(pairs.collect::<Result<_, MarshalError>>()?)
        }
        CqlType::Udt(udt) => {
            let name = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
            let fields = udt.fields.iter();
            let mut fields: Vec<_> = fields.map(|(own, _)| (name(own), None)).collect();
            for cell in cells {
                let index = cell.path.of(bytes).first_chunk::<2>();
                let index = index.map(|index| usize::from(u16::from_be_bytes(*index)));
                // A field that the type of this SSTable does not have is not shown.
                if let Some(index) = index
                    && let Some((_, of)) = udt.fields.get(index)
                    && let Some((_, field)) = fields.get_mut(index)
                {
                    *field = Some(value(cell, of)?);
                }
            }
            Value::Udt(fields)
        }
        _ => Value::Blob(Vec::new()),
    })
}

/// A stored value that is not of its type. Which SSTable it is from is not known: rows are merged.
#[cold]
fn invalid(what: &str, why: &MarshalError) -> FormatError {
    FormatError::corrupt("value", 0, format!("a value of {what}"), why.to_string())
}

impl Row {
    /// Values of the partition key.
    pub fn partition_key(&self) -> &[Value] {
        &self.key
    }

    /// Values of the clustering, `None` for nulls of tables with COMPACT STORAGE; none of a static row.
    pub fn clustering(&self) -> &[Option<Value>] {
        &self.clustering
    }

    /// Whether it holds the static columns of its partition.
    pub fn is_static(&self) -> bool {
        self.is_static
    }

    /// Columns that are set, with their names.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &Column)> {
        self.cells.iter().filter_map(|(index, column)| {
            let (name, _) = self.columns.header_column(self.is_static, *index)?;
            Some((name, column))
        })
    }

    /// Value of a column or of a part of the primary key; `None` if it is not set, or if the table has no such
    /// column ([`Rows::column_names`] lists them).
    pub fn get(&self, name: &str) -> Option<&Value> {
        let [partition_key, clustering] = &self.columns.key_names;
        let place = |names: &[String]| names.iter().position(|own| own == name);
        if let Some(index) = place(partition_key) {
            return self.key.get(index);
        }
        if let Some(index) = place(clustering) {
            return self.clustering.get(index)?.as_ref();
        }
        let mut columns = self.columns();
        columns.find_map(|(own, column)| (own == name).then_some(&column.value))
    }

    /// The row as a JSON object of all that is set, in the order of the table, with names and values as `SELECT JSON`
    /// prints them: a case-sensitive name has its quotes, `"\"Name\""`. It is text, since numbers may have more digits than those of most JSON libraries.
    ///
    /// # Errors
    /// A value that JSON does not have: a number of more than 64 KiB.
    pub fn to_json(&self) -> Result<String> {
        let header = &self.columns.header;
        let [key_names, clustering_names] = &self.columns.key_names;
        let key_type = &header.key_type.cql_type;
        let key_types = match key_type {
            CqlType::Composite(types) => types.iter().collect(),
            only => vec![only],
        };
        let key = key_names.iter().zip(key_types).zip(self.key.iter());
        let clustering_types = header.clustering_types.iter();
        let clustering = clustering_names.iter().zip(clustering_types);
        let clustering = clustering.zip(&self.clustering);
        let mut object = String::from("{");
        let mut add = |name: &str, cql_type: &CqlType, value: &Value| {
            if object.len() > 1 {
                object.push_str(", ");
            }
            push_name(name, &mut object);
            object.push_str(": ");
            write_json(name, value, cql_type, &mut object)
        };
        for ((name, cql_type), value) in key {
            add(name, cql_type, value)?;
        }
        for ((name, header_type), value) in clustering {
            if let Some(value) = value {
                add(name, &header_type.cql_type, value)?;
            }
        }
        for (index, column) in &self.cells {
            if let Some((name, cql_type)) = self.columns.header_column(self.is_static, *index) {
                add(name, cql_type, &column.value)?;
            }
        }
        object.push('}');
        Ok(object)
    }
}

fn write_json(name: &str, value: &Value, cql_type: &CqlType, out: &mut String) -> Result<()> {
    if let (CqlType::CounterColumn, Value::BigInt(total)) = (cql_type, value) {
        out.push_str(&total.to_string());
        return Ok(());
    }
    let mut bytes = Vec::new();
    value
        .write(cql_type, &mut bytes)
        .and_then(|()| cql_type.to_json(&bytes, out))
        .map_err(|e| FormatError::unsupported(format!("column {name} as JSON: {e}")).into())
}

#[cfg(test)]
mod tests {
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
        let file = Descriptor::parse(&written.sstables[0].data_path)
            .unwrap()
            .descriptor;
        let path = file.path(Component::Statistics);
        let mut statistics = Statistics::parse(&fs::read(&path).unwrap(), file.version).unwrap();
        statistics.header.regular_columns[0].column_type = HeaderType::new(CqlType::Utf8);
        let mut bytes = Vec::new();
        statistics.write(&mut bytes, file.version).unwrap();
        fs::write(&path, bytes).unwrap();
        let table = Table::open(temp.path()).unwrap();
        let rows = table.rows(&Resources::default()).unwrap();
        let read: Vec<_> = rows
            .map(|row| row.ok().and_then(|row| row.get("v").cloned()))
            .collect();
        assert_eq!(read, [Some("a".into()), None, Some("b".into())]);
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
}

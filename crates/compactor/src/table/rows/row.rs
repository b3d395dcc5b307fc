//! A row with values as Rust types.

use std::borrow::Cow;
use std::sync::Arc;

use compactor_engine::read::RowRef;
use compactor_sstable::Error as FormatError;
use compactor_sstable::data::cell::{Cell, NO_TTL};
use compactor_sstable::data::clustering::ValueSpan;
use compactor_sstable::data::counter;
use compactor_sstable::data::deletion_time::NO_DELETION_TIME;
use compactor_sstable::statistics::SerializationHeader;
use compactor_sstable::types::json::push_name;
use compactor_sstable::types::{CqlType, MarshalError, Value};

use crate::Result;

/// Names and types of all columns.
#[derive(Debug)]
pub(super) struct RowColumns {
    /// Names of the partition key columns and of the clustering columns.
    pub(super) key_names: [Vec<String>; 2],
    /// Names of the static and of the regular columns of the header; `None` for dropped ones, which are not shown.
    pub(super) stored_names: [Vec<Option<String>>; 2],
    pub(super) header: SerializationHeader,
    /// Rows of a materialized view exist only as long as their liveness, if its key has a column from outside the
    /// base table's key (`View.enforceStrictLiveness`). A view whose base table the schema does not have is treated as one
    /// of these.
    pub(super) is_view: bool,
}

/// A row, or the static row of a partition.
#[derive(Clone, Debug)]
pub struct Row {
    pub(super) columns: Arc<RowColumns>,
    pub(super) key: Arc<[Value]>,
    pub(super) clustering: Vec<Option<Value>>,
    pub(super) is_static: bool,
    /// Columns that are set, each with its index in the header.
    pub(super) cells: Vec<(usize, Column)>,
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

pub(super) type Clustering = Vec<Option<Value>>;
/// Columns by their index in the header.
pub(super) type Cells = Vec<(usize, Column)>;

impl RowColumns {
    pub(super) fn key_values(&self, key: &[u8]) -> Result<Arc<[Value]>, FormatError> {
        let values = self.header.key_type.cql_type.key_values(key);
        let values = values.map_err(|e| invalid("partition key", &e))?;
        values
            .into_iter()
            .map(|(part, bytes)| Value::read(part, bytes).map_err(|e| invalid("partition key", &e)))
            .collect()
    }

    /// Clustering and columns of a row; `None` if nothing of it is live.
    pub(super) fn row(
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

    pub(super) fn header_column(&self, is_static: bool, index: usize) -> Option<(&str, &CqlType)> {
        let [static_names, regular_names] = &self.stored_names;
        let (columns, names) = if is_static {
            (&self.header.static_columns, static_names)
        } else {
            (&self.header.regular_columns, regular_names)
        };
        let name = names.get(index)?.as_deref()?;
        Some((name, &columns.get(index)?.column_type.cql_type))
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
    let value = |cell: &Cell, of: &CqlType| simple(of, cell.value.of(bytes));
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
    /// column ([`Rows::column_names`](super::Rows::column_names) lists them).
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
    /// prints them: a case-sensitive name has its quotes, `"\"Name\""`. It is text, since numbers may have more digits
    /// than those of most JSON libraries.
    ///
    /// # Errors
    /// A value that `SELECT JSON` fails to print, such as an empty boolean or tuple, or a time of more than a day; a
    /// number of more than 64 KiB, which Cassandra prints.
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

/// The type of values in which counters are sums.
fn with_sums(cql_type: &CqlType) -> Cow<'_, CqlType> {
    if !cql_type.has_counter_cells() {
        return Cow::Borrowed(cql_type);
    }
    Cow::Owned(match cql_type {
        CqlType::Map { key, .. } => CqlType::Map {
            key: Arc::clone(key),
            value: Arc::new(CqlType::Long),
            multi_cell: true,
        },
        CqlType::List { .. } => CqlType::List {
            element: Arc::new(CqlType::Long),
            multi_cell: true,
        },
        _ => CqlType::Long,
    })
}

fn write_json(name: &str, value: &Value, cql_type: &CqlType, out: &mut String) -> Result<()> {
    let cql_type = &with_sums(cql_type);
    let mut bytes = Vec::new();
    value
        .write(cql_type, &mut bytes)
        .and_then(|()| cql_type.to_json(&bytes, out))
        .map_err(|e| FormatError::unsupported(format!("column {name} as JSON: {e}")).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use compactor_sstable::data::cell::Span;

    #[test]
    fn counters_in_maps_are_sums() {
        let class = "org.apache.cassandra.db.marshal.MapType(org.apache.cassandra.db.marshal.UTF8Type,\
                     org.apache.cassandra.db.marshal.CounterColumnType)";
        let cql_type = CqlType::parse(class).unwrap();
        // A path, and a context of two remote shards.
        let mut bytes = b"a\0\0".to_vec();
        for count in [40_i64, 2] {
            bytes.extend([count as u8; 24]);
            bytes.extend(count.to_be_bytes());
        }
        let cell = Cell {
            local_deletion_time: NO_DELETION_TIME,
            path: Span::new(0, 1),
            value: Span::new(1, bytes.len() as u32 - 1),
            ..Cell::default()
        };
        let value = complex(&cql_type, &[&cell], &bytes).unwrap();
        let sums = vec![(Value::from("a"), Value::BigInt(42))];
        assert_eq!(value, Value::Map(sums));
        let mut json = String::new();
        write_json("", &value, &cql_type, &mut json).unwrap();
        assert_eq!(json, r#"{"a": 42}"#);
    }
}

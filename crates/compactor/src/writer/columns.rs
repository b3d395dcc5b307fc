//! Columns of a table by name, with their places in rows.

use std::sync::Arc;

use compactor_engine::input::layout_of;
use compactor_sstable::Version;
use compactor_sstable::data::layout::Layout;
use compactor_sstable::data::parse::MAX_VALUE_LEN;
use compactor_sstable::schema::{ColumnKind, Table as TableSchema};
use compactor_sstable::statistics::EncodingStats;
use compactor_sstable::statistics::HeaderType;
use compactor_sstable::statistics::header::{HeaderColumn, SerializationHeader};
use compactor_sstable::types::{CqlType, Value};

use crate::{Error, Result};

/// The columns of a table.
#[derive(Debug)]
pub(super) struct Columns {
    by_name: Vec<Column>,
    pub(super) partition_key: usize,
    pub(super) clustering: usize,
    header: SerializationHeader,
    /// Layout for the comparison of clusterings, which is the same in all versions.
    pub(super) layout: Arc<Layout>,
}

#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) cql_type: CqlType,
    pub(super) kind: ColumnKind,
    /// Among the columns of its kind, in header order.
    pub(super) index: u32,
}

impl Columns {
    /// # Errors
    /// A table whose rows cannot be written from outside.
    pub(super) fn of(schema: &TableSchema) -> Result<Columns> {
        let refuse = |what: &str| {
            Err(Error::from(compactor_sstable::Error::unsupported(format!(
                "writing rows of {}, {what}",
                schema.name
            ))))
        };
        if schema.view_of.is_some() {
            return refuse("a materialized view: a node derives them from those of its table");
        }
        if schema.compact_storage {
            return refuse("a table with COMPACT STORAGE");
        }
        let mut by_name = Vec::new();
        let mut columns_of = |kind: ColumnKind| -> Result<Vec<HeaderColumn>> {
            let mut columns = Vec::new();
            for (column, index) in schema.columns_of(kind).into_iter().zip(0..) {
                let name = column.name.clone();
                let Some(cql_type) = column.cql_type.clone() else {
                    return Err(Error::invalid(format!(
                        "the schema does not declare the type of column {name}"
                    )));
                };
                if let Some(why) = reason_to_refuse(&cql_type, kind) {
                    return Err(Error::invalid(format!("column {name}: {why}")));
                }
                columns.push(HeaderColumn {
                    name: name.as_bytes().to_vec(),
                    column_type: HeaderType::new(cql_type.clone()),
                });
                by_name.push(Column {
                    name,
                    cql_type,
                    kind,
                    index,
                });
            }
            Ok(columns)
        };
        let partition_key = columns_of(ColumnKind::PartitionKey)?;
        let clustering = columns_of(ColumnKind::Clustering)?;
        let (static_columns, regular_columns) = (
            columns_of(ColumnKind::Static)?,
            columns_of(ColumnKind::Regular)?,
        );
        if clustering.is_empty() && !static_columns.is_empty() {
            return Err(Error::invalid(format!(
                "{} has static columns, but no clustering columns",
                schema.name
            )));
        }
        let is_counter = |column: &Column| column.cql_type == CqlType::CounterColumn;
        if by_name.iter().any(is_counter) {
            return refuse("a table of counters: their shards belong to nodes");
        }
        let Some(key_type) = schema.partition_key_type() else {
            return refuse("whose partition key is not known");
        };
        let header = SerializationHeader {
            encoding_stats: EncodingStats::new(0, 0, 0),
            key_type: HeaderType::new(key_type),
            clustering_types: clustering.iter().map(|c| c.column_type.clone()).collect(),
            static_columns,
            regular_columns,
        };
        Ok(Columns {
            by_name,
            partition_key: partition_key.len(),
            clustering: clustering.len(),
            layout: Arc::new(layout_of(&header, Version::Oa)?),
            header,
        })
    }

    /// Returns the column with this name.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn named(&self, name: &str) -> Result<&Column> {
        let found = self.by_name.iter().find(|column| column.name == name);
        found.ok_or_else(|| Error::invalid(format!("the table has no column {name}")))
    }

    /// Name of a key column.
    pub(super) fn key_name(&self, kind: ColumnKind, index: usize) -> &str {
        let found = self
            .by_name
            .iter()
            .find(|column| column.kind == kind && column.index as usize == index);
        found.map_or("", |column| &column.name)
    }

    pub(super) fn header(&self, encoding_stats: EncodingStats) -> SerializationHeader {
        SerializationHeader {
            encoding_stats,
            ..self.header.clone()
        }
    }

    /// Number of columns of a row, the larger of static and regular ones.
    pub(super) fn most(&self) -> usize {
        let header = &self.header;
        header
            .static_columns
            .len()
            .max(header.regular_columns.len())
    }
}

/// Why Cassandra creates no such column, or would read its type as another.
///
/// Source: `CreateTableStatement`.
fn reason_to_refuse(cql_type: &CqlType, kind: ColumnKind) -> Option<String> {
    let base = match cql_type {
        CqlType::Reversed(base) => base,
        other => other,
    };
    if matches!(kind, ColumnKind::PartitionKey | ColumnKind::Clustering) {
        if base.is_multi_cell() {
            let why = "a collection or user-defined type in the primary key must be frozen";
            return Some(why.to_owned());
        }
        if references_duration(base) {
            return Some("a duration cannot be in the primary key".to_owned());
        }
    }
    if let Some(why) = refused_part(base) {
        return Some(why.to_owned());
    }
    match CqlType::parse(&cql_type.class_string()) {
        Ok(written) if written == *cql_type => None,
        // The name would be read as the keyspace.
        Ok(_) => Some(
            "its user-defined type has no keyspace: write CREATE TYPE keyspace.name, and CREATE TABLE \
             keyspace.name"
                .to_owned(),
        ),
        Err(error) => Some(format!("its type cannot be written to a header: {error}")),
    }
}

/// Why Cassandra accepts no type with such a part.
///
/// Source: `CQL3Type.Raw`.
fn refused_part(cql_type: &CqlType) -> Option<&'static str> {
    match cql_type {
        CqlType::Set { element, .. } if references_duration(element) => {
            return Some("a set cannot have durations");
        }
        CqlType::Map { key, .. } if references_duration(key) => {
            return Some("a duration cannot be the key of a map");
        }
        _ => {}
    }
    let parts = cql_type.parts();
    if parts.contains(&&CqlType::CounterColumn) {
        return Some("a counter cannot be part of another type");
    }
    parts.into_iter().find_map(refused_part)
}

/// `AbstractType.referencesDuration`.
fn references_duration(cql_type: &CqlType) -> bool {
    *cql_type == CqlType::Duration || cql_type.parts().into_iter().any(references_duration)
}

impl Column {
    /// The bytes of a value of this column.
    ///
    /// # Errors
    /// It is not of the column's type.
    pub(super) fn write(&self, value: &Value, out: &mut Vec<u8>) -> Result<()> {
        value
            .write(&self.cql_type, out)
            .map_err(|e| self.refusal(&e))
    }

    /// # Errors
    /// Readers would regard a value of this length as corrupt.
    pub(super) fn refuse_length(&self, len: usize) -> Result<()> {
        if len <= MAX_VALUE_LEN {
            Ok(())
        } else {
            Err(self.refusal(&format!("{len} bytes; a value has {MAX_VALUE_LEN} at most")))
        }
    }

    #[cold]
    pub(super) fn refusal(&self, why: &dyn std::fmt::Display) -> Error {
        Error::invalid(format!("column {}: {why}", self.name))
    }
}

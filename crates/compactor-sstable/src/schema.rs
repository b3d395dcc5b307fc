//! What a snapshot's `schema.cql` says of a table.
//!
//! Cassandra writes that file into each snapshot: the UDTs that the table uses, one `CREATE TABLE`
//! (or view) with its id and all options, an `ALTER TABLE ... DROP ... USING TIMESTAMP` per dropped
//! column, and the indexes. The parser takes that, what `DESCRIBE` prints and what people write by
//! hand: statements of other kinds are passed over, unknown options are kept as they are.
//!
//! Source: `SchemaCQLHelper`, `TableMetadata.appendCqlTo`, `TableParams.appendCqlTo`.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::types::CqlType;

pub mod agreement;
mod build;
mod cursor;
mod lexer;
mod options;
mod raw_type;
mod statement;

pub use options::{CompressionOptions, OptionValue, TableOptions};

/// Longest text accepted, in bytes; real ones have some KiB, those of a whole cluster some MiB.
pub const MAX_TEXT_LEN: usize = 1 << 26;

/// The tables, views and indexes of a text.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Schema {
    /// Tables and views, in the order of their `CREATE`.
    pub tables: Vec<Table>,
}

/// A table or materialized view.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Table {
    /// Keyspace; `None` where the text names none.
    pub keyspace: Option<String>,
    /// Name.
    pub name: String,
    /// Table id; its 16 bytes in hexadecimal digits end the name of the table's directory.
    pub id: Option<[u8; 16]>,
    /// For a view, the name of its base table. The columns of a view have no types in CQL, so
    /// that `columns` is empty.
    pub view_of: Option<String>,
    /// Columns: partition key and clustering in key order, then the others as declared.
    pub columns: Vec<Column>,
    /// Columns once dropped, including those added again later.
    pub dropped_columns: Vec<DroppedColumn>,
    /// Options after `WITH`.
    pub options: TableOptions,
    /// `COMPACT STORAGE`.
    pub compact_storage: bool,
    /// Secondary indexes on the table.
    pub indexes: Vec<Index>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Column {
    /// Name, as stored.
    pub name: String,
    /// Type; `ReversedType` around that of a descending clustering column, as in SSTable headers.
    ///
    /// `None` if it names a UDT that the text does not create. Cassandra itself leaves such texts:
    /// 5.0 and 6.0 forget UDTs that stand only inside of collections
    /// (`TableMetadata.addUserTypes`).
    pub cql_type: Option<CqlType>,
    /// True for a collection or UDT that is not frozen, also where `cql_type` is `None`.
    pub is_multi_cell: bool,
    /// Its part in the table.
    pub kind: ColumnKind,
}

/// A column's part in its table (`ColumnMetadata.Kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "Cassandra's own terms")]
pub enum ColumnKind {
    PartitionKey,
    Clustering,
    Static,
    Regular,
}

/// A dropped column: its cells up to the time of the drop are dead (`DroppedColumn`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DroppedColumn {
    /// Name, as stored.
    pub name: String,
    /// Type that it had, with tuples for UDTs; `None` if the text drops a column that it does not
    /// declare.
    pub cql_type: Option<CqlType>,
    /// True for a static column.
    pub is_static: bool,
    /// Microseconds since the epoch; `None` if the text says nothing.
    pub dropped_at_micros: Option<i64>,
}

/// A secondary index.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Index {
    /// Name; `None` where Cassandra makes one up.
    pub name: Option<String>,
    /// Class or short name behind `USING`.
    pub using: Option<String>,
}

impl Schema {
    /// Reads `text`.
    ///
    /// # Errors
    /// Corrupt, with line and column, where the text is not CQL or an option has an impossible value; unsupported for types that SSTables of 4.0 or later do not hold.
    pub fn parse(text: &str) -> Result<Schema> {
        if text.len() > MAX_TEXT_LEN {
            return Err(Error::corrupt(
                STRUCTURE,
                0,
                format!("at most {MAX_TEXT_LEN} bytes"),
                format!("{} bytes", text.len()),
            ));
        }
        let statements = statement::parse(text)?;
        build::build(text, statements)
    }

    /// The only table or view of the text, as a snapshot has it, or the only table with its views, as
    /// `DESCRIBE TABLE` prints it.
    ///
    /// # Errors
    /// Corrupt if there is none, or more than one.
    pub fn only_table(&self) -> Result<&Table> {
        match self.tables.as_slice() {
            [table] => Ok(table),
            [table, views @ ..] if views.iter().all(|view| view.is_view_of(table)) => Ok(table),
            tables => Err(Error::corrupt(
                STRUCTURE,
                0,
                "one CREATE TABLE",
                match tables {
                    [] => "none".to_owned(),
                    _ => {
                        let names: Vec<&str> = tables.iter().map(|t| t.name.as_str()).collect();
                        names.join(", ")
                    }
                },
            )),
        }
    }

    /// The table or view of this name.
    pub fn table(&self, keyspace: &str, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| {
            table.name == name && table.keyspace.as_deref().is_none_or(|k| k == keyspace)
        })
    }
}

impl Table {
    /// Columns of one kind, in the order of SSTable headers: key columns by position; static and
    /// regular ones with multi-cell types behind the others, then by the bytes of their names.
    pub fn columns_of(&self, kind: ColumnKind) -> Vec<&Column> {
        let mut columns: Vec<&Column> = self.columns.iter().filter(|c| c.kind == kind).collect();
        if matches!(kind, ColumnKind::Static | ColumnKind::Regular) {
            columns.sort_by_key(|column| (column.is_multi_cell, column.name.as_bytes()));
        }
        columns
    }

    /// Type of the partition key: that of its column, or a composite of several; `None` for a view
    /// or if a column's type is unknown.
    pub fn partition_key_type(&self) -> Option<CqlType> {
        let types = self.types_of(ColumnKind::PartitionKey)?;
        match <[CqlType; 1]>::try_from(types) {
            Ok([only]) => Some(only),
            Err(types) if types.is_empty() => None,
            Err(types) => Some(CqlType::Composite(types.into())),
        }
    }

    /// Types of the clustering columns; `None` for a view or if one is unknown.
    pub fn clustering_types(&self) -> Option<Vec<CqlType>> {
        if self.view_of.is_some() {
            None
        } else {
            self.types_of(ColumnKind::Clustering)
        }
    }

    fn types_of(&self, kind: ColumnKind) -> Option<Vec<CqlType>> {
        self.columns_of(kind)
            .into_iter()
            .map(|column| column.cql_type.clone())
            .collect()
    }

    fn is_view_of(&self, base: &Table) -> bool {
        self.view_of.as_ref() == Some(&base.name) && self.keyspace == base.keyspace
    }

    /// An option of the compaction strategy, such as `only_purge_repaired_tombstones`.
    pub fn compaction_option(&self, name: &str) -> Option<&str> {
        let options = self.options.compaction.as_ref()?;
        options.get(name).map(String::as_str)
    }

    /// Tombstones may be purged from repaired SSTables alone; `false` where the schema does not say.
    pub fn only_purge_repaired_tombstones(&self) -> bool {
        self.compaction_option("only_purge_repaired_tombstones")
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// When each dropped column was dropped last, by name.
    pub fn drop_times_micros(&self) -> BTreeMap<&str, i64> {
        let mut times = BTreeMap::new();
        for column in &self.dropped_columns {
            if let Some(micros) = column.dropped_at_micros {
                let latest = times.entry(column.name.as_str()).or_insert(micros);
                *latest = micros.max(*latest);
            }
        }
        times
    }
}

const STRUCTURE: &str = "schema.cql";

#[cfg(test)]
mod tests;

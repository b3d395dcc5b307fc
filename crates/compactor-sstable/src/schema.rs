//! Table schema from a snapshot's `schema.cql`.
//!
//! Cassandra writes that file into each snapshot: the UDTs that the table uses, one `CREATE TABLE` (or view)
//! with its id and all options, an `ALTER TABLE ... DROP ... USING TIMESTAMP` per dropped column, and the
//! indexes. The parser accepts that, the output of `DESCRIBE`, and hand-written text: statements of other
//! kinds are skipped, unknown options are kept.
//!
//! Source: `SchemaCQLHelper`, `TableMetadata.appendCqlTo`, `TableParams.appendCqlTo`.

use std::collections::BTreeMap;

use crate::data::layout::column_order;
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

/// Maximum accepted length of a text, bytes; usual lengths are some KiB, those of a whole cluster some MiB.
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
    /// Keyspace; `None` if the text names none.
    pub keyspace: Option<String>,
    /// Name.
    pub name: String,
    /// Table id, whose hexadecimal form ends the name of the table's directory.
    pub id: Option<[u8; 16]>,
    /// For a view, the name of its base table. The columns of a view have no types in CQL, so `columns` is
    /// empty.
    pub view_of: Option<String>,
    /// For a view, the names of its partition key and of its clustering columns.
    pub view_key: [Vec<String>; 2],
    /// Whether rows exist only as long as their own liveness: a view whose key has a column from outside the key of its
    /// base table (`View.enforceStrictLiveness`). `None` for a view whose base table the text does not create.
    pub strict_liveness: Option<bool>,
    /// Columns: partition key and clustering in key order, then the others as declared.
    pub columns: Vec<Column>,
    /// Dropped columns, including those added again later; each with its last drop.
    pub dropped_columns: Vec<DroppedColumn>,
    /// Options after `WITH`.
    pub options: TableOptions,
    /// `COMPACT STORAGE`.
    pub compact_storage: bool,
    /// Number of secondary indexes on the table.
    pub indexes: usize,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Column {
    /// Name, as stored.
    pub name: String,
    /// Type; a descending clustering column has `ReversedType`, as in SSTable headers.
    ///
    /// `None` if it names a UDT that the text does not create. Cassandra itself writes such texts: 5.0 and
    /// 6.0 omit UDTs that occur only in collections (`TableMetadata.addUserTypes`).
    pub cql_type: Option<CqlType>,
    /// Whether it is a collection or UDT that is not frozen, also if `cql_type` is `None`.
    pub is_multi_cell: bool,
    /// Kind of column.
    pub kind: ColumnKind,
}

/// Kind of a column in its table (`ColumnMetadata.Kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "Cassandra's own terms")]
pub enum ColumnKind {
    PartitionKey,
    Clustering,
    Static,
    Regular,
}

/// A dropped column, whose cells up to the time of the drop are dead (`DroppedColumn`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DroppedColumn {
    /// Name, as stored.
    pub name: String,
    /// Type before the drop, with tuples for UDTs; `None` if the text drops a column that it does not
    /// declare.
    pub cql_type: Option<CqlType>,
    /// Whether the column was static.
    pub is_static: bool,
    /// Time of the drop, microseconds since 1970; `None` if the text does not specify it.
    pub dropped_at_micros: Option<i64>,
}

impl Schema {
    /// Parses `text`.
    ///
    /// # Errors
    /// Corrupt, with line and column, if the text is not CQL or an option has an invalid value; unsupported
    /// for types that SSTables since 4.0 cannot contain.
    pub fn parse(text: &str) -> Result<Schema> {
        if text.len() > MAX_TEXT_LEN {
            return Err(Error::corrupt(
                STRUCTURE,
                0,
                format!("at most {MAX_TEXT_LEN} bytes"),
                format!("{} bytes", text.len()),
            ));
        }
        statement::parse(text)
    }

    /// Returns the only table or view of the text, as in a snapshot, or the first of a table and its views, as
    /// printed by `DESCRIBE TABLE`, or of a view and its base table.
    ///
    /// # Errors
    /// Corrupt if there is none, or more than one.
    pub fn only_table(&self) -> Result<&Table> {
        match self.tables.as_slice() {
            [table] => Ok(table),
            [first, others @ ..]
                if (others.iter())
                    .all(|other| other.is_view_of(first) || first.is_view_of(other)) =>
            {
                Ok(first)
            }
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

    /// Returns the table or view of this name, or one of this name without a keyspace.
    pub fn table(&self, keyspace: &str, name: &str) -> Option<&Table> {
        let of = |keyspace: Option<&str>| {
            let mut tables = self.tables.iter();
            tables.find(|table| table.name == name && table.keyspace.as_deref() == keyspace)
        };
        of(Some(keyspace)).or_else(|| of(None))
    }
}

impl Table {
    /// Columns of one kind, in the order of SSTable headers: key columns by position; static and regular
    /// columns by [`column_order`].
    pub fn columns_of(&self, kind: ColumnKind) -> Vec<&Column> {
        let mut columns: Vec<&Column> = self.columns.iter().filter(|c| c.kind == kind).collect();
        if matches!(kind, ColumnKind::Static | ColumnKind::Regular) {
            columns
                .sort_by_key(|column| column_order(column.is_multi_cell, column.name.as_bytes()));
        }
        columns
    }

    /// Names of the columns of the partition key or of the clustering; also for a view, whose `columns` is empty.
    pub fn key_names(&self, kind: ColumnKind) -> Vec<&str> {
        let [partition_key, clustering] = &self.view_key;
        match (&self.view_of, kind) {
            (Some(_), ColumnKind::PartitionKey) => {
                partition_key.iter().map(String::as_str).collect()
            }
            (Some(_), ColumnKind::Clustering) => clustering.iter().map(String::as_str).collect(),
            _ => self
                .columns_of(kind)
                .iter()
                .map(|column| column.name.as_str())
                .collect(),
        }
    }

    /// Type of the partition key: that of its column, or a composite of several; `None` for a view or if the
    /// type of a column is unknown.
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

    /// Whether its rows are those of transactions (Accord), or have been until recently: only a node knows which of
    /// their deletions are needed (`TableMetadata.isAccordEnabled`, `.migratingFromAccord`).
    pub fn is_transactional(&self) -> bool {
        let is_set = |name: &str, none: &[&str]| {
            matches!(self.options.all.get(name), Some(OptionValue::Text(mode))
                if !none.iter().any(|none| mode.eq_ignore_ascii_case(none)))
        };
        is_set("transactional_mode", &["off"])
            || is_set("transactional_migration_from", &["off", "none"])
    }

    /// Value of an option of the compaction strategy, such as `only_purge_repaired_tombstones`.
    pub fn compaction_option(&self, name: &str) -> Option<&str> {
        let options = self.options.compaction.as_ref()?;
        options.get(name).map(String::as_str)
    }

    /// Whether tombstones may be purged only from repaired SSTables; `false` if the schema does not specify
    /// it.
    pub fn only_purge_repaired_tombstones(&self) -> bool {
        self.compaction_option("only_purge_repaired_tombstones")
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Time of the last drop of each dropped column, by name.
    pub fn drop_times_micros(&self) -> BTreeMap<&str, i64> {
        let dropped = self.dropped_columns.iter();
        dropped
            .filter_map(|column| Some((column.name.as_str(), column.dropped_at_micros?)))
            .collect()
    }
}

const STRUCTURE: &str = "schema.cql";

#[cfg(test)]
mod tests;

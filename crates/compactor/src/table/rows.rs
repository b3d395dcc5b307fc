//! Rows of a table, merged, with values as Rust types.

mod row;

use std::collections::BTreeSet;
use std::iter::FusedIterator;
use std::sync::Arc;

use compactor_engine::job::{MergeJob, MergedRows, Scope};
use compactor_engine::read::hex;
use compactor_sstable::Error as FormatError;
use compactor_sstable::data::clustering::ValueSpan;
use compactor_sstable::schema::{ColumnKind, Table as TableSchema};
use compactor_sstable::statistics::header::{HeaderColumn, SerializationHeader};
use compactor_sstable::types::{CqlType, Value};

use row::RowColumns;
pub use row::{Column, Row};

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
    /// Names of the static columns, then of the regular ones.
    cell_column_names: Vec<String>,
    now_s: i64,
    /// Values of the partition key; `None` before the first partition.
    key: Option<Arc<[Value]>>,
    /// The static row is next.
    static_is_next: bool,
    spans: Vec<ValueSpan>,
    has_ended: bool,
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
        let cell_column_names = |kind, columns| cell_column_names(self.schema(), kind, columns);
        let (static_names, stored_static) =
            cell_column_names(ColumnKind::Static, &header.static_columns);
        let (regular_names, stored_regular) =
            cell_column_names(ColumnKind::Regular, &header.regular_columns);
        Ok(Rows {
            cell_column_names: [static_names, regular_names].concat(),
            columns: Arc::new(RowColumns {
                key_names: [ColumnKind::PartitionKey, ColumnKind::Clustering]
                    .map(|kind| key_names(self.schema(), kind, &header)),
                stored_names: [stored_static, stored_regular],
                header,
                is_view: (self.schema())
                    .is_some_and(|schema| schema.strict_liveness != Some(false)),
            }),
            rows,
            now_s,
            key: None,
            static_is_next: false,
            spans: Vec::new(),
            has_ended: false,
        })
    }
}

/// Names of key columns, which SSTables do not store: those of the schema, otherwise those that CQL gives them
/// (`CFMetaData.DEFAULT_KEY_ALIAS`, `DEFAULT_COLUMN_ALIAS`), except names of other columns.
fn key_names(
    schema: Option<&TableSchema>,
    kind: ColumnKind,
    header: &SerializationHeader,
) -> Vec<String> {
    let (count, name) = match (kind, &header.key_type.cql_type) {
        (ColumnKind::Clustering, _) => (header.clustering_types.len(), "column"),
        (_, CqlType::Composite(types)) => (types.len(), "key"),
        _ => (1, "key"),
    };
    let named = schema.map_or_else(Vec::new, |schema| schema.key_names(kind));
    // The header of a view is not compared with its schema.
    if named.len() == count {
        return named.into_iter().map(str::to_owned).collect();
    }
    let columns = || header.static_columns.iter().chain(&header.regular_columns);
    let is_free = |name: &String| !columns().any(|column| column.name == name.as_bytes());
    let names = (1..).map(|number| match (kind, number) {
        (ColumnKind::PartitionKey, 1) => name.to_owned(),
        _ => format!("{name}{number}"),
    });
    names.filter(is_free).take(count).collect()
}

/// Names of the static or regular columns of the table, and of those that the SSTables have: `None` for a dropped one.
fn cell_column_names(
    schema: Option<&TableSchema>,
    kind: ColumnKind,
    header: &[HeaderColumn],
) -> (Vec<String>, Vec<Option<String>>) {
    let stored = header.iter().map(|column| {
        let name = std::str::from_utf8(&column.name).unwrap_or("a column");
        name.to_owned()
    });
    // The others do not have all of their columns in CQL.
    let declared = schema.filter(|schema| schema.view_of.is_none() && !schema.compact_storage);
    let Some(schema) = declared else {
        return (stored.clone().collect(), stored.map(Some).collect());
    };
    let columns = schema.columns_of(kind).into_iter();
    let all: Vec<String> = columns.map(|column| column.name.clone()).collect();
    let known: BTreeSet<&String> = all.iter().collect();
    let stored = stored.map(|name| known.contains(&name).then_some(name));
    let stored = stored.collect();
    (all, stored)
}

impl Iterator for Rows {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        if self.has_ended {
            return None;
        }
        let read = self.read();
        self.has_ended = !matches!(read, Ok(Some(_)));
        read.transpose().map(Result::flatten)
    }
}

impl FusedIterator for Rows {}

impl Rows {
    /// Names of all columns: those of the partition key, the clustering, static and regular ones. Without a schema, and
    /// for a view or a table with `COMPACT STORAGE`, those that the SSTables have.
    pub fn column_names(&self) -> impl Iterator<Item = &str> {
        let keys = self.columns.key_names.iter().flatten();
        keys.chain(&self.cell_column_names).map(String::as_str)
    }

    /// The next row, or why it has none: the rows after it can be read.
    fn read(&mut self) -> Result<Option<Result<Row>>> {
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
            let row = read.map(|found| {
                found.map(|(clustering, cells)| Row {
                    columns: Arc::clone(&self.columns),
                    key: Arc::clone(key),
                    clustering,
                    is_static: row.head.is_static(),
                    cells,
                })
            });
            if let Some(row) = row.map_err(|e| located(e).into()).transpose() {
                return Ok(Some(row));
            }
        }
    }
}

#[cfg(test)]
mod tests;

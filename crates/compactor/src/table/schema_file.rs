//! Reading the table's schema from `schema.cql` or a file that the user names.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use compactor_sstable::descriptor::TableDirectory;
use compactor_sstable::schema::{Schema, Table as TableSchema};
use compactor_sstable::types::identifier::maybe_quote;

use crate::{Error, Result};

/// Name of the schema's file in a snapshot.
pub(super) const SCHEMA: &str = "schema.cql";

/// Schema next to SSTables.
pub(super) enum FoundSchema {
    /// No such file.
    None,
    /// The table is described in a comment, which is not read.
    InComment,
    /// The table.
    Table(Box<TableSchema>),
}

/// Reads the schema at `path`.
///
/// # Errors
/// A file that is no schema.
pub(super) fn read_schema_alongside(path: &Path) -> Result<FoundSchema> {
    // A symbolic link to nothing is refused below: something was meant to be there.
    if matches!(fs::symlink_metadata(path), Err(e) if e.kind() == ErrorKind::NotFound) {
        return Ok(FoundSchema::None);
    }
    let schema = read_schema(path)?;
    let directory = path
        .parent()
        .and_then(|directory| directory.canonicalize().ok());
    let directory = directory.as_deref().and_then(named_after);
    if is_in_comment(path, &schema, directory.as_ref())? {
        return Ok(FoundSchema::InComment);
    }
    let table = table_of(path, &schema, directory.as_ref())?;
    Ok(FoundSchema::Table(Box::new(table)))
}

/// Whether the schema has the table in a comment only, that of the directory if it is known. Cassandra describes one with
/// COMPACT STORAGE in a comment, and notes that (`CompactTableMetadata.appendCqlTo`): columns there are approximate.
fn is_in_comment(path: &Path, schema: &Schema, directory: Option<&TableDirectory>) -> Result<bool> {
    let mut note = "omitted because it has constructs not compatible with CQL".to_owned();
    if !schema.tables.is_empty() {
        let is_missing = |of: &&TableDirectory| schema.table(&of.keyspace, &of.table).is_none();
        let Some(missing) = directory.filter(is_missing) else {
            return Ok(false);
        };
        let (keyspace, table) = (maybe_quote(&missing.keyspace), maybe_quote(&missing.table));
        note = format!("Table {keyspace}.{table} {note}");
    }
    let text = fs::read(path).map_err(Error::file("read", path))?;
    Ok(text
        .windows(note.len())
        .any(|window| window == note.as_bytes()))
}

/// Sentence on a file of [`FoundSchema::InComment`].
pub(super) fn in_comment(path: &Path) -> String {
    format!(
        "{} describes a COMPACT STORAGE table in a comment only, which this program does not read",
        path.display()
    )
}

/// Far above any table's: a file that is larger is something else, and is not read into memory.
const MAX_SCHEMA_BYTES: u64 = 64 << 20;

pub(super) fn read_schema(path: &Path) -> Result<Schema> {
    // A pipe that nobody writes to would be waited for.
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(e) if e.kind() == ErrorKind::NotFound => {
            return Err(not_a_schema(path, "no such file"));
        }
        Err(e) => return Err(Error::file("read", path)(e)),
    };
    if !metadata.is_file() {
        return Err(not_a_schema(path, "it is not a file"));
    }
    if metadata.len() > MAX_SCHEMA_BYTES {
        let why = format!(
            "it has {} bytes, more than the {MAX_SCHEMA_BYTES} that any schema has",
            metadata.len()
        );
        return Err(not_a_schema(path, why));
    }
    let bytes = fs::read(path).map_err(Error::file("read", path))?;
    let text = String::from_utf8(bytes).map_err(|e| not_a_schema(path, e.utf8_error()))?;
    Schema::parse(&text).map_err(|e| not_a_schema(path, e))
}

pub(super) fn not_a_schema(path: &Path, why: impl std::fmt::Display) -> Error {
    Error::invalid(format!(
        "{}: {why}; give the table's schema with --schema, as `schema.cql` of a snapshot has it",
        path.display()
    ))
}

/// Columns and drops decide which data is kept, so they must be certain.
pub(super) fn refuse_two_schemas(
    first: &(PathBuf, TableSchema),
    other: &(PathBuf, TableSchema),
) -> Result<()> {
    if has_same_rules(&first.1, &other.1) {
        return Ok(());
    }
    Err(Error::refused(format!(
        "{} and {} differ; say with --schema which of them is the table's schema now",
        first.0.display(),
        other.0.display()
    )))
}

/// Whether the same data is kept by both.
fn has_same_rules(a: &TableSchema, b: &TableSchema) -> bool {
    a.columns == b.columns
        && a.dropped_columns == b.dropped_columns
        && a.options == b.options
        && a.view_of == b.view_of
        && a.strict_liveness == b.strict_liveness
}

/// The table of a schema that the SSTables are of, by the name of their directory where the schema has several tables.
pub(super) fn choose_table(path: &Path, sstables: &[PathBuf]) -> Result<TableSchema> {
    let schema = read_schema(path)?;
    // A link is of the table that its target is of.
    let mut files = sstables
        .iter()
        .filter_map(|sstable| sstable.canonicalize().ok());
    let directory = files.find_map(|file| named_after(file.parent()?));
    if is_in_comment(path, &schema, directory.as_ref())? {
        return Err(Error::invalid(format!(
            "{}: leave out --schema, and give what the run needs: --gc-grace-seconds to purge, --strategy and its \
             options to compact or plan",
            in_comment(path)
        )));
    }
    table_of(path, &schema, directory.as_ref())
}

/// Keyspace and table that a directory is named after, if it has the table's id too.
fn named_after(directory: &Path) -> Option<TableDirectory> {
    let named = TableDirectory::parse(directory)?;
    named.table_id.is_some().then_some(named)
}

/// Selects the table of a schema by the name of a directory; without a name, the first table if the others
/// are its views.
///
/// # Errors
/// None or several; a table that the schema does not describe. A view before its base table if no name tells them apart:
/// the text of a view has no types, by which SSTables of its base table would be recognised.
fn table_of(
    path: &Path,
    schema: &Schema,
    directory: Option<&TableDirectory>,
) -> Result<TableSchema> {
    let first = || schema.only_table().map_err(|e| not_a_schema(path, e));
    let table = match directory {
        _ if schema.tables.len() < 2 => first()?,
        Some(directory) => {
            let (keyspace, table) = (&directory.keyspace, &directory.table);
            let why = "which the SSTables' directory is named after";
            let why = || {
                not_a_schema(
                    path,
                    format!("it does not describe {keyspace}.{table}, {why}"),
                )
            };
            schema.table(keyspace, table).ok_or_else(why)?
        }
        None => {
            let first = first()?;
            if first.view_of.is_some() {
                return Err(Error::invalid(format!(
                    "{} has a view and its base table, and no name of a directory shows whose SSTables these are: \
                     move them to a directory KEYSPACE/TABLE-ID, as a node or a snapshot has it",
                    path.display()
                )));
            }
            first
        }
    };
    Ok(table.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    /// Which rows of a view exist depends on the key of its base table, and on nothing in the view's own text.
    #[test]
    fn views_of_bases_with_other_keys_differ() {
        let schema_of = |name: &str, base_key: &str| {
            let text = format!(
                "CREATE TABLE ks.t (k int, v int, PRIMARY KEY ({base_key}));
                 CREATE MATERIALIZED VIEW ks.w AS SELECT * FROM ks.t
                     WHERE v IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k);"
            );
            let schema = Schema::parse(&text).unwrap();
            (PathBuf::from(name), schema.tables[1].clone())
        };
        let (first, other) = (schema_of("a", "k"), schema_of("b", "k, v"));
        refuse_two_schemas(&first, &schema_of("c", "k")).unwrap();
        let refused = refuse_two_schemas(&first, &other).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused);
    }
}

//! Whether SSTables of several directories can be of one table.

use std::collections::BTreeSet;
use std::path::PathBuf;

use compactor_sstable::descriptor::TableDirectory;

use super::files::real_directory;
use crate::{Error, Result};

/// Refuses SSTables in directories of different tables. Files that were copied elsewhere do not name their
/// table; their columns and key are compared later.
///
/// # Errors
/// Names two that are of different tables.
pub(super) fn refuse_two_tables(sstables: &[PathBuf]) -> Result<()> {
    let mut first: Option<(&PathBuf, TableDirectory)> = None;
    for path in sstables {
        let Some(table) = real_directory(path).and_then(|d| TableDirectory::parse(&d)) else {
            continue;
        };
        if table.table_id.is_none() {
            // Any directory in another looks like a table's of old.
            continue;
        }
        let of_one = |a: &TableDirectory, b: &TableDirectory| {
            (&a.keyspace, &a.table, &a.table_id, &a.index)
                == (&b.keyspace, &b.table, &b.table_id, &b.index)
        };
        match &first {
            None => first = Some((path, table)),
            Some((_, known)) if of_one(known, &table) => {}
            Some((other, known)) => {
                return Err(Error::invalid(format!(
                    "inputs are not of one table: {} is of {}.{} and {} of {}.{}",
                    other.display(),
                    known.keyspace,
                    known.table,
                    path.display(),
                    table.keyspace,
                    table.table
                )));
            }
        }
    }
    Ok(())
}

/// Returns a doubt if SSTables that agree may still belong to two tables: they are in several directories,
/// not all of which name their table.
pub(super) fn doubt_one_table(sstables: &[PathBuf]) -> Option<String> {
    let directories: BTreeSet<PathBuf> = sstables.iter().filter_map(real_directory).collect();
    let is_named = |d: &PathBuf| TableDirectory::parse(d).is_some_and(|t| t.table_id.is_some());
    let bare = directories.iter().find(|d| !is_named(d))?;
    let other = directories.iter().find(|d| *d != bare)?;
    Some(format!(
        "{} and {} are assumed to hold the same table: their types agree, but at least one is not named \
         KEYSPACE/TABLE-ID. Make sure that this is right",
        bare.display(),
        other.display()
    ))
}

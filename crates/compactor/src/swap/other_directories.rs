//! A table's directories in the other data directories of its node.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::run_record::RunRecord;
use crate::table::table_directory_above;
use crate::table_directories::in_other_data_directories;

/// Returns the directories, other than `table`, that the table has in data directories of SSTables that a run knew, and
/// in those that belong to the node by their paths. Those that no longer exist are left out, as are directories of
/// copies: a table has the same keyspace, name and id in all data directories.
pub(super) fn other_directories(table: &Path, record: &RunRecord) -> BTreeSet<PathBuf> {
    let known = [&record.inputs, &record.overlapping, &record.untouched];
    let parents = known
        .into_iter()
        .flatten()
        .filter_map(|sstable| Path::new(&sstable.data_path).parent());
    let parents: BTreeSet<&Path> = parents.collect();
    let of_table = |parent: &Path| {
        // A snapshot may have been removed since.
        let named = table_directory_above(parent).unwrap_or(parent);
        let own = named.canonicalize().ok()?;
        let own = table_directory_above(&own).unwrap_or(&own);
        let is_of_table = own != table && [named, own].into_iter().any(|it| is_same(it, table));
        is_of_table.then(|| own.to_owned())
    };
    let known = parents.into_iter().filter_map(of_table);
    known.chain(in_other_data_directories(table)).collect()
}

/// Whether two directories have the same keyspace and table.
fn is_same(directory: &Path, table: &Path) -> bool {
    let names = |path: &Path| {
        Some((
            path.parent()?.file_name()?.to_owned(),
            path.file_name()?.to_owned(),
        ))
    };
    names(directory).is_some_and(|names_of_it| names(table) == Some(names_of_it))
}

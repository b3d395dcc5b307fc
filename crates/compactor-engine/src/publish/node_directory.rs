//! Directories whose names are reserved for a node. No run writes into them.

use std::path::Path;

use compactor_sstable::descriptor::TableDirectory;

use crate::error::{Error, Result};

/// Refuses a directory that is a node's by its name, even if it is empty: that of a table, of its secondary
/// indexes, and those of snapshots and backups, which a node lists, restores and clears. Also refuses a
/// directory `TABLE` next to `TABLE-<id>`, which a node reads *instead* of the latter (`Directories`).
/// Accepts a table's directory if `may_be_own`.
pub(crate) fn refuse_directory_of_node(directory: &Path, may_be_own: bool) -> Result<()> {
    let named = std::path::absolute(directory).map_err(Error::file("look up", directory))?;
    let own = directory.canonicalize().unwrap_or(named);
    for below in below_table_directories(&own) {
        let is_named = |name: &str| below.starts_with(name);
        if is_named("snapshots") || is_named("backups") {
            return Err(Error::Refused(format!(
                "{} is for a node's own snapshots and backups: choose another directory",
                directory.display()
            )));
        }
        let name = below.to_string_lossy();
        let is_own = name.is_empty() || name.starts_with('.') && !name.contains('/');
        // `generate` creates such directories.
        if is_own && !may_be_own {
            return Err(Error::Refused(format!(
                "{} has the name of a node's own directory (TABLE-ID), and a node would load what is written \
                 there while it is incomplete, or together with other SSTables. Choose another directory, and \
                 bring the output in with `compactor swap` or `nodetool import`",
                directory.display()
            )));
        }
    }
    let Some(table) = TableDirectory::parse(&own) else {
        return Ok(());
    };
    let Some(parent) = own.parent().filter(|_| table.table_id.is_none()) else {
        return Ok(());
    };
    let of_node = compactor_io::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten();
    let of_node = of_node.map(|entry| entry.path()).find(|path| {
        TableDirectory::parse(path)
            .is_some_and(|other| other.table_id.is_some() && other.table == table.table)
    });
    match of_node {
        None => Ok(()),
        Some(of_node) => Err(Error::Refused(format!(
            "{} is next to {}: a node that has these in its data directory reads the one without an id \
             instead of its own. Choose another directory",
            directory.display(),
            of_node.display()
        ))),
    }
}

/// Returns the path to this directory from each ancestor named `TABLE-<id>`, or from itself.
fn below_table_directories(directory: &Path) -> impl Iterator<Item = &Path> {
    let is_table = |path: &&Path| {
        // The parent directory's name does not matter; it need not be that of a keyspace.
        let name = path.file_name().map(|name| Path::new("ks").join(name));
        name.and_then(|name| TableDirectory::parse(&name))
            .is_some_and(|table| table.table_id.is_some())
    };
    let tables = directory.ancestors().filter(is_table);
    tables.filter_map(|table| directory.strip_prefix(table).ok())
}

//! Directories that are a node's by their names, into which no run writes.

use std::path::Path;

use compactor_sstable::descriptor::TableDirectory;

use crate::error::{Error, Result};

/// Refuses a directory that is a node's by its name, whether there is anything in it yet: a table's own, its
/// secondary indexes', and those of snapshots and backups, which a node lists, restores and clears. And a
/// directory `TABLE` beside `TABLE-<id>` is what a node reads *instead* of that (`Directories`).
/// A table's own is let through where it `may_be_own`.
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
        // Who generates a table makes such a directory.
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

/// The path to this directory from each that is named `TABLE-<id>` and contains it, or is it.
fn below_table_directories(directory: &Path) -> impl Iterator<Item = &Path> {
    let is_table = |path: &&Path| {
        // Whatever the name of the directory above, which need not be a keyspace's.
        let name = path.file_name().map(|name| Path::new("ks").join(name));
        name.and_then(|name| TableDirectory::parse(&name))
            .is_some_and(|table| table.table_id.is_some())
    };
    let tables = directory.ancestors().filter(is_table);
    tables.filter_map(|table| directory.strip_prefix(table).ok())
}

//! Directories whose names are reserved for a node. No run writes into them.

use std::path::{Path, PathBuf};

use compactor_sstable::descriptor::TableDirectory;

use crate::error::{Error, Result};

/// Refuses a directory that is a node's by its name, even if it is empty: that of a table, of its secondary
/// indexes, and those of snapshots and backups, which a node lists, restores and clears. Also refuses a
/// directory `TABLE` next to `TABLE-<id>`, which a node reads *instead* of the latter (`Directories`).
/// Accepts a table's directory if `may_be_own`.
pub(crate) fn refuse_directory_of_node(directory: &Path, may_be_own: bool) -> Result<()> {
    let named = std::path::absolute(directory).map_err(Error::file("look up", directory))?;
    let own = with_real_ancestor(&named);
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
    refuse_next_to_table(&own)
}

/// Refuses a directory `TABLE` next to `TABLE-<id>`, which a node reads *instead* of the latter (`Directories`), and one
/// below it that would be created with it. `directory` is absolute and without links.
///
/// # Errors
/// [`Error::Refused`].
pub fn refuse_next_to_table(directory: &Path) -> Result<()> {
    let is_created = |path: &&Path| *path == directory || !path.exists();
    for path in directory.ancestors().take_while(is_created) {
        let table = TableDirectory::parse(path).filter(|table| table.table_id.is_none());
        let Some((table, parent)) = table.zip(path.parent()) else {
            continue;
        };
        let entries = compactor_io::read_dir(parent).into_iter().flatten();
        let mut others = entries.flatten().map(|entry| entry.path());
        let of_node = others.find(|path| {
            TableDirectory::parse(path)
                .is_some_and(|other| other.table_id.is_some() && other.table == table.table)
        });
        if let Some(of_node) = of_node {
            return Err(Error::Refused(format!(
                "{} is next to {}: a node that has these in its data directory reads the one without an id \
                 instead of its own. Choose another directory",
                path.display(),
                of_node.display()
            )));
        }
    }
    Ok(())
}

/// The path with its deepest existing directory replaced by the same without links and `..`.
pub fn with_real_ancestor(path: &Path) -> PathBuf {
    let mut ancestors = path.ancestors();
    let found = ancestors.find_map(|above| Some((above, above.canonicalize().ok()?)));
    found.map_or_else(
        || path.to_owned(),
        |(above, real)| match path.strip_prefix(above) {
            Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
            _ => real,
        },
    )
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

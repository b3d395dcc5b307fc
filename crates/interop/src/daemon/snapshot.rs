//! Files of a table: those of a node's snapshot, and those to import into a node.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::node::Node;
use super::process::give_to_daemon;
use super::tables::{KEYSPACE, Table};
use crate::files::{self, data_files};

/// Takes a snapshot of every table.
pub(crate) fn take(node: &mut Node, tag: &str) -> Result<()> {
    node.nodetool(&["snapshot", "-t", tag, "--", KEYSPACE])
        .map(drop)
}

/// The directory of a snapshot of a table or view.
pub(crate) fn directory(node: &Node, name: &str, tag: &str) -> Result<PathBuf> {
    let directory = node.table_directory(KEYSPACE, name)?;
    Ok(directory.join("snapshots").join(tag))
}

/// Writes the schema of a view and of its base table to a file: the one in the view's snapshot lacks the base table.
pub(crate) fn schema_with_base(
    node: &Node,
    view: &str,
    base: &str,
    tag: &str,
    scratch: &Path,
) -> Result<PathBuf> {
    let of = |name| {
        anyhow::Ok(fs::read_to_string(
            directory(node, name, tag)?.join("schema.cql"),
        )?)
    };
    let file = scratch.join(format!("{view}-{tag}.cql"));
    fs::write(&file, format!("{}\n{}", of(view)?, of(base)?))?;
    Ok(file)
}

/// Imports SSTables into the node, from a directory with the layout that it requires. The node must take all of them.
pub(crate) fn import(
    node: &mut Node,
    table: &Table,
    sstables: &[PathBuf],
    stage: &str,
) -> Result<()> {
    if sstables.is_empty() {
        return Ok(());
    }
    let place = node.place(&format!("import-{stage}"))?;
    let directory = place.join(KEYSPACE).join(table.name);
    for data in sstables {
        files::copy(data, &directory)?;
    }
    give_to_daemon(&place)?;
    let path = directory.display().to_string();
    let printed = node.nodetool(&[
        "import",
        "--keep-repaired",
        "--extended-verify",
        KEYSPACE,
        table.name,
        &path,
    ])?;
    let left = data_files(&directory)?;
    anyhow::ensure!(
        left.is_empty(),
        "nodetool import left {} of {} SSTables: {printed}",
        left.len(),
        sstables.len()
    );
    Ok(())
}

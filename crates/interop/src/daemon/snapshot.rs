//! Files of a table: those of a node's snapshot, and those that are to go into a node.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::node::Node;
use super::process::give_to_daemon;
use super::tables::{KEYSPACE, Table};

/// Takes a snapshot of every table.
pub(crate) fn take(node: &mut Node, tag: &str) -> Result<()> {
    node.nodetool(&["snapshot", "-t", tag, "--", KEYSPACE])
        .map(drop)
}

/// The directory of a snapshot of a table.
pub(crate) fn directory(node: &Node, table: &Table, tag: &str) -> Result<PathBuf> {
    let directory = node.table_directory(KEYSPACE, table.name)?;
    Ok(directory.join("snapshots").join(tag))
}

/// Each Data.db below a directory, in the order of their names; indexes' tables are in directories that begin with a
/// dot, and are left out.
pub(crate) fn data_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if !directory.exists() {
        return Ok(found);
    }
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && !name.starts_with('.') {
            found.extend(data_files(&path)?);
        } else if name.ends_with("-Data.db") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Every component of an SSTable, by its Data.db.
pub(crate) fn components(data: &Path) -> Result<Vec<PathBuf>> {
    let name = data.file_name().unwrap_or_default().to_string_lossy();
    let base = name.strip_suffix("Data.db").context("a Data.db")?;
    let mut found = Vec::new();
    for entry in fs::read_dir(data.parent().context("a directory")?)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(base) {
            found.push(path);
        }
    }
    Ok(found)
}

/// Copies SSTables into a directory.
pub(crate) fn copy(sstables: &[PathBuf], to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for data in sstables {
        for component in components(data)? {
            let name = component.file_name().context("a file name")?;
            let target = to.join(name);
            anyhow::ensure!(!target.exists(), "{} is there already", target.display());
            fs::copy(&component, &target)?;
        }
    }
    Ok(())
}

/// Lets the node import SSTables, from a directory as it wants it. The node must take all of them.
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
    copy(sstables, &directory)?;
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

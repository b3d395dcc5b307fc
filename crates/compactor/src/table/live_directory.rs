//! Detection of a running node that uses the inputs' directory: its memtables have data that is in no
//! SSTable.
//!
//! A purge is correct only if all data that is older than a purged tombstone is in the SSTables that were
//! read. A node also checks its memtables when it compacts. They cannot be read from here, so they must have
//! been empty at the time of the inputs: `nodetool snapshot` flushes them first, and so does `nodetool
//! drain`. Data that is written later is newer than the tombstones, or reaches this node late: by a hint, by
//! repair, or with a timestamp in the past. To be shadowed by a purged tombstone it must be late by more than
//! `gc_grace_seconds`, within which hints end and repair has to run, less the time between snapshot and
//! merge: the same risk that a node's own compaction takes when it purges.

use std::collections::BTreeSet;
use std::path::PathBuf;

use compactor_io::Ownership;

use super::files::real_directory;
use super::table_directory_above;
use crate::node_processes::Users;
use crate::{Error, Result};

/// Advice for a purge in a directory that a node may be using.
const WAY_OUT: &str = "Merge a snapshot (`nodetool snapshot` flushes first), stop the node after \
                       `nodetool drain`, or leave out --complete and --overlapping, which keeps every tombstone";

/// Refuses to purge in the directory of a table that a running process has open, or may have open: a node
/// whose open files this user may not inspect. Snapshots and backups are not live directories.
///
/// # Errors
/// A refusal that names what to merge instead.
pub(super) fn refuse_purge_while_live(sstables: &[PathBuf]) -> Result<()> {
    let directories: BTreeSet<PathBuf> = sstables
        .iter()
        .filter_map(real_directory)
        .filter(|directory| table_directory_above(directory).is_none())
        .collect();
    for directory in directories {
        let users = Users::of(&directory).map_err(|error| {
            Error::refused(format!(
                "cannot determine whether a running node has {} open ({error}): rows in its memtables, which \
                 are in no SSTable yet, may be shadowed by tombstones that this run would purge. {WAY_OUT}",
                directory.display()
            ))
        })?;
        if let Some(user) = users.processes.first() {
            let file = user.file.as_deref().unwrap_or(&directory);
            return Err(Error::refused(format!(
                "--complete and --overlapping must name everything the table has, but {user} has {} open: \
                 rows in the memtables of a running node, which are in no SSTable yet, may be shadowed by \
                 tombstones that this run would purge. {WAY_OUT}",
                file.display()
            )));
        }
        if let Some(user) = users.hidden_nodes.first() {
            return Err(Error::refused(format!(
                "{user} looks like a Cassandra node, and this user may not see which files it has open: if \
                 {} is its table's directory, rows in its memtables, which are in no SSTable yet, may be \
                 shadowed by tombstones that this run would purge. Run as the node's user or as root to check. \
                 {WAY_OUT}",
                directory.display()
            )));
        }
        if users.hides_others && !Ownership::is_own(&directory) {
            return Err(Error::refused(format!(
                "{} belongs to another user, whose processes are hidden from this one: a running node may have \
                 it open, with rows in its memtables that are in no SSTable yet and may be shadowed by \
                 tombstones that this run would purge. Run as the node's user or as root to check. {WAY_OUT}",
                directory.display()
            )));
        }
    }
    Ok(())
}

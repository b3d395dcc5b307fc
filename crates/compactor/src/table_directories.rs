//! A table's directories in several data directories of a node.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use compactor_sstable::descriptor::TableDirectory;

use crate::table::{data_files, real_directory, table_directory_above};

/// Number of names at the end of a data directory's path of which one may differ, as in `/mnt/disk1/cassandra/data`.
const NAMES_OF_DATA_DIRECTORY: usize = 3;

/// Directories of a table in the data directories of a node, which compacts the SSTables of each separately
/// (`CompactionStrategyManager`, `DiskBoundaries`).
#[derive(Debug, Default)]
pub(crate) struct TableDirectories(Vec<PathBuf>);

impl TableDirectories {
    /// Directories of tables that these SSTables are in, or that contain the snapshots and backups that they are in.
    /// Directories with other names, such as copies, are left out.
    pub(crate) fn of(data_paths: &[PathBuf]) -> TableDirectories {
        let found: BTreeSet<PathBuf> = data_paths
            .iter()
            .filter_map(|p| table_directory_of(p))
            .collect();
        TableDirectories(found.into_iter().collect())
    }

    /// Number of the directory that an SSTable is in. One that is elsewhere belongs to the first.
    pub(crate) fn index_of(&self, data_path: &Path) -> usize {
        if self.0.len() < 2 {
            return 0;
        }
        let directory = table_directory_of(data_path);
        let place = directory.and_then(|directory| self.0.binary_search(&directory).ok());
        place.unwrap_or(0)
    }

    /// A directory by its number, if there are several.
    pub(crate) fn get(&self, index: usize) -> Option<&PathBuf> {
        self.0.get(index).filter(|_| self.0.len() > 1)
    }

    /// A note for a compaction, if there are several.
    pub(crate) fn note(&self) -> Option<String> {
        let [first, second, ..] = &self.0[..] else {
            return None;
        };
        Some(format!(
            "the SSTables are in {} data directories, such as {} and {}, and those of each are compacted separately, as \
             by a node; to compact them together, `compactor merge` them. `compactor swap` needs a run for each \
             directory, with the others named by --overlapping",
            self.0.len(),
            first.display(),
            second.display()
        ))
    }
}

/// The directory `<keyspace>/<table>-<id>` that an SSTable is in or below.
pub(crate) fn table_directory_of(data_path: &Path) -> Option<PathBuf> {
    let own = real_directory(data_path)?;
    let directory = table_directory_above(&own).unwrap_or(&own);
    let table = TableDirectory::parse(directory)?;
    (table.table_id.is_some() && table.index.is_none()).then(|| directory.to_owned())
}

/// The same directory of a table, or snapshot in it, in other data directories of its node, as far as one name of their
/// paths differs: only the node's configuration names them all. Each has a keyspace `system`, whose table `local` has
/// SSTables in at most one (`SystemKeyspace.TABLES_SPLIT_ACROSS_MULTIPLE_DISKS`): this tells them from copies and from
/// data directories of other nodes. Where none has some, `local_system_data_file_directory` may have them: all are
/// taken for one node's, since a purge that misses some would bring back deleted rows.
pub(crate) fn in_other_data_directories(directory: &Path) -> BTreeSet<PathBuf> {
    look_alikes(directory).unwrap_or_default()
}

fn look_alikes(directory: &Path) -> Option<BTreeSet<PathBuf>> {
    let directory = directory.canonicalize().ok()?;
    let table = table_directory_above(&directory).unwrap_or(&directory);
    TableDirectory::parse(table).filter(|of| of.table_id.is_some() && of.index.is_none())?;
    let data = table.parent()?.parent().filter(|data| is_of_node(data))?;
    let below = directory.strip_prefix(data).ok()?;
    let mut others = BTreeSet::new();
    for named in data.ancestors().take(NAMES_OF_DATA_DIRECTORY) {
        let (Some(parent), Ok(rest)) = (named.parent(), data.strip_prefix(named)) else {
            break;
        };
        let entries = compactor_io::read_dir(parent)
            .into_iter()
            .flatten()
            .flatten();
        // Joined with nothing, a path would end in a slash.
        let data_directories = entries.map(|entry| entry.path().join(rest).components().collect());
        let there = data_directories
            .filter(|other: &PathBuf| is_of_node(other) && other.join(below).is_dir());
        others.extend(there.filter_map(|other| other.canonicalize().ok()));
    }
    others.remove(data);
    let (first, mut kept): (BTreeSet<PathBuf>, BTreeSet<PathBuf>) =
        others.into_iter().partition(|other| has_local_table(other));
    if !has_local_table(data) {
        if first.len() > 1 {
            return None;
        }
        kept.extend(first);
    }
    Some(kept.into_iter().map(|other| other.join(below)).collect())
}

fn is_of_node(data: &Path) -> bool {
    data.join("system").is_dir()
}

/// Whether a data directory has SSTables of `system.local`.
fn has_local_table(data: &Path) -> bool {
    let system = data.join("system");
    let mut tables = compactor_io::read_dir(&system)
        .into_iter()
        .flatten()
        .flatten();
    tables.any(|table| {
        let is_local = table.file_name().to_string_lossy().starts_with("local-");
        is_local && !data_files(&table.path()).is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn data_directories_of_a_node_are_found_and_those_of_others_are_not() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let table = "ks/t-0123456789abcdef0123456789abcdef/snapshots/s";
        let of = |disk: &str| root.join(disk).join("cassandra/data").join(table);
        let system = |disk: &str| root.join(disk).join("cassandra/data/system");
        let local_table = |disk: &str| {
            let local = system(disk).join("local-7ad54392bcdd35a684174e047860b377");
            fs::create_dir(&local).unwrap();
            fs::write(local.join("nb-1-big-Data.db"), "x").unwrap();
        };
        for disk in ["disk1", "disk2", "disk3", "copy"] {
            fs::create_dir_all(of(disk)).unwrap();
        }
        for disk in ["disk1", "disk2", "disk3", "disk4"] {
            fs::create_dir_all(system(disk)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("disk3"), root.join("disk5")).unwrap();
        let found = |disk: &str| in_other_data_directories(&of(disk));
        let others = BTreeSet::from([of("disk1"), of("disk3")]);
        assert_eq!(found("disk2"), others, "the local table is elsewhere");
        local_table("disk2");
        assert_eq!(found("disk1"), BTreeSet::from([of("disk2"), of("disk3")]));
        assert_eq!(found("disk2"), BTreeSet::from([of("disk1"), of("disk3")]));
        assert_eq!(found("copy"), BTreeSet::new());
        local_table("disk1");
        assert_eq!(found("disk1"), BTreeSet::from([of("disk3")]));
        assert_eq!(found("disk3"), BTreeSet::new(), "of one of two nodes");
    }
}

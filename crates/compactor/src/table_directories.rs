//! A table's directories in several data directories of a node.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use compactor_sstable::descriptor::TableDirectory;

use crate::table::{real_directory, table_directory_above};

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

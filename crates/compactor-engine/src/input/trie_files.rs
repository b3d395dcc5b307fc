//! Index files of a BTI SSTable, kept in memory.

use std::sync::{Arc, Mutex, Weak};

use compactor_io::{Io, ReadMode, lock};
use compactor_sstable::Component;
use compactor_sstable::descriptor::Descriptor;

use crate::error::Result;
use crate::input::component_file::read_small;

/// `Partitions.db` and `Rows.db`.
#[derive(Debug, Default)]
pub struct TrieFiles {
    /// Content of `Partitions.db`.
    pub partitions: Vec<u8>,
    /// Content of `Rows.db`.
    pub rows: Vec<u8>,
}

/// Shared index files of one SSTable, about ten bytes per partition. They are read once for the planner,
/// which splits the merge by them, and for the validation of the index, and dropped after their last use.
#[derive(Clone, Debug, Default)]
pub struct SharedTries(Arc<Mutex<Weak<TrieFiles>>>);

impl SharedTries {
    /// Reads the files, unless they are in memory.
    ///
    /// # Errors
    /// A failed read.
    pub fn read(&self, io: &Io, mode: ReadMode, descriptor: &Descriptor) -> Result<Arc<TrieFiles>> {
        let mut known = lock(&self.0);
        if let Some(files) = known.upgrade() {
            return Ok(files);
        }
        let files = Arc::new(TrieFiles {
            partitions: read_small(io, mode, &descriptor.path(Component::Partitions))?,
            rows: read_small(io, mode, &descriptor.path(Component::Rows))?,
        });
        *known = Arc::downgrade(&files);
        Ok(files)
    }
}

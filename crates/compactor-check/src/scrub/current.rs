//! Current partition and its salvaged rows.

use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::partitioner::KeyHash;

use super::loss::Owner;
use super::synthesis::Name;

/// The partition being read.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) key: Vec<u8>,
    pub(super) hash: KeyHash,
    /// The run it is added to; `None` if there would be too many.
    pub(super) run: Option<usize>,
    /// The row or marker that was kept last, in this run.
    pub(super) last: Option<Last>,
    /// Deletion open after it.
    pub(super) open: DeletionTime,
    pub(super) is_cut: bool,
    pub(super) is_out_of_order: bool,
    pub(super) has_rows_out_of_order: bool,
}

/// Row or marker that was kept last.
#[derive(Debug, Default)]
pub(super) struct Last {
    pub(super) name: Name,
    /// Position of a marker, unless it was synthesized, and the deletion that it closes; `None` for a row.
    pub(super) marker: Option<(Option<u64>, DeletionTime)>,
}

impl Current {
    /// Name of the row or marker that was kept last.
    pub(super) fn last(&self) -> Option<&Name> {
        self.last.as_ref().map(|last| &last.name)
    }

    pub(super) fn owner(&self) -> Owner<'_> {
        Owner {
            key: &self.key,
            token: self.hash.token,
        }
    }

    pub(super) fn set_last(&mut self, name: &Name, marker: Option<(Option<u64>, DeletionTime)>) {
        let last = self.last.get_or_insert_default();
        last.name.0.clone_from(&name.0);
        last.marker = marker;
    }
}

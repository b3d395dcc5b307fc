//! SSTables of a group, for strategies that need no order of their own.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::live::Live;
use crate::sstable::{Sstable, SstableId};

/// SSTables by id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members {
    by_id: BTreeMap<SstableId, Arc<Sstable>>,
}

impl Members {
    pub(crate) fn insert(&mut self, sstable: &Arc<Sstable>) {
        self.by_id.insert(sstable.id, Arc::clone(sstable));
    }

    pub(crate) fn remove(&mut self, id: SstableId) {
        self.by_id.remove(&id);
    }

    /// All of them, by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Sstable>> {
        self.by_id.values()
    }

    /// All that are not being compacted.
    pub(crate) fn uncompacting(&self, live: &Live) -> Vec<Arc<Sstable>> {
        let idle = self.iter().filter(|s| !live.is_compacting(s.id));
        idle.cloned().collect()
    }

    /// All that are neither suspect nor being compacted.
    pub(crate) fn available(&self, live: &Live) -> Vec<Arc<Sstable>> {
        live.available(self.iter())
    }
}

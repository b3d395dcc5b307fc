//! SSTables of a group, for strategies that need no order of their own.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::live::Live;
use crate::sstable::{Sstable, SstableId};
use crate::task::{Output, Reason, Task};

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

    /// All that are not being compacted.
    pub(crate) fn uncompacting(&self, live: &Live) -> Vec<Arc<Sstable>> {
        let idle = self.by_id.values().filter(|s| !live.is_compacting(s.id));
        idle.cloned().collect()
    }

    /// All that are neither suspect nor being compacted.
    pub(crate) fn available(&self, live: &Live) -> Vec<Arc<Sstable>> {
        let mut available = self.uncompacting(live);
        available.retain(|sstable| !sstable.is_suspect);
        available
    }

    /// One task of all that are not suspect; none if one of them is being compacted, or if there are none.
    pub(crate) fn major(&self, live: &Live, output: Output) -> Vec<Task> {
        let sound = self.by_id.values().filter(|sstable| !sstable.is_suspect);
        let sound: Vec<Arc<Sstable>> = sound.cloned().collect();
        let is_free = sound.iter().all(|sstable| !live.is_compacting(sstable.id));
        match sound.is_empty() || !is_free {
            true => Vec::new(),
            false => vec![Task::compact(&sound, Reason::Major, output)],
        }
    }
}

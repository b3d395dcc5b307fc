//! The live SSTables of a table, and which of them are being compacted.
//!
//! Source: `lifecycle.Tracker`, `lifecycle.View`, `ColumnFamilyStore.getOverlappingLiveSSTables`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::sstable::{RepairState, Sstable, SstableId};
use crate::token::{Position, has_overlap, joined};

/// Live SSTables of all groups of a table.
#[derive(Clone, Debug, Default)]
pub struct Live {
    sstables: BTreeMap<SstableId, Arc<Sstable>>,
    compacting: HashSet<SstableId>,
    /// Number of SSTables of each repair state that there are any of.
    by_repair: BTreeMap<RepairState, usize>,
    /// SSTables that no strategy selects.
    outside: Vec<Arc<Sstable>>,
}

impl Live {
    /// Adds an SSTable, or replaces the one with its id.
    pub(crate) fn insert(&mut self, sstable: Arc<Sstable>) {
        *self.by_repair.entry(sstable.repair).or_default() += 1;
        if let Some(before) = self.sstables.insert(sstable.id, sstable) {
            self.forget(before.repair);
        }
    }

    /// Adds an SSTable that is not compacted, and that no id names.
    pub(crate) fn insert_outside(&mut self, sstable: Arc<Sstable>) {
        self.outside.push(sstable);
    }

    /// Removes an SSTable.
    pub(crate) fn remove(&mut self, id: SstableId) -> Option<Arc<Sstable>> {
        self.compacting.remove(&id);
        let removed = self.sstables.remove(&id)?;
        self.forget(removed.repair);
        Some(removed)
    }

    fn forget(&mut self, repair: RepairState) {
        if let Entry::Occupied(mut count) = self.by_repair.entry(repair) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// Whether there is an SSTable of this repair state.
    pub(crate) fn has(&self, repair: RepairState) -> bool {
        self.by_repair.contains_key(&repair)
    }

    /// Marks SSTables as inputs of a running compaction (`tryModify`).
    pub(crate) fn begin(&mut self, ids: &[SstableId]) {
        self.compacting.extend(ids);
    }

    /// Ends a compaction without outputs (`LifecycleTransaction.abort`).
    pub(crate) fn abort(&mut self, ids: &[SstableId]) {
        for id in ids {
            self.compacting.remove(id);
        }
    }

    /// An SSTable by its id.
    pub fn get(&self, id: SstableId) -> Option<&Arc<Sstable>> {
        self.sstables.get(&id)
    }

    /// All SSTables, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Sstable>> {
        self.sstables.values()
    }

    /// SSTables that are not compacted: see [`CompactionStrategyManager::add_outside`].
    ///
    /// [`CompactionStrategyManager::add_outside`]: crate::CompactionStrategyManager::add_outside
    pub fn outside(&self) -> &[Arc<Sstable>] {
        &self.outside
    }

    /// Number of SSTables.
    pub fn len(&self) -> usize {
        self.sstables.len()
    }

    /// Whether there are no SSTables.
    pub fn is_empty(&self) -> bool {
        self.sstables.is_empty()
    }

    /// Whether an SSTable is an input of a running compaction.
    pub fn is_compacting(&self, id: SstableId) -> bool {
        self.compacting.contains(&id)
    }

    /// Whether an SSTable is neither suspect nor being compacted.
    pub(crate) fn is_available(&self, sstable: &Sstable) -> bool {
        !sstable.is_suspect && !self.is_compacting(sstable.id)
    }

    /// Returns the given SSTables that are neither suspect nor being compacted.
    pub(crate) fn available<'a>(
        &self,
        sstables: impl IntoIterator<Item = &'a Arc<Sstable>>,
    ) -> Vec<Arc<Sstable>> {
        let available = sstables.into_iter().filter(|s| self.is_available(s));
        available.cloned().collect()
    }

    /// Inputs of running compactions, in no order.
    pub fn compacting(&self) -> impl Iterator<Item = SstableId> {
        self.compacting.iter().copied()
    }

    /// Whether all tokens of an SSTable are between those of another. The newest are tried first, since a flushed one
    /// has almost all tokens.
    pub(crate) fn is_covered(&self, sstable: &Sstable) -> bool {
        let (first, last) = (sstable.first.token, sstable.last.token);
        let others = self.sstables.values().rev();
        let others = others.filter(|other| other.id != sstable.id);
        let mut others = others.chain(&self.outside);
        others.any(|other| other.first.token <= first && last <= other.last.token)
    }

    /// SSTables other than these that cover a partition between the bounds of one of them.
    pub(crate) fn overlapping<'a>(&'a self, sstables: &[&Sstable]) -> Vec<&'a Sstable> {
        let bounds: Vec<(&Position, &Position)> = joined(
            sstables
                .iter()
                .map(|sstable| (&sstable.first, &sstable.last)),
        );
        let mut own: Vec<SstableId> = sstables.iter().map(|sstable| sstable.id).collect();
        own.sort_unstable();
        let others = self.sstables.values();
        let others = others.filter(|other| own.binary_search(&other.id).is_err());
        let overlaps = |other: &&Sstable| has_overlap(&bounds, &&other.first, &&other.last);
        let others = others.chain(&self.outside).map(Arc::as_ref);
        others.filter(overlaps).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::Token;

    #[test]
    fn finds_sstables_that_overlap_any_of_several() {
        let mut live = Live::default();
        for (id, first, last) in [
            (1, 0, 10),
            (2, 20, 30),
            (3, 10, 12),
            (4, 13, 19),
            (5, 25, 40),
        ] {
            let sstable = Sstable::new(SstableId(id), 1, Token(first), Token(last));
            live.insert(Arc::new(sstable));
        }
        let [one, two] = [1, 2].map(|id| Arc::clone(live.get(SstableId(id)).expect("it is live")));
        let found = live.overlapping(&[&two, &one]);
        let ids: Vec<u64> = found.iter().map(|sstable| sstable.id.0).collect();
        assert_eq!(ids, [3, 5]);
        let covered = |id| live.is_covered(live.get(SstableId(id)).expect("it is live"));
        assert_eq!([1, 2, 3, 4, 5].map(covered), [false; 5]);
        live.insert(Arc::new(Sstable::new(
            SstableId(6),
            1,
            Token(10),
            Token(19),
        )));
        let covered = |id| live.is_covered(live.get(SstableId(id)).expect("it is live"));
        assert_eq!(
            [1, 2, 3, 4, 5].map(covered),
            [false, false, true, true, false]
        );
    }
}

//! The SSTables of the table, and the strategy that selects among them.

use std::collections::BTreeMap;

use compactor_strategy::CompactionStrategyManager;
use compactor_strategy::context::Node;
use compactor_strategy::random::TieBreak;
use compactor_strategy::sstable::{Sstable, SstableId};
use compactor_strategy::task::Task;

use crate::cohort::{Buckets, Cohort, Kind, US};
use crate::setup::Setup;
use crate::stored::{Range, Stored};
use crate::workload::Workload;

/// SSTables with their rows.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) manager: CompactionStrategyManager,
    stored: BTreeMap<SstableId, Stored>,
    bytes: u64,
    next_id: u64,
}

impl Table {
    /// A table with the initial SSTables.
    pub(crate) fn new(setup: &Setup, buckets: Buckets, now_ms: i64) -> Table {
        let workload = &setup.workload;
        let mut stored = BTreeMap::new();
        let mut next_id = 0;
        let mut describe = |sstable: &Sstable| {
            next_id += 1;
            let id = SstableId(next_id);
            stored.insert(id, estimated(sstable, workload, buckets));
            Sstable {
                id,
                ..sstable.clone()
            }
        };
        let sstables: Vec<Sstable> = setup.initial.iter().map(&mut describe).collect();
        let bytes = sstables.iter().map(|sstable| sstable.data_bytes).sum();
        let node = Node {
            gc_grace_s: i64::try_from(workload.gc_grace_s).unwrap_or(i64::MAX),
            ..Node::default()
        };
        let ties = TieBreak::Seeded(setup.seed);
        let strategy = setup.strategy.clone();
        Table {
            manager: CompactionStrategyManager::load(strategy, node, ties, sstables, now_ms),
            stored,
            bytes,
            next_id,
        }
    }

    /// Adds a flushed SSTable and returns it.
    pub(crate) fn flush(&mut self, stored: Stored, now_ms: i64, workload: &Workload) -> Sstable {
        let sstable = self.insert(stored, 0, now_ms, workload);
        self.manager.add(sstable.clone());
        sstable
    }

    /// Replaces the inputs of a task, and returns the outputs.
    pub(crate) fn complete(
        &mut self,
        task: &Task,
        outputs: Vec<Stored>,
        now_ms: i64,
        workload: &Workload,
    ) -> Vec<Sstable> {
        self.remove(&task.inputs);
        let level = task.output.level;
        let outputs = outputs.into_iter();
        let added = outputs.map(|stored| self.insert(stored, level, now_ms, workload));
        let added: Vec<Sstable> = added.collect();
        self.manager.complete(task, added.clone());
        added
    }

    /// Moves the SSTable of a task to another level, and returns it.
    pub(crate) fn move_to_level(&mut self, task: &Task) -> Vec<Sstable> {
        let moved = task.inputs.first().and_then(|&id| {
            let sstable = self.manager.live().get(id)?;
            Some(Sstable {
                level: task.output.level,
                ..Sstable::clone(sstable)
            })
        });
        let moved = Vec::from_iter(moved);
        self.manager.complete(task, moved.clone());
        moved
    }

    fn insert(&mut self, stored: Stored, level: u32, now_ms: i64, workload: &Workload) -> Sstable {
        self.next_id += 1;
        let id = SstableId(self.next_id);
        let sstable = stored.describe(id, level, now_ms, workload);
        self.bytes += sstable.data_bytes;
        self.stored.insert(id, stored);
        sstable
    }

    fn remove(&mut self, ids: &[SstableId]) {
        for id in ids {
            let bytes = self.manager.live().get(*id).map_or(0, |s| s.data_bytes);
            self.bytes -= bytes;
            self.stored.remove(id);
        }
    }

    /// Stored bytes of all SSTables.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.stored.len()
    }

    pub(crate) fn get(&self, id: SstableId) -> Option<&Stored> {
        self.stored.get(&id)
    }

    /// All SSTables, by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SstableId, &Stored)> {
        self.stored.iter().map(|(&id, stored)| (id, stored))
    }

    /// Level of an SSTable; for strategies without levels the number of merges of its rows.
    pub(crate) fn level(&self, id: SstableId) -> u32 {
        let generation = self.stored.get(&id).map_or(0, |stored| stored.generation);
        self.manager.level(id).unwrap_or(generation)
    }
}

/// Cohorts of an SSTable whose rows are not known: the number that its bytes allow for, written evenly between its
/// oldest and its newest timestamp.
fn estimated(sstable: &Sstable, workload: &Workload, buckets: Buckets) -> Stored {
    const PARTS: i64 = 8;
    let (oldest, newest) = (
        sstable.min_timestamp,
        sstable.max_timestamp.max(sstable.min_timestamp),
    );
    let rows = sstable.data_bytes as f64 / workload.stored_row_bytes();
    let step = (newest - oldest) / PARTS;
    let parts = if step > 0 { PARTS } else { 1 };
    let cohort = |part: i64| {
        let from = oldest + part * step;
        Cohort {
            class: 0,
            kind: Kind::Live,
            bucket: buckets.of(from),
            oldest_us: from,
            newest_us: if part + 1 == parts {
                newest
            } else {
                from + step
            },
            rows: rows / parts as f64,
            cover: 0.0,
        }
    };
    let range = Range {
        start: sstable.first.token.0,
        end: sstable.last.token.0 + 1,
    };
    let cohorts = crate::cohort::joined((0..parts).map(cohort).collect());
    Stored::new(range, cohorts, sstable.level)
}

/// Newest timestamp of SSTables, seconds since 1970.
pub(crate) fn newest_s(sstables: &[Sstable]) -> Option<i64> {
    let newest = sstables.iter().map(|sstable| sstable.max_timestamp).max();
    newest.map(|us| (us as f64 / US).ceil() as i64)
}

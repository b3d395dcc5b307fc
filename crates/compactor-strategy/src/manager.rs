//! Groups of a table's SSTables, each with a strategy of its own, and the order in which they are asked.
//!
//! Source: `CompactionStrategyManager`, `PendingRepairHolder`, `PendingRepairManager`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::context::{Context, Node};
use crate::live::Live;
use crate::params::CompactionParams;
use crate::random::TieBreak;
use crate::sstable::{RepairState, Sstable, SstableId};
use crate::strategy::Strategy;
use crate::task::{Idle, Task};

/// SSTables that may be compacted together: those of a repair state in a data directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group {
    /// Repair state.
    pub repair: RepairState,
    /// Index of the data directory.
    pub directory: usize,
}

/// Start of a node that has been running for so long that whatever it does in intervals is due.
pub const LONG_AGO: i64 = i64::MIN;

type Groups = BTreeMap<Group, Box<dyn Strategy>>;

/// Strategies of a table.
///
/// A node is followed by calling [`next_task`](CompactionStrategyManager::next_task) when it looks for work,
/// [`begin`](CompactionStrategyManager::begin) with the task, and
/// [`complete`](CompactionStrategyManager::complete) with its outputs once it has ended.
#[derive(Debug)]
pub struct CompactionStrategyManager {
    params: CompactionParams,
    node: Node,
    ties: TieBreak,
    live: Live,
    groups: Groups,
    started_ms: i64,
    running: usize,
}

impl CompactionStrategyManager {
    /// Strategies of a table without SSTables.
    pub fn new(params: CompactionParams, node: Node, ties: TieBreak) -> CompactionStrategyManager {
        CompactionStrategyManager {
            params,
            node,
            ties,
            live: Live::default(),
            groups: BTreeMap::new(),
            started_ms: 0,
            running: 0,
        }
    }

    /// Strategies of a table with these SSTables, of a node that started at this time, in milliseconds since 1970.
    pub fn load(
        params: CompactionParams,
        node: Node,
        ties: TieBreak,
        sstables: impl IntoIterator<Item = Sstable>,
        started_ms: i64,
    ) -> CompactionStrategyManager {
        let mut manager = CompactionStrategyManager::new(params, node, ties);
        manager.started_ms = started_ms;
        manager.add_permanent_groups();
        for sstable in sstables {
            manager.add(sstable);
        }
        for strategy in manager.groups.values_mut() {
            strategy.start(started_ms);
        }
        manager
    }

    /// Options of the strategy.
    pub fn params(&self) -> &CompactionParams {
        &self.params
    }

    /// The node, of which memtables and flushed bytes change with time.
    pub fn node_mut(&mut self) -> &mut Node {
        &mut self.node
    }

    /// The SSTables of the table.
    pub fn live(&self) -> &Live {
        &self.live
    }

    /// Group of an SSTable.
    pub fn group_of(&self, sstable: &Sstable) -> Group {
        Group {
            repair: sstable.repair,
            directory: sstable.directory,
        }
    }

    /// Adds an SSTable, as after a flush.
    pub fn add(&mut self, sstable: Sstable) {
        let sstable = Arc::new(sstable);
        self.live.insert(Arc::clone(&sstable));
        self.strategy_for(&sstable).add(&sstable);
    }

    /// Adds an SSTable of the table that is not compacted, such as one that is only known to be there: no strategy
    /// selects it, but those that it overlaps are not fully expired if it has older data. Its id is not looked at.
    pub fn add_outside(&mut self, sstable: impl Into<Arc<Sstable>>) {
        self.live.insert_outside(sstable.into());
    }

    /// No longer compacts an SSTable, which stays: see [`add_outside`](CompactionStrategyManager::add_outside).
    pub fn exclude(&mut self, id: SstableId) {
        if let Some(sstable) = self.live.get(id).cloned() {
            self.remove(id);
            self.add_outside(sstable);
        }
    }

    /// Removes an SSTable that was dropped.
    pub fn remove(&mut self, id: SstableId) {
        if let Some(sstable) = self.live.remove(id) {
            self.strategy_for(&sstable).remove(&sstable);
        }
    }

    /// Selects the next compaction. Groups are asked by their remaining compactions, descending.
    ///
    /// # Errors
    /// Why no group has one.
    pub fn next_task(&mut self, now_ms: i64) -> Result<Task, Vec<(Group, Idle)>> {
        if !self.params.is_enabled {
            return Err(vec![(Group::default(), Idle::Disabled)]);
        }
        let mut idle = Vec::new();
        for group in self.groups_by_remaining() {
            let (groups, mut context) = self.groups_at(now_ms);
            let Some(strategy) = groups.get_mut(&group) else {
                continue;
            };
            match strategy.next_task(&mut context) {
                Ok(task) => return Ok(task),
                Err(Idle::NoSstables) if self.is_empty(group) => {}
                Err(reason) => idle.push((group, reason)),
            }
        }
        Err(idle)
    }

    /// Makes what strategies do in intervals due, as if the node had waited for as long.
    pub fn pass_interval(&mut self) {
        for strategy in self.groups.values_mut() {
            strategy.pass_interval();
        }
    }

    /// Selects everything, as `nodetool compact` does, each group apart.
    pub fn major(&mut self, now_ms: i64, splits_output: bool) -> Vec<Task> {
        let (groups, context) = self.groups_at(now_ms);
        let strategies = groups.values();
        strategies
            .flat_map(|strategy| strategy.major(&context, splits_output))
            .collect()
    }

    /// Notes that a task runs.
    pub fn begin(&mut self, task: &Task) {
        self.live.begin(&task.inputs);
        self.running += 1;
    }

    /// Notes that a task has failed: its inputs stay.
    pub fn abort(&mut self, task: &Task) {
        self.live.abort(&task.inputs);
        self.running = self.running.saturating_sub(1);
    }

    /// Notes that a task has ended: its outputs replace its inputs.
    pub fn complete(&mut self, task: &Task, outputs: impl IntoIterator<Item = Sstable>) {
        self.running = self.running.saturating_sub(1);
        let removed = task.inputs.iter().filter_map(|&id| self.live.remove(id));
        let removed: Vec<Arc<Sstable>> = removed.collect();
        let added: Vec<Arc<Sstable>> = outputs.into_iter().map(Arc::new).collect();
        for sstable in &added {
            self.live.insert(Arc::clone(sstable));
        }
        let mut changes: BTreeMap<Group, [Vec<Arc<Sstable>>; 2]> = BTreeMap::new();
        for (side, sstables) in [removed, added].into_iter().enumerate() {
            for sstable in sstables {
                let group = changes.entry(self.group_of(&sstable)).or_default();
                group[side].push(sstable);
            }
        }
        for [removed, added] in changes.into_values() {
            let Some(any) = removed.first().or(added.first()) else {
                continue;
            };
            let strategy = self.strategy_for(any);
            if removed.is_empty() {
                added.iter().for_each(|sstable| strategy.add(sstable))
            } else {
                strategy.replace(&removed, &added)
            }
        }
    }

    /// Number of compactions that remain to be done, as the node reports it. Most strategies count when they
    /// are asked for a task; a strategy that was not asked yet reports none.
    pub fn remaining_tasks(&self) -> usize {
        let strategies = self.groups.values();
        strategies.map(|strategy| strategy.remaining_tasks()).sum()
    }

    /// Number of remaining and running compactions: the pending tasks of `nodetool compactionstats`
    /// (`CompactionMetrics.pendingTasks`).
    pub fn pending_tasks(&self) -> usize {
        self.remaining_tasks() + self.running
    }

    /// Level of an SSTable in its strategy.
    pub fn level(&self, id: SstableId) -> Option<u32> {
        let sstable = self.live.get(id)?;
        self.groups.get(&self.group_of(sstable))?.level(sstable)
    }

    /// The groups, and what their strategies are asked with.
    fn groups_at(&mut self, now_ms: i64) -> (&mut Groups, Context<'_>) {
        let context = Context {
            live: &self.live,
            node: &self.node,
            now_ms,
            ties: &mut self.ties,
        };
        (&mut self.groups, context)
    }

    /// Unlike those of repair sessions, the strategies of these groups are there before their SSTables. They
    /// are asked then, and look for expired SSTables, so that the next check is one interval later.
    fn add_permanent_groups(&mut self) {
        for repair in [RepairState::Repaired, RepairState::Unrepaired] {
            self.strategy_of(Group {
                repair,
                directory: 0,
            });
        }
    }

    fn is_empty(&self, group: Group) -> bool {
        // Asked for each task: mostly there are no repaired ones.
        let is_in = |sstable: &Arc<Sstable>| self.group_of(sstable) == group;
        !(self.live.has(group.repair) && self.live.iter().any(is_in))
    }

    fn strategy_for(&mut self, sstable: &Sstable) -> &mut Box<dyn Strategy> {
        self.strategy_of(self.group_of(sstable))
    }

    fn strategy_of(&mut self, group: Group) -> &mut Box<dyn Strategy> {
        self.groups.entry(group).or_insert_with(|| {
            let mut strategy = self.params.new_strategy();
            strategy.start(self.started_ms);
            strategy
        })
    }

    /// Groups to be asked, by remaining compactions, descending. Of the pending sessions of a directory only
    /// the one with the most is asked (`PendingRepairManager.getNextBackgroundTasks`).
    fn groups_by_remaining(&self) -> Vec<Group> {
        let mut best: BTreeMap<(u8, usize), (usize, Group)> = BTreeMap::new();
        for (&group, strategy) in &self.groups {
            let holder = match group.repair {
                RepairState::Transient(_) => 0,
                RepairState::Pending(_) => 1,
                RepairState::Repaired => 2,
                RepairState::Unrepaired => 3,
            };
            let remaining = strategy.remaining_tasks();
            let entry = best.entry((holder, group.directory));
            let entry = entry.or_insert((remaining, group));
            if remaining > entry.0 {
                *entry = (remaining, group);
            }
        }
        let mut order: Vec<(usize, Group)> = best.into_values().collect();
        order.sort_by_key(|(remaining, _)| std::cmp::Reverse(*remaining));
        order.into_iter().map(|(_, group)| group).collect()
    }
}

#[cfg(test)]
mod tests;

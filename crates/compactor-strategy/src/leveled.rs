//! Leveled compaction: each level is larger than the one below, and its SSTables do not overlap.
//!
//! Source: `LeveledCompactionStrategy`, `LeveledManifest`.

mod generations;
mod l0;
mod options;
mod sizes;
mod sizing;
mod starvation;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use options::LeveledOptions;
pub use sizes::{LevelSizes, TOP_LEVEL};
pub use sizing::Sizing;

use generations::Generations;
use sizes::LEVELS;
use starvation::Starvation;

use crate::context::Context;
use crate::live::Live;
use crate::size_tiered::most_interesting;
use crate::sstable::{Sstable, SstableId, total_bytes};
use crate::strategy::Strategy;
use crate::task::{Idle, LevelSplit, Output, Reason, Split, Task, TaskKind};
use crate::token::Position;

/// Number of SSTables in L0 above which they are compacted by size first.
const MAX_COMPACTING_L0: usize = 32;

/// Leveled strategy of a group of SSTables.
#[derive(Clone, Debug)]
pub struct Leveled {
    options: LeveledOptions,
    /// If the number of levels is fixed: how sizes follow the data, and the bytes for which they were computed.
    sizing: Option<(Sizing, u64)>,
    generations: Generations,
    /// Last partition of the SSTable that was last compacted from each level into the next one, after which
    /// the next compaction of the level begins.
    last_compacted: [Option<Position>; LEVELS],
    starvation: Starvation,
    /// SSTables whose tombstones may be worth a compaction, with their level, by the time up to which they are not,
    /// seconds since 1970.
    with_tombstones: BTreeMap<(i64, SstableId), (usize, Arc<Sstable>)>,
}

impl Leveled {
    /// A strategy without SSTables.
    pub fn new(options: LeveledOptions) -> Leveled {
        Leveled {
            options,
            sizing: None,
            generations: Generations::default(),
            last_compacted: Default::default(),
            starvation: Starvation::default(),
            with_tombstones: BTreeMap::new(),
        }
    }

    /// The same with a fixed number of levels, whose sizes follow the data.
    #[must_use]
    pub fn with_sizing(mut self, sizing: Sizing) -> Leveled {
        self.sizing = Some((sizing, 0));
        self
    }

    /// Size of SSTables and limits of levels at present.
    pub fn sizes(&self) -> LevelSizes {
        self.options.sizes
    }

    /// Adjusts the size of SSTables and the limits of levels to the data, if they follow it. SSTables keep their levels.
    fn follow_data(&mut self) {
        let bytes = self.generations.bytes_by_level().iter().sum();
        if let Some((sizing, sized_for)) = &mut self.sizing
            && Sizing::is_outgrown(*sized_for, bytes)
        {
            self.options.sizes = sizing.sizes(bytes);
            *sized_for = bytes;
        }
    }

    /// The compaction with the highest priority (`getCompactionCandidates`).
    fn next_compaction(&mut self, context: &Context<'_>) -> Result<Task, Idle> {
        // If L0 has too many SSTables, reads suffer more from them than from a level that is too large.
        let l0 = self.large_l0(context.live);
        let mut blocked = None;
        let uncompacting = self.uncompacting_bytes(context.live);
        for level in (1..LEVELS).rev() {
            let bytes = uncompacting[level];
            // Nothing moves up from the highest level.
            if level >= self.options.sizes.top() || !self.options.sizes.is_over(level, bytes) {
                continue;
            }
            if let Some(l0) = l0 {
                return Ok(l0);
            }
            if let Some(candidates) = self.candidates_of(level, context.live) {
                let limit = self.options.sizes.max_bytes(level);
                let reason = Reason::LevelOverLimit {
                    level: level as u32,
                    bytes,
                    limit,
                };
                return Ok(self.promote(candidates, reason, context.live));
            }
            blocked.get_or_insert(level as u32);
        }
        self.next_of_l0(context).or(l0).ok_or(match blocked {
            Some(level) => Idle::LevelBlocked { level },
            None => self.idle(),
        })
    }

    fn idle(&self) -> Idle {
        match self.generations.iter().next() {
            None => Idle::NoSstables,
            Some(_) => Idle::LevelsWithinLimits {
                l0: self.generations.level(0).len(),
            },
        }
    }

    fn uncompacting_bytes(&self, live: &Live) -> [u64; LEVELS] {
        let mut bytes = self.generations.bytes_by_level();
        for id in live.compacting() {
            if let Some((level, sstable)) = self.generations.get(id) {
                bytes[level] -= sstable.data_bytes;
            }
        }
        bytes
    }

    /// A compaction of the most interesting size tier of L0, if it has too many SSTables (`getSSTablesForSTCS`).
    fn large_l0(&self, live: &Live) -> Option<Task> {
        let l0 = self.generations.level(0);
        if l0.len() <= MAX_COMPACTING_L0 {
            return None;
        }
        let tiers = self.options.buckets.tiers(&live.available(l0));
        let tier = most_interesting(&tiers, self.options.thresholds)?;
        let reason = Reason::SizeTierInL0 { sstables: l0.len() };
        Some(Task::compact(&tier.sstables, reason, Output::default()))
    }

    /// The next SSTable of a level above L0 with those that it overlaps in the next level, none of which is
    /// suspect or being compacted.
    fn candidates_of(&self, level: usize, live: &Live) -> Option<Vec<Arc<Sstable>>> {
        let is_free = |s: &Arc<Sstable>| live.is_available(s);
        let after = self.last_compacted[level].as_ref();
        self.generations.wrapping(level, after).find_map(|sstable| {
            let (first, last) = (sstable.first.token, sstable.last.token);
            let next = self.generations.overlapping(level + 1, first, last);
            let is_selected = is_free(sstable) && next.iter().all(is_free);
            is_selected.then(|| {
                let mut candidates = vec![Arc::clone(sstable)];
                candidates.extend_from_slice(next);
                candidates
            })
        })
    }

    fn next_of_l0(&self, context: &Context<'_>) -> Option<Task> {
        let max = self.options.thresholds.max;
        let sstable_bytes = self.options.sizes.sstable_bytes();
        let candidates = l0::candidates(&self.generations, context.live, max, sstable_bytes);
        if candidates.is_empty() {
            return None;
        }
        let sstables = candidates.iter().filter(|s| s.level == 0).count();
        let output = self.output(self.next_level(&candidates));
        Some(Task::compact(&candidates, Reason::L0 { sstables }, output))
    }

    /// Moves candidates of a level above L0 to the next one.
    fn promote(&mut self, mut candidates: Vec<Arc<Sstable>>, reason: Reason, live: &Live) -> Task {
        let target = self.next_level(&candidates);
        self.starvation
            .add_starved(target, &mut candidates, &self.generations, live);
        let mut task = Task::compact(&candidates, reason, self.output(target));
        if candidates.len() == 1 && self.options.single_sstable_uplevel {
            task.kind = TaskKind::LevelOnly;
            task.output.split = Split::None;
        }
        task
    }

    /// Level of the outputs (`getNextLevel`).
    fn next_level(&self, candidates: &[Arc<Sstable>]) -> usize {
        // An SSTable whose statistics have a level above the highest counts as one of the highest.
        let levels = candidates
            .iter()
            .map(|sstable| (sstable.level as usize).min(TOP_LEVEL));
        let (min, max) = levels.fold((TOP_LEVEL, 0), |(min, max), level| {
            (min.min(level), max.max(level))
        });
        let is_small = total_bytes(candidates) < self.options.sizes.sstable_bytes();
        match () {
            () if max == 0 && is_small => 0,
            () if min == max => (max + 1).min(self.options.sizes.top()),
            () => max,
        }
    }

    fn output(&self, level: usize) -> Output {
        Output {
            level: level as u32,
            split: Split::MaxBytes(self.options.sizes.sstable_bytes()),
        }
    }

    /// The SSTable with the highest ratio of droppable tombstones in the highest level that has one worth
    /// compacting (`findDroppableSSTable`).
    fn next_for_tombstones(&self, context: &Context<'_>) -> Option<Task> {
        let gc_before_s = context.gc_before_s();
        let options = &self.options.tombstones;
        let mut by_ratio: Vec<(usize, f64, &Arc<Sstable>)> = Vec::new();
        let old_enough = ..=(gc_before_s, SstableId(u64::MAX));
        for (level, sstable) in self.with_tombstones.range(old_enough).map(|(_, at)| at) {
            // With these there may be thousands to look at again and again.
            let is_covered = || self.generations.covers_below(*level, sstable);
            if options.is_refused_if_covered(sstable, gc_before_s) && is_covered() {
                continue;
            }
            by_ratio.push((*level, sstable.tombstones.ratio(gc_before_s), sstable));
        }
        by_ratio.sort_by(|a, b| {
            let by_level = b.0.cmp(&a.0);
            let by_ratio = b.1.total_cmp(&a.1);
            let by_first = a.2.first.cmp(&b.2.first);
            by_level.then(by_ratio).then(by_first)
        });
        let mut available = by_ratio
            .iter()
            .filter(|(_, _, sstable)| context.live.is_available(sstable));
        available.find_map(|(level, _, sstable)| {
            let ratio = options.ratio_worth_dropping(sstable, context)?;
            Some(Task::of_tombstones(sstable, ratio, self.output(*level)))
        })
    }
}

impl Strategy for Leveled {
    fn add(&mut self, sstable: &Arc<Sstable>) {
        self.generations.add(sstable);
        let added = self.generations.get(sstable.id);
        if let Some(after_s) = self.options.tombstones.applies_after_s(sstable)
            && let Some((level, added)) = added
        {
            let added = (level, Arc::clone(added));
            self.with_tombstones.insert((after_s, sstable.id), added);
        }
    }

    fn remove(&mut self, sstable: &Sstable) {
        self.generations.remove(sstable.id);
        if let Some(after_s) = self.options.tombstones.applies_after_s(sstable) {
            self.with_tombstones.remove(&(after_s, sstable.id));
        }
    }

    fn replace(&mut self, removed: &[Arc<Sstable>], added: &[Arc<Sstable>]) {
        let mut lowest: Option<usize> = None;
        for sstable in removed {
            let level = self.generations.level_of(sstable.id);
            let level = level.unwrap_or(sstable.level as usize);
            lowest = Some(lowest.map_or(level, |lowest| lowest.min(level)));
            self.remove(sstable);
        }
        for sstable in added {
            self.add(sstable);
        }
        // Of equal ones the first.
        let newest = added.iter().rev().max_by(|a, b| a.first.cmp(&b.first));
        if let (Some(level), Some(newest)) = (lowest, newest)
            && let Some(last) = self.last_compacted.get_mut(level)
        {
            *last = Some(newest.last.clone());
        }
    }

    /// Compactions of a level go on after the newest SSTable of the next one
    /// (`calculateLastCompactedKeys`).
    fn start(&mut self, _now_ms: i64) {
        for level in 1..LEVELS {
            let newest = self.generations.level(level).iter();
            if let Some(newest) = newest.max_by_key(|sstable| sstable.created_ms) {
                self.last_compacted[level - 1] = Some(newest.last.clone());
            }
        }
        self.follow_data();
    }

    fn next_task(&mut self, context: &mut Context<'_>) -> Result<Task, Idle> {
        self.follow_data();
        self.next_compaction(context)
            .or_else(|idle| self.next_for_tombstones(context).ok_or(idle))
    }

    /// Computed from the levels whenever it is asked for (`getEstimatedTasks`).
    fn remaining_tasks(&self) -> usize {
        let sizes = self.options.sizes;
        let levels = (0..LEVELS).map(|level| match level {
            // The highest level has no limit if the number of levels is fixed.
            level if level >= sizes.top() && level < TOP_LEVEL => 0,
            level => sizes.estimated_tasks(level, self.generations.bytes(level)),
        });
        let (l0, max) = (self.generations.level(0).len(), self.options.thresholds.max);
        let by_size = if l0 > max { l0 / max } else { 0 };
        levels.sum::<usize>() + by_size
    }

    fn major(&self, context: &Context<'_>, _splits_output: bool) -> Vec<Task> {
        let output = Output {
            level: 1,
            split: Split::Levels(LevelSplit {
                sstable_bytes: self.options.sizes.sstable_bytes(),
                fanout: self.options.sizes.fanout(),
                top: self.options.sizes.top() as u32,
            }),
        };
        Task::major(self.generations.iter(), context.live, output)
    }

    fn level(&self, sstable: &Sstable) -> Option<u32> {
        let level = self.generations.level_of(sstable.id);
        level.map(|level| level as u32)
    }
}

#[cfg(test)]
mod tests;

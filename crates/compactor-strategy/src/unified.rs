//! Unified compaction: overlapping SSTables of similar density are compacted together, and the outputs are
//! split by token.
//!
//! Source: `UnifiedCompactionStrategy`.

mod buckets;
mod levels;
mod options;
mod overlaps;
mod scaling;
mod shards;

use std::sync::Arc;

pub use options::UnifiedOptions;
pub use overlaps::Inclusion;
pub use scaling::Scaling;
pub use shards::ShardCount;

use buckets::Level;
use levels::LevelBounds;
use overlaps::overlap_sets;
use shards::split_in_shards;

use crate::context::Context;
use crate::expired::ExpiredCheck;
pub use crate::expired::ExpiryOptions;
use crate::live::Live;
use crate::manager::LONG_AGO;
use crate::ring;
use crate::sstable::{Sstable, SstableId};
use crate::strategy::Strategy;
use crate::task::{Idle, Output, Reason, Shards, Split, Task};
use crate::token::Token;

/// Unified strategy of a group of SSTables.
#[derive(Clone, Debug)]
pub struct Unified {
    options: UnifiedOptions,
    /// In the order of their first partitions.
    members: Vec<Arc<Sstable>>,
    expired: ExpiredCheck,
    /// Size of flushed SSTables by which the levels are bounded, bytes.
    flush_bytes: u64,
    remaining_tasks: usize,
}

/// A selection, and the level that it is from.
struct Pick {
    sstables: Vec<Arc<Sstable>>,
    reason: Reason,
}

impl Unified {
    /// A strategy without SSTables.
    pub fn new(options: UnifiedOptions) -> Unified {
        Unified {
            members: Vec::new(),
            expired: ExpiredCheck {
                options: options.expiry,
                last_ms: 0,
            },
            flush_bytes: options.flush_bytes.unwrap_or(0),
            remaining_tasks: 0,
            options,
        }
    }

    /// SSTables that are neither suspect nor being compacted, in the order of their first partitions.
    fn available(&self, live: &Live) -> Vec<Arc<Sstable>> {
        live.available(&self.members)
    }

    /// Follows the observed size of flushes, once it differs by more than half (`getFlushSizeBytes`).
    fn observe_flushes(&mut self, observed: f64) {
        let is_other = (1.0 - self.flush_bytes as f64 / observed).abs() > 0.5;
        if self.options.flush_bytes.is_none() && (self.flush_bytes == 0 || is_other) {
            let mib = (observed / (1u64 << 20) as f64).ceil();
            self.flush_bytes = (mib as u64) << 20;
        }
    }

    /// SSTables by level; levels between them without any are left out.
    fn levels<'a>(&self, sstables: &'a [Arc<Sstable>]) -> Vec<Level<'a>> {
        let scaling = &self.options.scaling;
        let mut bounds = LevelBounds::new(scaling, self.flush_bytes);
        let mut levels: Vec<Vec<&Arc<Sstable>>> = Vec::new();
        for sstable in sstables {
            let level = bounds.level_of(ring::density(sstable), scaling);
            if levels.len() <= level {
                levels.resize(level + 1, Vec::new());
            }
            levels[level].push(sstable);
        }
        let used = levels
            .into_iter()
            .enumerate()
            .filter(|(_, level)| !level.is_empty());
        used.map(|(index, level)| Level::new(index, level))
            .collect()
    }

    /// Selects from the level with the greatest overlap, of equal ones from the lowest. A level that is
    /// below its threshold is considered as well, and then nothing is selected (`chooseCompactionPick`).
    fn choose(
        &mut self,
        sstables: &[Arc<Sstable>],
        context: &mut Context<'_>,
    ) -> Result<Pick, Idle> {
        self.remaining_tasks = 0;
        let mut overlap = 0;
        let mut has_pick = false;
        let mut selected = Err(Idle::NoSstables);
        for level in self.levels(sstables) {
            let pick = self.pick_of(&level, context);
            has_pick |= pick.is_some();
            if level.overlap > overlap {
                overlap = level.overlap;
                selected = pick.ok_or(Idle::LowOverlap {
                    level: level.index as u32,
                    overlap,
                    threshold: self.options.scaling.threshold(level.index),
                });
            }
        }
        selected.map_err(|idle| match idle {
            Idle::LowOverlap {
                level,
                overlap,
                threshold,
            } if has_pick => Idle::Stalled {
                level,
                overlap,
                threshold,
            },
            idle => idle,
        })
    }

    /// Selects one of the buckets of a level with the greatest overlap, at random.
    fn pick_of(&mut self, level: &Level<'_>, context: &mut Context<'_>) -> Option<Pick> {
        let scaling = &self.options.scaling;
        let threshold = scaling.threshold(level.index);
        let buckets = level.buckets(threshold, self.options.inclusion);
        let tasks = buckets.iter().map(|bucket| bucket.overlap / threshold);
        self.remaining_tasks += tasks.sum::<usize>();
        let greatest: Vec<_> = buckets
            .iter()
            .filter(|b| b.overlap == level.overlap)
            .collect();
        let bucket = match greatest.len() {
            0 => return None,
            count => greatest.get(context.ties.select(count))?,
        };
        Some(Pick {
            sstables: bucket.pick(scaling, self.options.max_sstables),
            reason: Reason::Density {
                level: level.index as u32,
                overlap: level.overlap,
                threshold,
            },
        })
    }

    /// Shards of the output of these SSTables, by their density (`UnifiedCompactionTask`).
    fn output(&self, sstables: &[Arc<Sstable>]) -> Output {
        let shards = self.shards_of(sstables);
        if shards == 1 {
            return Output::default();
        }
        let boundaries = ring::boundaries(shards, ring::tokens(sstables)).collect();
        let boundaries = if self.options.is_parallel {
            self.divided(boundaries, sstables)
        } else {
            boundaries
        };
        Output {
            level: 0,
            split: Split::Shards(Shards {
                is_parallel: self.options.is_parallel,
                boundaries,
            }),
        }
    }

    /// Number of shards of the output of these SSTables.
    fn shards_of(&self, sstables: &[Arc<Sstable>]) -> usize {
        let density = ring::combined_density(sstables);
        self.options.shards.of_density(density)
    }

    /// Boundaries of shards that are compacted concurrently: each is divided once more, by the density of the SSTables
    /// that have some of it (`createParallelCompactionTasks`, `UnifiedCompactionTask.getCompactionAwareWriter`).
    fn divided(&self, boundaries: Vec<Token>, sstables: &[Arc<Sstable>]) -> Vec<Token> {
        let parts = split_in_shards(sstables, &boundaries);
        if parts.len() == 1 {
            return boundaries;
        }
        let mut all = boundaries.clone();
        for (place, members) in parts {
            let mut within = ring::tokens(&members);
            if let Some(before) = place.checked_sub(1) {
                within.start = within.start.max(Token(boundaries[before].0 + 1));
            }
            if let Some(&end) = boundaries.get(place) {
                within.end = within.end.min(end);
            }
            all.extend(ring::boundaries(self.shards_of(&members), within));
        }
        all.sort_unstable();
        all
    }

    /// Groups of a major compaction, none of which has data of another's shards.
    fn major_groups(&self, context: &Context<'_>) -> Vec<Vec<Arc<Sstable>>> {
        if !self.options.has_sharded_major {
            let sound = self.members.iter().filter(|sstable| !sstable.is_suspect);
            let sound: Vec<Arc<Sstable>> = sound.cloned().collect();
            let members: Vec<&Sstable> = sound.iter().map(Arc::as_ref).collect();
            let sets = overlap_sets(&members).into_iter();
            let set = |places: Vec<usize>| {
                let members = places.into_iter().map(|place| Arc::clone(&sound[place]));
                members.collect()
            };
            let mut groups = joined(sets.map(set));
            groups.retain(|group| group.iter().all(|s| !context.live.is_compacting(s.id)));
            return groups;
        }
        let available = self.available(context.live);
        let shards = self.shards_of(&available);
        let boundaries = ring::boundaries(shards, ring::tokens(&available));
        let boundaries: Vec<Token> = boundaries.collect();
        let parts = split_in_shards(&available, &boundaries).into_iter();
        joined(parts.map(|(_, members)| members))
    }
}

/// Joins consecutive sets with a common SSTable (`combineSetsWithCommonElement`).
fn joined(sets: impl Iterator<Item = Vec<Arc<Sstable>>>) -> Vec<Vec<Arc<Sstable>>> {
    let mut groups: Vec<Vec<Arc<Sstable>>> = Vec::new();
    for set in sets {
        let is_in = |group: &[Arc<Sstable>], id: SstableId| group.iter().any(|s| s.id == id);
        match groups.last_mut() {
            Some(group) if set.iter().any(|sstable| is_in(group, sstable.id)) => {
                let new: Vec<_> = set.into_iter().filter(|s| !is_in(group, s.id)).collect();
                group.extend(new);
            }
            _ => groups.push(set),
        }
    }
    groups
}

impl Strategy for Unified {
    fn add(&mut self, sstable: &Arc<Sstable>) {
        let order = |s: &Sstable| (s.first.clone(), s.id);
        let place = self
            .members
            .partition_point(|member| order(member) < order(sstable));
        self.members.insert(place, Arc::clone(sstable));
    }

    fn remove(&mut self, sstable: &Sstable) {
        let start = self
            .members
            .partition_point(|member| member.first < sstable.first);
        let rest = self.members.get(start..).unwrap_or_default();
        if let Some(place) = rest.iter().position(|member| member.id == sstable.id) {
            self.members.remove(start + place);
        }
    }

    /// The first check for expired SSTables is one interval later.
    fn start(&mut self, now_ms: i64) {
        self.expired.last_ms = now_ms;
    }

    fn pass_interval(&mut self) {
        self.expired.last_ms = LONG_AGO;
    }

    fn next_task(&mut self, context: &mut Context<'_>) -> Result<Task, Idle> {
        self.observe_flushes(context.node.flush_bytes);
        let mut available = self.available(context.live);
        let expired = self.expired.expired(&available, context);
        available.retain(|sstable| !expired.contains(&sstable.id));
        let pick = self.choose(&available, context);
        let task = pick.map(|pick| {
            let output = self.output(&pick.sstables);
            Task::compact(&pick.sstables, pick.reason, output)
        });
        Task::with_expired(task, expired)
    }

    fn remaining_tasks(&self) -> usize {
        self.remaining_tasks
    }

    fn major(&self, context: &Context<'_>, _splits_output: bool) -> Vec<Task> {
        let groups = self.major_groups(context).into_iter();
        let task =
            |group: Vec<Arc<Sstable>>| Task::compact(&group, Reason::Major, self.output(&group));
        groups.map(task).collect()
    }

    fn level(&self, sstable: &Sstable) -> Option<u32> {
        let scaling = &self.options.scaling;
        let mut bounds = LevelBounds::new(scaling, self.flush_bytes);
        Some(bounds.level_of(ring::density(sstable), scaling) as u32)
    }
}

#[cfg(test)]
mod tests;

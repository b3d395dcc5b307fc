//! SSTables of the highest level that take part in compactions of lower levels, if it is never compacted
//! itself. Otherwise, what is deleted there would be kept.
//!
//! Source: `LeveledManifest.getOverlappingStarvedSSTables`.

use std::sync::Arc;

use super::generations::Generations;
use super::sizes::LEVELS;
use crate::live::Live;
use crate::sstable::Sstable;
use crate::token::Position;

/// Number of compactions after which a level counts as starved.
const NO_COMPACTION_LIMIT: u32 = 25;

/// Number of compactions since each level was the target of one.
#[derive(Clone, Debug, Default)]
pub(super) struct Starvation {
    since: [u32; LEVELS],
}

impl Starvation {
    /// Counts a compaction of these SSTables into a level, and adds a starved SSTable within their bounds.
    pub(super) fn add_starved(
        &mut self,
        target: usize,
        candidates: &mut Vec<Arc<Sstable>>,
        generations: &Generations,
        live: &Live,
    ) {
        for count in &mut self.since[1..] {
            *count = count.saturating_add(1);
        }
        self.since[target] = 0;
        let highest = generations.highest();
        if highest == 0 || self.since[highest] <= NO_COMPACTION_LIMIT {
            return;
        }
        let Some((first, last)) = bounds(candidates) else {
            return;
        };
        let starved = contained(generations.level(highest), first, last, live);
        if let Some(starved) = starved.filter(|s| !candidates.iter().any(|c| c.id == s.id)) {
            candidates.push(starved);
        }
    }
}

/// First and last partition, unless they are the same.
fn bounds(sstables: &[Arc<Sstable>]) -> Option<(&Position, &Position)> {
    let first = sstables.iter().map(|sstable| &sstable.first).min()?;
    let last = sstables.iter().map(|sstable| &sstable.last).max()?;
    (first != last).then_some((first, last))
}

/// The first SSTable between two partitions that is not being compacted. One of a single partition counts as
/// a range that wraps around the ring, which no other range contains (`Range.contains`).
fn contained(
    level: &[Arc<Sstable>],
    first: &Position,
    last: &Position,
    live: &Live,
) -> Option<Arc<Sstable>> {
    let start = level.partition_point(|sstable| &sstable.first < first);
    let within = level
        .get(start..)?
        .iter()
        .take_while(|sstable| &sstable.last <= last);
    let mut ranges = within.filter(|sstable| sstable.first < sstable.last);
    ranges
        .find(|sstable| !live.is_compacting(sstable.id))
        .cloned()
}

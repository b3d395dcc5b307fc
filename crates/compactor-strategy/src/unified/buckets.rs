//! Selection of a compaction from overlapping SSTables of a level.
//!
//! Source: `UnifiedCompactionStrategy.Level`, `UnifiedCompactionStrategy.Bucket`.

use std::sync::Arc;

use super::overlaps::{Inclusion, OverlapSet, buckets, overlap_sets, within_limit};
use super::scaling::Scaling;
use crate::sstable::Sstable;

/// SSTables of a level, and how they overlap.
#[derive(Debug)]
pub(super) struct Level<'a> {
    /// Number of the level.
    pub(super) index: usize,
    /// In the order of their first partitions.
    pub(super) sstables: Vec<&'a Arc<Sstable>>,
    /// Greatest number of SSTables that cover a partition.
    pub(super) overlap: usize,
    sets: Vec<OverlapSet>,
}

/// Overlapping SSTables that are compacted independently of all others of the level.
#[derive(Debug)]
pub(super) struct Bucket<'l, 'a> {
    level: &'l Level<'a>,
    sets: &'l [OverlapSet],
    /// Greatest number of SSTables that cover a partition.
    pub(super) overlap: usize,
}

impl<'a> Level<'a> {
    /// A level of SSTables in the order of their first partitions.
    pub(super) fn new(index: usize, sstables: Vec<&'a Arc<Sstable>>) -> Level<'a> {
        let members: Vec<&Sstable> = sstables.iter().map(|sstable| sstable.as_ref()).collect();
        let sets = overlap_sets(&members);
        Level {
            index,
            overlap: sets.iter().map(Vec::len).max().unwrap_or(0),
            sstables,
            sets,
        }
    }

    /// Buckets that reach the threshold; none if the level does not.
    pub(super) fn buckets(&self, threshold: usize, inclusion: Inclusion) -> Vec<Bucket<'_, 'a>> {
        if self.overlap < threshold {
            return Vec::new();
        }
        let ranges = buckets(&self.sets, threshold, inclusion).into_iter();
        let bucket = |range: std::ops::Range<usize>| {
            let sets = self.sets.get(range).unwrap_or_default();
            Bucket {
                level: self,
                sets,
                overlap: sets.iter().map(Vec::len).max().unwrap_or(0),
            }
        };
        ranges.map(bucket).collect()
    }
}

impl Bucket<'_, '_> {
    /// SSTables to compact, the oldest first if not all are selected (`constructPick`).
    pub(super) fn pick(&self, scaling: &Scaling, max_sstables: usize) -> Vec<Arc<Sstable>> {
        let level = self.level.index;
        let fanout = scaling.fanout(level);
        let max = max_sstables.max(fanout);
        let next_fanout = scaling.fanout(level + 1);
        match self.overlap {
            overlap if overlap <= fanout => self.newest_first(),
            overlap if overlap <= fanout * next_fanout || max == fanout => {
                if overlap <= max {
                    self.newest_first()
                } else {
                    self.oldest(max)
                }
            }
            // So late that the output belongs to a higher level.
            overlap => self.oldest(layout_size(scaling, level, max.min(overlap))),
        }
    }

    /// All SSTables.
    fn newest_first(&self) -> Vec<Arc<Sstable>> {
        let mut places = self.oldest_first();
        places.reverse();
        self.members(&places)
    }

    /// The oldest SSTables, as many as overlap at most `limit` times.
    fn oldest(&self, limit: usize) -> Vec<Arc<Sstable>> {
        let places = self.oldest_first();
        let selected = within_limit(&places, self.sets, limit);
        if selected.len() == places.len() {
            self.newest_first()
        } else {
            self.members(&selected)
        }
    }

    fn oldest_first(&self) -> Vec<usize> {
        let mut places: Vec<usize> = self.sets.concat();
        places.sort_unstable();
        places.dedup();
        places.sort_by_key(|&place| self.level.sstables[place].max_timestamp);
        places
    }

    fn members(&self, places: &[usize]) -> Vec<Arc<Sstable>> {
        let member = |&place: &usize| Arc::clone(self.level.sstables[place]);
        places.iter().map(member).collect()
    }
}

/// Number of overlapping SSTables whose compaction leaves the data as if no compaction had been late
/// (`selectPickSize`).
pub(super) fn layout_size(scaling: &Scaling, level: usize, limit: usize) -> usize {
    let mut size = scaling.fanout(level);
    let mut above = level + 1;
    let mut next = size.saturating_mul(scaling.fanout(above));
    while next <= limit {
        size = next;
        above += 1;
        next = size.saturating_mul(scaling.fanout(above));
    }
    if scaling.parameter(level) < 0 {
        size * (limit / size)
    } else {
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes of consecutive picks of overlapping SSTables.
    fn picks(parameters: &str, mut count: usize) -> Vec<usize> {
        let scaling = Scaling::parse(parameters).expect("parameters");
        let (fanout, next) = (scaling.fanout(0), scaling.fanout(1));
        let mut picks = Vec::new();
        while count >= scaling.threshold(0) {
            let pick = match count {
                count if count <= fanout * next => count,
                count => layout_size(&scaling, 0, count),
            };
            picks.push(pick);
            count -= pick;
        }
        picks
    }

    /// `UnifiedCompactionStrategy.Bucket.constructPick`: the numbers in its comments.
    #[test]
    fn layouts_of_late_compactions() {
        assert_eq!(picks("2", 55), [16, 16, 16, 7]);
        assert_eq!(picks("-2", 55), [48, 7]);
    }

    /// `UnifiedCompactionStrategyTest.testLayout`: the formula by which it computes what it expects.
    #[test]
    fn layouts_are_products_of_fanouts() {
        for (parameter, count, cap) in [
            (2, 947, 1 << 20),
            (-2, 251, 1 << 20),
            (3, 320, 1 << 20),
            (3, 803, 200),
            (-3, 944, 60),
            (2, 944, 100),
            (0, 77, 1 << 20),
        ] {
            let scaling = Scaling::parse(&parameter.to_string()).expect("a parameter");
            let fanout = scaling.fanout(0);
            let power_up_to = |limit: usize| {
                let mut power = fanout;
                while power * fanout <= limit {
                    power *= fanout;
                }
                power
            };
            let limit = if parameter < 0 {
                cap / power_up_to(cap) * power_up_to(cap)
            } else {
                power_up_to(cap)
            };
            let top = power_up_to(count);
            let expected = if parameter < 0 {
                count / top * top
            } else {
                top
            };
            let found = layout_size(&scaling, 0, count.min(cap));
            assert_eq!(found, expected.min(limit), "{parameter}, {count}, {cap}");
        }
    }
}

//! SSTables by level. Those of a level above L0 do not overlap.
//!
//! Source: `LeveledGenerations`.

use std::collections::HashMap;
use std::sync::Arc;

use super::sizes::LEVELS;
use crate::sstable::{Sstable, SstableId};
use crate::token::{Position, Token};

/// SSTables by level.
#[derive(Clone, Debug, Default)]
pub(super) struct Generations {
    /// L0 by id, every other level by first partition.
    levels: [Vec<Arc<Sstable>>; LEVELS],
    bytes: [u64; LEVELS],
    /// Each SSTable with its level.
    members: HashMap<SstableId, (usize, Arc<Sstable>)>,
}

/// Order of SSTables above L0 (`nonL0Comparator`).
fn order_of(sstable: &Sstable) -> (&Position, SstableId) {
    (&sstable.first, sstable.id)
}

impl Generations {
    /// SSTables of a level, ascending.
    pub(super) fn level(&self, level: usize) -> &[Arc<Sstable>] {
        self.levels.get(level).map_or(&[], Vec::as_slice)
    }

    /// Stored bytes of a level.
    pub(super) fn bytes(&self, level: usize) -> u64 {
        self.bytes.get(level).copied().unwrap_or(0)
    }

    /// Stored bytes of each level.
    pub(super) fn bytes_by_level(&self) -> [u64; LEVELS] {
        self.bytes
    }

    /// Level of an SSTable.
    pub(super) fn level_of(&self, id: SstableId) -> Option<usize> {
        self.get(id).map(|(level, _)| level)
    }

    /// An SSTable and its level.
    pub(super) fn get(&self, id: SstableId) -> Option<(usize, &Arc<Sstable>)> {
        let (level, sstable) = self.members.get(&id)?;
        Some((*level, sstable))
    }

    /// All SSTables, from L0 up.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Sstable>> {
        self.levels.iter().flatten()
    }

    /// Highest level with an SSTable; L0 if there is none.
    pub(super) fn highest(&self) -> usize {
        let is_used = |level: &Vec<Arc<Sstable>>| !level.is_empty();
        self.levels.iter().rposition(is_used).unwrap_or(0)
    }

    /// Adds an SSTable to its level, or to L0 if it would overlap another there.
    pub(super) fn add(&mut self, sstable: &Arc<Sstable>) {
        self.remove(sstable.id);
        let level = (sstable.level as usize).min(LEVELS - 1);
        let place = self.insertion_place(level, sstable);
        match place {
            Some(place) => self.insert(level, place, Arc::clone(sstable)),
            // The level in its statistics is changed as well.
            None => self.add(&Arc::new(Sstable {
                level: 0,
                ..Sstable::clone(sstable)
            })),
        }
    }

    /// Removes an SSTable and returns its level.
    pub(super) fn remove(&mut self, id: SstableId) -> Option<usize> {
        let (level, sstable) = self.members.remove(&id)?;
        let members = &mut self.levels[level];
        let found = match level {
            0 => members.binary_search_by_key(&id, |member| member.id),
            _ => members.binary_search_by(|member| order_of(member).cmp(&order_of(&sstable))),
        };
        if let Ok(place) = found {
            members.remove(place);
            self.bytes[level] -= sstable.data_bytes;
        }
        Some(level)
    }

    /// SSTables of a level above L0 with a partition between two tokens, inclusive.
    pub(super) fn overlapping(&self, level: usize, first: Token, last: Token) -> &[Arc<Sstable>] {
        let members = self.level(level);
        // As they do not overlap, they are also in the order of their last partitions.
        let start = members.partition_point(|member| member.last.token < first);
        let end = members.partition_point(|member| member.first.token <= last);
        members.get(start..end).unwrap_or_default()
    }

    /// Whether an SSTable of a lower level has all tokens of an SSTable.
    pub(super) fn covers_below(&self, level: usize, sstable: &Sstable) -> bool {
        let (first, last) = (sstable.first.token, sstable.last.token);
        let covers = |other: &Arc<Sstable>| other.first.token <= first && last <= other.last.token;
        (1..level).any(|below| {
            self.overlapping(below, first, last)
                .first()
                .is_some_and(covers)
        }) || (level > 0 && self.level(0).iter().any(covers))
    }

    /// SSTables of a level above L0 from the first one that begins after a position, and then the others
    /// from the start (`wrappingIterator`).
    pub(super) fn wrapping(
        &self,
        level: usize,
        after: Option<&Position>,
    ) -> impl Iterator<Item = &Arc<Sstable>> {
        let members = self.level(level);
        let pivot = after.map_or(0, |after| {
            members.partition_point(|member| &member.first <= after)
        });
        let (before, from) = members.split_at(pivot);
        from.iter().chain(before)
    }

    /// Where to insert an SSTable into its level; `None` if it would overlap a neighbour.
    fn insertion_place(&self, level: usize, sstable: &Sstable) -> Option<usize> {
        let members = self.level(level);
        if level == 0 {
            return Some(members.partition_point(|member| member.id < sstable.id));
        }
        let place = members.partition_point(|member| order_of(member) < order_of(sstable));
        let before = place.checked_sub(1).and_then(|before| members.get(before));
        let overlaps_before = before.is_some_and(|before| before.last >= sstable.first);
        let after = members.get(place);
        let overlaps_after = after.is_some_and(|after| after.first <= sstable.last);
        (!overlaps_before && !overlaps_after).then_some(place)
    }

    fn insert(&mut self, level: usize, place: usize, sstable: Arc<Sstable>) {
        self.bytes[level] += sstable.data_bytes;
        let member = (level, Arc::clone(&sstable));
        self.members.insert(sstable.id, member);
        self.levels[level].insert(place, sstable);
    }
}

/// SSTables with a partition between the first and the last token of all given ones
/// (`LeveledManifest.overlapping`).
pub(super) fn span_of(sstables: &[Arc<Sstable>]) -> Option<(Token, Token)> {
    let first = sstables.iter().map(|sstable| sstable.first.token).min()?;
    let last = sstables.iter().map(|sstable| sstable.last.token).max()?;
    Some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generations(bounds: &[(i128, i128)]) -> Generations {
        let mut generations = Generations::default();
        for (id, (first, last)) in bounds.iter().enumerate() {
            generations.add(&at_level(1, id as u64, *first, *last));
        }
        generations
    }

    fn at_level(level: u32, id: u64, first: i128, last: i128) -> Arc<Sstable> {
        Arc::new(Sstable {
            level,
            ..Sstable::new(SstableId(id), 10, Token(first), Token(last))
        })
    }

    /// First tokens in the order of a round after an SSTable that ends there.
    fn round(generations: &Generations, after: i128) -> Vec<i128> {
        let after = Position::from(Token(after));
        let round = generations.wrapping(1, Some(&after));
        round.map(|sstable| sstable.first.token.0).collect()
    }

    /// `LeveledGenerationsTest.testWrappingIterable`.
    #[test]
    fn a_round_begins_after_the_last_compacted() {
        let singles: Vec<(i128, i128)> = (0..10).map(|token| (token, token)).collect();
        let generations = generations(&singles);
        assert_eq!(round(&generations, 5), [6, 7, 8, 9, 0, 1, 2, 3, 4, 5]);
        let from_start: Vec<i128> = (0..10).collect();
        assert_eq!(round(&generations, 9), from_start);
        assert_eq!(round(&generations, 1000), from_start);
        assert_eq!(round(&generations, 0), [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]);
        let without = generations.wrapping(1, None);
        assert_eq!(without.count(), 10);
    }

    /// `LeveledGenerationsTest.testWrappingIterableWiderSSTables`.
    #[test]
    fn a_round_of_wide_sstables() {
        let generations = generations(&[(0, 50), (51, 100), (150, 200)]);
        assert_eq!(round(&generations, 51), [150, 0, 51]);
        assert_eq!(round(&generations, 300), [0, 51, 150]);
    }

    #[test]
    fn sstables_that_overlap_their_level_are_put_into_l0() {
        let mut generations = generations(&[(0, 50), (60, 100)]);
        generations.add(&at_level(1, 7, 50, 55));
        generations.add(&at_level(1, 8, 51, 59));
        generations.add(&at_level(1, 9, 55, 60));
        assert_eq!(generations.level_of(SstableId(7)), Some(0));
        assert_eq!(generations.level_of(SstableId(8)), Some(1));
        assert_eq!(generations.level_of(SstableId(9)), Some(0));
        assert!(
            generations
                .level(0)
                .iter()
                .all(|sstable| sstable.level == 0)
        );
        assert_eq!((generations.bytes(0), generations.bytes(1)), (20, 30));
        assert_eq!(generations.remove(SstableId(8)), Some(1));
        assert_eq!(generations.remove(SstableId(8)), None);
        assert_eq!(generations.bytes(1), 20);
    }

    #[test]
    fn overlaps_include_both_ends() {
        let generations = generations(&[(0, 10), (20, 30), (40, 50)]);
        let found = |first, last| {
            let found = generations.overlapping(1, Token(first), Token(last));
            found.iter().map(|sstable| sstable.id.0).collect::<Vec<_>>()
        };
        assert_eq!(found(10, 20), [0, 1]);
        assert_eq!(found(11, 19), []);
        assert_eq!(found(-5, 100), [0, 1, 2]);
        assert_eq!(found(30, 39), [1]);
    }
}

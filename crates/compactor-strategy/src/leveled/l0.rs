//! Selection of SSTables of L0, and of those that they overlap in L1.
//!
//! Source: `LeveledManifest.getCandidatesFor(0)`.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::generations::{Generations, span_of};
use crate::live::Live;
use crate::sstable::{Sstable, SstableId, total_bytes};
use crate::token::{Token, has_overlap, joined};

/// Inputs of the next compaction of L0. Empty if there are fewer than two, or if they overlap SSTables that
/// are being compacted. `max`: the maximum number of SSTables of L0 (`max_threshold`); `sstable_bytes`: bytes above
/// which they are merged with L1.
pub(super) fn candidates(
    generations: &Generations,
    live: &Live,
    max: usize,
    sstable_bytes: u64,
) -> Vec<Arc<Sstable>> {
    let l0 = generations.level(0);
    let compacting = l0.iter().filter(|sstable| live.is_compacting(sstable.id));
    let compacting: Vec<Arc<Sstable>> = compacting.cloned().collect();
    let mut candidates = oldest_groups(l0, &compacting, max);
    if total_bytes(&candidates) > sstable_bytes {
        let Some(l1) = free_l1(generations, live, &candidates, &compacting) else {
            return Vec::new();
        };
        candidates.extend(l1);
    }
    match candidates.len() {
        0 | 1 => Vec::new(),
        _ => candidates,
    }
}

/// The oldest SSTables, each with those that overlap it. Left out are those with a partition between the first and the
/// last token being compacted, and groups with a member being compacted.
fn oldest_groups(
    l0: &[Arc<Sstable>],
    compacting: &[Arc<Sstable>],
    max: usize,
) -> Vec<Arc<Sstable>> {
    let span = span_of(compacting);
    let sound = compacting.iter().filter(|sstable| !sstable.is_suspect);
    let busy = joined(sound.map(|sstable| (sstable.first.token, sstable.last.token)));
    let mut by_age: Vec<&Arc<Sstable>> = l0.iter().filter(|s| !s.is_suspect).collect();
    by_age.sort_by_key(|sstable| sstable.max_timestamp);
    let is_free = |sstable: &&Arc<Sstable>| !is_within(sstable, span);
    let mut remaining: Vec<&Arc<Sstable>> = by_age.iter().copied().filter(is_free).collect();
    let mut candidates: Vec<Arc<Sstable>> = Vec::new();
    let mut chosen: BTreeSet<SstableId> = BTreeSet::new();
    for sstable in by_age {
        let (first, last) = (sstable.first.token, sstable.last.token);
        // Between those tokens it overlaps nothing that remains.
        let is_enclosed = span.is_some_and(|span| span.0 <= first && last <= span.1);
        if is_enclosed || chosen.contains(&sstable.id) || has_overlap(&busy, &first, &last) {
            continue;
        }
        let group = remaining.extract_if(.., |other| other.overlaps_tokens(sstable));
        for member in group {
            chosen.insert(member.id);
            candidates.push(Arc::clone(member));
        }
        if candidates.len() > max {
            candidates.sort_by_key(|candidate| candidate.max_timestamp);
            candidates.truncate(max);
            break;
        }
    }
    candidates
}

/// SSTables of L1 between the first and the last token of the candidates; `None` if one of them, or one of
/// L0 there, is being compacted. Suspect ones are included: most of L0 overlaps each of L1, so without them
/// nothing would be compacted.
fn free_l1(
    generations: &Generations,
    live: &Live,
    candidates: &[Arc<Sstable>],
    compacting: &[Arc<Sstable>],
) -> Option<Vec<Arc<Sstable>>> {
    let (first, last) = span_of(candidates)?;
    let l1 = generations.overlapping(1, first, last);
    let is_busy = l1.iter().any(|sstable| live.is_compacting(sstable.id))
        || compacting
            .iter()
            .any(|sstable| is_within(sstable, Some((first, last))));
    (!is_busy).then(|| l1.to_vec())
}

/// Whether an SSTable has a partition between two tokens, inclusive.
fn is_within(sstable: &Sstable, span: Option<(Token, Token)>) -> bool {
    span.is_some_and(|(first, last)| sstable.first.token <= last && first <= sstable.last.token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(id: u64, first: i128, last: i128) -> Arc<Sstable> {
        Arc::new(Sstable {
            // Several of each age.
            max_timestamp: (id * 7 % 13) as i64,
            is_suspect: id % 11 == 3,
            ..Sstable::new(SstableId(id), 1, Token(first), Token(last))
        })
    }

    fn ids(sstables: &[Arc<Sstable>]) -> Vec<u64> {
        sstables.iter().map(|sstable| sstable.id.0).collect()
    }

    /// As Cassandra does it: each SSTable is compared with all others, and these with all that are being compacted.
    fn by_comparison(
        l0: &[Arc<Sstable>],
        compacting: &[Arc<Sstable>],
        max: usize,
    ) -> Vec<Arc<Sstable>> {
        let mut by_age = l0.to_vec();
        by_age.retain(|sstable| !sstable.is_suspect);
        by_age.sort_by_key(|sstable| sstable.max_timestamp);
        let mut remaining = by_age.clone();
        let mut candidates: Vec<Arc<Sstable>> = Vec::new();
        for sstable in by_age {
            let is_member =
                |other: &Arc<Sstable>| other.id == sstable.id || other.overlaps_tokens(&sstable);
            let group = || remaining.iter().filter(|other| is_member(other));
            if candidates.contains(&sstable)
                || compacting.contains(&sstable)
                || group().any(|member| compacting.contains(member))
            {
                continue;
            }
            let is_free = |member: &&Arc<Sstable>| !is_within(member, span_of(compacting));
            candidates.extend(group().filter(is_free).cloned());
            remaining.retain(|other| !is_member(other));
            if candidates.len() > max {
                candidates.sort_by_key(|candidate| candidate.max_timestamp);
                candidates.truncate(max);
                break;
            }
        }
        candidates
    }

    #[test]
    fn groups_are_those_of_a_comparison_of_all() {
        let mut state = 1u64;
        let mut below = |bound: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % bound
        };
        let mut selected = 0;
        for round in 0..2000 {
            let width = 1 + below(40);
            let mut one = |id| {
                let first = i128::from(below(300));
                at(id, first, first + i128::from(below(width)))
            };
            let l0: Vec<_> = (0..40).map(&mut one).collect();
            let share = 2 + below(30);
            let mut compacting = l0.clone();
            compacting.retain(|_| below(share) == 0);
            let max = 1 + below(20) as usize;
            let expected = ids(&by_comparison(&l0, &compacting, max));
            let found = ids(&oldest_groups(&l0, &compacting, max));
            assert_eq!(found, expected, "round {round}");
            selected += usize::from(!found.is_empty() && !compacting.is_empty());
        }
        assert!(selected > 500, "{selected}");
    }

    /// Comparing all of them would take minutes.
    #[test]
    fn thousands_are_grouped_at_once() {
        let l0: Vec<_> = (0..40_000).map(|id| at(id, 0, 9)).collect();
        assert_eq!(oldest_groups(&l0, &l0[..20_000], 32).len(), 0);
        let apart: Vec<_> = (0..40_000)
            .map(|id| at(id, i128::from(id), i128::from(id)))
            .collect();
        let (busy, free) = apart.split_at(20_000);
        let ends = [Arc::clone(&busy[0]), Arc::clone(&busy[19_999])];
        let oldest = oldest_groups(&apart, &ends, 32);
        assert_eq!(oldest.len(), 32);
        assert!(oldest.iter().all(|sstable| free.contains(sstable)));
    }
}

//! Selection of SSTables of L0, and of those that they overlap in L1.
//!
//! Source: `LeveledManifest.getCandidatesFor(0)`.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::generations::{Generations, span_of};
use crate::live::Live;
use crate::sstable::{Sstable, SstableId, total_bytes};
use crate::token::Token;

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

/// The oldest SSTables, each with those that overlap it and were not considered before.
fn oldest_groups(
    l0: &[Arc<Sstable>],
    compacting: &[Arc<Sstable>],
    max: usize,
) -> Vec<Arc<Sstable>> {
    let busy = span_of(compacting);
    let mut by_age: Vec<&Arc<Sstable>> = l0.iter().filter(|s| !s.is_suspect).collect();
    by_age.sort_by_key(|sstable| sstable.max_timestamp);
    let mut remaining = by_age.clone();
    let mut candidates: Vec<Arc<Sstable>> = Vec::new();
    let mut chosen: BTreeSet<SstableId> = BTreeSet::new();
    for sstable in by_age {
        if chosen.contains(&sstable.id) {
            continue;
        }
        let is_member =
            |other: &&Arc<Sstable>| other.id == sstable.id || other.overlaps_tokens(sstable);
        let mut group: Vec<&Arc<Sstable>> = remaining.iter().copied().filter(is_member).collect();
        if !group.iter().any(|member| member.id == sstable.id) {
            // An earlier group had it, but did not take it, as it overlaps what is being compacted.
            group.push(sstable);
        }
        let is_busy = |member: &&Arc<Sstable>| compacting.iter().any(|s| s.id == member.id);
        if group.iter().any(is_busy) {
            continue;
        }
        remaining.retain(|other| !is_member(other));
        for member in group {
            if !is_within(member, busy) && chosen.insert(member.id) {
                candidates.push(Arc::clone(member));
            }
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

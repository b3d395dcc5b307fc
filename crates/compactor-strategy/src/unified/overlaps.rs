//! Sets of SSTables that cover a common partition, and groups of such sets.
//!
//! Source: `utils.Overlaps`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use crate::sstable::Sstable;
use crate::token::Position;

/// Neighbours that are compacted with overlapping SSTables, parsed by their names in Cassandra.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "UPPERCASE")]
pub enum Inclusion {
    /// None.
    None,
    /// SSTables in a set with one of the overlapping SSTables.
    Single,
    /// These SSTables, their neighbours, and so on.
    Transitive,
}

/// Places of SSTables that all cover a common partition, ascending.
pub(super) type OverlapSet = Vec<usize>;

/// The largest sets of SSTables that overlap in a common partition, in the order of the ring
/// (`constructOverlapSets`). `sstables` are in the order of their first partitions.
pub(super) fn overlap_sets(sstables: &[&Sstable]) -> Vec<OverlapSet> {
    let mut sets = Vec::new();
    // By last partition.
    let mut active: BinaryHeap<Reverse<(&Position, usize)>> = BinaryHeap::new();
    for (place, sstable) in sstables.iter().enumerate() {
        let ends_before = |active: &BinaryHeap<Reverse<(&Position, usize)>>| match active.peek() {
            Some(Reverse((last, _))) => sstable.first > **last,
            None => false,
        };
        if ends_before(&active) {
            sets.push(places(&active));
            while ends_before(&active) {
                active.pop();
            }
        }
        active.push(Reverse((&sstable.last, place)));
    }
    if !active.is_empty() {
        sets.push(places(&active));
    }
    sets
}

fn places(active: &BinaryHeap<Reverse<(&Position, usize)>>) -> OverlapSet {
    let mut places: OverlapSet = active.iter().map(|Reverse((_, place))| *place).collect();
    places.sort_unstable();
    places
}

/// Ranges of sets that are compacted together: each around a set of at least `threshold` SSTables
/// (`assignOverlapsIntoBuckets`).
pub(super) fn buckets(
    sets: &[OverlapSet],
    threshold: usize,
    inclusion: Inclusion,
) -> Vec<Range<usize>> {
    let mut buckets: Vec<Range<usize>> = Vec::new();
    let mut place = 0;
    while let Some(set) = sets.get(place) {
        if set.len() < threshold {
            place += 1;
            continue;
        }
        let free = buckets.last().map_or(0, |before| before.end);
        let mut included = set.clone();
        let before = sets.get(free..place).unwrap_or_default().iter().rev();
        let start = place - neighbours(before, set, &mut included, inclusion);
        let after = sets.get(place + 1..).unwrap_or_default().iter();
        let end = place + 1 + neighbours(after, set, &mut included, inclusion);
        buckets.push(start..end);
        place = end;
    }
    buckets
}

/// Number of neighbouring sets, from the next one on, that are included. Adds their SSTables.
fn neighbours<'a>(
    sets: impl Iterator<Item = &'a OverlapSet>,
    set: &OverlapSet,
    included: &mut OverlapSet,
    inclusion: Inclusion,
) -> usize {
    let mut count = 0;
    for next in sets {
        let is_included = match inclusion {
            Inclusion::None => false,
            Inclusion::Single => intersect(next, set),
            Inclusion::Transitive => intersect(next, included),
        };
        if !is_included {
            break;
        }
        included.extend(next);
        included.sort_unstable();
        included.dedup();
        count += 1;
    }
    count
}

/// Whether two ascending lists have a common member.
fn intersect(one: &OverlapSet, other: &OverlapSet) -> bool {
    one.iter().any(|place| other.binary_search(place).is_ok())
}

/// SSTables from the front of a list, until the next one would be more than the `limit` of a set
/// (`pullLastWithOverlapLimit`).
pub(super) fn within_limit(list: &[usize], sets: &[OverlapSet], limit: usize) -> Vec<usize> {
    let mut selected = vec![0; sets.len()];
    let fits = |place: &&usize| {
        let mut in_sets = sets.iter().zip(&mut selected);
        in_sets.all(|(set, count)| {
            *count += usize::from(set.binary_search(place).is_ok());
            *count <= limit
        })
    };
    list.iter().take_while(fits).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sstable::SstableId;
    use crate::token::Token;

    /// Sets of letters, as in `OverlapsTest`.
    fn sets(words: &[&str]) -> Vec<OverlapSet> {
        let set = |word: &&str| {
            word.bytes()
                .map(|letter| usize::from(letter - b'A'))
                .collect()
        };
        words.iter().map(set).collect()
    }

    fn word(places: &[usize]) -> String {
        let mut letters: Vec<u8> = places.iter().map(|place| b'A' + *place as u8).collect();
        letters.sort_unstable();
        letters.dedup();
        String::from_utf8(letters).expect("letters")
    }

    fn buckets_of(words: &[&str], inclusion: Inclusion) -> Vec<String> {
        let sets = sets(words);
        let buckets = buckets(&sets, 3, inclusion).into_iter();
        buckets.map(|bucket| word(&sets[bucket].concat())).collect()
    }

    /// `OverlapsTest.testAssignOverlapsIntoBuckets`.
    #[test]
    fn neighbours_by_inclusion() {
        let words = ["ABCD", "ADE", "EF", "HI", "LN", "NO", "NPQ", "RST"];
        let of = |inclusion| buckets_of(&words, inclusion);
        assert_eq!(of(Inclusion::None), ["ABCD", "ADE", "NPQ", "RST"]);
        assert_eq!(of(Inclusion::Single), ["ABCDE", "LNOPQ", "RST"]);
        assert_eq!(of(Inclusion::Transitive), ["ABCDEF", "LNOPQ", "RST"]);
    }

    /// `OverlapsTest.testPullLastWithOverlapLimit`.
    #[test]
    fn limits_count_overlap() {
        let pull = |words: &[&str], limit, letters: &str| {
            let list: Vec<usize> = letters
                .bytes()
                .map(|letter| usize::from(letter - b'A'))
                .collect();
            word(&within_limit(&list, &sets(words), limit))
        };
        assert_eq!(pull(&["ACD", "BCD"], 3, "ABCD"), "ABCD");
        assert_eq!(pull(&["ACD", "BCD"], 2, "ABCD"), "ABC");
        assert_eq!(pull(&["CDE", "BCD"], 2, "BCDE"), "BC");
    }

    /// The example of `UnifiedCompactionStrategy.md`, whose ends are exclusive.
    #[test]
    fn sets_of_overlapping_sstables() {
        let at = |id, first, last| Sstable::new(SstableId(id), 1, Token(first), Token(last));
        let named = [("A", 0, 2), ("D", 1, 7), ("B", 2, 6), ("C", 6, 8)];
        let sstables: Vec<Sstable> = named
            .iter()
            .map(|(_, first, last)| at(1, *first, *last))
            .collect();
        let sstables: Vec<&Sstable> = sstables.iter().collect();
        let sets = overlap_sets(&sstables);
        let names = |set: &OverlapSet| set.iter().map(|place| named[*place].0).collect::<String>();
        let found: Vec<String> = sets.iter().map(names).collect();
        assert_eq!(found, ["ADB", "DBC"]);
        assert!(overlap_sets(&[]).is_empty());
    }
}

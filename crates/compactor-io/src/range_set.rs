//! Sets of byte ranges that have been read or written, in any order.

use std::collections::BTreeMap;

/// Maximum number of separate ranges. Beyond it the set becomes one range from the first to the last: its
/// memory is bounded at the cost of precision.
const RANGES_MAX: usize = 4096;

/// A union of half-open byte ranges, kept merged.
#[derive(Debug, Default, Clone)]
pub(crate) struct RangeSet {
    /// Start to end; neither overlapping nor touching.
    ranges: BTreeMap<u64, u64>,
}

impl RangeSet {
    /// Adds `start..end`; nothing if it is empty.
    pub(crate) fn insert(&mut self, mut start: u64, mut end: u64) {
        if start >= end {
            return;
        }
        // From the right: every range that starts at or before the new end and ends at or after the new start
        // is merged into the new one.
        while let Some((&other_start, &other_end)) = self.ranges.range(..=end).next_back() {
            if other_end < start {
                break;
            }
            self.ranges.remove(&other_start);
            start = start.min(other_start);
            end = end.max(other_end);
        }
        self.ranges.insert(start, end);
        if self.ranges.len() > RANGES_MAX {
            self.fold();
        }
    }

    fn fold(&mut self) {
        let first = self.ranges.first_key_value().map(|(&start, _)| start);
        let last = self.ranges.last_key_value().map(|(_, &end)| end);
        if let (Some(first), Some(last)) = (first, last) {
            self.ranges = BTreeMap::from([(first, last)]);
        }
    }

    /// The end of the range that starts at 0, or 0.
    pub(crate) fn contiguous_from_zero(&self) -> u64 {
        self.ranges.get(&0).copied().unwrap_or(0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges in order, as (start, end).
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ranges.iter().map(|(&start, &end)| (start, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_exactly_overlapping_and_adjacent_ranges() {
        // Compared with a flag per byte, over a fixed pseudo-random sequence.
        let mut state = 12345u32;
        let mut next = move |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            u64::from((state >> 16) % below)
        };
        for _ in 0..200 {
            let mut set = RangeSet::default();
            let mut bytes = [false; 64];
            for _ in 0..next(12) {
                let start = next(60);
                let end = start + next(8).min(63 - start);
                set.insert(start, end);
                bytes[start as usize..end as usize].fill(true);
            }
            let expected: Vec<(u64, u64)> = bytes
                .iter()
                .enumerate()
                .filter(|&(i, &inside)| inside && (i == 0 || !bytes[i - 1]))
                .map(|(i, _)| {
                    let len = bytes[i..].iter().take_while(|&&inside| inside).count();
                    (i as u64, (i + len) as u64)
                })
                .collect();
            assert_eq!(set.iter().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn too_many_ranges_become_one() {
        let mut set = RangeSet::default();
        for i in 0..=RANGES_MAX as u64 {
            set.insert(i * 10, i * 10 + 1);
        }
        assert_eq!(
            set.iter().collect::<Vec<_>>(),
            [(0, RANGES_MAX as u64 * 10 + 1)]
        );
    }
}

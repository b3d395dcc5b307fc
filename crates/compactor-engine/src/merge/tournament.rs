//! Tournament tree over sorted inputs that finds the least input and those tied with it.
//!
//! A match is one comparison and its outcome is stored, ties included. Advancing one input therefore costs
//! one comparison per level, and finding *all* inputs at the same position costs none.
//!
//! A loser tree costs the same per step but can only replay from the leaf that just won. Here a whole group
//! of equal inputs is consumed and then re-entered, so winners are stored instead.

use std::cmp::Ordering;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Match {
    /// Least leaf below this node, or [`NONE`].
    winner: u32,
    /// Whether both sides are equal.
    is_tie: bool,
}

/// A complete binary tree of matches between `len` contestants.
#[derive(Clone, Debug, Default)]
pub struct Tournament {
    /// Number of leaves, a power of two.
    width: usize,
    /// Node 1 is the final; the children of node `i` are `2i` and `2i + 1`.
    matches: Vec<Match>,
    /// Number of contestants.
    len: usize,
    /// Reused list of nodes to play.
    nodes: Vec<usize>,
}

impl Tournament {
    /// Initializes contestants `0..len` and plays every match.
    pub fn start(&mut self, len: usize, mut compare: impl FnMut(u32, u32) -> Ordering) {
        self.width = len.next_power_of_two().max(1);
        self.len = len;
        self.matches.clear();
        self.matches.resize(
            self.width,
            Match {
                winner: NONE,
                is_tie: false,
            },
        );
        for node in (1..self.width).rev() {
            self.play(node, &mut compare);
        }
    }

    /// Replays the matches of these contestants, in ascending order, after their positions changed: each
    /// match once, even if several of them meet in it.
    #[inline]
    pub fn replay(
        &mut self,
        contestants: impl IntoIterator<Item = u32>,
        mut compare: impl FnMut(u32, u32) -> Ordering,
    ) {
        let mut nodes = std::mem::take(&mut self.nodes);
        let first_matches = contestants
            .into_iter()
            .map(|contestant| (self.width + contestant as usize) / 2);
        nodes.clear();
        nodes.extend(first_matches);
        // All are on the same level, as the width is a power of two.
        while nodes.first().is_some_and(|node| *node >= 1) {
            nodes.dedup();
            for node in &mut nodes {
                self.play(*node, &mut compare);
                *node /= 2;
            }
        }
        self.nodes = nodes;
    }

    /// Replays the matches of this contestant after its position changed.
    #[inline]
    pub fn replay_one(&mut self, contestant: u32, mut compare: impl FnMut(u32, u32) -> Ordering) {
        let mut node = (self.width + contestant as usize) / 2;
        while node >= 1 {
            self.play(node, &mut compare);
            node /= 2;
        }
    }

    /// Returns the least contestant if no other is equal to it.
    #[inline]
    pub fn only_winner(&self) -> Option<u32> {
        let mut node = 1;
        while node < self.width {
            let Match { winner, is_tie } = self.matches[node];
            if is_tie || winner == NONE {
                return None;
            }
            node *= 2;
            node += usize::from(self.entrant(node) != winner);
        }
        let winner = self.entrant(node);
        (winner != NONE).then_some(winner)
    }

    /// Appends the least contestants, all equal to one another, in ascending order; none if there are no
    /// contestants.
    #[inline]
    pub fn winners(&self, out: &mut Vec<u32>) {
        if self.width == 1 {
            if self.len > 0 {
                out.push(0);
            }
            return;
        }
        self.collect(1, out);
    }

    /// Returns candidates for the second place: the least contestant other than `winner`, the only winner, is
    /// among them.
    #[inline]
    pub fn rivals(&self, winner: u32) -> impl Iterator<Item = u32> {
        let mut node = self.width + winner as usize;
        std::iter::from_fn(move || {
            let sibling = (node > 1).then_some(node ^ 1)?;
            node /= 2;
            Some(self.entrant(sibling))
        })
        .filter(|rival| *rival != NONE)
    }

    #[inline]
    fn entrant(&self, node: usize) -> u32 {
        if node < self.width {
            return self.matches[node].winner;
        }
        let leaf = node - self.width;
        if leaf < self.len { leaf as u32 } else { NONE }
    }

    #[inline]
    fn play(&mut self, node: usize, compare: &mut impl FnMut(u32, u32) -> Ordering) {
        let left = self.entrant(2 * node);
        let right = self.entrant(2 * node + 1);
        self.matches[node] = if right == NONE {
            Match {
                winner: left,
                is_tie: false,
            }
        } else {
            match compare(left, right) {
                Ordering::Less => Match {
                    winner: left,
                    is_tie: false,
                },
                Ordering::Greater => Match {
                    winner: right,
                    is_tie: false,
                },
                Ordering::Equal => Match {
                    winner: left,
                    is_tie: true,
                },
            }
        };
    }

    fn collect(&self, node: usize, out: &mut Vec<u32>) {
        if node >= self.width {
            out.push((node - self.width) as u32);
            return;
        }
        let Match { winner, is_tie } = self.matches[node];
        if winner == NONE {
            return;
        }
        if is_tie {
            self.collect(2 * node, out);
            self.collect(2 * node + 1, out);
        } else if self.entrant(2 * node) == winner {
            self.collect(2 * node, out);
        } else {
            self.collect(2 * node + 1, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge(inputs: &[Vec<u32>]) -> Vec<(u32, Vec<u32>)> {
        let mut at = vec![0usize; inputs.len()];
        let mut tree = Tournament::default();
        // Inputs at their end come last.
        let value = |at: &[usize], i: u32| inputs[i as usize].get(at[i as usize]).copied();
        let order = |at: &[usize], a: u32, b: u32| {
            let key = |i| value(at, i).map_or((true, 0), |value| (false, value));
            key(a).cmp(&key(b))
        };
        tree.start(inputs.len(), |a, b| order(&at, a, b));
        let mut out = Vec::new();
        loop {
            let mut group = Vec::new();
            tree.winners(&mut group);
            let Some(first) = group.first() else { break };
            let Some(least) = value(&at, *first) else {
                break;
            };
            let is_single = group.len() == 1;
            assert_eq!(tree.only_winner(), is_single.then_some(*first));
            if is_single {
                let value = |i: u32| value(&at, i);
                let others = (0..inputs.len() as u32).filter(|i| i != first);
                let least = others.filter_map(value).min();
                assert_eq!(tree.rivals(*first).filter_map(value).min(), least);
            }
            out.push((least, group.clone()));
            for &member in &group {
                at[member as usize] += 1;
            }
            let mut matches = 0;
            let play = |a, b| {
                matches += 1;
                order(&at, a, b)
            };
            match group[..] {
                [only] => tree.replay_one(only, play),
                _ => tree.replay(group.iter().copied(), play),
            }
            assert!(matches < inputs.len(), "a match was played twice");
        }
        out
    }

    proptest::proptest! {
        #[test]
        fn merges_like_a_sorted_map(
            inputs in proptest::collection::vec(
                proptest::collection::btree_set(0u32..60, 0..20), 0..9)
        ) {
            let inputs: Vec<Vec<u32>> =
                inputs.into_iter().map(|set| set.into_iter().collect()).collect();
            let mut expected = std::collections::BTreeMap::<u32, Vec<u32>>::new();
            for (index, input) in inputs.iter().enumerate() {
                for value in input {
                    expected.entry(*value).or_default().push(index as u32);
                }
            }
            let expected: Vec<_> = expected.into_iter().collect();
            proptest::prop_assert_eq!(merge(&inputs), expected);
        }
    }
}

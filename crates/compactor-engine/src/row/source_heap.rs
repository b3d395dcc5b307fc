//! Order in which Cassandra's merges visit sources at equal positions.
//!
//! Of equal clusterings the last one visited determines the bytes, of equal cells the first one. The order is
//! that of a heap and depends on earlier positions of each source, so the heap is reproduced here operation
//! by operation. The first five nodes are a sorted list, the last of which is the root of a binary heap; each
//! node records whether it is equal to its parent.
//!
//! Source: `MergeIterator.ManyToOne`, the same from 4.1 to 6.0-alpha2.

use std::cmp::Ordering;

/// Number of nodes of the sorted list after the first (`SORTED_SECTION_SIZE`).
const SORTED: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Node {
    source: u32,
    equals_parent: bool,
}

/// Heap of sources by their current positions. Sources at their end have been removed.
#[derive(Clone, Debug, Default)]
pub struct SourceHeap {
    nodes: Vec<Node>,
    /// Nodes of the sources to be advanced, ascending.
    moved: Vec<usize>,
}

impl SourceHeap {
    /// Initializes the heap with the sources `0..len`, in the order of Cassandra's iterators. `has` returns whether a
    /// source is at a position; `compare` compares the positions of two sources that are.
    pub fn start(
        &mut self,
        len: usize,
        has: impl Fn(u32) -> bool,
        compare: impl FnMut(u32, u32) -> Ordering,
    ) {
        self.nodes.clear();
        self.nodes.extend((0..len as u32).map(|source| Node {
            source,
            equals_parent: false,
        }));
        self.moved.clear();
        self.moved.extend(0..len);
        self.advance(has, compare);
    }

    /// Returns the least source if no other is equal to it.
    #[inline]
    pub fn only_winner(&mut self) -> Option<u32> {
        let first = self.nodes.first()?;
        if self.nodes.get(1).is_some_and(|second| second.equals_parent) {
            return None;
        }
        self.moved.clear();
        self.moved.push(0);
        Some(first.source)
    }

    /// Returns the second source in the list.
    #[inline]
    pub fn second(&self) -> Option<u32> {
        self.nodes.get(1).map(|node| node.source)
    }

    /// Appends the least sources, all equal to one another, in Cassandra's order. They must be advanced
    /// before [`SourceHeap::advance`] is called.
    pub fn winners(&mut self, out: &mut Vec<u32>) {
        self.moved.clear();
        let len = self.nodes.len();
        if len == 0 {
            return;
        }
        self.moved.push(0);
        let sorted = (1..len.min(SORTED)).take_while(|&at| self.nodes[at].equals_parent);
        self.moved.extend(sorted);
        if self.moved.len() == SORTED {
            self.collect_heap(SORTED);
        }
        out.extend(self.moved.iter().map(|&at| self.nodes[at].source));
        self.moved.sort_unstable();
    }

    /// Appends the nodes of the binary heap from this one down that are equal to their parents.
    fn collect_heap(&mut self, at: usize) {
        if self.nodes.get(at).is_none_or(|node| !node.equals_parent) {
            return;
        }
        self.moved.push(at);
        let child = 2 * at - (SORTED - 1);
        self.collect_heap(child);
        self.collect_heap(child + 1);
    }

    /// Restores the order after the sources returned last have been advanced.
    #[inline]
    pub fn advance(
        &mut self,
        has: impl Fn(u32) -> bool,
        mut compare: impl FnMut(u32, u32) -> Ordering,
    ) {
        while let Some(at) = self.moved.pop() {
            let mut source = self.nodes[at].source;
            if !has(source) {
                // The last node replaces one whose source has ended.
                match self.nodes.pop() {
                    Some(last) if at < self.nodes.len() => source = last.source,
                    _ => continue,
                }
            }
            self.sink(source, at, &mut compare);
        }
    }

    /// Inserts `source` at this node or as far below it as its position requires.
    fn sink(&mut self, source: u32, mut at: usize, compare: &mut impl FnMut(u32, u32) -> Ordering) {
        let len = self.nodes.len();
        let sorted = SORTED.min(len - 1);
        while at < sorted {
            if self.stays(source, at, at + 1, compare) {
                return;
            }
            self.nodes[at] = self.nodes[at + 1];
            at += 1;
        }
        let mut child = 2 * at + 1 - sorted;
        while child + 1 < len {
            if !self.nodes[child].equals_parent {
                if self.nodes[child + 1].equals_parent {
                    child += 1;
                } else {
                    let siblings = compare(self.nodes[child + 1].source, self.nodes[child].source);
                    let right = child + 1;
                    if siblings.is_lt() {
                        child = right;
                    }
                    let stays = self.stays(source, at, child, compare);
                    // If the left child moves up, the right one is equal to it as well.
                    if siblings.is_eq() && (!stays || self.nodes[child].equals_parent) {
                        self.nodes[right].equals_parent = true;
                    }
                    if stays {
                        return;
                    }
                }
            }
            self.nodes[at] = self.nodes[child];
            at = child;
            child = 2 * at + 1 - sorted;
        }
        if child < len {
            if self.stays(source, at, child, compare) {
                return;
            }
            self.nodes[at] = self.nodes[child];
            at = child;
        }
        self.put(source, at);
    }

    /// Stores `source` at `at` if it is not greater than the node at `child`. A node that was equal to its
    /// parent was equal to a source that is less.
    #[inline]
    fn stays(
        &mut self,
        source: u32,
        at: usize,
        child: usize,
        compare: &mut impl FnMut(u32, u32) -> Ordering,
    ) -> bool {
        let node = &mut self.nodes[child];
        if node.equals_parent {
            return false;
        }
        let order = compare(source, node.source);
        if order.is_gt() {
            return false;
        }
        node.equals_parent = order.is_eq();
        self.put(source, at);
        true
    }

    #[inline]
    fn put(&mut self, source: u32, at: usize) {
        self.nodes[at] = Node {
            source,
            equals_parent: false,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Merges the inputs; returns each value with the inputs that were visited for it, in order.
    fn merge(inputs: &[Vec<u32>]) -> Vec<(u32, Vec<u32>)> {
        let mut at = vec![0usize; inputs.len()];
        let mut heap = SourceHeap::default();
        let has = |at: &[usize], i: u32| at[i as usize] < inputs[i as usize].len();
        let order = |at: &[usize], a: u32, b: u32| {
            inputs[a as usize][at[a as usize]].cmp(&inputs[b as usize][at[b as usize]])
        };
        heap.start(inputs.len(), |i| has(&at, i), |a, b| order(&at, a, b));
        let mut out = Vec::new();
        loop {
            let mut group = Vec::new();
            let only = heap.only_winner();
            heap.winners(&mut group);
            let Some(&first) = group.first() else { break };
            assert_eq!(only, (group.len() == 1).then_some(first));
            out.push((inputs[first as usize][at[first as usize]], group.clone()));
            for &member in &group {
                at[member as usize] += 1;
            }
            heap.advance(|i| has(&at, i), |a, b| order(&at, a, b));
        }
        out
    }

    /// Of two inputs at one position, the one that was last alone at a position is visited first.
    #[test]
    fn the_input_with_the_last_single_source_position_is_visited_first() {
        let visited = |inputs: &[Vec<u32>]| {
            let merged = merge(inputs);
            merged
                .into_iter()
                .map(|(_, group)| group)
                .collect::<Vec<_>>()
        };
        assert_eq!(visited(&[vec![1, 2], vec![1, 2]]), [[0, 1], [0, 1]]);
        assert_eq!(
            visited(&[vec![2, 3], vec![1, 2, 3]]),
            [vec![1], vec![1, 0], vec![1, 0]]
        );
        assert_eq!(
            visited(&[vec![1, 3], vec![2, 3]]),
            [vec![0], vec![1], vec![1, 0]]
        );
    }

    proptest::proptest! {
        #[test]
        fn merges_like_a_sorted_map(
            inputs in proptest::collection::vec(
                proptest::collection::btree_set(0u32..40, 0..20), 0..20)
        ) {
            let inputs: Vec<Vec<u32>> =
                inputs.into_iter().map(|set| set.into_iter().collect()).collect();
            let mut expected = std::collections::BTreeMap::<u32, Vec<u32>>::new();
            for (index, input) in inputs.iter().enumerate() {
                for value in input {
                    expected.entry(*value).or_default().push(index as u32);
                }
            }
            let mut merged = merge(&inputs);
            for (_, group) in &mut merged {
                group.sort_unstable();
            }
            let expected: Vec<_> = expected.into_iter().collect();
            proptest::prop_assert_eq!(merged, expected);
        }
    }
}

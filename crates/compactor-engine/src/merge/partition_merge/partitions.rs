//! Selection of the inputs with the next partition; if it matters, in the order in which Cassandra's
//! compaction visits them.

use std::cmp::Ordering;

use crate::merge::merge_input::{MergeInput, compare_partitions};
use crate::merge::tournament::Tournament;
use crate::read::window::BlockSource;
use crate::row::source_heap::SourceHeap;

/// Inputs by their current partitions.
#[derive(Debug)]
pub(super) enum Partitions {
    Tournament(Tournament),
    Scanners(Scanners),
}

impl Partitions {
    /// Initializes the selection with inputs that are positioned on their first partitions.
    pub(super) fn start<S: BlockSource>(
        order: Option<Vec<Vec<u32>>>,
        inputs: &[MergeInput<S>],
    ) -> Partitions {
        match order {
            Some(order) => Partitions::Scanners(Scanners::start(order, inputs)),
            None => {
                let mut tournament = Tournament::default();
                tournament.start(inputs.len(), |a, b| compare_partitions(inputs, a, b));
                Partitions::Tournament(tournament)
            }
        }
    }

    /// Appends the inputs at the least partition. In the tournament, inputs at their end are last and tied
    /// with one another.
    pub(super) fn winners(&mut self, out: &mut Vec<u32>) {
        match self {
            Partitions::Tournament(tournament) => tournament.winners(out),
            Partitions::Scanners(scanners) => scanners.winners(out),
        }
    }

    /// Restores the order after `winners` have been advanced.
    pub(super) fn replay<S: BlockSource>(&mut self, winners: &[u32], inputs: &[MergeInput<S>]) {
        match self {
            Partitions::Tournament(tournament) => {
                tournament.replay(winners.iter().copied(), |a, b| {
                    compare_partitions(inputs, a, b)
                });
            }
            Partitions::Scanners(scanners) => scanners.advance(inputs),
        }
    }
}

/// Scanners of a compaction at their current partitions. The scanner of a level has many inputs, which are
/// read one after the other.
#[derive(Debug, Default)]
pub(super) struct Scanners {
    scanners: Vec<Scanner>,
    heap: SourceHeap,
    /// Scanners visited last.
    visited: Vec<u32>,
}

#[derive(Debug)]
struct Scanner {
    /// Inputs in the order of their keys.
    inputs: Vec<u32>,
    /// Index of the input being read.
    current: usize,
}

impl Scanner {
    #[inline]
    fn input(&self) -> u32 {
        self.inputs[self.current]
    }
}

impl Scanners {
    /// Creates scanners from inputs grouped by scanner, which are positioned on their first partitions.
    fn start<S: BlockSource>(order: Vec<Vec<u32>>, inputs: &[MergeInput<S>]) -> Scanners {
        let scanners = order.into_iter().map(|mut members| {
            members.sort_by(|a, b| compare_partitions(inputs, *a, *b));
            Scanner {
                inputs: members,
                current: 0,
            }
        });
        let mut started = Scanners {
            scanners: scanners.collect(),
            ..Scanners::default()
        };
        let all = 0..started.scanners.len() as u32;
        started.visited.extend(all.clone());
        let Scanners { scanners, heap, .. } = &mut started;
        heap.start(all, has(scanners, inputs), compare(scanners, inputs));
        started
    }

    /// Appends the inputs at the least partition, in the order in which they are visited.
    fn winners(&mut self, out: &mut Vec<u32>) {
        self.visited.clear();
        self.heap.winners(&mut self.visited);
        let inputs = self.visited.iter();
        out.extend(inputs.map(|scanner| self.scanners[*scanner as usize].input()));
    }

    /// Restores the order after the inputs last visited have been advanced.
    fn advance<S: BlockSource>(&mut self, inputs: &[MergeInput<S>]) {
        let Scanners {
            scanners,
            heap,
            visited,
        } = self;
        for &number in &*visited {
            let scanner = &mut scanners[number as usize];
            while !inputs[scanner.input() as usize].cursor.has_partition()
                && scanner.current + 1 < scanner.inputs.len()
            {
                scanner.current += 1;
            }
        }
        heap.advance(has(scanners, inputs), compare(scanners, inputs));
    }
}

fn has<S: BlockSource>(scanners: &[Scanner], inputs: &[MergeInput<S>]) -> impl Fn(u32) -> bool {
    |scanner| {
        let input = scanners[scanner as usize].input();
        inputs[input as usize].cursor.has_partition()
    }
}

fn compare<S: BlockSource>(
    scanners: &[Scanner],
    inputs: &[MergeInput<S>],
) -> impl Fn(u32, u32) -> Ordering {
    |a, b| {
        let (a, b) = (&scanners[a as usize], &scanners[b as usize]);
        compare_partitions(inputs, a.input(), b.input())
    }
}

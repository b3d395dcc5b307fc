//! Selection of the inputs with the next partition; if it matters, in the order in which Cassandra's
//! compaction visits them.

use std::cmp::Ordering;

use crate::merge::contest::Contest;
use crate::merge::merge_input::{MergeInput, compare_partitions};
use crate::read::window::BlockSource;

/// Inputs by their current partitions, grouped by scanner.
#[derive(Debug)]
pub(super) struct Partitions {
    scanners: Vec<Scanner>,
    contest: Contest,
    /// Scanners visited last.
    visited: Vec<u32>,
}

/// One or more inputs that are read one after the other, as those of a level in Cassandra.
#[derive(Debug)]
struct Scanner {
    /// The input being read.
    current: u32,
    /// The following inputs.
    next: std::vec::IntoIter<u32>,
}

impl Partitions {
    /// Initializes the selection with inputs that are positioned on their first partitions. `order` are the scanners
    /// in Cassandra's order, if it matters.
    pub(super) fn start<S: BlockSource>(
        order: Option<Vec<Vec<u32>>>,
        inputs: &[MergeInput<S>],
    ) -> Partitions {
        let contest = Contest::new(order.is_some());
        let each_alone = || (0..inputs.len() as u32).map(|input| vec![input]).collect();
        let order: Vec<_> = order.unwrap_or_else(each_alone);
        let scanners = order.into_iter().filter_map(|mut members| {
            members.sort_by(|a, b| compare_partitions(inputs, *a, *b));
            let mut next = members.into_iter();
            let current = next.next()?;
            Some(Scanner { current, next })
        });
        let mut started = Partitions {
            scanners: scanners.collect(),
            contest,
            visited: Vec::new(),
        };
        let Partitions {
            scanners, contest, ..
        } = &mut started;
        contest.start(
            scanners.len(),
            has(scanners, inputs),
            compare(scanners, inputs),
        );
        started
    }

    /// Appends the inputs at the least partition, in the order in which they are visited. Inputs at their end are
    /// among them only if all are.
    pub(super) fn winners(&mut self, out: &mut Vec<u32>) {
        self.visited.clear();
        self.contest.winners(&mut self.visited);
        let visited = self.visited.iter();
        out.extend(visited.map(|scanner| self.scanners[*scanner as usize].current));
    }

    /// Restores the order after the inputs last visited have been advanced.
    pub(super) fn replay<S: BlockSource>(&mut self, inputs: &[MergeInput<S>]) {
        let Partitions {
            scanners,
            contest,
            visited,
        } = self;
        for &number in &*visited {
            let scanner = &mut scanners[number as usize];
            while !inputs[scanner.current as usize].cursor.has_partition()
                && let Some(next) = scanner.next.next()
            {
                scanner.current = next;
            }
        }
        contest.replay(visited, has(scanners, inputs), compare(scanners, inputs));
    }
}

fn has<S: BlockSource>(scanners: &[Scanner], inputs: &[MergeInput<S>]) -> impl Fn(u32) -> bool {
    |scanner| {
        let input = scanners[scanner as usize].current;
        inputs[input as usize].cursor.has_partition()
    }
}

fn compare<S: BlockSource>(
    scanners: &[Scanner],
    inputs: &[MergeInput<S>],
) -> impl Fn(u32, u32) -> Ordering {
    |a, b| {
        let (a, b) = (&scanners[a as usize], &scanners[b as usize]);
        compare_partitions(inputs, a.current, b.current)
    }
}

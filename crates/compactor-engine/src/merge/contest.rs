//! Selection of the least of several sorted sources: by a tournament, or by Cassandra's heap if the order of
//! equal sources matters.

use std::cmp::Ordering;

use crate::merge::tournament::Tournament;
use crate::row::source_heap::SourceHeap;

/// Contestants `0..len` at their current positions.
#[derive(Debug)]
pub(crate) enum Contest {
    /// Equal contestants are returned in ascending order.
    Tournament(Tournament),
    /// Equal contestants are returned in the order in which Cassandra visits them.
    Heap(SourceHeap),
}

impl Contest {
    /// Returns a contest of no contestants.
    pub(crate) fn new(in_cassandra_order: bool) -> Contest {
        if in_cassandra_order {
            Contest::Heap(SourceHeap::default())
        } else {
            Contest::Tournament(Tournament::default())
        }
    }

    /// Initializes contestants `0..len`. Those without a position must be last in the order of `compare`, and
    /// equal to one another.
    pub(crate) fn start(
        &mut self,
        len: usize,
        has: impl Fn(u32) -> bool,
        compare: impl FnMut(u32, u32) -> Ordering,
    ) {
        match self {
            Contest::Tournament(tournament) => tournament.start(len, compare),
            Contest::Heap(heap) => heap.start(len, has, compare),
        }
    }

    /// Returns the least contestant if no other is equal to it.
    #[inline]
    pub(crate) fn only_winner(&mut self) -> Option<u32> {
        match self {
            Contest::Tournament(tournament) => tournament.only_winner(),
            Contest::Heap(heap) => heap.only_winner(),
        }
    }

    /// Appends the least contestants, all equal to one another. A contestant without a position is among them
    /// only if none has one.
    #[inline]
    pub(crate) fn winners(&mut self, out: &mut Vec<u32>) {
        match self {
            Contest::Tournament(tournament) => tournament.winners(out),
            Contest::Heap(heap) => heap.winners(out),
        }
    }

    /// Restores the order after `winners`, the contestants returned last, have been advanced.
    #[inline]
    pub(crate) fn replay(
        &mut self,
        winners: &[u32],
        has: impl Fn(u32) -> bool,
        compare: impl FnMut(u32, u32) -> Ordering,
    ) {
        match (self, winners) {
            (Contest::Heap(heap), _) => heap.advance(has, compare),
            (Contest::Tournament(tournament), &[only]) => tournament.replay_one(only, compare),
            (Contest::Tournament(tournament), _) => {
                tournament.replay(winners.iter().copied(), compare);
            }
        }
    }
}

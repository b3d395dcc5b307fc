//! Token ranges that a node owns, and how they are divided into shards.
//!
//! Source: `ShardManager`, `ShardManagerNoDisks`, `ShardManagerDiskAware`, `ShardManagerTrivial`,
//! `DiskBoundaries`.

mod arithmetic;

use std::sync::Arc;

pub use arithmetic::Partitioner;

use crate::sstable::Sstable;
use crate::token::{Position, Token};

/// Smallest coverage of the ring by which a length is divided, 2^-48. An SSTable below it has a single
/// partition, or is outside of the node's ranges (`ShardManager.MINIMUM_TOKEN_COVERAGE`).
const MINIMUM_COVERAGE: f64 = 1.0 / (1u64 << 48) as f64;

/// A range of tokens, without the left one. A right one that is the minimum is the end of the ring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeightedRange {
    /// Token before the range.
    pub left: Token,
    /// Last token.
    pub right: Token,
    /// Part of its size that counts.
    pub weight: f64,
}

/// Ranges of a node, and the bounds between its data directories.
#[derive(Clone, Debug, PartialEq)]
pub struct Ring {
    partitioner: Partitioner,
    ranges: Vec<WeightedRange>,
    /// Share of the ring up to and including each range.
    range_ends: Vec<f64>,
    directory_bounds: Vec<Token>,
    /// Share of the ring up to and including each directory.
    directory_ends: Vec<f64>,
}

impl Default for Ring {
    fn default() -> Ring {
        Ring::whole(Partitioner::default())
    }
}

impl Ring {
    /// A ring that a node owns as a whole, with one data directory.
    pub fn whole(partitioner: Partitioner) -> Ring {
        let minimum = partitioner.minimum();
        let all = WeightedRange {
            left: minimum,
            right: minimum,
            weight: 1.0,
        };
        Ring::new(partitioner, vec![all], Vec::new())
    }

    /// A node's ranges: ascending, disjoint, none of them across the end of the ring. `directory_bounds`:
    /// the last token of each data directory, empty if SSTables are not placed by token.
    pub fn new(
        partitioner: Partitioner,
        ranges: Vec<WeightedRange>,
        directory_bounds: Vec<Token>,
    ) -> Ring {
        let mut end = 0.0;
        let range_ends = ranges.iter().map(|range| {
            end += partitioner.size(range.left, range.right) * range.weight;
            end
        });
        let range_ends: Vec<f64> = range_ends.collect();
        let mut ring = Ring {
            partitioner,
            ranges,
            range_ends,
            directory_bounds,
            directory_ends: Vec::new(),
        };
        ring.directory_ends = ring.shares_of_directories();
        ring
    }

    /// Index of the data directory of an SSTable (`DiskBoundaries.getDiskIndex`).
    pub fn directory_of(&self, sstable: &Sstable) -> usize {
        if self.directory_bounds.is_empty() {
            sstable.directory
        } else {
            let token = sstable.first.token;
            self.directory_bounds
                .partition_point(|bound| *bound < token)
        }
    }

    /// Number of data directories between which the ring is divided; one if it is not.
    pub(crate) fn directories(&self) -> usize {
        self.directory_bounds.len().max(1)
    }

    /// Share of the ring that the node owns.
    pub fn local_coverage(&self) -> f64 {
        match self.partitioner {
            Partitioner::Ordered => 1.0,
            _ => self.range_ends.last().copied().unwrap_or(1.0),
        }
    }

    /// Share of the ring that is divided into shards: that of a data directory.
    pub fn shard_set_coverage(&self) -> f64 {
        self.local_coverage() / self.directories() as f64
    }

    /// Share of the ring that an SSTable covers (`rangeSpanned`).
    pub fn coverage(&self, sstable: &Sstable) -> f64 {
        if self.partitioner == Partitioner::Ordered {
            return 1.0;
        }
        let reported = sstable
            .token_space_coverage
            .filter(|coverage| *coverage > 0.0);
        let span = reported.unwrap_or_else(|| self.span(&sstable.first, &sstable.last));
        if span >= MINIMUM_COVERAGE { span } else { 1.0 }
    }

    /// Length of an SSTable by its share of the ring. It grows with every kind of compaction, whether
    /// outputs become longer or cover less.
    pub fn density(&self, sstable: &Sstable) -> f64 {
        sstable.data_bytes as f64 / self.coverage(sstable)
    }

    /// Density of the output of these SSTables (`calculateCombinedDensity`).
    pub fn combined_density(&self, sstables: &[Arc<Sstable>]) -> f64 {
        let bytes = crate::sstable::total_bytes(sstables) as f64;
        let first = sstables.iter().map(|sstable| &sstable.first).min();
        let last = sstables.iter().map(|sstable| &sstable.last).max();
        let (Some(first), Some(last)) = (first, last) else {
            return 0.0;
        };
        if self.partitioner == Partitioner::Ordered {
            return bytes;
        }
        let span = self.span(first, last);
        if span >= MINIMUM_COVERAGE {
            bytes / span
        } else {
            bytes
        }
    }

    /// Last tokens of all shards but the last, for a number of shards in each data directory
    /// (`BoundaryTracker`).
    pub fn boundaries(&self, shards: usize) -> Vec<Token> {
        if self.partitioner == Partitioner::Ordered {
            return Vec::new();
        }
        let mut boundaries = Vec::new();
        let mut start = 0.0;
        for (directory, &end) in self.directory_ends.iter().enumerate() {
            let step = (end - start) / shards as f64;
            let within = (1..shards).map(|shard| self.token_at(start + step * shard as f64));
            boundaries.extend(within);
            if directory + 1 < self.directory_ends.len() {
                boundaries.extend(self.directory_bounds.get(directory));
            }
            start = end;
        }
        boundaries
    }

    /// Share of the ring from a partition to another, without what the node does not own.
    fn span(&self, first: &Position, last: &Position) -> f64 {
        let end = self.partitioner.next(last.token);
        let parts = self.ranges.iter().filter_map(|range| {
            let (left, right) = self.intersection(range, first.token, end)?;
            Some(self.partitioner.size(left, right) * range.weight)
        });
        parts.sum()
    }

    /// `Range.intersectionNonWrapping`.
    fn intersection(
        &self,
        range: &WeightedRange,
        left: Token,
        right: Token,
    ) -> Option<(Token, Token)> {
        let minimum = self.partitioner.minimum();
        let end = match (range.right == minimum, right == minimum) {
            (true, _) => right,
            (_, true) => range.right,
            _ => range.right.min(right),
        };
        let start = range.left.max(left);
        (end == minimum || start < end).then_some((start, end))
    }

    /// Token at a share of the ring.
    fn token_at(&self, share: f64) -> Token {
        let last = self.ranges.len().saturating_sub(1);
        let place = self
            .range_ends
            .partition_point(|end| *end < share)
            .min(last);
        let start = place
            .checked_sub(1)
            .map_or(0.0, |before| self.range_ends[before]);
        let Some(range) = self.ranges.get(place) else {
            return self.partitioner.minimum();
        };
        let ratio = (share - start) / (self.range_ends[place] - start);
        self.partitioner.split(range.left, range.right, ratio)
    }

    /// Share of the ring up to each bound between directories.
    fn shares_of_directories(&self) -> Vec<f64> {
        let minimum = self.partitioner.minimum();
        let mut ends = Vec::with_capacity(self.directory_bounds.len().max(1));
        let mut position = 0.0;
        let mut bounds = self.directory_bounds.iter();
        // The last directory ends with the last range.
        let mut inner = bounds
            .by_ref()
            .take(self.directory_bounds.len().saturating_sub(1))
            .peekable();
        for (range, &end) in self.ranges.iter().zip(&self.range_ends) {
            let is_before = |bound: &&Token| range.right == minimum || **bound < range.right;
            while let Some(bound) = inner.next_if(is_before) {
                let left = self.partitioner.size(range.left, *bound) * range.weight;
                // More than the range if the bound is at its start or before.
                let left = if left > end - position { 0.0 } else { left };
                ends.push(position + left);
            }
            position = end;
        }
        ends.push(position);
        ends
    }
}

#[cfg(test)]
mod tests;

//! Intervals of the commit log that an SSTable covers.
//!
//! Source: `CommitLogPosition`, `IntervalSet`.

use std::collections::BTreeMap;

use crate::byte_reader::ByteReader;
use crate::byte_sink::ByteSink;
use crate::error::Result;

/// Position in a node's commit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitLogPosition {
    /// Id of the segment.
    pub segment_id: i64,
    /// Byte offset in the segment.
    pub position: i32,
}

impl CommitLogPosition {
    /// Unknown position.
    pub const NONE: CommitLogPosition = CommitLogPosition {
        segment_id: -1,
        position: 0,
    };

    pub(super) fn parse(reader: &mut ByteReader<'_>) -> Result<CommitLogPosition> {
        Ok(CommitLogPosition {
            segment_id: reader.i64("stats.commit_log_position.segment")?,
            position: reader.i32("stats.commit_log_position.position")?,
        })
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.put_i64(self.segment_id);
        out.put_i32(self.position);
    }
}

/// Closed intervals of positions, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntervalSet {
    intervals: Vec<(CommitLogPosition, CommitLogPosition)>,
}

impl IntervalSet {
    /// Creates a set of a single interval, as in versions without interval lists.
    pub fn single(start: CommitLogPosition, end: CommitLogPosition) -> IntervalSet {
        IntervalSet {
            intervals: vec![(start, end)],
        }
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// Start and end of each interval, ascending.
    pub fn intervals(&self) -> &[(CommitLogPosition, CommitLogPosition)] {
        &self.intervals
    }

    /// First start, or [`CommitLogPosition::NONE`].
    pub fn lower_bound(&self) -> CommitLogPosition {
        self.intervals
            .first()
            .map_or(CommitLogPosition::NONE, |interval| interval.0)
    }

    /// Last end, or [`CommitLogPosition::NONE`].
    pub fn upper_bound(&self) -> CommitLogPosition {
        self.intervals
            .last()
            .map_or(CommitLogPosition::NONE, |interval| interval.1)
    }

    /// Adds all intervals of `other`; intervals that overlap or touch are merged (`IntervalSet.Builder.add`).
    pub fn add_all(&mut self, other: &IntervalSet) {
        self.intervals.extend_from_slice(&other.intervals);
        self.intervals.sort_unstable();
        self.intervals.dedup_by(|next, kept| {
            let joined = next.0 <= kept.1;
            if joined {
                kept.1 = kept.1.max(next.1);
            }
            joined
        });
    }

    pub(super) fn parse(reader: &mut ByteReader<'_>) -> Result<IntervalSet> {
        let count = reader.i32_count(24, "stats.commit_log_intervals.count")?;
        // As in Cassandra, a sorted map from starts to ends, in which the last of equal starts wins.
        let mut intervals = BTreeMap::new();
        for _ in 0..count {
            let start = CommitLogPosition::parse(reader)?;
            intervals.insert(start, CommitLogPosition::parse(reader)?);
        }
        Ok(IntervalSet {
            intervals: intervals.into_iter().collect(),
        })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.put_i32(self.intervals.len() as i32);
        for (start, end) in &self.intervals {
            start.write(out);
            end.write(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(segment_id: i64) -> CommitLogPosition {
        CommitLogPosition {
            segment_id,
            position: 7,
        }
    }

    fn set(pairs: &[(i64, i64)]) -> IntervalSet {
        IntervalSet {
            intervals: pairs.iter().map(|&(a, b)| (at(a), at(b))).collect(),
        }
    }

    #[test]
    fn overlapping_and_touching_intervals_join() {
        let mut all = set(&[(1, 3), (10, 12)]);
        all.add_all(&set(&[(3, 4), (6, 7)]));
        assert_eq!(all, set(&[(1, 4), (6, 7), (10, 12)]));
        all.add_all(&set(&[(0, 11)]));
        assert_eq!(all, set(&[(0, 12)]));
        assert_eq!((all.lower_bound(), all.upper_bound()), (at(0), at(12)));
        assert_eq!(
            IntervalSet::default().upper_bound(),
            CommitLogPosition::NONE
        );
    }

    #[test]
    fn round_trip() {
        let set = set(&[(1, 4), (6, 7)]);
        let mut out = Vec::new();
        set.write(&mut out);
        assert_eq!(IntervalSet::parse(&mut ByteReader::new(&out)).unwrap(), set);
        for len in 0..out.len() {
            assert!(IntervalSet::parse(&mut ByteReader::new(&out[..len])).is_err());
        }
    }
}

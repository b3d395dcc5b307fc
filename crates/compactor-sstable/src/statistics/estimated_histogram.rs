//! Histograms whose buckets grow by a fifth each.
//!
//! ```text
//! i32 size | size * (i64 offset, i64 count)
//! ```
//!
//! There is one bucket more than offsets: the last counts values greater than the last offset. Pairs 0 and 1
//! both have offset 0 of the list; pair i has offset i - 1.
//!
//! Source: `EstimatedHistogram`.

use crate::byte_reader::ByteReader;
use crate::byte_sink::ByteSink;
use crate::error::{Error, Result};

/// Number of offsets for partition sizes (`MetadataCollector.defaultPartitionSizeHistogram`).
pub const PARTITION_SIZE_OFFSETS: usize = 155;
/// Number of offsets for cells per partition.
pub const CELL_COUNT_OFFSETS: usize = 118;

/// Histogram of values by magnitude.
#[derive(Clone, Debug)]
pub struct EstimatedHistogram {
    offsets: Vec<i64>,
    counts: Vec<i64>,
    /// Bucket of the last value: the next one is usually similar, and searching all buckets takes as long as
    /// all other work for a short partition.
    last: usize,
}

impl PartialEq for EstimatedHistogram {
    fn eq(&self, other: &EstimatedHistogram) -> bool {
        (&self.offsets, &self.counts) == (&other.offsets, &other.counts)
    }
}

impl Eq for EstimatedHistogram {}

/// The offsets that a histogram begins with, whatever its number of buckets: 1, then a fifth more each time.
fn all_offsets() -> impl Iterator<Item = i64> {
    std::iter::successors(Some(1i64), |&last| {
        // Java's Math.round: half up.
        let next = (last as f64 * 1.2 + 0.5).floor() as i64;
        if next == last {
            last.checked_add(1)
        } else {
            Some(next)
        }
    })
}

impl EstimatedHistogram {
    /// Creates an empty histogram of `count` offsets: 1, then a fifth more each time.
    ///
    /// # Panics
    /// If `count` is 0.
    pub fn new(count: usize) -> EstimatedHistogram {
        assert!(count > 0, "a histogram without offsets");
        let offsets: Vec<i64> = all_offsets().take(count).collect();
        let counts = vec![0; offsets.len() + 1];
        EstimatedHistogram {
            offsets,
            counts,
            last: 0,
        }
    }

    /// Creates an empty histogram of partition sizes.
    pub fn of_partition_sizes() -> EstimatedHistogram {
        EstimatedHistogram::new(PARTITION_SIZE_OFFSETS)
    }

    /// Creates an empty histogram of cells per partition.
    pub fn of_cell_counts() -> EstimatedHistogram {
        EstimatedHistogram::new(CELL_COUNT_OFFSETS)
    }

    /// Creates an empty histogram with the same offsets.
    pub fn empty_like(&self) -> EstimatedHistogram {
        EstimatedHistogram {
            offsets: self.offsets.clone(),
            counts: vec![0; self.counts.len()],
            last: 0,
        }
    }

    /// Returns a histogram with the same count in a single bucket: sufficient for counting, in a few bytes
    /// instead of thousands.
    pub fn in_one_bucket(&self) -> EstimatedHistogram {
        EstimatedHistogram {
            offsets: vec![i64::MAX],
            counts: vec![self.count(), 0],
            last: 0,
        }
    }

    /// Returns the same counts in the buckets of another histogram, which may have only some of them:
    /// Cassandra 4.1 had 150 offsets for partition sizes, later releases have 155.
    pub fn in_buckets_of(&self, other: &EstimatedHistogram) -> EstimatedHistogram {
        let mut moved = other.empty_like();
        // A value beyond the last offset is counted beyond the other's last offset, too.
        let edges = self.offsets.iter().copied().chain([i64::MAX]);
        for (edge, count) in edges.zip(&self.counts) {
            moved.add_times(edge, *count);
        }
        moved
    }

    /// Counts a value in the bucket of the first offset that is not less than it.
    pub fn add(&mut self, value: i64) {
        self.add_times(value, 1);
    }

    fn add_times(&mut self, value: i64, times: i64) {
        let index = self.bucket(value);
        if let Some(count) = self.counts.get_mut(index) {
            *count = count.wrapping_add(times);
        }
    }

    /// Returns the bucket of a value: that of the first offset that is not less than it.
    #[inline]
    fn bucket(&mut self, value: i64) -> usize {
        let exceeds = |index: usize| self.offsets.get(index).is_none_or(|at| *at < value);
        let is_last = !exceeds(self.last) && self.last.checked_sub(1).is_none_or(exceeds);
        if !is_last {
            self.last = self.offsets.partition_point(|&offset| offset < value);
        }
        self.last
    }

    /// Adds the counts of a histogram with the same offsets; returns false if they differ.
    #[must_use]
    pub fn merge(&mut self, other: &EstimatedHistogram) -> bool {
        if self.offsets != other.offsets {
            return false;
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count = count.wrapping_add(*more);
        }
        true
    }

    /// Upper bounds of the buckets, except for the last bucket.
    pub fn offsets(&self) -> &[i64] {
        &self.offsets
    }

    /// Counts; one more than offsets.
    pub fn counts(&self) -> &[i64] {
        &self.counts
    }

    /// Number of values beyond the last offset.
    pub fn overflow(&self) -> i64 {
        self.counts.last().copied().unwrap_or(0)
    }

    /// Number of values.
    pub fn count(&self) -> i64 {
        self.counts
            .iter()
            .fold(0, |sum, &count| sum.wrapping_add(count))
    }

    /// Minimum value that may have been added.
    pub fn min(&self) -> i64 {
        match self.counts.iter().position(|&count| count > 0) {
            None | Some(0) => 0,
            Some(index) => self.offsets[index - 1].wrapping_add(1),
        }
    }

    /// Maximum value that may have been added; `i64::MAX` if any is beyond the last offset.
    pub fn max(&self) -> i64 {
        if self.overflow() > 0 {
            return i64::MAX;
        }
        let last = self.counts.iter().rposition(|&count| count > 0);
        last.and_then(|index| self.offsets.get(index))
            .copied()
            .unwrap_or(0)
    }

    /// Mean of bucket offsets weighted by count, rounded up; `None` if there are values beyond the last offset.
    pub fn mean(&self) -> Option<i64> {
        if self.overflow() > 0 {
            return None;
        }
        let (mut elements, mut sum) = (0i64, 0i64);
        for (&offset, &count) in self.offsets.iter().zip(&self.counts) {
            elements = elements.wrapping_add(count);
            sum = sum.wrapping_add(count.wrapping_mul(offset));
        }
        Some(match elements {
            0 => 0,
            _ => (sum as f64 / elements as f64).ceil() as i64,
        })
    }

    /// Offset of the bucket with the value at `percentile` (0.0 to 1.0); `None` if there are values beyond
    /// the last offset.
    pub fn percentile(&self, percentile: f64) -> Option<i64> {
        if self.overflow() > 0 {
            return None;
        }
        let wanted = (self.count() as f64 * percentile).ceil() as i64;
        if wanted == 0 {
            return Some(0);
        }
        let mut seen = 0i64;
        for (&offset, &count) in self.offsets.iter().zip(&self.counts) {
            seen = seen.wrapping_add(count);
            if seen >= wanted {
                return Some(offset);
            }
        }
        Some(0)
    }

    pub(super) fn parse(
        reader: &mut ByteReader<'_>,
        structure: &'static str,
    ) -> Result<EstimatedHistogram> {
        let at = reader.offset();
        let size = reader.i32_count(16, structure)?;
        if size < 2 {
            return Err(Error::corrupt(structure, at, "2 buckets or more", size));
        }
        // The first pair's offset is repeated by the second pair.
        reader.i64(structure)?;
        let mut counts = vec![reader.i64(structure)?];
        let mut offsets = Vec::new();
        let mut wanted = all_offsets();
        for _ in 1..size {
            let (at, offset) = (reader.offset(), reader.i64(structure)?);
            // Values counted in other buckets cannot be compared with those of the data.
            match wanted.next() {
                Some(wanted) if wanted == offset => offsets.push(offset),
                Some(wanted) => {
                    let expected = format!("{wanted}, the offset of this bucket in Cassandra");
                    return Err(Error::corrupt(structure, at, expected, offset));
                }
                None => return Err(Error::corrupt(structure, at, "no more buckets", offset)),
            }
            counts.push(reader.i64(structure)?);
        }
        Ok(EstimatedHistogram {
            offsets,
            counts,
            last: 0,
        })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.put_i32(self.counts.len() as i32);
        for (index, &count) in self.counts.iter().enumerate() {
            out.put_i64(
                self.offsets
                    .get(index.saturating_sub(1))
                    .copied()
                    .unwrap_or(0),
            );
            out.put_i64(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bucket_has_the_same_count() {
        let mut histogram = EstimatedHistogram::of_cell_counts();
        for value in [0, 1, 77, i64::MAX] {
            histogram.add(value);
        }
        let one = histogram.in_one_bucket();
        assert_eq!((one.count(), one.offsets().len()), (4, 1));
    }

    #[test]
    fn offsets_grow_as_in_cassandra() {
        let histogram = EstimatedHistogram::of_partition_sizes();
        assert_eq!(
            histogram.offsets()[..12],
            [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17]
        );
        // Both last offsets are documented in MetadataCollector.
        assert_eq!(histogram.offsets().last(), Some(&3_520_571_548_412));
        assert_eq!(
            EstimatedHistogram::of_cell_counts().offsets().last(),
            Some(&4_139_110_981)
        );
        assert_eq!(histogram.counts().len(), 156);
    }

    #[test]
    fn values_round_up_to_an_offset() {
        let mut histogram = EstimatedHistogram::of_cell_counts();
        for value in [0, 1, 9, 10, 11] {
            histogram.add(value);
        }
        assert_eq!(histogram.counts()[..10], [2, 0, 0, 0, 0, 0, 0, 0, 2, 1]);
        assert_eq!(
            (histogram.min(), histogram.max(), histogram.count()),
            (0, 12, 5)
        );
        assert_eq!(histogram.mean(), Some(7));
        assert_eq!(histogram.percentile(0.5), Some(10));
        assert_eq!(histogram.percentile(0.0), Some(0));
        assert_eq!(histogram.percentile(1.0), Some(12));
    }

    #[test]
    fn values_in_any_order_go_where_a_search_puts_them() {
        let mut histogram = EstimatedHistogram::of_cell_counts();
        let offsets = histogram.offsets().to_vec();
        const HUGE: i64 = i64::MAX;
        let values = [
            0, 1, 1, 2, 9, 10, 11, 10, 0, HUGE, HUGE, 3, 70_000, 70_000, -1,
        ];
        let mut counts = vec![0; offsets.len() + 1];
        for value in values {
            histogram.add(value);
            counts[offsets.partition_point(|offset| *offset < value)] += 1;
        }
        assert_eq!(histogram.counts(), counts);
    }

    #[test]
    fn fewer_buckets_hold_the_same_counts() {
        let (mut many, mut few) = (EstimatedHistogram::new(155), EstimatedHistogram::new(150));
        for value in [
            0,
            79,
            454_218,
            1_414_838_745_986,
            1_414_838_745_987,
            i64::MAX,
        ] {
            many.add(value);
            few.add(value);
        }
        assert_ne!(many, few);
        assert_eq!(many.in_buckets_of(&few), few);
        assert_eq!(many.in_buckets_of(&many), many);
        assert_eq!(few.overflow(), 2);
    }

    #[test]
    fn overflow_hides_mean_and_percentile() {
        let mut histogram = EstimatedHistogram::new(3);
        histogram.add(4);
        assert_eq!((histogram.overflow(), histogram.max()), (1, i64::MAX));
        assert_eq!((histogram.mean(), histogram.percentile(0.5)), (None, None));
        let empty = histogram.empty_like();
        assert_eq!((empty.mean(), empty.max(), empty.min()), (Some(0), 0, 0));
    }

    #[test]
    fn merge_wants_equal_offsets() {
        let mut a = EstimatedHistogram::new(3);
        let mut b = EstimatedHistogram::new(3);
        a.add(1);
        b.add(1);
        assert!(a.merge(&b));
        assert_eq!(a.counts(), [2, 0, 0, 0]);
        assert!(!a.merge(&EstimatedHistogram::new(4)));
    }

    #[test]
    fn round_trip_and_short_input() {
        let mut histogram = EstimatedHistogram::new(5);
        histogram.add(3);
        let mut out = Vec::new();
        histogram.write(&mut out);
        assert_eq!(
            EstimatedHistogram::parse(&mut ByteReader::new(&out), "h").unwrap(),
            histogram
        );
        for len in 0..out.len() {
            assert!(EstimatedHistogram::parse(&mut ByteReader::new(&out[..len]), "h").is_err());
        }
        assert!(EstimatedHistogram::parse(&mut ByteReader::new(&[0; 20]), "h").is_err());
    }

    #[test]
    fn other_buckets_than_those_of_cassandra_are_refused() {
        let parse = |offsets: Vec<i64>| {
            let counts = vec![0; offsets.len() + 1];
            let histogram = EstimatedHistogram {
                offsets,
                counts,
                last: 0,
            };
            let mut out = Vec::new();
            histogram.write(&mut out);
            EstimatedHistogram::parse(&mut ByteReader::new(&out), "h").map_err(|e| e.to_string())
        };
        let all: Vec<i64> = all_offsets().collect();
        assert_eq!(all.last(), Some(&i64::MAX));
        assert!(parse(all[..150].to_vec()).is_ok());
        let mut unordered = all[..155].to_vec();
        unordered[40] = 1 << 40;
        let error = parse(unordered).unwrap_err();
        assert!(error.contains("expected 3311, "), "{error}");
        assert!(parse(vec![1, 2, 4]).is_err());
        let beyond = [&all[..], &[i64::MAX]].concat();
        let error = parse(beyond).unwrap_err();
        assert!(error.contains("no more buckets"), "{error}");
    }
}

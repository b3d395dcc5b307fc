//! Collection of local deletion times in at most 100 bins, with the same result as in Cassandra.
//!
//! Times are rounded up to whole minutes and spooled in a hash table. When it is full, and at the end, they
//! are moved to the bins in the order of the table's slots. If there is one bin too many, the two closest
//! ones are merged. The result depends on that order, so the table's size, hash and probing are those of
//! Cassandra.
//!
//! Source: `StreamingTombstoneHistogramBuilder`; the sizes are those of `SSTable`.

use super::{TombstoneHistogram, saturate};

/// `SSTable.TOMBSTONE_HISTOGRAM_BIN_SIZE`.
const MAX_BINS: usize = 100;
/// `SSTable.TOMBSTONE_HISTOGRAM_SPOOL_SIZE`, rounded up to a power of two.
const SPOOL_CAPACITY: usize = 131_072;
/// `SSTable.TOMBSTONE_HISTOGRAM_TTL_ROUND_SECONDS`.
const ROUND_SECONDS: i64 = 60;
/// Maximum number of probes, after which the spool is full.
const MAX_PROBES: usize = 100;
const EMPTY_POINT: i64 = -1;
/// Runs whose slots are loaded into the processor's caches together.
const BATCH: usize = 32;

/// Builder of a [`TombstoneHistogram`].
#[derive(Clone, Debug)]
pub struct TombstoneHistogramBuilder {
    /// Last rounded time and the number of its consecutive occurrences: deletions with equal times are often
    /// adjacent, and counting them first has the same result.
    point: i64,
    count: u64,
    /// For a part of an SSTable: the runs of equal times, in order, instead of the spool.
    runs: Option<Vec<TimeRun>>,
    spool: Spool,
    histogram: TombstoneHistogram,
}

/// A run of equal rounded times, in the order in which they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRun {
    point: i64,
    count: u64,
}

impl Default for TombstoneHistogramBuilder {
    fn default() -> Self {
        TombstoneHistogramBuilder {
            point: EMPTY_POINT,
            count: 0,
            runs: None,
            spool: Spool::default(),
            histogram: TombstoneHistogram {
                bins: Vec::with_capacity(MAX_BINS + 1),
            },
        }
    }
}

impl TombstoneHistogramBuilder {
    /// Creates an empty histogram. The spool is allocated when the first time is added.
    pub fn new() -> TombstoneHistogramBuilder {
        TombstoneHistogramBuilder::default()
    }

    /// Creates a builder that only records runs, for [`TombstoneHistogramBuilder::add_runs`] of another.
    pub fn for_part() -> TombstoneHistogramBuilder {
        TombstoneHistogramBuilder {
            runs: Some(Vec::new()),
            ..TombstoneHistogramBuilder::default()
        }
    }

    /// Takes the runs recorded since the last call. A run that continues is returned in pieces, which have
    /// the same result.
    pub fn take_runs(&mut self) -> Vec<TimeRun> {
        self.spool_run();
        self.point = EMPTY_POINT;
        self.runs.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Adds the runs of a part, as if their times were added here.
    pub fn add_runs(&mut self, runs: &[TimeRun]) {
        for batch in runs.chunks(BATCH) {
            self.spool.load(batch);
            for run in batch {
                if run.point == self.point {
                    self.count += run.count;
                } else {
                    self.spool_run();
                    self.point = run.point;
                    self.count = run.count;
                }
            }
        }
    }

    /// Counts a local deletion time, which must not be that of live data.
    #[inline]
    pub fn add(&mut self, local_deletion_time: i64) {
        let point = round_up(local_deletion_time);
        if point == self.point {
            self.count += 1;
        } else {
            self.spool_run();
            self.point = point;
            self.count = 1;
        }
    }

    /// Moves the current run of equal times to the spool.
    fn spool_run(&mut self) {
        let mut count = self.count;
        if count == 0 {
            return;
        }
        if let Some(runs) = &mut self.runs {
            runs.push(TimeRun {
                point: self.point,
                count,
            });
            self.count = 0;
            return;
        }
        // The first time of a run may fill the spool, and then the second flushes it, as if they were added
        // one by one; the rest are only counted.
        if count > 1 {
            self.spool_point(1);
            count -= 1;
        }
        self.spool_point(i32::try_from(count).unwrap_or(i32::MAX));
        self.count = 0;
    }

    fn spool_point(&mut self, count: i32) {
        if !self.spool.try_add(self.point, count) {
            self.flush();
            // An empty spool has room.
            self.spool.try_add(self.point, count);
        }
    }

    fn flush(&mut self) {
        for (point, count) in std::mem::take(&mut self.spool).slots() {
            self.histogram.add(point, count);
        }
    }

    /// Returns the histogram of all times.
    pub fn build(mut self) -> TombstoneHistogram {
        self.spool_run();
        self.flush();
        self.histogram
    }
}

#[inline]
fn round_up(point: i64) -> i64 {
    let point = saturate(point);
    match point % ROUND_SECONDS {
        0 => point,
        rest => saturate(point + ROUND_SECONDS - rest),
    }
}

/// First slot that is probed: the hash is an int that addresses the lower half of the table.
#[inline]
fn first_slot(point: i64) -> usize {
    point.wrapping_mul(948_701_839) as u32 as usize & (SPOOL_CAPACITY - 1)
}

/// Hash table with open addressing and linear probing. Cassandra's has twice as many slots as entries, but
/// the upper half is reached only by probing.
///
/// An array of zeroes, whose pages are allocated when they are first written: most SSTables have deletions
/// at few times. A slot is a single number, so that a probe misses one cache line.
#[derive(Clone, Debug, Default)]
struct Spool {
    slots: Vec<u64>,
    len: usize,
}

/// Bits of a slot for the number of times a point was added, 0 in a free slot. The rest is the point, which is
/// at most [`MAX_DELETION_TIME`](super::MAX_DELETION_TIME).
const COUNT_BITS: u32 = 31;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

impl Spool {
    /// Adds to the count of a point; returns false if the table is full.
    #[inline]
    fn try_add(&mut self, point: i64, count: i32) -> bool {
        if self.slots.is_empty() {
            self.slots = vec![0; SPOOL_CAPACITY + MAX_PROBES];
        }
        if self.len > SPOOL_CAPACITY {
            return false;
        }
        let first = first_slot(point);
        for slot in &mut self.slots[first..first + MAX_PROBES] {
            let added = *slot & COUNT_MASK;
            if added == 0 {
                *slot = (point as u64) << COUNT_BITS | count as u64;
                self.len += 1;
                return true;
            }
            if *slot >> COUNT_BITS == point as u64 {
                let count = (added + count as u64).min(COUNT_MASK);
                *slot = (point as u64) << COUNT_BITS | count;
                return true;
            }
        }
        false
    }

    /// Loads the first slot of each run, so that these cache misses overlap.
    fn load(&self, runs: &[TimeRun]) {
        let slots = runs.iter().map(|run| self.slots.get(first_slot(run.point)));
        std::hint::black_box(slots.flatten().fold(0, |loaded, slot| loaded ^ slot));
    }

    /// Points and counts in the order of the slots.
    fn slots(&self) -> impl Iterator<Item = (i64, i32)> {
        let taken = self.slots.iter().filter(|slot| **slot != 0);
        taken.map(|slot| ((slot >> COUNT_BITS) as i64, (slot & COUNT_MASK) as i32))
    }
}

impl TombstoneHistogram {
    fn add(&mut self, point: i64, count: i32) {
        match self.bins.binary_search_by_key(&point, |bin| bin.0) {
            Ok(index) => self.bins[index].1 = self.bins[index].1.saturating_add(count),
            Err(index) => self.bins.insert(index, (point, count)),
        }
        if self.bins.len() > MAX_BINS {
            self.merge_closest();
        }
    }

    /// Replaces the first pair of points with the smallest distance by its weighted mean.
    fn merge_closest(&mut self) {
        let closest = (0..self.bins.len() - 1)
            .min_by_key(|&index| self.bins[index + 1].0 - self.bins[index].0);
        let Some(index) = closest else { return };
        let (point1, count1) = self.bins[index];
        let (point2, count2) = self.bins[index + 1];
        // Java's longs wrap around, and a negative result counts as the maximum.
        let capped = |value: i64| if value < 0 { i64::MAX } else { value };
        let weight1 = capped(point1.wrapping_mul(i64::from(count1)));
        let weight2 = capped(point2.wrapping_mul(i64::from(count2)));
        let total = i64::from(count1) + i64::from(count2);
        let mean = saturate(capped(weight1.wrapping_add(weight2)) / total.max(1));
        let mean = if mean <= point1 {
            saturate(point1 + 1)
        } else {
            mean
        };
        let point = round_up(mean.min(point2));
        let count = i32::try_from(total).unwrap_or(i32::MAX);
        self.bins[index] = (point, count);
        self.bins.remove(index + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of equal times are counted before they are spooled; the result is that of single times, even if a
    /// run meets a full spool.
    #[test]
    fn runs_count_like_single_times() {
        let mut runs = TombstoneHistogramBuilder::new();
        let mut single = TombstoneHistogramBuilder::new();
        for index in 0..(2 * SPOOL_CAPACITY as i64 + 1000) {
            // Distinct points in no particular order, each up to three times consecutively.
            let point = (index.wrapping_mul(7919) % 400_009) * ROUND_SECONDS;
            for _ in 0..1 + index % 3 {
                runs.add(point);
                single.add(point);
                single.spool_run();
            }
        }
        assert_eq!(runs.build(), single.build());
    }

    /// The spool is flushed in the order of Cassandra's slots, which are allocated from the start.
    #[test]
    fn the_spool_is_that_of_one_array() {
        let mut builder = TombstoneHistogramBuilder::new();
        let mut slots = vec![None; 2 * SPOOL_CAPACITY];
        let mut len = 0;
        let mut bins = TombstoneHistogram::default();
        let mut add = |point: i64,
                       slots: &mut Vec<Option<(i64, i32)>>,
                       bins: &mut TombstoneHistogram| {
            let first = point.wrapping_mul(948_701_839) as u32 as usize & (SPOOL_CAPACITY - 1);
            let probed = &mut slots[first..first + MAX_PROBES];
            let is_it = |slot: &&mut Option<(i64, i32)>| slot.is_none_or(|(own, _)| own == point);
            match probed.iter_mut().find(is_it) {
                Some(slot) if len <= SPOOL_CAPACITY => {
                    len += usize::from(slot.is_none());
                    slot.get_or_insert((point, 0)).1 += 1;
                }
                _ => {
                    (slots.iter_mut().filter_map(Option::take)).for_each(|(p, n)| bins.add(p, n));
                    slots[first] = Some((point, 1));
                    len = 1;
                }
            }
        };
        for index in 0..(3 * SPOOL_CAPACITY as i64) {
            let point = (index.wrapping_mul(7919) % 1_000_003) * ROUND_SECONDS;
            builder.add(point);
            add(point, &mut slots, &mut bins);
        }
        (slots.iter_mut().filter_map(Option::take)).for_each(|(p, n)| bins.add(p, n));
        assert_eq!(builder.build().bins, bins.bins);
    }

    /// The recorded runs of parts, added in order, have the result of a single builder: also if a run
    /// continues in the next part, and if the spool becomes full in the middle.
    #[test]
    fn parts_combine_to_the_whole() {
        let mut whole = TombstoneHistogramBuilder::new();
        let mut joined = TombstoneHistogramBuilder::new();
        let mut part = TombstoneHistogramBuilder::for_part();
        for index in 0..(2 * SPOOL_CAPACITY as i64 + 1000) {
            let point = (index.wrapping_mul(7919) % 400_009) * ROUND_SECONDS;
            for time in 0..1 + index % 3 {
                whole.add(point);
                part.add(point);
                if (index + time) % 1009 == 0 {
                    joined.add_runs(&part.take_runs());
                }
            }
        }
        joined.add_runs(&part.take_runs());
        assert!(part.take_runs().is_empty());
        let bins = whole.build();
        assert_eq!(joined.build(), bins);
        assert_eq!(bins.bins.len(), MAX_BINS);
    }
}

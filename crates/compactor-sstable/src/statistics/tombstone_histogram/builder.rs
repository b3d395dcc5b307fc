//! Collects local deletion times into at most 100 bins, exactly as Cassandra does.
//!
//! Times are rounded up to whole minutes and spooled in a hash table; when it is full, and at the
//! end, they move to the bins in the table's slot order. One bin too many makes the two closest
//! bins merge. The outcome depends on that order, so the table's size, hash and probing are
//! Cassandra's.
//!
//! Source: `StreamingTombstoneHistogramBuilder`; the sizes are those of `SSTable`.

use super::{TombstoneHistogram, saturate};

/// `SSTable.TOMBSTONE_HISTOGRAM_BIN_SIZE`.
const MAX_BINS: usize = 100;
/// `SSTable.TOMBSTONE_HISTOGRAM_SPOOL_SIZE`, rounded up to a power of two.
const SPOOL_CAPACITY: usize = 131_072;
/// `SSTable.TOMBSTONE_HISTOGRAM_TTL_ROUND_SECONDS`.
const ROUND_SECONDS: i64 = 60;
/// Probes before the spool counts as full.
const MAX_PROBES: usize = 100;
const EMPTY_POINT: i64 = -1;

/// Builds a [`TombstoneHistogram`].
#[derive(Clone, Debug)]
pub struct TombstoneHistogramBuilder {
    /// The rounded time seen last and how often it has come in a row: deletions of one moment tend
    /// to lie together, and the spool would count the same.
    point: i64,
    count: u64,
    /// Of a part of an SSTable: the runs of equal times, in their order, instead of the spool.
    runs: Option<Vec<TimeRun>>,
    spool: Spool,
    bins: Bins,
}

/// So many times in a row, rounded, in the order in which they were added.
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
            bins: Bins {
                bins: Vec::with_capacity(MAX_BINS + 1),
            },
        }
    }
}

impl TombstoneHistogramBuilder {
    /// An empty histogram. Nothing is allocated for the spool before the first time is added.
    pub fn new() -> TombstoneHistogramBuilder {
        TombstoneHistogramBuilder::default()
    }

    /// Only remembers what is added, for [`TombstoneHistogramBuilder::add_runs`] of another.
    pub fn for_part() -> TombstoneHistogramBuilder {
        TombstoneHistogramBuilder {
            runs: Some(Vec::new()),
            ..TombstoneHistogramBuilder::default()
        }
    }

    /// Takes what was added to a part since the last time. A run that goes on is told in pieces, which
    /// come to the same.
    pub fn take_runs(&mut self) -> Vec<TimeRun> {
        self.spool_run();
        self.point = EMPTY_POINT;
        self.runs.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Adds what was added to a part, as if it were added here.
    pub fn add_runs(&mut self, runs: &[TimeRun]) {
        for run in runs {
            if run.point == self.point {
                self.count += run.count;
            } else {
                self.spool_run();
                self.point = run.point;
                self.count = run.count;
            }
        }
    }

    /// Counts a local deletion time, which is not that of live data.
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
        // The first of a run may fill the spool, and then the second flushes it, as it would when
        // they come one by one; later ones only add up.
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
            self.bins.add(point, count);
        }
    }

    /// The histogram of everything added.
    pub fn build(mut self) -> TombstoneHistogram {
        self.spool_run();
        self.flush();
        TombstoneHistogram {
            bins: self.bins.bins,
        }
    }
}

#[inline]
fn round_up(point: i64) -> i64 {
    match point % ROUND_SECONDS {
        0 => point,
        rest => saturate(point + ROUND_SECONDS - rest),
    }
}

/// Open addressing with linear probing. Cassandra's has twice as many slots as entries, but of the upper
/// half a hash reaches only what it probes.
///
/// Two arrays of zeroes, of which the system provides a page when it is first written: most SSTables have
/// deletions of few moments.
#[derive(Clone, Debug, Default)]
struct Spool {
    points: Vec<i64>,
    /// Number of times each point was added; 0 for a free slot.
    counts: Vec<i32>,
    len: usize,
}

impl Spool {
    /// Returns false if there is no room.
    #[inline]
    fn try_add(&mut self, point: i64, count: i32) -> bool {
        if self.counts.is_empty() {
            self.points = vec![0; SPOOL_CAPACITY + MAX_PROBES];
            self.counts = vec![0; SPOOL_CAPACITY + MAX_PROBES];
        }
        if self.len > SPOOL_CAPACITY {
            return false;
        }
        // The hash is an int, of which the lower half of the table is addressed.
        let hash = point.wrapping_mul(948_701_839) as u32 as usize;
        let first = hash & (SPOOL_CAPACITY - 1);
        let slots = first..first + MAX_PROBES;
        let points = self.points[slots.clone()].iter_mut();
        for (own, own_count) in points.zip(&mut self.counts[slots]) {
            if *own_count == 0 {
                (*own, *own_count) = (point, count);
                self.len += 1;
                return true;
            }
            if *own == point {
                *own_count = own_count.saturating_add(count);
                return true;
            }
        }
        false
    }

    /// Points and counts in the order of the slots.
    fn slots(&self) -> impl Iterator<Item = (i64, i32)> {
        let slots = self.points.iter().copied().zip(self.counts.iter().copied());
        slots.filter(|(_, count)| *count != 0)
    }
}

/// Sorted points with counts.
#[derive(Clone, Debug)]
struct Bins {
    bins: Vec<(i64, i32)>,
}

impl Bins {
    fn add(&mut self, point: i64, count: i32) {
        match self.bins.binary_search_by_key(&point, |bin| bin.0) {
            Ok(index) => self.bins[index].1 = self.bins[index].1.saturating_add(count),
            Err(index) => self.bins.insert(index, (point, count)),
        }
        if self.bins.len() > MAX_BINS {
            self.merge_closest();
        }
    }

    /// Replaces the first pair with the smallest distance by its weighted mean.
    fn merge_closest(&mut self) {
        let closest = (0..self.bins.len() - 1)
            .min_by_key(|&index| self.bins[index + 1].0 - self.bins[index].0);
        let Some(index) = closest else { return };
        let (point1, count1) = self.bins[index];
        let (point2, count2) = self.bins[index + 1];
        // Java's longs wrap around, and a negative outcome counts as the greatest number.
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

    /// Runs of equal times are counted before they are spooled; the outcome is that of single
    /// times, also where a run meets a full spool.
    #[test]
    fn runs_count_like_single_times() {
        let mut runs = TombstoneHistogramBuilder::new();
        let mut single = TombstoneHistogramBuilder::new();
        for index in 0..(2 * SPOOL_CAPACITY as i64 + 1000) {
            // Distinct points in no particular order, each up to three times in a row.
            let point = (index.wrapping_mul(7919) % 400_009) * ROUND_SECONDS;
            for _ in 0..1 + index % 3 {
                runs.add(point);
                single.add(point);
                single.spool_run();
            }
        }
        assert_eq!(runs.build(), single.build());
    }

    /// The spool is flushed in the order of Cassandra's slots, of which it has all from the start.
    #[test]
    fn the_spool_is_that_of_one_array() {
        let mut builder = TombstoneHistogramBuilder::new();
        let mut slots = vec![None; 2 * SPOOL_CAPACITY];
        let mut len = 0;
        let mut bins = Bins { bins: Vec::new() };
        let mut add = |point: i64, slots: &mut Vec<Option<(i64, i32)>>, bins: &mut Bins| {
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

    /// What parts remember, added in their order, is what one builder would have been given: also
    /// where a run goes on from one part to the next, and where the spool is full in the middle.
    #[test]
    fn parts_come_to_the_whole() {
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

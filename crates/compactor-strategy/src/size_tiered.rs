//! SSTables of like size are compacted with one another.
//!
//! Source: `SizeTieredCompactionStrategy`, `SizeTieredCompactionStrategyOptions`.

use crate::java_hash_map::JavaHashMap;
use crate::options::{
    OptionError, Options, Thresholds, double, double_text, long, refuse_bad_overlapping_tombstones,
    refuse_unknown,
};
use crate::tombstones::TombstoneOptions;

/// Options of its own and the thresholds, which not every strategy has.
const OPTIONS: [&str; 5] = [
    "min_threshold",
    "max_threshold",
    "min_sstable_size",
    "bucket_low",
    "bucket_high",
];

/// The strategy of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SizeTiered {
    /// How many SSTables a compaction takes.
    pub thresholds: Thresholds,
    /// What makes a bucket.
    pub buckets: BucketOptions,
    /// When an SSTable is compacted alone.
    pub tombstones: TombstoneOptions,
}

/// What is of like size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BucketOptions {
    /// An SSTable must be larger than this part of a bucket's average (`bucket_low`).
    pub low: f64,
    /// An SSTable must be smaller than this multiple of a bucket's average (`bucket_high`).
    pub high: f64,
    /// SSTables of fewer bytes are all alike (`min_sstable_size`).
    pub min_sstable_size: i64,
}

impl Default for BucketOptions {
    fn default() -> BucketOptions {
        BucketOptions {
            low: 0.5,
            high: 1.5,
            min_sstable_size: 50 << 20,
        }
    }
}

/// One SSTable that is not being compacted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SstableState {
    /// Bytes of `Data.db` as stored (`onDiskLength`), by which it is put in a bucket.
    pub data_bytes: u64,
    /// Bytes of all its components (`bytesOnDisk`), by which the larger of two buckets is found.
    pub bytes_on_disk: u64,
    /// Reads per second and key; zero where nothing is read, as outside of a node.
    pub hotness: f64,
}

impl BucketOptions {
    /// Reads them.
    ///
    /// # Errors
    /// No numbers, a negative size, or bounds the wrong way round.
    pub fn from_options(options: &Options) -> Result<BucketOptions, OptionError> {
        let mut read = BucketOptions::default();
        if let Some(text) = options.get("min_sstable_size") {
            read.min_sstable_size = long(text).ok_or_else(|| {
                OptionError(format!(
                    "{text} is not a parsable int (base10) for min_sstable_size"
                ))
            })?;
            if read.min_sstable_size < 0 {
                return Err(OptionError(format!(
                    "min_sstable_size must be non negative: {}",
                    read.min_sstable_size
                )));
            }
        }
        for (name, value) in [
            ("bucket_low", &mut read.low),
            ("bucket_high", &mut read.high),
        ] {
            if let Some(text) = options.get(name) {
                *value = double(text).ok_or_else(|| {
                    OptionError(format!("{text} is not a parsable float for {name}"))
                })?;
            }
        }
        if read.high <= read.low {
            return Err(OptionError(format!(
                "bucket_high value ({}) is less than or equal to the bucket_low value ({})",
                double_text(read.high),
                double_text(read.low)
            )));
        }
        Ok(read)
    }

    /// Whether an SSTable of `size` bytes belongs to a bucket of this average.
    fn is_alike(&self, size: i64, average: i64) -> bool {
        let (bytes, mean) = (size as f64, average as f64);
        (bytes > mean * self.low && bytes < mean * self.high)
            || (size < self.min_sstable_size && average < self.min_sstable_size)
    }

    /// Groups SSTables of like size: places in `sizes`, which are bytes, in the order that Cassandra's
    /// list has. A bucket whose average becomes that of another takes its place, and the SSTables of the
    /// other are left for later, as in Cassandra.
    pub fn buckets(&self, sizes: &[i64]) -> Vec<Vec<usize>> {
        let mut ascending: Vec<usize> = (0..sizes.len()).collect();
        ascending.sort_by_key(|&place| sizes[place]);
        let mut buckets: JavaHashMap<Vec<usize>> = JavaHashMap::new();
        for place in ascending {
            let size = sizes[place];
            let alike = buckets
                .iter()
                .map(|(average, _)| average)
                .find(|average| self.is_alike(size, *average));
            let Some((average, mut bucket)) =
                alike.and_then(|average| Some((average, buckets.remove(average)?)))
            else {
                buckets.put(size, vec![place]);
                continue;
            };
            let count = bucket.len() as i64;
            let total = count.wrapping_mul(average).wrapping_add(size);
            bucket.push(place);
            buckets.put(total / (count + 1), bucket);
        }
        buckets.into_values().collect()
    }
}

impl SizeTiered {
    /// Reads all options of a table.
    ///
    /// # Errors
    /// What Cassandra refuses, in its words.
    pub fn from_options(options: &Options) -> Result<SizeTiered, OptionError> {
        refuse_bad_overlapping_tombstones(options)?;
        let tombstones = TombstoneOptions::from_options(options)?;
        let buckets = BucketOptions::from_options(options)?;
        refuse_unknown(options, "SizeTieredCompactionStrategy", &OPTIONS)?;
        Ok(SizeTiered {
            thresholds: Thresholds::from_options(options)?,
            buckets,
            tombstones,
        })
    }

    /// The SSTables to compact next, as places in `sstables`; none if no bucket is full enough
    /// (`getNextBackgroundSSTables` without its fallback).
    pub fn next(&self, sstables: &[SstableState]) -> Vec<usize> {
        let sizes = sstables.iter().map(|sstable| sstable.data_bytes as i64);
        let sizes: Vec<i64> = sizes.collect();
        self.most_interesting(self.buckets.buckets(&sizes), sstables)
    }

    /// The hottest bucket with enough SSTables, the coldest of which are left out beyond the greatest
    /// number. Of several equally hot ones the one of the largest SSTables, and of these the first
    /// (`mostInterestingBucket`).
    pub fn most_interesting(
        &self,
        buckets: Vec<Vec<usize>>,
        sstables: &[SstableState],
    ) -> Vec<usize> {
        let mut best: Option<(f64, i64, Vec<usize>)> = None;
        for mut bucket in buckets {
            let hotness = |place: &usize| sstables[*place].hotness;
            bucket.sort_by(|a, b| hotness(b).total_cmp(&hotness(a)));
            bucket.truncate(self.thresholds.max);
            if bucket.len() < self.thresholds.min {
                continue;
            }
            let hot: f64 = bucket.iter().map(hotness).sum();
            let bytes = bucket.iter().fold(0i64, |sum, place| {
                sum.wrapping_add(sstables[*place].bytes_on_disk as i64)
            });
            let average = bytes / bucket.len() as i64;
            let is_better = best.as_ref().is_none_or(|(best_hot, best_average, _)| {
                hot.total_cmp(best_hot)
                    .then(average.cmp(best_average))
                    .is_gt()
            });
            if is_better {
                best = Some((hot, average, bucket));
            }
        }
        best.map(|(_, _, bucket)| bucket).unwrap_or_default()
    }

    /// Compactions that can run at once: what is left is asked for again and again, as a node does that
    /// has a free compactor (`getNextBackgroundTasks`).
    pub fn at_once(&self, sstables: &[SstableState]) -> Vec<Vec<usize>> {
        let mut left: Vec<usize> = (0..sstables.len()).collect();
        let mut jobs = Vec::new();
        loop {
            let states: Vec<SstableState> = left.iter().map(|&place| sstables[place]).collect();
            let next = self.next(&states);
            if next.is_empty() {
                return jobs;
            }
            jobs.push(next.iter().map(|&place| left[place]).collect());
            let mut taken = vec![false; left.len()];
            for place in next {
                taken[place] = true;
            }
            let mut taken = taken.into_iter();
            left.retain(|_| !taken.next().unwrap_or(false));
        }
    }

    /// Compactions that these buckets will need (`getEstimatedCompactionsByTasks`).
    pub fn estimated_tasks(&self, buckets: &[Vec<usize>]) -> usize {
        let full = |bucket: &&Vec<usize>| bucket.len() >= self.thresholds.min;
        let tasks = |bucket: &Vec<usize>| bucket.len().div_ceil(self.thresholds.max);
        buckets.iter().filter(full).map(tasks).sum()
    }

    /// The SSTable to compact alone where [`SizeTiered::next`] finds nothing: the largest of those that
    /// are worth it, and of these the first (`getNextBackgroundSSTables`).
    pub fn next_for_tombstones(
        &self,
        sstables: &[SstableState],
        mut is_worth_it: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        let mut best: Option<usize> = None;
        for (place, sstable) in sstables.iter().enumerate() {
            let is_larger = best.is_none_or(|b| sstable.data_bytes > sstables[b].data_bytes);
            if is_larger && is_worth_it(place) {
                best = Some(place);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests;

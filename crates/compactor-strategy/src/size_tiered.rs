//! Size-tiered compaction: SSTables of similar size are compacted together.
//!
//! Source: `SizeTieredCompactionStrategy`, `SizeTieredCompactionStrategyOptions`.

use crate::java_hash_map::JavaHashMap;
use crate::options::{
    OptionError, Options, Thresholds, double, double_text, long, refuse_bad_overlapping_tombstones,
    refuse_unknown,
};
use crate::tombstones::TombstoneOptions;

/// Options of this strategy, including the thresholds, which not every strategy has.
const OPTIONS: [&str; 5] = [
    "min_threshold",
    "max_threshold",
    "min_sstable_size",
    "bucket_low",
    "bucket_high",
];

/// Size-tiered strategy of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SizeTiered {
    /// Number of SSTables per compaction.
    pub thresholds: Thresholds,
    /// Bucket options.
    pub buckets: BucketOptions,
    /// Options of single-SSTable tombstone compactions.
    pub tombstones: TombstoneOptions,
}

/// Size bounds of buckets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BucketOptions {
    /// Lower size bound of a bucket, exclusive, as a fraction of its average (`bucket_low`).
    pub low: f64,
    /// Upper size bound of a bucket, exclusive, as a multiple of its average (`bucket_high`).
    pub high: f64,
    /// Size below which all SSTables are in one bucket, bytes (`min_sstable_size`).
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

/// An SSTable that is not being compacted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SstableState {
    /// Stored length of `Data.db`, bytes (`onDiskLength`), which determines its bucket.
    pub data_bytes: u64,
    /// Length of all its components, bytes (`bytesOnDisk`), by which buckets of equal hotness are compared.
    pub bytes_on_disk: u64,
    /// Reads per second and key; zero if there are no reads, as outside of a node.
    pub hotness: f64,
}

impl BucketOptions {
    /// Parses the options.
    ///
    /// # Errors
    /// Values that are not numbers, a negative size, or bounds in the wrong order.
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

    /// Whether an SSTable of `size` bytes belongs to a bucket with this average.
    fn is_similar(&self, size: i64, average: i64) -> bool {
        let (bytes, mean) = (size as f64, average as f64);
        (bytes > mean * self.low && bytes < mean * self.high)
            || (size < self.min_sstable_size && average < self.min_sstable_size)
    }

    /// Groups SSTables of similar size. Returns indexes in `sizes` (bytes), in the order of Cassandra's list.
    /// A bucket whose average becomes equal to that of another replaces it, and the SSTables of the other are
    /// left for later, as in Cassandra.
    pub fn buckets(&self, sizes: &[i64]) -> Vec<Vec<usize>> {
        let mut ascending: Vec<usize> = (0..sizes.len()).collect();
        ascending.sort_by_key(|&place| sizes[place]);
        let mut buckets: JavaHashMap<Vec<usize>> = JavaHashMap::new();
        for place in ascending {
            let size = sizes[place];
            let alike = buckets
                .iter()
                .map(|(average, _)| average)
                .find(|average| self.is_similar(size, *average));
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
    /// Parses all options of a table.
    ///
    /// # Errors
    /// Options that Cassandra refuses, with its messages.
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

    /// Returns the SSTables to compact next, as indexes in `sstables`; none if no bucket is full enough
    /// (`getNextBackgroundSSTables` without its fallback).
    pub fn next(&self, sstables: &[SstableState]) -> Vec<usize> {
        let sizes = sstables.iter().map(|sstable| sstable.data_bytes as i64);
        let sizes: Vec<i64> = sizes.collect();
        self.most_interesting(self.buckets.buckets(&sizes), sstables)
    }

    /// Returns the hottest bucket with enough SSTables, without the coldest of them beyond the maximum
    /// number. Of several equally hot buckets it is the one with the largest SSTables, and of these the first
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

    /// Returns compactions that can run concurrently: the next one is selected repeatedly from the remaining
    /// SSTables, as by a node with a free compactor (`getNextBackgroundTasks`).
    pub fn next_concurrent(&self, sstables: &[SstableState]) -> Vec<Vec<usize>> {
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

    /// Estimated number of compactions for these buckets (`getEstimatedCompactionsByTasks`).
    pub fn estimated_tasks(&self, buckets: &[Vec<usize>]) -> usize {
        let full = |bucket: &&Vec<usize>| bucket.len() >= self.thresholds.min;
        let tasks = |bucket: &Vec<usize>| bucket.len().div_ceil(self.thresholds.max);
        buckets.iter().filter(full).map(tasks).sum()
    }

    /// Returns the SSTable to compact alone if [`SizeTiered::next`] returns none: the largest that meets the
    /// conditions, and of these the first (`getNextBackgroundSSTables`).
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

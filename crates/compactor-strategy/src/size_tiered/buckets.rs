//! Groups of SSTables of similar size.
//!
//! Source: `SizeTieredCompactionStrategy.getBuckets`, `mostInterestingBucket`,
//! `getEstimatedCompactionsByTasks`.

use std::sync::Arc;

use crate::java_hash_map::JavaHashMap;
use crate::options::{OptionError, Options, Thresholds, double, double_text, number, set};
use crate::sstable::{Sstable, total_bytes};

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

/// SSTables of similar size, ascending by it.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeTier {
    /// The SSTables.
    pub sstables: Vec<Arc<Sstable>>,
}

impl SizeTier {
    pub(crate) fn average_bytes(&self) -> u64 {
        total_bytes(&self.sstables) / (self.sstables.len() as u64).max(1)
    }

    /// Without the SSTables beyond the maximum number, all of which are as hot (`trimToThresholdWithHotness`).
    fn trimmed(&self, max: usize) -> SizeTier {
        SizeTier {
            sstables: self.sstables.iter().take(max).cloned().collect(),
        }
    }

    /// Mean length of all components, which decides between tiers.
    fn average_bytes_on_disk(&self) -> u64 {
        let bytes: u64 = self
            .sstables
            .iter()
            .map(|sstable| sstable.bytes_on_disk)
            .sum();
        bytes / (self.sstables.len() as u64).max(1)
    }
}

/// The tier with the largest SSTables, of those with enough, and of equal ones the first. SSTables beyond the maximum
/// number are left out. On a node, the tier with the most reads precedes.
pub(crate) fn most_interesting(tiers: &[SizeTier], thresholds: Thresholds) -> Option<SizeTier> {
    let trimmed = tiers.iter().map(|tier| tier.trimmed(thresholds.max));
    let large = trimmed.filter(|tier| tier.sstables.len() >= thresholds.min);
    // From the last on, since of equal ones the greatest is the one that is met last.
    large.rev().max_by_key(SizeTier::average_bytes_on_disk)
}

/// Estimated number of compactions of these tiers.
pub(crate) fn estimated_tasks(tiers: &[SizeTier], thresholds: Thresholds) -> usize {
    let sizes = tiers.iter().map(|tier| tier.sstables.len());
    let full = sizes.filter(|&size| size >= thresholds.min);
    full.map(|size| size.div_ceil(thresholds.max)).sum()
}

impl BucketOptions {
    /// Parses the options.
    ///
    /// # Errors
    /// Values that are not numbers, a negative size, or bounds in the wrong order.
    pub fn from_options(options: &Options) -> Result<BucketOptions, OptionError> {
        let mut read = BucketOptions::default();
        let min_size = "min_sstable_size";
        set(
            &mut read.min_sstable_size,
            options,
            min_size,
            |text| match number(text, min_size)? {
                negative @ ..0 => Err(OptionError(format!(
                    "{min_size} must be non negative: {negative}"
                ))),
                bytes => Ok(bytes),
            },
        )?;
        for (name, value) in [
            ("bucket_low", &mut read.low),
            ("bucket_high", &mut read.high),
        ] {
            set(value, options, name, |text| {
                double(text).ok_or_else(|| {
                    OptionError(format!("{text} is not a parsable float for {name}"))
                })
            })?;
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

    /// Groups SSTables of similar size; of equal ones the first given is first in its group.
    pub fn tiers(&self, sstables: &[Arc<Sstable>]) -> Vec<SizeTier> {
        let sizes = sstables.iter().map(|sstable| sstable.data_bytes as i64);
        let sizes: Vec<i64> = sizes.collect();
        let tier = |places: Vec<usize>| {
            let members = places.into_iter().map(|place| Arc::clone(&sstables[place]));
            SizeTier {
                sstables: members.collect(),
            }
        };
        self.buckets(&sizes).into_iter().map(tier).collect()
    }
}

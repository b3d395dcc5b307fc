//! Histograms of `Statistics.db`, without their empty buckets.

use compactor_sstable::statistics::{EstimatedHistogram, TombstoneHistogram};
use serde::Serialize;

/// Percentiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Percentiles {
    /// Median.
    pub p50: i64,
    /// 75th.
    pub p75: i64,
    /// 95th.
    pub p95: i64,
    /// 98th.
    pub p98: i64,
    /// 99th.
    pub p99: i64,
}

impl Percentiles {
    fn of(percentile: impl Fn(f64) -> Option<i64>) -> Option<Percentiles> {
        Some(Percentiles {
            p50: percentile(0.5)?,
            p75: percentile(0.75)?,
            p95: percentile(0.95)?,
            p98: percentile(0.98)?,
            p99: percentile(0.99)?,
        })
    }
}

/// A bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Bucket {
    /// Upper bound, inclusive; `None` for values above all buckets.
    pub up_to: Option<i64>,
    /// Number of values.
    pub count: i64,
}

/// An `EstimatedHistogram`, each bucket of which is a fifth wider than the one before.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct HistogramSummary {
    /// Number of values.
    pub count: i64,
    /// Lower bound of the smallest value.
    pub min: i64,
    /// Upper bound of the greatest value; `None` if a value is above all buckets.
    pub max: Option<i64>,
    /// Mean of the buckets' upper bounds, rounded up; `None` likewise.
    pub mean: Option<i64>,
    /// Percentiles, as upper bounds of buckets; `None` likewise.
    pub percentiles: Option<Percentiles>,
    /// Buckets that are not empty, ascending.
    pub buckets: Vec<Bucket>,
}

impl HistogramSummary {
    pub(super) fn of(histogram: &EstimatedHistogram) -> HistogramSummary {
        let ends = histogram.offsets().iter().copied().map(Some).chain([None]);
        let buckets = ends.zip(histogram.counts().iter().copied());
        HistogramSummary {
            count: histogram.count(),
            min: histogram.min(),
            max: (histogram.overflow() <= 0).then(|| histogram.max()),
            mean: histogram.mean(),
            percentiles: Percentiles::of(|part| histogram.percentile(part)),
            buckets: buckets
                .map(|(up_to, count)| Bucket { up_to, count })
                .filter(|bucket| bucket.count != 0)
                .collect(),
        }
    }
}

/// A point of the histogram of tombstones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DropTime {
    /// Local deletion time, seconds since 1970; rounded up, to a minute where Cassandra has its
    /// defaults.
    pub at_s: i64,
    /// Number of tombstones and expiring values.
    pub count: i32,
}

/// Local deletion times of tombstones and expiring values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DropTimes {
    /// Total number.
    pub count: i64,
    /// Percentiles of the local deletion times, seconds since 1970; `None` if there are none.
    pub percentiles: Option<Percentiles>,
    /// Points that are not empty, ascending.
    pub points: Vec<DropTime>,
}

impl DropTimes {
    pub(super) fn of(histogram: &TombstoneHistogram) -> DropTimes {
        let bins = histogram.bins();
        let count = bins.iter().map(|&(_, count)| i64::from(count)).sum();
        let percentile = |part: f64| {
            let wanted = ((count as f64 * part).ceil() as i64).max(1);
            let mut seen = 0;
            let reached = bins.iter().find(|&&(_, count)| {
                seen += i64::from(count);
                seen >= wanted
            });
            reached.map(|&(at_s, _)| at_s)
        };
        DropTimes {
            count,
            percentiles: Percentiles::of(percentile),
            points: bins
                .iter()
                .map(|&(at_s, count)| DropTime { at_s, count })
                .collect(),
        }
    }
}

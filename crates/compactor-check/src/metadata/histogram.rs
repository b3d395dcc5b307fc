//! Histograms of `Statistics.db`, without their empty buckets.

use compactor_sstable::statistics::{EstimatedHistogram, TombstoneHistogram};
use serde::Serialize;

/// Values at which certain parts of all are not exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// Half.
    pub p50: i64,
    /// 75 %.
    pub p75: i64,
    /// 95 %.
    pub p95: i64,
    /// 98 %.
    pub p98: i64,
    /// 99 %.
    pub p99: i64,
}

/// Values of one magnitude.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// The greatest value that counts here; `None` for what exceeds all buckets.
    pub up_to: Option<i64>,
    /// Number of values.
    pub count: i64,
}

/// An `EstimatedHistogram`, whose buckets grow by a fifth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HistogramSummary {
    /// Number of values.
    pub count: i64,
    /// The smallest value that may be among them.
    pub min: i64,
    /// The greatest one; `None` if some exceed all buckets.
    pub max: Option<i64>,
    /// Mean of the buckets' upper ends, rounded up; `None` likewise.
    pub mean: Option<i64>,
    /// Upper ends of the buckets of certain parts; `None` likewise.
    pub percentiles: Option<Percentiles>,
    /// Buckets that hold something, ascending.
    pub buckets: Vec<Bucket>,
}

impl HistogramSummary {
    pub(super) fn of(histogram: &EstimatedHistogram) -> HistogramSummary {
        let ends = histogram.offsets().iter().copied().map(Some).chain([None]);
        let buckets = ends.zip(histogram.counts().iter().copied());
        let percentiles = || {
            Some(Percentiles {
                p50: histogram.percentile(0.5)?,
                p75: histogram.percentile(0.75)?,
                p95: histogram.percentile(0.95)?,
                p98: histogram.percentile(0.98)?,
                p99: histogram.percentile(0.99)?,
            })
        };
        HistogramSummary {
            count: histogram.count(),
            min: histogram.min(),
            max: (histogram.overflow() <= 0).then(|| histogram.max()),
            mean: histogram.mean(),
            percentiles: percentiles(),
            buckets: buckets
                .map(|(up_to, count)| Bucket { up_to, count })
                .filter(|bucket| bucket.count != 0)
                .collect(),
        }
    }
}

/// Tombstones and expiring values of about one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DropTime {
    /// Local deletion time, seconds since 1970; rounded up, to a minute where Cassandra has its
    /// defaults.
    pub at_s: i64,
    /// How many.
    pub count: i32,
}

/// Local deletion times of tombstones and expiring values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DropTimes {
    /// Number of all.
    pub count: i64,
    /// Local deletion times of certain parts, seconds since 1970; `None` if there are none.
    pub percentiles: Option<Percentiles>,
    /// Points that hold something, ascending.
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
        let percentiles = || {
            Some(Percentiles {
                p50: percentile(0.5)?,
                p75: percentile(0.75)?,
                p95: percentile(0.95)?,
                p98: percentile(0.98)?,
                p99: percentile(0.99)?,
            })
        };
        DropTimes {
            count,
            percentiles: percentiles(),
            points: bins
                .iter()
                .map(|&(at_s, count)| DropTime { at_s, count })
                .collect(),
        }
    }
}

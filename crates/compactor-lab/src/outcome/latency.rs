//! Latencies of the foreground load's reads.

use serde::{Deserialize, Serialize};

use super::Phase;

/// Latencies of reads whose intended start is in a span of time.
///
/// Each is counted from the moment at which the read was *to* start, whether or not a thread was free
/// then: a stall shows in all reads that it held up. Three significant digits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Reads.
    pub operations: u64,
    /// Reads that failed, which are not in the figures below.
    pub errors: u64,
    /// Length of the span, seconds.
    pub duration_s: f64,
    /// Reads per second that the schedule had in the span.
    pub intended_per_s: f64,
    /// Reads per second that were completed.
    pub achieved_per_s: f64,
    /// Mean.
    pub mean_ns: f64,
    /// Standard deviation.
    pub stdev_ns: f64,
    /// Least.
    pub min_ns: u64,
    /// Half of the reads took at most this.
    pub p50_ns: u64,
    /// 90 percent.
    pub p90_ns: u64,
    /// 95 percent.
    pub p95_ns: u64,
    /// 99 percent.
    pub p99_ns: u64,
    /// 99.9 percent.
    pub p999_ns: u64,
    /// 99.99 percent.
    pub p9999_ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// The whole distribution as HdrHistogram prints it: from 0 to 100, closer towards 100.
    pub curve: Vec<CurvePoint>,
}

/// A point of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// 0 to 100.
    pub percentile: f64,
    /// Latency that this share of the reads had at most.
    pub latency_ns: u64,
    /// Number of reads that took at most this.
    pub operations: u64,
}

/// Latencies of a second or so: reads that *ended* in it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Begin.
    pub start_s: f64,
    /// Length.
    pub duration_s: f64,
    /// Phase of the run when it began.
    pub phase: Phase,
    /// Reads.
    pub operations: u64,
    /// Reads that failed.
    pub errors: u64,
    /// Mean; 0 without reads, as the others.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 99 percent.
    pub p99_ns: u64,
    /// 99.9 percent.
    pub p999_ns: u64,
    /// Longest.
    pub max_ns: u64,
}

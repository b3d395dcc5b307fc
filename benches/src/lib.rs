//! Shared by the benches: seeded inputs in memory, and ends of the pipeline that keep nothing.
//!
//! One bench file per subject; names are `subject/case/parameter` and the key of their history, so
//! they stay. Every bench checks its answer once before it is timed; the group's function documents what
//! its throughput counts. Inputs come from fixed seeds: two runs time the same bytes.
//!
//! Measurements that need a disk for longer than a moment, or a latency's tail, do not belong here: criterion's
//! means hide tails.
#![forbid(unsafe_code)]

use std::time::Duration;

use criterion::Criterion;

pub mod memory;
pub mod shape;
pub mod table;

/// Short measurements: all benches together take a couple of minutes.
pub fn criterion() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
}

//! Contents of flushed SSTables.

use crate::cohort::{Buckets, Cohort, Kind, joined};
use crate::distribution::Distribution;
use crate::popularity::Popularity;
use crate::workload::Workload;

/// Rows that are written during a span of time, each counted once. `from_us` to `to_us`: their timestamps;
/// `elapsed_s`: time since the start at the end of the span.
pub(crate) fn flushed(
    workload: &Workload,
    popularity: &Popularity,
    buckets: Buckets,
    (from_us, to_us): (i64, i64),
    elapsed_s: f64,
) -> Vec<Cohort> {
    let span_s = (to_us - from_us) as f64 / crate::cohort::US;
    let writes = workload.writes_per_s() * span_s;
    let again = (workload.updates + workload.deletes) * writes;
    let deleted_part = if again > 0.0 {
        workload.deletes / (workload.updates + workload.deletes)
    } else {
        0.0
    };
    let existing = workload.existing_rows(elapsed_s - span_s / 2.0);
    let mut cohorts = Vec::with_capacity(2 * popularity.len());
    for class in 0..popularity.len() {
        let inserted = popularity.rows(class) * workload.inserts() * writes;
        let rows = popularity.rows(class) * existing;
        let touched = distinct(rows, popularity.writes(class) * again);
        let (deleted, updated) = (touched * deleted_part, touched * (1.0 - deleted_part));
        let cohort = |kind, all: f64, found: f64| Cohort {
            class: class as u16,
            kind,
            bucket: buckets.of(i64::midpoint(from_us, to_us)),
            oldest_us: from_us,
            newest_us: to_us - 1,
            rows: all,
            cover: found / rows.max(1e-9),
        };
        cohorts.push(cohort(Kind::Live, inserted + updated, updated));
        cohorts.push(cohort(Kind::Dead, deleted, deleted));
    }
    joined(cohorts)
}

/// Expected number of rows among `rows` that are found by a number of draws.
fn distinct(rows: f64, draws: f64) -> f64 {
    if rows > 0.0 {
        -rows * (-draws / rows).exp_m1()
    } else {
        0.0
    }
}

/// Number of partitions that have one of some rows.
pub(crate) fn partitions(workload: &Workload, rows: f64, elapsed_s: f64) -> f64 {
    let per_partition = workload.rows_per_partition();
    let found = match workload.distribution {
        Distribution::TimeOrdered => rows / per_partition,
        _ if per_partition <= 1.0 => rows,
        _ => distinct(workload.existing_rows(elapsed_s) / per_partition, rows),
    };
    found.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::MIB;

    const SECOND_US: i64 = 1_000_000;

    fn of(workload: &Workload, span_s: i64, elapsed_s: f64) -> Vec<Cohort> {
        let popularity = Popularity::new(workload.distribution, 1e6);
        let buckets = Buckets::new(0, 1000.0);
        flushed(
            workload,
            &popularity,
            buckets,
            (0, span_s * SECOND_US),
            elapsed_s,
        )
    }

    #[test]
    fn no_insert_is_missing() {
        let workload = Workload::default();
        let [only] = of(&workload, 128, 128.0)[..] else {
            panic!("one cohort");
        };
        assert_eq!(only.rows * workload.row_bytes, 128.0 * MIB);
        assert_eq!((only.kind, only.cover), (Kind::Live, 0.0));
    }

    #[test]
    fn rows_that_are_written_twice_count_once() {
        let workload = Workload {
            updates: 0.5,
            deletes: 0.5,
            tombstone_bytes: 1024.0,
            rows: 1024.0,
            ..Workload::default()
        };
        let [live, dead] = of(&workload, 1, 1.0)[..] else {
            panic!("two cohorts");
        };
        // 1024 draws of 768 rows, as are left on average, find 1 − e^(−4/3) of them.
        assert!((live.cover + dead.cover - 0.736).abs() < 0.001);
        assert!((live.rows - dead.rows).abs() < 1e-9);
    }
}

//! Writes of a table.

use crate::distribution::Distribution;
use crate::popularity::Popularity;
use crate::setup_error::SetupError;

/// Writes of a table, all along the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Bytes that are written per second, uncompressed.
    pub ingest_bytes_per_s: f64,
    /// Bytes of a row.
    pub row_bytes: f64,
    /// Bytes of all rows of a partition.
    pub partition_bytes: f64,
    /// Bytes of a tombstone.
    pub tombstone_bytes: f64,
    /// Stored bytes per byte.
    pub compression_ratio: f64,
    /// Which rows are updated, deleted and read.
    pub distribution: Distribution,
    /// Part of the writes that overwrite an existing row. Others insert rows.
    pub updates: f64,
    /// Part of the writes that delete an existing row.
    pub deletes: f64,
    /// Number of rows that updates and deletes find at the start; none of them is stored before it is
    /// updated.
    pub rows: f64,
    /// Time to live of rows, seconds.
    pub ttl_s: Option<u64>,
    /// Age from which tombstones are purged, seconds (`gc_grace_seconds`).
    pub gc_grace_s: u64,
    /// Stored bytes of an SSTable that is flushed, before rows that were written twice are counted once.
    pub flush_bytes: f64,
}

impl Default for Workload {
    fn default() -> Workload {
        Workload {
            ingest_bytes_per_s: MIB,
            row_bytes: 1024.0,
            partition_bytes: 1024.0,
            tombstone_bytes: 40.0,
            compression_ratio: 1.0,
            distribution: Distribution::Uniform,
            updates: 0.0,
            deletes: 0.0,
            rows: 0.0,
            ttl_s: None,
            gc_grace_s: 864_000,
            flush_bytes: 128.0 * MIB,
        }
    }
}

/// Bytes of a MiB.
pub(crate) const MIB: f64 = (1u64 << 20) as f64;

/// Fewest rows that updates are distributed over.
const FEWEST_ROWS: f64 = 1.0;
/// Least part of the initial rows that more deletes than inserts must leave: figures per row that is left mean nothing
/// when hardly any is.
const LEAST_LEFT: f64 = 0.1;

impl Workload {
    /// Refuses numbers that are out of range, and contradictions.
    pub(crate) fn validate(&self) -> Result<(), SetupError> {
        let positive = [
            ("ingest", self.ingest_bytes_per_s),
            ("row-size", self.row_bytes),
            ("partition-size", self.partition_bytes),
            ("tombstone-size", self.tombstone_bytes),
            ("compression-ratio", self.compression_ratio),
            ("flush-size", self.flush_bytes),
        ];
        for (name, value) in positive {
            if !(value.is_finite() && value > 0.0) {
                return Err(SetupError(format!("{name} must be greater than 0")));
            }
        }
        for (name, part) in [("updates", self.updates), ("deletes", self.deletes)] {
            if !(0.0..=1.0).contains(&part) {
                return Err(SetupError(format!("{name} must be between 0 and 1")));
            }
        }
        self.refuse_contradictions()
    }

    fn refuse_contradictions(&self) -> Result<(), SetupError> {
        let refused = |text: &str| Err(SetupError(text.to_owned()));
        let again = self.updates + self.deletes;
        match () {
            () if self.partition_bytes < self.row_bytes => {
                refused("partition-size cannot be smaller than row-size")
            }
            () if self.row_bytes > self.flush_bytes / self.compression_ratio => {
                refused("row-size cannot be greater than a flush")
            }
            () if again > 1.0 => refused("updates and deletes together cannot be more than 1"),
            () if self.distribution == Distribution::TimeOrdered && again > 0.0 => refused(
                "updates and deletes need a distribution other than time-ordered, which writes no row twice",
            ),
            () if self.inserts() <= self.deletes && again > 0.0 && self.rows < FEWEST_ROWS => {
                refused(
                    "updates and deletes find too few rows: set rows, or have more inserts than deletes",
                )
            }
            () if again == 0.0 && self.rows > 0.0 => {
                refused("rows has no effect without updates or deletes")
            }
            () => Ok(()),
        }
    }

    /// Refuses more deletes than inserts if they leave hardly a row within `duration_s`.
    pub(crate) fn validate_rows(&self, duration_s: f64) -> Result<(), SetupError> {
        let deleted = (self.deletes - self.inserts()) * self.writes_per_s() * duration_s;
        let most = (1.0 - LEAST_LEFT) * self.rows;
        if deleted <= most || deleted <= 0.0 {
            return Ok(());
        }
        Err(SetupError(format!(
            "fewer than a tenth of the rows are left after {:.0} s of {duration_s:.0} s: set rows to at least {:.0}, \
             choose a shorter duration, or have more inserts than deletes",
            duration_s * most / deleted,
            (deleted / (1.0 - LEAST_LEFT)).ceil() + 1.0
        )))
    }

    /// Part of the writes that insert a row.
    pub(crate) fn inserts(&self) -> f64 {
        (1.0 - self.updates - self.deletes).max(0.0)
    }

    /// Writes per second.
    pub(crate) fn writes_per_s(&self) -> f64 {
        let mean_bytes =
            (1.0 - self.deletes) * self.row_bytes + self.deletes * self.tombstone_bytes;
        self.ingest_bytes_per_s / mean_bytes
    }

    /// Time between two flushes, seconds.
    pub(crate) fn flush_interval_s(&self) -> f64 {
        self.flush_bytes / (self.ingest_bytes_per_s * self.compression_ratio)
    }

    /// Rows that were inserted since the last flush, a moment after which there are none.
    pub(crate) fn inserts_since_flush(&self, elapsed_s: f64) -> f64 {
        let flushes = elapsed_s / self.flush_interval_s();
        // Of a sample at the time of a flush, which comes first.
        let part = (flushes + 1e-9).fract();
        let since_s = part * self.flush_interval_s();
        self.writes_per_s() * self.inserts() * since_s
    }

    /// Rows of a partition.
    pub(crate) fn rows_per_partition(&self) -> f64 {
        self.partition_bytes / self.row_bytes
    }

    /// Rows of a partition of which each is in an SSTable or not, whichever others are.
    pub(crate) fn scattered_rows(&self) -> f64 {
        match self.distribution {
            Distribution::TimeOrdered => 1.0,
            _ => self.rows_per_partition(),
        }
    }

    /// Stored bytes of a row.
    pub(crate) fn stored_row_bytes(&self) -> f64 {
        self.row_bytes * self.compression_ratio
    }

    /// Stored bytes of a tombstone.
    pub(crate) fn stored_tombstone_bytes(&self) -> f64 {
        self.tombstone_bytes * self.compression_ratio
    }

    /// Number of rows that exist, and that the next update or delete may find.
    pub(crate) fn existing_rows(&self, elapsed_s: f64) -> f64 {
        let per_s = self.writes_per_s();
        let grown = (self.inserts() - self.deletes) * per_s * elapsed_s;
        let inserted = match self.ttl_s {
            None => grown,
            Some(ttl) => grown.min(self.steady_rows(ttl as f64)),
        };
        (self.rows + inserted).max(FEWEST_ROWS)
    }

    /// Inserted rows that have neither expired nor been deleted, once their number K is steady. A row is updated at the
    /// rate u/K, which prolongs its life, and deleted at the rate d/K. With q = e^(−(u+d)·TTL/K), the part of the
    /// rows that is not written for a time to live, it lives for (1 − q)·K/(d + u·q) on average, so that
    /// K = (u + d)·TTL/ln((u + i)/(i − d)).
    fn steady_rows(&self, ttl_s: f64) -> f64 {
        let writes = self.writes_per_s() * ttl_s;
        let again = self.updates + self.deletes;
        let left = self.inserts() - self.deletes;
        match () {
            () if left <= 0.0 => f64::INFINITY,
            () if again <= 0.0 => writes * self.inserts(),
            // (u + i)/(i − d) is 1 + (u + d)/(i − d).
            () => writes * again / (again / left).ln_1p(),
        }
    }

    /// Stored bytes that a table without anything superfluous would have.
    pub(crate) fn live_bytes(&self, elapsed_s: f64, popularity: &Popularity) -> f64 {
        let rows: f64 = (0..popularity.len())
            .map(|class| self.live_rows(elapsed_s, popularity, class))
            .sum();
        rows * self.stored_row_bytes()
    }

    /// Rows of a class that exist, and of the initial ones only those that were written in the time to live.
    pub(crate) fn live_rows(&self, elapsed_s: f64, popularity: &Popularity, class: usize) -> f64 {
        let existing = self.existing_rows(elapsed_s);
        let window_s = self
            .ttl_s
            .map_or(elapsed_s, |ttl| elapsed_s.min(ttl as f64));
        let again = (self.updates + self.deletes) * self.writes_per_s();
        let share = popularity.rows(class);
        let rate = popularity.writes(class) * again / (share * existing);
        let unwritten = self.rows * (-rate * window_s).exp();
        share * (existing - unwritten).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn without_updates_all_rows_of_the_time_to_live_are_live() {
        let workload = Workload {
            ttl_s: Some(1000),
            ..Workload::default()
        };
        let popularity = Popularity::new(Distribution::Uniform, 1e6);
        let live = |elapsed| workload.live_bytes(elapsed, &popularity) / MIB;
        assert!((live(500.0) - 500.0).abs() < 1e-6);
        assert!((live(5000.0) - 1000.0).abs() < 1e-6);
    }

    /// Number of rows after many writes, each to a random row, averaged over the second half.
    fn counted_rows(workload: &Workload, writes_per_ttl: usize) -> f64 {
        let mut random = Random::new(1);
        let mut written: Vec<usize> = Vec::new();
        let (mut sum, mut samples) = (0, 0);
        for now in 0..40 * writes_per_ttl {
            let draw = random.fraction();
            let row = (random.fraction() * written.len() as f64) as usize;
            match () {
                () if draw < workload.inserts() || written.is_empty() => written.push(now),
                () if draw < workload.inserts() + workload.updates => written[row] = now,
                () => drop(written.swap_remove(row)),
            }
            if now.is_multiple_of(writes_per_ttl / 50) {
                written.retain(|at| at + writes_per_ttl > now);
                if now > 20 * writes_per_ttl {
                    sum += written.len();
                    samples += 1;
                }
            }
        }
        sum as f64 / f64::from(samples)
    }

    #[test]
    fn rows_that_are_neither_expired_nor_deleted() {
        const WRITES: usize = 5000;
        for (updates, deletes) in [
            (0.0, 0.0),
            (0.4, 0.0),
            (0.0, 0.38),
            (0.01, 0.38),
            (0.3, 0.2),
        ] {
            let mut workload = Workload {
                updates,
                deletes,
                ..Workload::default()
            };
            workload.ingest_bytes_per_s /= workload.writes_per_s();
            let steady = workload.steady_rows(WRITES as f64);
            let counted = counted_rows(&workload, WRITES);
            assert!(
                (steady / counted - 1.0).abs() < 0.05,
                "{updates}, {deletes}: {steady}, counted {counted}"
            );
        }
    }

    #[test]
    fn updates_fill_the_initial_rows() {
        let workload = Workload {
            updates: 1.0,
            rows: 1024.0 * 100.0,
            ..Workload::default()
        };
        let popularity = Popularity::new(Distribution::Uniform, workload.rows);
        let live = |elapsed| workload.live_bytes(elapsed, &popularity) / MIB;
        // After as many writes as rows, 1 − 1/e of them are written.
        assert!((live(100.0) - 63.2).abs() < 0.1);
        assert!((live(10_000.0) - 100.0).abs() < 1e-6);
    }

    #[test]
    fn deletes_that_leave_hardly_a_row_are_refused() {
        // Half of the writes delete a row, a quarter insert one: each write removes a quarter of a row on average.
        let mut workload = Workload {
            rows: 1000.0,
            updates: 0.25,
            deletes: 0.5,
            ..Workload::default()
        };
        let until_none_s = 4000.0 / workload.writes_per_s();
        assert_eq!(workload.validate_rows(0.89 * until_none_s), Ok(()));
        assert!(workload.validate_rows(0.91 * until_none_s).is_err());
        let refused = workload.validate_rows(1.8 * until_none_s).unwrap_err().0;
        assert!(refused.contains("least 2001"), "{refused}");
        workload.rows = 2001.0;
        assert_eq!(workload.validate_rows(1.8 * until_none_s), Ok(()));
    }

    #[test]
    fn contradictions_are_refused() {
        let refused = |change: &dyn Fn(&mut Workload)| {
            let mut workload = Workload::default();
            change(&mut workload);
            workload.validate().unwrap_err().0
        };
        assert!(refused(&|w| w.ingest_bytes_per_s = 0.0).contains("ingest"));
        assert!(refused(&|w| w.updates = 1.5).contains("updates"));
        assert!(refused(&|w| w.partition_bytes = 1.0).contains("row-size"));
        assert!(refused(&|w| (w.updates, w.deletes) = (0.6, 0.5)).contains("together"));
        assert!(refused(&|w| w.updates = 1.0).contains("too few rows"));
        assert!(refused(&|w| w.rows = 5.0).contains("no effect"));
        let time_ordered = |w: &mut Workload| {
            (w.distribution, w.deletes) = (Distribution::TimeOrdered, 0.1);
        };
        assert!(refused(&time_ordered).contains("time-ordered"));
    }
}

//! SSTables outside of a merge that may have older versions of its rows.

use crate::cohort::{Cohort, Kind};
use crate::distribution::Distribution;
use crate::popularity::Popularity;
use crate::stored::{Range, Stored};
use crate::workload::Workload;

/// Probabilities that a tombstone can be purged, for a merge of some tokens.
#[derive(Debug)]
pub(crate) struct Overlaps<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) popularity: &'a Popularity,
    /// SSTables that overlap the merge.
    pub(crate) outside: Vec<&'a Stored>,
    /// Rows of the ring that exist.
    pub(crate) existing: f64,
}

impl Overlaps<'_> {
    /// Whether a row can be in several SSTables, or a partition, by whose filters Cassandra decides.
    pub(crate) fn matter(workload: &Workload) -> bool {
        let is_spread = workload.scattered_rows() > 1.0;
        let is_written_again = workload.updates + workload.deletes > 0.0;
        workload.distribution != Distribution::TimeOrdered && (is_spread || is_written_again)
    }

    /// Probability that no SSTable outside with data as old has the partition of a tombstone.
    pub(crate) fn purgeable(&self, range: Range, dead: &Cohort) -> f64 {
        let outside = self.outside.iter();
        let older = outside.filter(|stored| stored.oldest_us <= dead.newest_us);
        let absent = older.map(|stored| {
            let part = range.part_in(stored.range);
            if part > 0.0 {
                1.0 - part * self.contained(stored, dead)
            } else {
                1.0
            }
        });
        absent.product()
    }

    /// Probability that an SSTable has the partition of a tombstone, between its tokens.
    fn contained(&self, stored: &Stored, dead: &Cohort) -> f64 {
        let class = usize::from(dead.class);
        let all = self.existing * self.popularity.rows(class) * stored.range.coverage();
        let own = stored.cohorts.iter().filter(|c| c.class == dead.class);
        let scattered = self.workload.scattered_rows();
        if scattered > 1.0 {
            let rows: f64 = own.map(|cohort| cohort.rows).sum();
            let part = (rows / all.max(1e-9)).min(1.0);
            return 1.0 - (1.0 - part).powf(scattered);
        }
        let mut newer = 0.0;
        let mut older = 0.0;
        for cohort in own {
            if cohort.newest_us > dead.newest_us {
                newer += cohort.cover
            } else {
                older += cohort.rows
            }
        }
        let older = (older / all.max(1e-9)).min(1.0) * self.part_written_before(dead);
        (newer + older).min(1.0)
    }

    /// Part of tombstones whose row was written before.
    fn part_written_before(&self, dead: &Cohort) -> f64 {
        let Workload {
            updates, deletes, ..
        } = *self.workload;
        match (dead.kind, self.workload.ttl_s) {
            (Kind::Dead, None) => 1.0,
            // Inserted rows that expired have no older version.
            _ => updates + deletes,
        }
    }
}

//! Expiry of rows and purging of tombstones in a merge.
//!
//! Source: `CompactionController.getPurgeEvaluator`, `AbstractCell.purge`.

use crate::cohort::{Cohort, Kind, US, joined};
use crate::workload::Workload;

/// Times before which rows expire and tombstones are purged, microseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifetime {
    /// Timestamp before which rows are expired.
    expired_before_us: Option<i64>,
    /// Timestamp before which tombstones may be purged. An expired row becomes a tombstone of the time when it
    /// was written.
    purged_before_us: i64,
}

impl Lifetime {
    /// Lifetime of a merge that begins now.
    pub(crate) fn at(now_us: i64, workload: &Workload) -> Lifetime {
        let before = |seconds: u64| now_us.saturating_sub((seconds as f64 * US) as i64);
        Lifetime {
            expired_before_us: workload.ttl_s.map(before),
            purged_before_us: before(workload.gc_grace_s),
        }
    }

    /// Whether anything of a cohort is to be changed.
    pub(crate) fn applies_to(&self, cohort: &Cohort) -> bool {
        match cohort.kind {
            Kind::Live => self
                .expired_before_us
                .is_some_and(|before| cohort.oldest_us < before),
            Kind::Dead => cohort.oldest_us < self.purged_before_us,
        }
    }

    /// Rows and tombstones that remain. `purgeable`: the probability that no older version of a row of a cohort
    /// may be in an SSTable outside of the merge.
    pub(crate) fn remaining(
        &self,
        cohorts: Vec<Cohort>,
        purgeable: impl Fn(&Cohort) -> f64,
    ) -> Vec<Cohort> {
        if !cohorts.iter().any(|cohort| self.applies_to(cohort)) {
            return cohorts;
        }
        let mut remaining = Vec::with_capacity(cohorts.len() + 2);
        for cohort in cohorts {
            match cohort.kind {
                Kind::Dead => self.purge(cohort, &purgeable, &mut remaining),
                Kind::Live => {
                    let before = self.expired_before_us.unwrap_or(i64::MIN);
                    let [expired, live] = cohort.split_at(before);
                    remaining.extend(live);
                    if let Some(expired) = expired {
                        let dead = Cohort {
                            kind: Kind::Dead,
                            ..expired
                        };
                        self.purge(dead, &purgeable, &mut remaining);
                    }
                }
            }
        }
        joined(remaining)
    }

    fn purge(&self, dead: Cohort, purgeable: impl Fn(&Cohort) -> f64, to: &mut Vec<Cohort>) {
        let [old, young] = dead.split_at(self.purged_before_us);
        to.extend(young);
        to.extend(old.map(|old| {
            let kept = 1.0 - purgeable(&old);
            old.scaled(kept, kept)
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    fn rows(kind: Kind, ttl_s: u64, gc_grace_s: u64, purgeable: f64) -> Vec<(Kind, f64)> {
        let workload = Workload {
            ttl_s: Some(ttl_s),
            gc_grace_s,
            ..Workload::default()
        };
        let cohort = Cohort {
            class: 0,
            kind,
            bucket: 0,
            oldest_us: 0,
            newest_us: 100 * SECOND,
            rows: 100.0,
            cover: 0.0,
        };
        let lifetime = Lifetime::at(200 * SECOND, &workload);
        let remaining = lifetime.remaining(vec![cohort], |_| purgeable);
        remaining.iter().map(|c| (c.kind, c.rows.round())).collect()
    }

    #[test]
    fn an_expired_row_is_purged_at_once_if_it_lived_for_gc_grace() {
        // Expired are those of the first 75 s.
        assert_eq!(rows(Kind::Live, 125, 60, 1.0), [(Kind::Live, 25.0)]);
        assert_eq!(
            rows(Kind::Live, 125, 150, 1.0),
            [(Kind::Live, 25.0), (Kind::Dead, 25.0)]
        );
        assert_eq!(
            rows(Kind::Live, 125, 60, 0.0),
            [(Kind::Live, 25.0), (Kind::Dead, 75.0)]
        );
    }

    #[test]
    fn tombstones_are_purged_after_gc_grace() {
        assert_eq!(rows(Kind::Dead, 1, 150, 1.0), [(Kind::Dead, 50.0)]);
        assert_eq!(rows(Kind::Dead, 1, 150, 0.5), [(Kind::Dead, 75.0)]);
    }
}

//! SSTables of the simulation.

use compactor_strategy::droppable::DroppableTombstones;
use compactor_strategy::key_estimate::KeyEstimate;
use compactor_strategy::sstable::{Sstable, SstableId};
use compactor_strategy::token::Token;

use crate::cohort::{Cohort, Kind, US};
use crate::workload::Workload;

/// Tokens from the first one up to, without, the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: i128,
    pub(crate) end: i128,
}

/// Number of tokens of the ring of `Murmur3Partitioner`.
pub(crate) const RING: f64 = 18_446_744_073_709_551_616.0;

impl Range {
    /// Number of tokens.
    pub(crate) fn width(self) -> f64 {
        (self.end - self.start) as f64
    }

    /// Part of the ring.
    pub(crate) fn coverage(self) -> f64 {
        self.width() / RING
    }

    /// Part of this range that another covers.
    pub(crate) fn part_in(self, other: Range) -> f64 {
        let common = self.end.min(other.end) - self.start.max(other.start);
        (common.max(0) as f64 / self.width()).min(1.0)
    }
}

/// An SSTable: where its rows are, and how many.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) range: Range,
    pub(crate) oldest_us: i64,
    pub(crate) cohorts: Vec<Cohort>,
    /// Number of merges that its rows went through.
    pub(crate) generation: u32,
}

impl Stored {
    pub(crate) fn new(range: Range, cohorts: Vec<Cohort>, generation: u32) -> Stored {
        let oldest_us = cohorts.iter().map(|cohort| cohort.oldest_us).min();
        Stored {
            range,
            oldest_us: oldest_us.unwrap_or(i64::MAX),
            cohorts,
            generation,
        }
    }

    /// The SSTable as a strategy sees it.
    pub(crate) fn describe(
        &self,
        id: SstableId,
        level: u32,
        now_ms: i64,
        workload: &Workload,
    ) -> Sstable {
        let bytes = bytes_of(&self.cohorts, workload).round().max(1.0) as u64;
        let rows: f64 = self.cohorts.iter().map(|cohort| cohort.rows).sum();
        let (first, last) = (Token(self.range.start), Token(self.range.end - 1));
        let newest_us = self.cohorts.iter().map(|cohort| cohort.newest_us).max();
        let deletion_times = self.cohorts.iter().map(|c| deletion_time_s(c, workload));
        let keys = (rows / workload.rows_per_partition()).ceil() as u64;
        Sstable {
            min_timestamp: self.oldest_us,
            max_timestamp: newest_us.unwrap_or(i64::MIN),
            max_local_deletion_time: deletion_times.max().unwrap_or(i64::MAX),
            level,
            created_ms: now_ms,
            tombstones: tombstones(&self.cohorts, rows, workload),
            keys: KeyEstimate {
                keys,
                partitions: keys.max(1),
                samples: None,
            },
            ..Sstable::new(id, bytes, first, last)
        }
    }
}

/// Stored bytes of rows.
pub(crate) fn bytes_of(cohorts: &[Cohort], workload: &Workload) -> f64 {
    let (row, tombstone) = (
        workload.stored_row_bytes(),
        workload.stored_tombstone_bytes(),
    );
    let bytes = cohorts.iter().map(|cohort| match cohort.kind {
        Kind::Live => cohort.rows * row,
        Kind::Dead => cohort.rows * tombstone,
    });
    bytes.sum()
}

/// Time from which the newest of these rows is deleted, seconds since 1970.
fn deletion_time_s(cohort: &Cohort, workload: &Workload) -> i64 {
    let newest_s = (cohort.newest_us as f64 / US) as i64;
    match (cohort.kind, workload.ttl_s) {
        (Kind::Dead, _) => newest_s,
        (Kind::Live, Some(ttl)) => newest_s.saturating_add_unsigned(ttl),
        (Kind::Live, None) => i64::MAX,
    }
}

/// Rows beyond which they are counted in larger units: a histogram has Java's `int`s.
const MAX_COUNT: f64 = 1e9;

fn tombstones(cohorts: &[Cohort], rows: f64, workload: &Workload) -> DroppableTombstones {
    let unit = (rows / MAX_COUNT).max(1.0);
    let mut points: Vec<(i64, u32)> = Vec::new();
    for cohort in cohorts {
        let time_s = deletion_time_s(cohort, workload);
        if time_s < i64::MAX {
            points.push((time_s, (cohort.rows / unit) as u32));
        }
    }
    points.sort_unstable();
    points.dedup_by(|next, last| {
        let is_same = next.0 == last.0;
        if is_same {
            last.1 = last.1.saturating_add(next.1);
        }
        is_same
    });
    DroppableTombstones::new(&points, (rows / unit).ceil() as i64)
}

//! Samples of the table while it is simulated.

use super::Simulation;
use crate::measure::{levels, reads};
use crate::outcome::Sample;

/// Number of flushed SSTables that no compaction has read at which a simulation ends.
const MAX_FLUSHED: usize = 2000;

impl Simulation<'_> {
    /// Whether flushed SSTables accumulate.
    pub(super) fn is_overloaded(&self) -> bool {
        // There are as many only if there are as many SSTables; counting takes time, and nothing hurries.
        if self.table.len() <= MAX_FLUSHED || !self.table.len().is_multiple_of(64) {
            return false;
        }
        let flushed = self.table.iter().filter(|(_, s)| s.generation == 0);
        flushed.count() > MAX_FLUSHED
    }

    /// Notes the state of the table, and what happened since the sample before.
    pub(super) fn sample(&mut self) {
        let written = self.meter.flushed_bytes + self.meter.written_bytes;
        let read = self.meter.read_bytes;
        let (before_s, before_written, before_read) = self.sampled;
        let span_s = self.now_s - before_s;
        if span_s <= 0.0 {
            return;
        }
        self.sampled = (self.now_s, written, read);
        let workload = &self.setup.workload;
        let reads = reads(
            &self.table,
            workload,
            &self.popularity,
            self.setup.fp_chance(),
            (self.start_us, self.now_s),
        );
        let levels = levels(&self.table);
        self.samples.push(Sample {
            time_s: self.now_s,
            dataset_bytes: self.table.bytes(),
            live_bytes: self.live_bytes(),
            temporary_bytes: self.compactors.temporary_bytes(),
            sstables: self.table.len(),
            sstables_per_point_read: reads.point,
            sstables_per_range_read: reads.range,
            pending_tasks: self.table.manager.pending_tasks(),
            write_bytes_per_s: (written - before_written) / span_s,
            read_bytes_per_s: (read - before_read) / span_s,
            level_bytes: levels.iter().map(|l| (l.level, l.bytes)).collect(),
        });
    }

    /// Stored bytes of the rows that exist; those of initial SSTables are counted until they expire.
    pub(super) fn live_bytes(&self) -> f64 {
        let workload = &self.setup.workload;
        let initial: u64 = self.setup.initial.iter().map(|s| s.data_bytes).sum();
        let expires = |ttl: u64| self.now_s > ttl as f64;
        let initial = if workload.ttl_s.is_some_and(expires) {
            0.0
        } else {
            initial as f64
        };
        initial + workload.live_bytes(self.now_s, &self.popularity)
    }
}

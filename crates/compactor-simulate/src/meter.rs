//! Sums over the time of a simulation.

use std::collections::BTreeMap;

use crate::outcome::Compactions;

/// Bytes written and read, and the greatest amounts of room.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    pub(crate) flushed_bytes: f64,
    /// Bytes that compactions read.
    pub(crate) read_bytes: f64,
    /// Bytes that compactions wrote.
    pub(crate) written_bytes: f64,
    /// Bytes written to each level, by flushes and compactions.
    pub(crate) by_level: BTreeMap<u32, f64>,
    pub(crate) compactions: Compactions,
    pub(crate) greatest_bytes: f64,
    pub(crate) greatest_temporary_bytes: f64,
    pub(crate) greatest_sstables: usize,
}

impl Meter {
    pub(crate) fn flush(&mut self, bytes: u64) {
        self.flushed_bytes += bytes as f64;
        *self.by_level.entry(0).or_default() += bytes as f64;
    }

    pub(crate) fn write(&mut self, level: u32, bytes: u64) {
        self.written_bytes += bytes as f64;
        *self.by_level.entry(level).or_default() += bytes as f64;
    }

    /// Notes the room that is taken: by SSTables, and by unfinished outputs.
    pub(crate) fn room(&mut self, sstable_bytes: u64, temporary_bytes: f64, sstables: usize) {
        let all = sstable_bytes as f64 + temporary_bytes;
        self.greatest_bytes = self.greatest_bytes.max(all);
        self.greatest_temporary_bytes = self.greatest_temporary_bytes.max(temporary_bytes);
        self.greatest_sstables = self.greatest_sstables.max(sstables);
    }
}

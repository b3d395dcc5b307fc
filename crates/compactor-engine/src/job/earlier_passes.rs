//! What the passes before the last have come to, and what an observer is told of them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::job::staged_merge::{SerialTimes, StagedMerge};
use crate::merge::merge_counts::MergeCounts;
use crate::merge::observer::{InputRead, Observer};
use crate::publish::staging::Staging;
use crate::read::data_trace::DataTrace;

/// What the passes before the last have come to. What they wrote lives as long as this.
#[derive(Debug, Default)]
pub(crate) struct EarlierPasses {
    /// What was read of the inputs of the whole.
    pub(crate) reads: Vec<InputRead>,
    pub(crate) counts: MergeCounts,
    /// By `Data.db`.
    pub(crate) intermediates: HashMap<PathBuf, Intermediate>,
    /// Rows of the intermediate SSTables that are left, which are not of the inputs.
    pub(crate) rows: u64,
    /// Passes that the inputs go through, the last included.
    pub(crate) passes: usize,
    pub(crate) serial: SerialTimes,
    pub(crate) progress: Progress,
    /// Where the intermediate SSTables are. Goes after them, and with it directories that were made for
    /// an output that did not come.
    pub(crate) work: Option<Staging>,
}

#[derive(Debug)]
pub(crate) struct Intermediate {
    /// Its files go with it.
    pub(crate) _staged: StagedMerge,
    pub(crate) rows: u64,
    /// Passes that made it.
    pub(crate) passes: usize,
}

/// Bytes read in all passes, as if each byte were read once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) read: u64,
    pub(crate) planned: u64,
    pub(crate) whole: u64,
}

impl Progress {
    fn shown(&self, read: u64) -> u64 {
        let read = u128::from(self.read + read) * u128::from(self.whole);
        (read / u128::from(self.planned.max(1))) as u64
    }
}

impl EarlierPasses {
    /// Where the intermediate SSTables are.
    pub(crate) fn work(&self) -> Option<&Staging> {
        self.work.as_ref()
    }

    pub(crate) fn is_intermediate(&self, data_path: &Path) -> bool {
        self.intermediates.contains_key(data_path)
    }

    /// The caller's observer, to whom intermediate SSTables are nothing.
    pub(crate) fn observer<'a>(&'a self, inner: &'a mut dyn Observer) -> PassObserver<'a> {
        PassObserver {
            inner,
            earlier: self,
        }
    }

    /// Leaves out what was read of intermediate SSTables.
    pub(crate) fn retain_inputs(&self, reads: &mut Vec<InputRead>) {
        reads.retain(|read| !self.intermediates.contains_key(&read.data_path));
    }

    /// Adds what was read of the inputs of the whole, and leaves out what was read of others.
    pub(crate) fn complete_reads(&self, reads: &mut Vec<InputRead>) {
        self.retain_inputs(reads);
        reads.extend(self.reads.iter().cloned());
    }

    /// Makes the counts of the last pass those of the whole.
    pub(crate) fn complete_counts(&self, counts: &mut MergeCounts) {
        counts.rows_read -= self.rows;
        counts.add(&self.counts);
        if self.passes > 1 {
            counts.partitions_by_inputs.clear();
        }
    }
}

/// Tells the caller's observer of the inputs of the whole alone.
pub(crate) struct PassObserver<'a> {
    inner: &'a mut dyn Observer,
    earlier: &'a EarlierPasses,
}

impl Observer for PassObserver<'_> {
    fn is_cancelled(&self) -> bool {
        self.inner.is_cancelled()
    }

    fn progress(&mut self, read_bytes: u64, rows: u64, partitions: u64) {
        let shown = self.earlier.progress.shown(read_bytes);
        self.inner.progress(shown, rows, partitions);
    }

    fn trace(&mut self, data_path: &Path) -> Option<Box<dyn DataTrace>> {
        if self.earlier.intermediates.contains_key(data_path) {
            return None;
        }
        self.inner.trace(data_path)
    }

    fn inputs_read(&mut self, inputs: &[InputRead]) -> Result<()> {
        self.inner.inputs_read(inputs)
    }

    fn before_publish(&mut self, data_path: &Path) -> Result<()> {
        self.inner.before_publish(data_path)
    }
}

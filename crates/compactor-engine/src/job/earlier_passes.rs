//! Results of the passes before the last.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::job::staged_merge::{SerialTimes, StagedMerge};
use crate::merge::merge_counts::MergeCounts;
use crate::merge::observer::InputRead;
use crate::publish::staging::Staging;

/// Results of the passes before the last. Intermediate SSTables are deleted when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct EarlierPasses {
    /// Results of reading the original inputs.
    pub(crate) reads: Vec<InputRead>,
    pub(crate) counts: MergeCounts,
    /// Intermediate SSTables by the path of their `Data.db`. Each is deleted with its entry.
    pub(crate) intermediates: HashMap<PathBuf, StagedMerge>,
    /// Number of passes, including the last.
    pub(crate) passes: usize,
    pub(crate) serial: SerialTimes,
    pub(crate) progress: Progress,
    /// Staging directory of the intermediate SSTables. Dropped after them, with the directories that were
    /// created for an output that was not written.
    pub(crate) work: Option<Staging>,
}

/// Progress over all passes, in bytes read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) read: u64,
    pub(crate) planned: u64,
    pub(crate) total: u64,
}

impl Progress {
    /// Bytes to report when the current pass has read this many.
    pub(crate) fn shown(&self, read: u64) -> u64 {
        let read = u128::from(self.read + read) * u128::from(self.total);
        (read / u128::from(self.planned.max(1))) as u64
    }
}

impl EarlierPasses {
    pub(crate) fn is_intermediate(&self, data_path: &Path) -> bool {
        self.intermediates.contains_key(data_path)
    }

    /// Removes the results of reading intermediate SSTables.
    pub(crate) fn retain_inputs(&self, reads: &mut Vec<InputRead>) {
        reads.retain(|read| !self.is_intermediate(&read.data_path));
    }

    /// Adds the results of reading the original inputs, and removes those of intermediate SSTables.
    pub(crate) fn complete_reads(&self, reads: &mut Vec<InputRead>) {
        self.retain_inputs(reads);
        reads.extend(self.reads.iter().cloned());
    }

    /// Turns the counts of the last pass into those of all passes.
    pub(crate) fn complete_counts(&self, counts: &mut MergeCounts) {
        // Rows of intermediate SSTables are not rows of inputs.
        counts.rows_read -= self
            .intermediates
            .values()
            .map(StagedMerge::rows)
            .sum::<u64>();
        counts.add(&self.counts);
        if self.passes > 1 {
            counts.partitions_by_inputs.clear();
        }
    }
}

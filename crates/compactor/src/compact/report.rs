//! Report of a compaction, or of its plan.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;

use crate::report::{MergeReport, SstableReport, TtlRemovedReport};
use crate::table::plan::PlannedKind;

/// Report of a compaction.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct CompactReport {
    /// Class of the strategy without its package, or `major`.
    pub strategy: String,
    /// Rounds of compactions that ran at once.
    pub rounds: usize,
    /// Merges that were done.
    pub compactions: usize,
    /// Tasks that changed the level of an SSTable, and no data.
    pub level_changes: usize,
    /// Maximum number of passes of any merge: one, unless it had more inputs than memory or descriptors allow.
    pub passes: usize,
    /// SSTables that the table had.
    pub sstables_before: usize,
    /// SSTables that it has after the outputs have replaced their inputs.
    pub sstables_after: usize,
    /// The final SSTables.
    pub outputs: Vec<CompactedSstable>,
    /// Sets of inputs, each with the outputs that replace it.
    pub replacements: Vec<Replacement>,
    /// `Data.db` of inputs that were purged completely. Nothing replaces them.
    #[serde(serialize_with = "lossy")]
    pub gone: Vec<PathBuf>,
    /// `Data.db` of inputs that stay as they are.
    #[serde(serialize_with = "lossy")]
    pub untouched: Vec<PathBuf>,
    /// Merges that failed, and SSTables that could not be read at all.
    pub failed: Vec<FailedCompaction>,
    /// The run was cancelled before all compactions were done.
    pub interrupted: bool,
    /// Bytes of all components that merges read; data that was merged several times is counted each time.
    pub bytes_read: u64,
    /// Bytes of all components that merges wrote, final or not.
    pub bytes_written: u64,
    /// Bytes of `Data.db` among them.
    pub data_bytes_written: u64,
    /// Uncompressed bytes of `Data.db` that merges read.
    pub uncompressed_bytes_read: u64,
    /// Bytes of all components of the final SSTables.
    pub output_bytes: u64,
    /// Partitions that merges read.
    pub partitions_read: u64,
    /// Rows that merges read.
    pub rows_read: u64,
    /// Number of tombstones and expired cells purged.
    pub purged: u64,
    /// Cells and rows that lost their TTL; absent unless TTLs were to be removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_removed: Option<TtlRemovedReport>,
    /// Seconds from the first read to the last sync.
    pub elapsed_s: f64,
    /// Warnings for the operator.
    pub warnings: BTreeSet<String>,
    /// Those of the warnings that name requested modes or backends that were replaced by others, with the reasons.
    #[serde(skip)]
    pub fallbacks: BTreeSet<String>,
}

impl CompactReport {
    /// Nothing is published: all `inputs` stay as they are.
    pub(super) fn discard_outputs(&mut self, inputs: &[PathBuf]) {
        self.outputs.clear();
        self.replacements.clear();
        self.gone.clear();
        self.untouched = inputs.to_vec();
        self.sstables_after = self.sstables_before;
        self.output_bytes = 0;
    }
}

/// A final SSTable.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct CompactedSstable {
    /// The SSTable.
    #[serde(flatten)]
    pub sstable: SstableReport,
    /// Its repair state.
    pub repair: String,
    /// Its level.
    pub level: i32,
}

/// Outputs that replace inputs together.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Replacement {
    /// `Data.db` of the outputs: one, unless the strategy splits them.
    #[serde(serialize_with = "lossy")]
    pub outputs: Vec<PathBuf>,
    /// `Data.db` of the inputs.
    #[serde(serialize_with = "lossy")]
    pub replaces: Vec<PathBuf>,
}

/// SSTables that were not merged.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct FailedCompaction {
    /// `Data.db` of the SSTables, which are left out from then on.
    #[serde(serialize_with = "lossy")]
    pub inputs: Vec<PathBuf>,
    /// Why.
    pub error: String,
    /// The overlapping SSTable that cannot be read, if that is the reason: without it, what may be purged is unknown.
    #[serde(serialize_with = "crate::report::lossy_or_none")]
    pub unreadable_overlapping: Option<PathBuf>,
}

/// Planned compaction.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PlannedCompaction {
    /// Its number, from 1.
    pub number: usize,
    /// Its round, from 1. Compactions of a round can run at once.
    pub round: usize,
    /// Operation on its inputs.
    pub kind: PlannedKind,
    /// The rule that selected its inputs.
    pub reason: String,
    /// Repair state of its SSTables.
    pub repair: String,
    /// Level of its outputs.
    pub level: u32,
    /// Inputs.
    pub inputs: Vec<PlannedInput>,
    /// Bytes of `Data.db` of these; in rounds after the first at most.
    pub data_bytes: u64,
    /// The same, uncompressed.
    pub uncompressed_bytes: u64,
}

/// Input of a planned compaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlannedInput {
    /// `Data.db` of an existing SSTable.
    #[serde(rename = "data_path", serialize_with = "crate::report::lossy")]
    Sstable(PathBuf),
    /// Outputs of the compaction with this number, or some of them.
    OutputOf(usize),
}

impl CompactReport {
    /// Adds a merge.
    pub(super) fn add(&mut self, merged: &MergeReport) {
        self.compactions += 1;
        self.passes = self.passes.max(merged.passes);
        self.bytes_read += merged.input_bytes;
        self.bytes_written += merged.output_bytes;
        self.uncompressed_bytes_read += merged.input_uncompressed_bytes;
        self.partitions_read += merged.partitions_read;
        self.rows_read += merged.rows_read;
        self.purged += merged.purged.total;
        if let Some(removed) = merged.ttl_removed {
            *self.ttl_removed.get_or_insert_default() += removed;
        }
        let fallbacks = &merged.io.fallbacks;
        self.fallbacks.extend(fallbacks.iter().cloned());
        let warnings = fallbacks.iter().chain(&merged.warnings);
        self.warnings.extend(warnings.cloned());
    }
}

/// Paths with bytes that are not UTF-8 replaced.
fn lossy<S: serde::Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.display().to_string()))
}

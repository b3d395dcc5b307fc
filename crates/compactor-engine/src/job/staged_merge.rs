//! What a merge did, before its outputs are published and then.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::merge::merge_counts::MergeCounts;
use crate::publish::inputs_at_open::InputsAtOpen;
use crate::publish::output_claim::OutputClaim;
use crate::write::sstable_writer::{StagedSstable, WrittenSstable, publish_together};

/// What a merge did.
#[derive(Debug)]
pub struct MergeOutcome {
    /// The outputs in the order of their partitions; none if nothing was left to write, and one
    /// unless a greatest size was asked for.
    pub outputs: Vec<WrittenSstable>,
    /// Counts of the merge.
    pub counts: MergeCounts,
    /// Bytes of `Data.db` of all inputs.
    pub stored_bytes_read: u64,
    /// Uncompressed bytes of all inputs.
    pub uncompressed_bytes_read: u64,
    /// Ranges that the last pass was cut into; one if it was not cut.
    pub ranges: usize,
    /// Why it cannot be cut, if it cannot.
    pub unsplit_reason: Option<&'static str>,
    /// Outputs that were asked for.
    pub outputs_asked: usize,
    /// What one thread did at a time.
    pub serial: SerialTimes,
    /// Passes that the inputs went through: one, unless there were more than memory or descriptors
    /// allow.
    pub passes: usize,
    /// Time from the first read to the last sync.
    pub elapsed: Duration,
}

/// What one thread did while others could not have helped it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SerialTimes {
    /// The plan was made: where to cut, and inputs and outputs opened.
    pub planning: Duration,
    /// Ranges were added to the outputs in their order.
    pub order: Duration,
    /// Outputs were completed and published.
    pub publication: Duration,
}

/// A merge that is done but for the publication of its outputs.
#[derive(Debug)]
pub struct StagedMerge {
    /// `None` of an intermediate SSTable.
    pub(crate) claim: Option<Arc<OutputClaim>>,
    pub(crate) outputs: Vec<StagedSstable>,
    pub(crate) outcome: MergeOutcome,
    /// What its inputs were before they were opened.
    pub(crate) at_open: Option<Arc<InputsAtOpen>>,
}

impl StagedMerge {
    /// `Data.db` of each output in its staging directory, its other components beside it.
    pub fn data_paths(&self) -> impl Iterator<Item = PathBuf> + '_ {
        self.outputs.iter().map(StagedSstable::data_path)
    }

    /// `Data.db` of the output in its staging directory, and its rows.
    pub(crate) fn output(&self) -> Option<(PathBuf, u64)> {
        let output = self.outputs.first()?;
        Some((output.data_path(), output.rows()))
    }

    /// What one thread did at a time, in the passes before, too.
    pub(crate) fn serial(&self) -> SerialTimes {
        self.outcome.serial
    }

    /// What was counted.
    pub(crate) fn counts(&self) -> &MergeCounts {
        &self.outcome.counts
    }
}

impl SerialTimes {
    pub(crate) fn added_to(self, before: SerialTimes) -> SerialTimes {
        SerialTimes {
            planning: self.planning + before.planning,
            order: self.order + before.order,
            publication: self.publication + before.publication,
        }
    }
}

/// Publishes the outputs of merges into one directory, all or none of them.
///
/// # Errors
/// Inputs that were replaced meanwhile ([`InputsAtOpen::recheck`]), or a failed sync or rename. Nothing
/// of any output stays then.
pub fn publish(merges: Vec<StagedMerge>) -> Result<Vec<MergeOutcome>> {
    let started = Instant::now();
    let mut outcomes = Vec::with_capacity(merges.len());
    let mut staged = Vec::with_capacity(merges.len());
    let mut looked_at: Option<Arc<InputsAtOpen>> = None;
    let mut claims: Vec<Arc<OutputClaim>> = Vec::new();
    for merge in merges {
        if let Some(at_open) = merge.at_open {
            if !looked_at.is_some_and(|seen| Arc::ptr_eq(&seen, &at_open)) {
                at_open.recheck()?;
            }
            looked_at = Some(at_open);
        }
        outcomes.push((merge.outputs.len(), merge.outcome));
        staged.extend(merge.outputs);
        claims.extend(merge.claim);
    }
    let mut written = publish_together(staged)?.into_iter();
    claims.dedup_by(|a, b| Arc::ptr_eq(a, b));
    for claim in claims {
        claim.commit()?;
    }
    let outcomes = outcomes.into_iter().map(|(outputs, outcome)| MergeOutcome {
        outputs: written.by_ref().take(outputs).collect(),
        elapsed: outcome.elapsed + started.elapsed(),
        serial: SerialTimes {
            publication: outcome.serial.publication + started.elapsed(),
            ..outcome.serial
        },
        ..outcome
    });
    Ok(outcomes.collect())
}

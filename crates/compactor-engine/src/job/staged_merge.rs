//! Result of a merge before and after the publication of its outputs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::merge::merge_counts::MergeCounts;
use crate::publish::inputs_at_open::InputsAtOpen;
use crate::publish::output_claim::OutputClaim;
use crate::write::sstable_writer::{StagedSstable, WrittenSstable, publish_together};

/// Result of a merge.
#[derive(Debug)]
pub struct MergeOutcome {
    /// The outputs in ring order; none if nothing was left to write, and one unless several outputs or a
    /// maximum size were requested.
    pub outputs: Vec<WrittenSstable>,
    /// Counts of the merge.
    pub counts: MergeCounts,
    /// Number of ranges of the last pass; one if it was not split.
    pub ranges: usize,
    /// Reason why the merge cannot be split, if it cannot.
    pub unsplit_reason: Option<&'static str>,
    /// Requested number of outputs.
    pub outputs_asked: usize,
    /// Duration of its serial phases, including earlier passes.
    pub serial: SerialTimes,
    /// Number of passes: one, unless there were more inputs than memory or descriptors allow.
    pub passes: usize,
    /// Time from the first read to the last sync.
    pub elapsed: Duration,
}

/// Duration of phases in which only one thread can work.
#[derive(Clone, Copy, Debug, Default)]
pub struct SerialTimes {
    /// Planning: finding split points, opening inputs and outputs.
    pub planning: Duration,
    /// Appending ranges to the outputs in order.
    pub order: Duration,
    /// Completing and publishing outputs.
    pub publication: Duration,
}

/// A completed merge whose outputs are not published yet.
#[derive(Debug)]
pub struct StagedMerge {
    pub(crate) claim: Arc<OutputClaim>,
    pub(crate) outputs: Vec<StagedSstable>,
    pub(crate) outcome: MergeOutcome,
    /// State of its inputs before they were opened.
    pub(crate) at_open: Option<Arc<InputsAtOpen>>,
}

impl StagedMerge {
    /// Path of each output's `Data.db` in its staging directory, which also contains the other components.
    pub fn data_paths(&self) -> impl Iterator<Item = PathBuf> + '_ {
        self.outputs.iter().map(StagedSstable::data_path)
    }

    /// Number of rows of its outputs.
    pub(crate) fn rows(&self) -> u64 {
        self.outputs.iter().map(StagedSstable::rows).sum()
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
/// Inputs that were replaced meanwhile ([`InputsAtOpen::recheck`]), or a failed sync or rename. Nothing of
/// any output stays then.
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
        claims.push(merge.claim);
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

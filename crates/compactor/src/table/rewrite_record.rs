//! Record of SSTables that were rewritten one by one, with which [`swap`](crate::swap) replaces them.
//!
//! The outputs of each SSTable are published as soon as they are complete, and the record is written when the run ends,
//! also if it was interrupted or some SSTables failed. A run that is killed leaves outputs without a record.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use compactor_engine::input::ComponentList;
use compactor_engine::publish::{InputAtOpen, InputsAtOpen};

use super::output_directory::OutputClaim;
use super::{NextSteps, OutputLayout, Table};
use crate::report::SstableReport;
use crate::run_record::{FILE_NAME, Recorder, RunRecord, descriptor_of};
use crate::{Error, Result};

/// Inputs and output directory of a run that rewrites each SSTable on its own.
pub(super) struct RewriteRecord {
    recorder: Recorder,
    claim: Arc<OutputClaim>,
    /// SSTables before they are opened, in the order of the run.
    inputs: Vec<InputAtOpen>,
}

impl RewriteRecord {
    /// Looks at SSTables before they are opened, and removes the record of an earlier run from the claimed directory.
    ///
    /// # Errors
    /// That record cannot be removed.
    pub(super) fn begin(
        recorder: Recorder,
        claim: &Arc<OutputClaim>,
        inputs: &[PathBuf],
    ) -> Result<RewriteRecord> {
        RunRecord::remove(claim.directory())?;
        // One that cannot be looked up cannot be opened either, which reports it.
        let looked = inputs
            .iter()
            .filter_map(|input| InputsAtOpen::look(std::slice::from_ref(input), false).ok());
        Ok(RewriteRecord {
            recorder,
            claim: Arc::clone(claim),
            inputs: looked.flat_map(|one| one.inputs().to_vec()).collect(),
        })
    }

    /// Path of the record.
    pub(super) fn path(&self) -> PathBuf {
        self.claim.directory().join(FILE_NAME)
    }

    /// Writes the record of the SSTables that were `rewritten`, each with its outputs, if there are any; `rows_lost` if
    /// rows of some were lost. Returns the command that swaps them, if all SSTables are in the directory of a node.
    ///
    /// # Errors
    /// An output that has changed since it was published, or a failed write; the outputs are in place nevertheless.
    pub(super) fn end<'a>(
        &self,
        table: &Table,
        rewritten: impl Iterator<Item = (&'a Path, Vec<SstableReport>)>,
        rows_lost: bool,
    ) -> Result<NextSteps> {
        let inputs = self.inputs.iter().map(|input| input.data_path.as_path());
        let mut others: BTreeSet<&Path> = inputs.collect();
        let (mut replaced, mut outputs) = (BTreeSet::new(), Vec::new());
        for (input, of_input) in rewritten {
            if others.remove(input) {
                replaced.insert(input);
                for output in of_input {
                    refuse_changed(&output)?;
                    outputs.push(output.data_path);
                }
            }
        }
        if replaced.is_empty() {
            return Ok(NextSteps::default());
        }
        let others: Vec<PathBuf> = others.into_iter().map(Path::to_owned).collect();
        let is_replaced = |path: &Path| replaced.contains(path);
        let recorder = self.recorder.clone().with_rows_lost(rows_lost);
        let _ = recorder.write(&self.claim, &outputs, &self.inputs, &is_replaced, &others)?;
        let layout = OutputLayout::of(table, self.claim.directory(), true);
        Ok(NextSteps::swap(&layout))
    }
}

/// Refuses an output of which files have been removed, added or truncated: the record takes the files as they are now.
fn refuse_changed(output: &SstableReport) -> Result<()> {
    let now = ComponentList::known(&descriptor_of(&output.data_path)?)?;
    if now.total_len() == output.bytes {
        return Ok(());
    }
    Err(Error::refused(format!(
        "files of {} have changed since this run wrote them: expected {} bytes in all, found {}",
        output.data_path.display(),
        output.bytes,
        now.total_len()
    )))
}

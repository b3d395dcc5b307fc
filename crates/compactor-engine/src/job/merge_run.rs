//! Execution of a planned merge, from the first read to the published output.

use std::time::Instant;

use crate::error::{Error, Result};
use crate::job::merge_job::MergeJob;
use crate::job::pass::Pass;
use crate::job::staged_merge::{MergeOutcome, StagedMerge, publish};
use crate::merge::observer::Observer;

impl MergeJob {
    /// Merges and publishes.
    ///
    /// # Errors
    /// Damage in an input, a failed read or write, or cancellation. Nothing of the output stays.
    pub fn run(self, observer: &mut dyn Observer) -> Result<MergeOutcome> {
        let staged = self.stage(observer)?;
        let mut outcomes = publish(vec![staged])?;
        outcomes
            .pop()
            .ok_or_else(|| Error::internal("a merge without an outcome"))
    }

    /// Merges, and leaves the outputs in a staging directory until they are published.
    ///
    /// # Errors
    /// Damage in an input, a failed read or write, or cancellation. Nothing of the output stays.
    pub fn stage(mut self, observer: &mut dyn Observer) -> Result<StagedMerge> {
        self.claim()?;
        let started = Instant::now();
        // Passes replace inputs.
        let output = self.output_settings();
        let earlier = self.earlier_passes(observer)?;
        let pass = Pass {
            earlier: &earlier,
            is_last: true,
            started,
        };
        let (staged, _) = self.run_pass(observer, &pass, output)?;
        Ok(staged)
    }
}

//! Salvaging each SSTable of a table.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use compactor_engine::merge::Observer;

use compactor_engine::publish::{OutputIds, Replaceable};
use compactor_sstable::sstable_id::SstableId;

use super::output_directory::{self, ExistingOutput, OutputClaim};
use super::rewrite::{RewriteOutcome, Share, has_id_in_sequence, is_of_all_sstables};
use super::rewrite_record::RewriteRecord;
use super::verified::{OutputCheck, Verified};
use super::{OutputForm, Resources, Table};
use crate::Result;
use crate::concurrent::{OneMerge, SharedObserver, run_each};
use crate::run_record::Recorder;
use crate::verify;
use compactor_check::scrub::{ScrubOptions, ScrubReport, scrub};

/// A scrub to be configured, of each SSTable of a [`Table`]. See [`crate::scrub`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Scrub<'t> {
    table: &'t Table,
    form: OutputForm,
    resources: Resources,
    /// The output is not decided yet.
    options: ScrubOptions,
    concurrent: Option<usize>,
    verifies: bool,
}

impl<'t> Scrub<'t> {
    pub(super) fn new(table: &'t Table) -> Scrub<'t> {
        Scrub {
            table,
            form: OutputForm::default(),
            resources: Resources::default(),
            options: ScrubOptions::new(""),
            concurrent: None,
            verifies: false,
        }
    }

    /// Version and compression of the outputs.
    pub fn form(mut self, form: OutputForm) -> Scrub<'t> {
        self.form = form;
        self
    }

    /// I/O modes, threads and memory, which concurrent scrubs share.
    pub fn resources(mut self, resources: Resources) -> Scrub<'t> {
        self.resources = resources;
        self
    }

    /// Limit on SSTables that are scrubbed concurrently. Default: the number of threads.
    pub fn concurrent(mut self, sstables: usize) -> Scrub<'t> {
        self.concurrent = Some(sstables);
        self
    }

    /// Leaves out damaged rows of counter tables too, although counters are too low then.
    pub fn skip_corrupted(mut self, skip: bool) -> Scrub<'t> {
        self.options.skip_corrupted = skip;
        self
    }

    /// Validates values against column types, and leaves out rows with invalid ones. Default: true.
    pub fn validate(mut self, validate: bool) -> Scrub<'t> {
        self.options.validate = validate;
        self
    }

    /// Number of losses that are listed for each SSTable; all are counted.
    pub fn max_losses(mut self, losses: usize) -> Scrub<'t> {
        self.options.max_losses = losses;
        self
    }

    /// Verifies each output before it is published.
    pub fn verify(mut self, verifies: bool) -> Scrub<'t> {
        self.verifies = verifies;
        self
    }

    /// Uncompressed bytes that [`Scrub::into`] will read, roughly: each SSTable is read twice.
    pub fn expected_bytes(&self) -> u64 {
        2 * self.expected_bytes_of_dry_run()
    }

    /// Uncompressed bytes that [`Scrub::dry_run`] will read, roughly: each SSTable is read once.
    pub fn expected_bytes_of_dry_run(&self) -> u64 {
        self.table.roughly_uncompressed_bytes()
    }

    /// Salvages into a directory, which is created if it does not exist.
    ///
    /// # Errors
    /// An output directory that cannot be claimed. An SSTable that cannot be scrubbed is in the outcome
    /// instead.
    pub fn into(
        self,
        output: impl AsRef<Path>,
        observer: &mut dyn Observer,
    ) -> Result<RewriteOutcome<ScrubReport>> {
        let output = output.as_ref();
        output_directory::check(output, self.table)?;
        let mut options = self.options(output)?;
        let replaceable = Replaceable::of_inputs(&self.table.sstables);
        let claim = OutputClaim::take(output, ExistingOutput::Refuse, replaceable)?;
        options.output.claim = Some(Arc::clone(&claim));
        let recorder = Recorder::of_rewrites("scrub", false);
        let record = RewriteRecord::begin(recorder, &claim, &self.table.sstables)?;
        self.run(&options, Some(&record), observer)
    }

    /// Determines what would be lost, and writes nothing. With `output`, a directory that a run would
    /// refuse is refused.
    ///
    /// # Errors
    /// As [`Scrub::into`].
    pub fn dry_run(
        self,
        output: Option<&Path>,
        observer: &mut dyn Observer,
    ) -> Result<RewriteOutcome<ScrubReport>> {
        if let Some(output) = output {
            output_directory::check(output, self.table)?;
            OutputClaim::check(output, ExistingOutput::Refuse, Replaceable::default())?;
        }
        let mut options = self.options(output.unwrap_or(Path::new("")))?;
        options.dry_run = true;
        self.run(&options, None, observer)
    }

    fn options(&self, output: &Path) -> Result<ScrubOptions> {
        let mut options = self.options.clone();
        options.output.output_directory = output.to_owned();
        options.output.table = self.table.schema().cloned();
        self.form.apply(self.table, &mut options.output)?;
        Ok(options)
    }

    /// The id of each output, or `None` for a new UUID. They are in the order of the SSTables, whichever is scrubbed first.
    fn ids(&self, output: &Path) -> Result<Vec<Option<SstableId>>> {
        let ids = self.table.ids_in_sequence(output)?;
        let id_of = |path: &PathBuf| has_id_in_sequence(path).then(|| ids.take()).transpose();
        self.table.sstables.iter().map(id_of).collect()
    }

    fn run(
        &self,
        options: &ScrubOptions,
        record: Option<&RewriteRecord>,
        observer: &mut dyn Observer,
    ) -> Result<RewriteOutcome<ScrubReport>> {
        let io = self.resources.io()?;
        let check = OutputCheck::new(self.verifies, &io, self.resources.read_mode);
        let observer = &SharedObserver::new(observer);
        let started = Instant::now();
        let sstables = &self.table.sstables;
        let ids = self.ids(&options.output.output_directory)?;
        // The first pass is a verification, whose memory is not in the budget of a merge.
        let memory_of_one = verify::MEMORY_OF_ONE;
        let share = Share::of_each(
            &self.resources,
            memory_of_one,
            self.concurrent,
            sstables.len(),
        );
        let scrub_one = |number: usize, one: &mut OneMerge<'_, '_>| {
            let mut options = options.clone();
            share.resources.apply(&mut options.output);
            options.output.ids = ids[number].map(OutputIds::starting_at);
            let mut verified = Verified {
                inner: one,
                check: &check,
            };
            scrub(&io, &sstables[number], &options, &mut verified)
        };
        let results = run_each(
            sstables.len(),
            share.concurrent,
            observer,
            0,
            is_of_all_sstables,
            scrub_one,
        );
        let mut outcome = RewriteOutcome::new();
        let outputs_of = |report: &ScrubReport| Vec::from_iter(report.output.clone());
        let scrubbed = outcome.add(sstables, results, outputs_of, observer);
        outcome.elapsed_s = started.elapsed().as_secs_f64();
        outcome.notes = io.notes();
        if let Some(record) = record {
            let rows_lost = outcome.reports.iter().any(ScrubReport::is_lossy);
            outcome.record(record, self.table, scrubbed, rows_lost);
        }
        Ok(outcome)
    }
}

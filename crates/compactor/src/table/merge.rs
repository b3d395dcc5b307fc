//! Merging a table's SSTables into one, or several of a size.

use std::path::{Path, PathBuf};

use compactor_engine::job::{MergeJob, OutputSplit, Scope};
use compactor_engine::merge::Observer;

use super::dry_run::DryRun;
use super::node_command::{Levels, NextSteps};
use super::output_directory::ExistingOutput;
use super::output_layout::OutputLayout;
use super::strategy_warning;
use super::verified::{OutputCheck, Verified, verify_inputs};
use super::{OutputForm, Purging, Resources, Table, doubt_one_table, refuse_two_tables};
use crate::MergeRequest;
use crate::Result;
use crate::merge::run_merges;
use crate::report::{MergeReport, SstableReport};
use crate::run_record::Recorder;
use compactor_check::input_check::InputCheck;
use compactor_engine::merge::NoObserver;
use compactor_io::Io;

/// A merge to be configured, of all SSTables of a [`Table`].
///
/// Purges nothing unless [`complete`](Merge::complete) or [`overlapping`](Merge::overlapping) specify what
/// else the table has. Repaired, unrepaired and pending inputs are not mixed: each repair state gets outputs
/// of its own.
#[derive(Clone, Debug)]
#[must_use]
pub struct Merge<'t> {
    table: &'t Table,
    purging: Purging,
    form: OutputForm,
    resources: Resources,
    existing_output: ExistingOutput,
    is_flat: bool,
    split: OutputSplit,
    check: InputCheck,
    verifies: bool,
}

impl<'t> Merge<'t> {
    pub(super) fn new(table: &'t Table) -> Merge<'t> {
        Merge {
            table,
            purging: Purging::default(),
            form: OutputForm::default(),
            resources: Resources::default(),
            existing_output: ExistingOutput::Refuse,
            is_flat: false,
            split: OutputSplit::None,
            check: InputCheck::default(),
            verifies: false,
        }
    }

    /// The SSTables are all that the table has on this node, so tombstones older than `gc_grace_seconds`
    /// may be purged.
    pub fn complete(mut self) -> Merge<'t> {
        self.purging.scope = Scope::Complete;
        self
    }

    /// Names all other SSTables of the table, as `Data.db` files or directories: tombstones that may shadow
    /// their data are kept, others may be purged.
    pub fn overlapping(mut self, paths: Vec<PathBuf>) -> Merge<'t> {
        self.purging.scope = Scope::Overlapping(paths);
        self
    }

    /// Sets all purge options, in place of those that [`complete`](Merge::complete) and
    /// [`overlapping`](Merge::overlapping) have set.
    pub fn purging(mut self, purging: Purging) -> Merge<'t> {
        self.purging = purging;
        self
    }

    /// Version, format and compression of the outputs. Default: the version of the newest release that wrote
    /// any input, the format of the newest input, and the compression of the schema, or else of the newest input.
    pub fn form(mut self, form: OutputForm) -> Merge<'t> {
        self.form = form;
        self
    }

    /// I/O modes, threads and memory.
    pub fn resources(mut self, resources: Resources) -> Merge<'t> {
        self.resources = resources;
        self
    }

    /// Keeps, replaces or refuses SSTables that are in the output directory. Default: refuses.
    pub fn existing_output(mut self, existing: ExistingOutput) -> Merge<'t> {
        self.existing_output = existing;
        self
    }

    /// Writes into the output directory itself, not into `KEYSPACE/TABLE` below it, from where a node
    /// imports.
    pub fn flat(mut self, is_flat: bool) -> Merge<'t> {
        self.is_flat = is_flat;
        self
    }

    /// Sets how the output is split into several. Default: one output of each repair state.
    pub fn split(mut self, split: OutputSplit) -> Merge<'t> {
        self.split = split;
        self
    }

    /// Components of the inputs that are checked while they are merged.
    pub fn check(mut self, check: InputCheck) -> Merge<'t> {
        self.check = check;
        self
    }

    /// Verifies the inputs before, and each output before it is published.
    pub fn verify(mut self, verifies: bool) -> Merge<'t> {
        self.verifies = verifies;
        self
    }

    /// Merges into a directory, which is created if it does not exist.
    ///
    /// # Errors
    /// As [`Merge::open`] and [`OpenedMerge::run`].
    pub fn into(self, output: impl AsRef<Path>) -> Result<Merged> {
        self.open(output)?.run(&mut NoObserver)
    }

    /// Opens the inputs and claims the output directory. Nothing is written yet.
    ///
    /// # Errors
    /// Damaged or unsupported inputs, or ones of two tables; a refusal because data might be lost; an output
    /// directory that holds SSTables or belongs to another run.
    pub fn open(self, output: impl AsRef<Path>) -> Result<OpenedMerge> {
        self.open_with(output.as_ref(), false)
    }

    /// As [`Merge::open`], but the output directory is only checked, not created.
    ///
    /// # Errors
    /// As [`Merge::open`].
    pub fn plan(self, output: impl AsRef<Path>) -> Result<DryRun<OpenedMerge>> {
        self.open_with(output.as_ref(), true).map(DryRun)
    }

    fn open_with(self, output: &Path, is_dry: bool) -> Result<OpenedMerge> {
        let Prepared {
            mut request,
            layout,
            mut notes,
            mut warnings,
        } = self.table.prepare(
            output,
            self.is_flat,
            &self.purging,
            &self.form,
            &self.resources,
        )?;
        let is_split = self.split.max_bytes().is_some();
        request.split = self.split;
        request.overlapping_tombstones = self
            .purging
            .resolve_overlapping_tombstones(&request, &mut notes)?;
        warnings.extend(strategy_warning::of_one_sstable(
            request.table.as_ref(),
            is_split,
        ));
        let recorder = Recorder::new("merge", &request)?;
        request.existing_output = self.existing_output;
        layout.claim(&mut request, is_dry)?;
        let may_purge = request.may_purge();
        let jobs = MergeJob::open_groups(Io::new(self.resources.io_options())?, request)?;
        if may_purge {
            self.table.refuse_new_sstables()?;
        }
        Ok(OpenedMerge {
            jobs,
            layout,
            recorder,
            notes,
            warnings,
            check: self.check,
            verifies: self.verifies,
            resources: self.resources,
        })
    }
}

/// Decisions that [`Merge`] and [`Compact`](super::Compact) share, before anything is opened.
pub(super) struct Prepared {
    pub(super) request: MergeRequest,
    pub(super) layout: OutputLayout,
    /// Notes for the report.
    pub(super) notes: Vec<String>,
    /// Warnings for the report, also shown before the run.
    pub(super) warnings: Vec<String>,
}

impl Table {
    pub(super) fn prepare(
        &self,
        output: &Path,
        is_flat: bool,
        purging: &Purging,
        form: &OutputForm,
        resources: &Resources,
    ) -> Result<Prepared> {
        let layout = OutputLayout::of(self, output, is_flat);
        layout.check(self)?;
        let mut request = MergeRequest::new(self.sstables.clone(), layout.directory());
        request.table = self.schema().cloned();
        let mut notes = purging.apply(self, &mut request)?;
        form.apply(self, &mut request)?;
        resources.apply(&mut request);
        if let Some(schema) = self.schema().filter(|schema| schema.indexes > 0) {
            notes.push(format!(
                "table {} has {}; Cassandra rebuilds what belongs to an output when it loads it",
                schema.name,
                match schema.indexes {
                    1 => "1 secondary index".to_owned(),
                    indexes => format!("{indexes} secondary indexes"),
                }
            ));
        }
        let mut sstables = self.sstables.clone();
        sstables.extend_from_slice(request.scope.named());
        refuse_two_tables(&sstables)?;
        let mut warnings = Vec::from_iter(doubt_one_table(&sstables));
        warnings.extend(layout.other_table_than_schema(self));
        warnings.extend(layout.other_owner_than_inputs(self));
        Ok(Prepared {
            request,
            layout,
            notes,
            warnings,
        })
    }
}

/// A planned merge whose inputs are open.
#[derive(Debug)]
pub struct OpenedMerge {
    jobs: Vec<MergeJob>,
    layout: OutputLayout,
    recorder: Recorder,
    notes: Vec<String>,
    warnings: Vec<String>,
    check: InputCheck,
    verifies: bool,
    resources: Resources,
}

impl OpenedMerge {
    /// One for each repair state of the inputs.
    pub fn jobs(&self) -> &[MergeJob] {
        &self.jobs
    }

    /// Notes on the choices that were made, which are in the report as well.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Warnings, which are in the report as well.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Uncompressed bytes that will be read.
    pub fn uncompressed_bytes(&self) -> u64 {
        self.jobs.iter().map(MergeJob::uncompressed_bytes).sum()
    }

    /// Merges, and publishes all outputs when they are complete, or none.
    ///
    /// # Errors
    /// Damage, a failed read or write, a full disk, inputs that were replaced, cancellation. Nothing is
    /// written then.
    pub fn run(self, observer: &mut dyn Observer) -> Result<Merged> {
        let mode = self.resources.read_mode;
        let io = match self.jobs.first() {
            Some(job) => job.io().clone(),
            None => self.resources.io()?,
        };
        if self.verifies {
            // Those that would be dropped unread as well.
            let inputs = self.jobs.iter();
            let inputs = inputs.flat_map(|job| job.inputs().iter().chain(job.fully_expired()));
            let inputs: Vec<PathBuf> = inputs.map(|input| input.data_path()).collect();
            verify_inputs(&io, &inputs, &self.resources, observer)?;
        }
        let check = OutputCheck::new(self.verifies, &io, mode);
        drop(io);
        let mut observer = Verified {
            inner: observer,
            check: &check,
        };
        let mut reports = run_merges(self.jobs, self.check, Some(&self.recorder), &mut observer)?;
        if let Some(first) = reports.first_mut() {
            first.warnings.extend(self.notes);
            first.warnings.extend(self.warnings);
        }
        let has_outputs = reports.iter().any(|report| !report.outputs.is_empty());
        Ok(Merged {
            reports,
            next_steps: NextSteps::new(&self.layout, has_outputs.then_some(Levels::Zero)),
        })
    }
}

/// Result of a merge: a report for each repair state, and the commands that bring the outputs to a node.
#[derive(Debug)]
#[non_exhaustive]
pub struct Merged {
    /// One for each repair state of the inputs, mostly one.
    pub reports: Vec<MergeReport>,
    /// Commands that bring the outputs to a node.
    pub next_steps: NextSteps,
}

impl Merged {
    /// The SSTables that were written.
    pub fn outputs(&self) -> impl Iterator<Item = &SstableReport> {
        self.reports.iter().flat_map(|report| &report.outputs)
    }

    /// Number of partitions in the outputs.
    pub fn partitions_written(&self) -> u64 {
        self.reports.iter().map(|r| r.partitions_written).sum()
    }

    /// Number of tombstones and expired cells purged. Data that overlapping SSTables shadow is counted in
    /// [`PurgedReport::shadowed`](crate::report::PurgedReport::shadowed).
    pub fn purged(&self) -> u64 {
        self.reports.iter().map(|r| r.purged.total).sum()
    }
}

//! Compacting a table's SSTables by a strategy.

use std::path::Path;

use compactor_strategy::CompactionParams;

use super::dry_run::DryRun;
use super::merge::Prepared;
use super::node_command::{Levels, NextSteps};
use super::output_directory::ExistingOutput;
use super::output_layout::OutputLayout;
use super::purging::{ONLY_REPAIRED, PROVIDE};
use super::strategy_choice::{Resolved, StrategyChoice};
use super::{OutputForm, Purging, Resources, Table, strategy_warning};
use compactor_engine::job::{Scope, TombstoneOption};
use compactor_engine::merge::Observer;

use crate::compact::{
    CompactRequest, Compacted, Compaction, FailedCompaction, Plan, PlannedCompaction,
};
use crate::run_record::Recorder;
use crate::table_directories::TableDirectories;
use crate::{Error, Result};
use compactor_check::input_check::InputCheck;

/// A compaction to be configured, of all SSTables of a [`Table`]. Purges nothing unless
/// [`complete`](Compact::complete) or [`purging`](Compact::purging) specifies what else the table has.
#[derive(Clone, Debug)]
#[must_use]
pub struct Compact<'t> {
    table: &'t Table,
    is_major: bool,
    strategy: StrategyChoice,
    purging: Purging,
    form: OutputForm,
    resources: Resources,
    existing_output: ExistingOutput,
    is_flat: bool,
    max_compactions: Option<usize>,
    concurrent: Option<usize>,
    verifies: bool,
}

impl<'t> Compact<'t> {
    pub(super) fn new(table: &'t Table) -> Compact<'t> {
        Compact {
            table,
            is_major: false,
            strategy: StrategyChoice::default(),
            purging: Purging::default(),
            form: OutputForm::default(),
            resources: Resources::default(),
            existing_output: ExistingOutput::Refuse,
            is_flat: false,
            max_compactions: None,
            concurrent: None,
            verifies: false,
        }
    }

    /// One compaction of all SSTables of a repair state in a data directory, as `nodetool compact` without options.
    pub fn major(mut self) -> Compact<'t> {
        self.is_major = true;
        self
    }

    /// Sets the strategy. Default: the schema's.
    pub fn strategy(mut self, strategy: StrategyChoice) -> Compact<'t> {
        self.strategy = strategy;
        self
    }

    /// Limit on the number of compactions. Default: until nothing is left to do.
    pub fn max_compactions(mut self, compactions: usize) -> Compact<'t> {
        self.max_compactions = Some(compactions);
        self
    }

    /// The SSTables are all that the table has on this node, so tombstones older than `gc_grace_seconds`
    /// may be purged.
    pub fn complete(mut self) -> Compact<'t> {
        self.purging.scope = Scope::Complete;
        self
    }

    /// Sets all purge options, in place of what [`complete`](Compact::complete) has set.
    pub fn purging(mut self, purging: Purging) -> Compact<'t> {
        self.purging = purging;
        self
    }

    /// Version, format and compression of the outputs, with the defaults of
    /// [`Merge::form`](super::Merge::form).
    pub fn form(mut self, form: OutputForm) -> Compact<'t> {
        self.form = form;
        self
    }

    /// I/O modes, threads and memory, which concurrent compactions share.
    pub fn resources(mut self, resources: Resources) -> Compact<'t> {
        self.resources = resources;
        self
    }

    /// Keeps, replaces or refuses SSTables that are in the output directory. Default: refuses.
    pub fn existing_output(mut self, existing: ExistingOutput) -> Compact<'t> {
        self.existing_output = existing;
        self
    }

    /// Writes into the output directory itself, not into `KEYSPACE/TABLE` below it.
    pub fn flat(mut self, is_flat: bool) -> Compact<'t> {
        self.is_flat = is_flat;
        self
    }

    /// Limit on concurrent compactions. Default: the number of threads.
    pub fn concurrent(mut self, compactions: usize) -> Compact<'t> {
        self.concurrent = Some(compactions);
        self
    }

    /// Verifies each output before it is used.
    pub fn verify(mut self, verifies: bool) -> Compact<'t> {
        self.verifies = verifies;
        self
    }

    /// Reads the statistics of every SSTable and claims the output directory.
    ///
    /// # Errors
    /// A strategy or option that is not supported; a refusal because data might be lost; an output directory
    /// that holds SSTables or belongs to another run; a failed read.
    pub fn open(self, output: impl AsRef<Path>) -> Result<OpenedCompaction> {
        self.open_with(output.as_ref(), false)
    }

    /// As [`Compact::open`], but the output directory is only checked, not created.
    ///
    /// # Errors
    /// As [`Compact::open`].
    pub fn plan(self, output: impl AsRef<Path>) -> Result<DryRun<OpenedCompaction>> {
        self.open_with(output.as_ref(), true).map(DryRun)
    }

    fn open_with(mut self, output: &Path, is_dry: bool) -> Result<OpenedCompaction> {
        let (plan, of_release) = self.resolve_plan()?;
        // Options of the strategy that merges follow: there they are options of the purge.
        if let Some(text) = self.strategy.given(ONLY_REPAIRED) {
            // As Cassandra, which does not validate it.
            let given = text.eq_ignore_ascii_case("true");
            let only_repaired = *self.purging.only_repaired.get_or_insert(given);
            if only_repaired != given {
                return Err(Error::invalid(format!(
                    "{ONLY_REPAIRED} is set twice, to {only_repaired} and {given}; name it once"
                )));
            }
        }
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
        notes.extend(of_release);
        notes.extend(TableDirectories::of(&self.table.sstables).note());
        let provided = self.purging.overlapping_tombstones;
        let given = self.strategy.given(PROVIDE);
        if provided.is_some_and(|option| option != TombstoneOption::None)
            || given.is_some_and(|option| !option.eq_ignore_ascii_case("none"))
        {
            return Err(Error::invalid(format!(
                "{PROVIDE} is not possible in a compaction by a strategy: two concurrent compactions might each rely \
                 on the other for a deletion, and neither would keep it; merge instead"
            )));
        }
        let schema = request.table.as_ref();
        let provides = schema.and_then(|schema| schema.compaction_option(PROVIDE));
        if let Some(option) = provides.filter(|option| !option.eq_ignore_ascii_case("none")) {
            notes.push(format!(
                "the table's {PROVIDE} {option} is ignored: two concurrent compactions might each rely on \
                 the other for a deletion, and neither would keep it"
            ));
        }
        let enabled = schema.and_then(|schema| schema.compaction_option("enabled"));
        if enabled.is_some_and(|enabled| enabled.eq_ignore_ascii_case("false")) {
            notes.push(
                "the node does not compact this table by itself: its compaction has enabled: false"
                    .to_owned(),
            );
        }
        if self.is_major {
            warnings.extend(strategy_warning::of_one_sstable(schema, false));
        }
        request.existing_output = self.existing_output;
        let recorder = Some(Recorder::new("compact", &request)?);
        layout.claim(&mut request, is_dry)?;
        let io = self.resources.io()?;
        let may_purge = request.may_purge();
        let request = CompactRequest {
            recorder,
            merges: request,
            plan,
            max_compactions: self.max_compactions,
            concurrent: self.concurrent.unwrap_or(self.resources.threads()),
            check: InputCheck::AllComponents,
            verify_outputs: self.verifies,
        };
        let compaction = Compaction::open(io, request)?;
        if may_purge {
            self.table.refuse_new_sstables()?;
        }
        Ok(OpenedCompaction {
            compaction,
            layout,
            notes,
            warnings,
        })
    }

    /// The strategy: as given, else by the schema, with a note on its release.
    fn resolve_plan(&self) -> Result<(Plan, Option<String>)> {
        if self.is_major {
            return Ok((Plan::Major, None));
        }
        let Resolved { params, note, .. } = self.strategy.resolve(self.table)?;
        if !params.is_enabled && self.strategy.given("enabled").is_some() {
            return Err(Error::invalid(
                "enabled: false as an option of a compaction: nothing would be compacted; leave it out",
            ));
        }
        // The caller asks for it, even if the node does not compact it by itself.
        let params = CompactionParams {
            is_enabled: true,
            ..params
        };
        Ok((Plan::Strategy(params), note))
    }
}

/// A compaction whose inputs have been examined.
#[derive(Debug)]
pub struct OpenedCompaction {
    compaction: Compaction,
    layout: OutputLayout,
    notes: Vec<String>,
    warnings: Vec<String>,
}

impl OpenedCompaction {
    /// The compactions to come. The first round is exact; later ones are planned as if no merge made
    /// anything smaller.
    pub fn planned(&self) -> Vec<PlannedCompaction> {
        self.compaction.plan()
    }

    /// SSTables that cannot be read, and why: they are left out.
    pub fn unreadable(&self) -> &[FailedCompaction] {
        self.compaction.unreadable()
    }

    /// The damage of the first SSTable that cannot be read.
    pub fn first_error(&self) -> Option<&Error> {
        self.compaction.first_error()
    }

    /// Notes on the choices that were made, which are in the report as well.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Warnings, which are in the report as well.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Estimate of the uncompressed bytes that will be read.
    pub fn expected_bytes(&self) -> u64 {
        self.compaction.expected_bytes()
    }

    /// Compacts, and publishes the final SSTables, all or none.
    ///
    /// # Errors
    /// A failure before the first merge, inputs that were replaced meanwhile, or a failure to publish:
    /// then there is no output. A failed merge is in the outcome instead.
    pub fn run(self, observer: &mut dyn Observer) -> Result<(Compacted, NextSteps)> {
        let mut compacted = self.compaction.run(observer)?;
        let report = &mut compacted.report;
        report.warnings.extend(self.notes);
        report.warnings.extend(self.warnings);
        let levels = report.outputs.iter().map(|output| match output.level {
            0 => Levels::Zero,
            _ => Levels::Kept,
        });
        let next_steps = match levels.max() {
            None if report.gone.is_empty() => NextSteps::default(),
            levels => NextSteps::new(&self.layout, levels),
        };
        Ok((compacted, next_steps))
    }
}

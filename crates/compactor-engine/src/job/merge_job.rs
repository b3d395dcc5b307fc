//! Plan of a merge, decided from the metadata of its inputs: settings of the output, inputs that are dropped
//! without being read, and refusals. [`merge_run`](crate::job::merge_run) executes it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use compactor_io::Io;
use compactor_sstable::Component;
use compactor_sstable::partitioner::Partitioner;
use compactor_sstable::statistics::CollectorSettings;

use crate::error::{Error, Result};
use crate::input::key_estimate::estimate_keys;
use crate::input::repair_group::RepairGroup;
use crate::input::scanner_order::scanner_order;
use crate::input::sstable::{InputSstable, OPENED_AT_ONCE};
use crate::job::budget::{
    Budget, Demands, INTERMEDIATE_CHUNK_LEN, free_files, memory_of_inputs, memory_of_output,
};
use crate::job::fully_expired::split_off_fully_expired;
use crate::job::options::{MergeOptions, Scope};
use crate::job::output_plan::OutputPlan;
use crate::job::output_settings::{
    decide_settings, inherited_settings, output_header, output_ids, union_of,
};
use crate::job::overlapping::OutsideSstables;
use crate::job::overlapping_sstable::OverlappingSstable;
use crate::job::refused_inputs::{one_partitioner, refuse_duplicates, refuse_mixed_repair};
use crate::job::shadow_plan::ShadowPlan;
use crate::job::tombstone_option::TombstoneOption;
use crate::job::tombstone_sources::{TombstoneSource, open_tombstone_sources};
use crate::publish::inputs_at_open::InputsAtOpen;
use crate::publish::output_claim::OutputClaim;
use crate::publish::output_id::OutputIds;
use crate::publish::replaceable::Replaceable;
use crate::read::parallel_map::parallel_map;
use crate::row::dropped_columns::DropTimes;
use crate::write::sstable_settings::SstableSettings;

/// A merge whose inputs are opened and validated and whose settings are decided; nothing has been written.
#[derive(Debug)]
pub struct MergeJob {
    pub(crate) io: Io,
    pub(crate) options: MergeOptions,
    pub(crate) inputs: Vec<InputSstable>,
    expired: Vec<InputSstable>,
    /// State of the inputs before they were opened; `None` for an intermediate merge. Shared by the jobs of a
    /// table.
    pub(crate) at_open: Option<Arc<InputsAtOpen>>,
    pub(crate) outside: OutsideSstables,
    pub(crate) partitioner: Partitioner,
    pub(crate) settings: SstableSettings,
    pub(crate) drops: DropTimes,
    pub(crate) shadow: Option<Arc<ShadowPlan>>,
    /// Memory of the inputs that is not available for buffers, bytes.
    pub(crate) taken: usize,
    pub(crate) budget: Budget,
    /// Plan of the outputs, if it was decided before the first of several passes.
    pub(crate) outputs: Option<OutputPlan>,
    /// Ids for the outputs after the first.
    pub(crate) ids: OutputIds,
    /// Maximum number of inputs read at a time.
    pub(crate) max_concurrent: usize,
}

impl MergeJob {
    /// Opens the inputs and decides everything that does not require their data.
    ///
    /// # Errors
    /// Damage or something unsupported in an input's metadata, or inputs that are not of one table or must
    /// not be mixed.
    pub fn open(io: Io, mut options: MergeOptions) -> Result<MergeJob> {
        let (inputs, opened) = Opened::inputs(&io, &mut options)?;
        refuse_mixed_repair(&inputs)?;
        MergeJob::decide(io, options, inputs, &opened)
    }

    /// As [`MergeJob::open`], for inputs of any repair states. Such a job can only be read, since an output cannot
    /// have several repair states.
    ///
    /// # Errors
    /// As [`MergeJob::open`].
    pub fn open_to_read(io: Io, mut options: MergeOptions) -> Result<MergeJob> {
        let (inputs, opened) = Opened::inputs(&io, &mut options)?;
        MergeJob::decide_with(CollectorSettings::default(), io, options, inputs, &opened)
    }

    /// As [`MergeJob::open`], but creates a job for each [`RepairGroup`] of the inputs, in the order of the
    /// groups. For each job the inputs of the others are overlapping SSTables: it purges nothing that may
    /// shadow data in them. They are not tombstone sources for one another: all are rewritten at the same
    /// time, and of two that rely on each other for a deletion that both have, neither would keep it.
    ///
    /// # Errors
    /// As [`MergeJob::open`].
    pub fn open_groups(io: Io, mut options: MergeOptions) -> Result<Vec<MergeJob>> {
        let (inputs, opened) = Opened::inputs(&io, &mut options)?;
        // All must be of one table.
        union_of(&inputs)?;
        one_partitioner(&inputs, &OutsideSstables::Unknown)?;
        options.ids = Some(output_ids(&inputs, &options)?);
        let mut groups: BTreeMap<RepairGroup, Vec<InputSstable>> = BTreeMap::new();
        for input in inputs {
            let group = RepairGroup::of(&input.statistics.stats);
            groups.entry(group).or_default().push(input);
        }
        if groups.len() == 1 {
            let inputs = groups.into_values().flatten().collect();
            return Ok(vec![MergeJob::decide(io, options, inputs, &opened)?]);
        }
        let paths: Vec<(RepairGroup, PathBuf)> = groups
            .iter()
            .flat_map(|(group, inputs)| inputs.iter().map(|i| (*group, i.data_path())))
            .collect();
        let known = options.overlapping_paths(paths.iter().map(|(_, path)| path.clone()));
        let mut jobs = Vec::with_capacity(groups.len());
        for (group, inputs) in groups {
            let others = paths.iter().filter(|(other, _)| *other != group);
            let others = others.map(|(_, path)| path.clone());
            let options = MergeOptions {
                scope: match &options.scope {
                    Scope::Unknown => Scope::Unknown,
                    Scope::Complete | Scope::Overlapping(_) | Scope::RestOfSet => {
                        Scope::Overlapping(known.iter().cloned().chain(others).collect())
                    }
                },
                ..options.clone()
            };
            jobs.push(MergeJob::decide(io.clone(), options, inputs, &opened)?);
        }
        Ok(jobs)
    }

    /// Decides everything that does not require the inputs' data. `inputs` are ordered newest first.
    pub(crate) fn decide(
        io: Io,
        options: MergeOptions,
        inputs: Vec<InputSstable>,
        opened: &Opened,
    ) -> Result<MergeJob> {
        let inherited = inherited_settings(&options, &inputs)?;
        MergeJob::decide_with(inherited, io, options, inputs, opened)
    }

    /// As [`MergeJob::decide`], with the metadata that the output inherits.
    fn decide_with(
        inherited: CollectorSettings,
        io: Io,
        mut options: MergeOptions,
        inputs: Vec<InputSstable>,
        opened: &Opened,
    ) -> Result<MergeJob> {
        if options.strip_ttl && inputs.iter().any(|input| input.header().has_counters()) {
            return Err(Error::invalid(
                "the table has counters, which never have a TTL: there is none to strip",
            ));
        }
        let is_repaired = |i: &InputSstable| i.statistics.stats.repaired_at != 0;
        let outside = match &options.scope {
            _ if options.only_purge_repaired && !inputs.iter().all(is_repaired) => {
                OutsideSstables::Unknown
            }
            Scope::Unknown => OutsideSstables::Unknown,
            Scope::Complete | Scope::Overlapping(_) => {
                let named = options.scope.named().iter();
                let open = |path: &PathBuf| options.overlapping.open(&io, path, options.read_mode);
                OutsideSstables::of(named.map(open).collect::<Result<_>>()?)
            }
            Scope::RestOfSet => {
                let paths = inputs.iter().map(InputSstable::data_path);
                let (set, mode) = (&options.overlapping, options.read_mode);
                OutsideSstables::of(set.open_without(paths, &io, mode)?)
            }
        };
        let partitioner = one_partitioner(&inputs, &outside)?;
        options.split.check(partitioner)?;
        let ids = output_ids(&inputs, &options)?;
        options.ids = Some(ids.clone());
        let mut settings = decide_settings(&options, &inputs, inherited)?;
        outside.refuse_other_table(&inputs)?;
        let (expired, inputs) = match options.gc_before_s {
            Some(gc_before_s) => {
                // A node's is never later than its clock. Data that is to expire is alive until then.
                let gc_before_s = gc_before_s.min(options.now_s);
                let (mode, strips_ttl) = (options.read_mode, options.strip_ttl);
                split_off_fully_expired(&io, mode, strips_ttl, inputs, gc_before_s, &outside)?
            }
            None => (Vec::new(), inputs),
        };
        // Columns, statistics and the time of repair of inputs that are dropped are not inherited
        // (`CompactionAwareWriter.minRepairedAt`). They still determine the table's settings, since the newest input
        // may be one of them.
        if !expired.is_empty() && !inputs.is_empty() {
            let repaired_at = inputs.iter().map(|i| i.statistics.stats.repaired_at).min();
            settings.collector.repaired_at = repaired_at.unwrap_or_default();
            settings.header = output_header(&options, &inputs)?;
            settings.expected_keys = estimate_keys(&inputs);
        }
        let drops = match &options.table {
            None => DropTimes::default(),
            Some(table) => {
                // The first input that has a column determines where it comes from.
                for input in &inputs {
                    DropTimes::of(table, input.header(), &input.header_source().path())?;
                }
                let path = settings.descriptor.path(Component::Statistics);
                DropTimes::of(table, &settings.header, &path)?
            }
        };
        let tombstone_sources = match outside.sstables() {
            [] => &[],
            _ => &opened.tombstone_sources[..],
        };
        let originals = inputs.iter().chain(&expired);
        let shadow =
            ShadowPlan::decide(&options, originals, &settings, tombstone_sources)?.map(Arc::new);
        // Those of a set are shared by its merges, whose memory is less than that of the whole process.
        let of_outside = match &options.scope {
            Scope::RestOfSet => 0,
            _ => outside.filter_bytes(),
        };
        let taken = opened.taken + of_outside;
        let demands = demands(taken, &options, &inputs, shadow.as_deref(), &settings);
        let budget = Budget::divide(&demands);
        let max_concurrent = Budget::max_concurrent_inputs(&Demands {
            // Intermediate SSTables are among the inputs then.
            input_unit: demands.input_unit.max(INTERMEDIATE_CHUNK_LEN as usize),
            ..demands
        })?;
        Ok(MergeJob {
            io,
            options,
            inputs,
            expired,
            at_open: opened.at_open.clone(),
            outside,
            partitioner,
            settings,
            drops,
            shadow,
            taken,
            budget,
            outputs: None,
            ids,
            max_concurrent,
        })
    }

    /// Claims the output directory, unless it has been claimed.
    ///
    /// # Errors
    /// As [`OutputClaim::take`].
    pub fn claim(&mut self) -> Result<Arc<OutputClaim>> {
        let claim = match self.options.claim.take() {
            Some(claim) => claim,
            None => {
                let newest = self.inputs.first().or(self.fully_expired().first());
                let newest = newest.map(InputSstable::data_path);
                let replaceable = Replaceable::of_inputs(newest.as_slice());
                let options = &self.options;
                let directory = &options.output_directory;
                OutputClaim::take(directory, options.existing_output, replaceable)?
            }
        };
        self.options.claim = Some(Arc::clone(&claim));
        Ok(claim)
    }

    /// Sets a claim that is shared with other merges into the same directory.
    pub fn use_claim(&mut self, claim: &Arc<OutputClaim>) {
        self.options.claim = Some(Arc::clone(claim));
    }

    /// Divides the memory again after the inputs have changed.
    pub(crate) fn divide_memory(&mut self) {
        self.budget = Budget::divide(&demands(
            self.taken,
            &self.options,
            &self.inputs,
            self.shadow.as_deref(),
            &self.settings,
        ));
    }

    /// Whether equal clusterings or paths may differ in their bytes, so that the order in which inputs are
    /// visited determines those written.
    pub(crate) fn is_order_decisive(&self) -> bool {
        let mut inputs = self.inputs.iter();
        self.inputs.len() > 1 && inputs.any(|input| input.header().has_several_encodings())
    }

    /// The inputs grouped by their scanners in Cassandra's compaction, if their order matters.
    pub(crate) fn scanner_order(&self) -> Option<Vec<Vec<u32>>> {
        if !self.is_order_decisive() {
            return None;
        }
        let table = self.options.table.as_ref();
        let name = table.and_then(|table| Some((table.keyspace.as_deref()?, &*table.name)));
        Some(scanner_order(&self.inputs, &self.expired, name))
    }

    /// The inputs to be read, newest first.
    pub fn inputs(&self) -> &[InputSstable] {
        &self.inputs
    }

    /// Inputs that are dropped without being read: everything in them may be purged, and they shadow nothing.
    pub fn fully_expired(&self) -> &[InputSstable] {
        &self.expired
    }

    /// State of the inputs before they were opened, including the inputs of the table's other jobs.
    pub fn inputs_at_open(&self) -> Option<&Arc<InputsAtOpen>> {
        self.at_open.as_ref()
    }

    /// The overlapping SSTables that the caller specified.
    pub fn overlapping(&self) -> &[Arc<OverlappingSstable>] {
        self.outside.sstables()
    }

    /// Number of overlapping SSTables that are read for what they shadow.
    pub fn shadow_sources(&self) -> usize {
        self.shadow.as_ref().map_or(0, |shadow| shadow.len())
    }

    /// Settings of the output, or of the first of several.
    pub fn settings(&self) -> &SstableSettings {
        &self.settings
    }

    /// Division of the memory.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// I/O layer of the merge.
    pub fn io(&self) -> &Io {
        &self.io
    }

    /// Options of the job, without the paths of the inputs.
    pub fn options(&self) -> &MergeOptions {
        &self.options
    }

    /// Uncompressed bytes of all inputs.
    pub fn uncompressed_bytes(&self) -> u64 {
        self.inputs.iter().map(InputSstable::data_len).sum()
    }

    /// Repair state of the inputs, and so of the output.
    pub fn repair_group(&self) -> RepairGroup {
        let any = self.inputs.first().or(self.expired.first());
        any.map_or_else(RepairGroup::default, |input| {
            RepairGroup::of(&input.statistics.stats)
        })
    }
}

/// What the jobs of a table share.
#[derive(Default)]
pub(crate) struct Opened {
    /// State of all inputs before they were opened, unless the caller has recorded it.
    pub(crate) at_open: Option<Arc<InputsAtOpen>>,
    /// Memory of all inputs, which stay open while the first jobs run, bytes.
    pub(crate) taken: usize,
    /// The overlapping SSTables that may remove what they shadow.
    pub(crate) tombstone_sources: Vec<TombstoneSource>,
}

impl Opened {
    /// Opens the inputs of one or more jobs. They are returned newest first.
    fn inputs(io: &Io, options: &mut MergeOptions) -> Result<(Vec<InputSstable>, Opened)> {
        if options.inputs.is_empty() {
            return Err(Error::InvalidInput("no SSTables to merge".to_owned()));
        }
        refuse_duplicates(&options.inputs)?;
        let at_open = match &options.inputs_at_open {
            Some(known) => Arc::clone(known),
            None => {
                let seen = InputsAtOpen::look(&options.inputs, options.may_purge())?;
                Arc::new(seen.with_quiet(options.quiet_directories.clone()))
            }
        };
        let mut inputs =
            open_inputs(io, options).map_err(|error| at_open.reason_for_open(error))?;
        // The order in which Cassandra visits them to build the header.
        inputs.sort_by_key(|input| std::cmp::Reverse(input.descriptor.id));
        let opened = Opened {
            at_open: options.inputs_at_open.is_none().then_some(at_open),
            taken: memory_of_inputs(&inputs),
            tombstone_sources: open_tombstone_sources(io, options, &inputs)?,
        };
        Ok((inputs, opened))
    }
}

/// Opens the inputs and removes their paths from the options: each input has its own.
fn open_inputs(io: &Io, options: &mut MergeOptions) -> Result<Vec<InputSstable>> {
    let paths = std::mem::take(&mut options.inputs);
    // Copies among the overlapping SSTables are recognised by their histograms.
    let is_compared = options.overlapping_tombstones != TombstoneOption::None;
    let open = |path: &PathBuf| {
        let mut input = InputSstable::open(io, path, options.read_mode)?;
        if !is_compared {
            input.drop_distributions();
        }
        Ok(input)
    };
    let opened = parallel_map(&paths, OPENED_AT_ONCE, open);
    opened.into_iter().collect()
}

/// Demands of a merge of these inputs.
fn demands(
    taken: usize,
    options: &MergeOptions,
    inputs: &[InputSstable],
    shadow: Option<&ShadowPlan>,
    settings: &SstableSettings,
) -> Demands {
    let units = inputs.iter().map(InputSstable::block_unit);
    let input_unit = units.clone().max().unwrap_or(0);
    let output_unit = settings.compression.as_ref().map_or(0, |c| c.chunk_len);
    let data_len = inputs.iter().map(InputSstable::data_len).sum();
    let sources = shadow.map_or(0, |shadow| shadow.max_concurrent());
    let saved: usize = inputs.iter().map(InputSstable::saved_percent).sum();
    Demands {
        memory_bytes: options.memory_bytes,
        of_inputs: taken,
        of_output: memory_of_output(settings, data_len),
        files: options.open_files.unwrap_or_else(free_files),
        data_len,
        indexed: (inputs.iter())
            .filter(|input| input.may_have_promoted_indexes())
            .count(),
        inputs: inputs.len(),
        sources,
        threads: options.threads,
        processors: std::thread::available_parallelism().map_or(options.threads, usize::from),
        readahead_bytes: options.readahead_bytes,
        range_bytes: options.range_bytes,
        input_unit: input_unit.max(shadow.map_or(0, |shadow| shadow.block_unit())),
        output_unit: output_unit as usize,
        all_units: units.map(|unit| unit as u64).sum(),
        // Sources count as uncompressed.
        saved_percent: saved / (inputs.len() + sources).max(1),
        max_output_len: options.split.max_bytes(),
    }
}

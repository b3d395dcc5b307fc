//! What a merge is to do, decided from its inputs' metadata: settings of the output, what is dropped
//! unread, and what is refused. [`merge_run`](crate::job::merge_run) does it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use compactor_io::{Io, ReadMode};
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::sstable_id::SstableId;
use compactor_sstable::statistics::{
    CollectorSettings, EncodingStats, SerializationHeader, StatsMetadata,
};
use compactor_sstable::{Component, Error as FormatError, Version};

use crate::error::{Error, Result};
use crate::input::header_union::{HeaderSource, check_schema, types_of_schema, union};
use crate::input::key_estimate::estimate_keys;
use crate::input::key_range::KeyRange;
use crate::input::repair_group::RepairGroup;
use crate::input::scanner_order::scanner_order;
use crate::input::sstable::{InputSstable, WRITABLE};
use crate::job::budget::{Budget, Demands, Taken, free_files};
use crate::job::options::{MergeOptions, OutputCompression, Scope};
use crate::job::overlapping::{OverlappingSstable, Provider, Surroundings};
use crate::job::passes::INTERMEDIATE_CHUNK_LEN;
use crate::job::shadow_plan::{ShadowPlan, is_copy};
use crate::job::tombstone_option::TombstoneOption;
use crate::publish::inputs_at_open::InputsAtOpen;
use crate::publish::output_id::{OutputIds, next_id};
use crate::row::dropped_columns::DropTimes;
use crate::write::sstable_index::default_column_index_size;
use crate::write::sstable_writer::SstableSettings;

/// Inputs opened and checked, everything decided, nothing written.
#[derive(Debug)]
pub struct MergeJob {
    pub(crate) io: Io,
    pub(crate) options: MergeOptions,
    pub(crate) inputs: Vec<InputSstable>,
    expired: Vec<InputSstable>,
    /// What the inputs were before they were opened; `None` of an intermediate merge. Shared by the jobs
    /// of a table.
    pub(crate) at_open: Option<Arc<InputsAtOpen>>,
    pub(crate) surroundings: Surroundings,
    pub(crate) settings: SstableSettings,
    pub(crate) drops: DropTimes,
    pub(crate) shadow: Option<Arc<ShadowPlan>>,
    /// What is not for buffers of the memory, but for the output.
    pub(crate) taken: Taken,
    pub(crate) budget: Budget,
    /// For outputs after the first, whose id is decided.
    pub(crate) ids: OutputIds,
    /// Inputs that can be read at a time.
    pub(crate) at_once: usize,
}

impl MergeJob {
    /// Opens the inputs and decides everything that does not need their data.
    ///
    /// # Errors
    /// Damage or something unsupported in an input's metadata, inputs that are not of one table, or
    /// that must not be mixed.
    pub fn open(io: Io, mut options: MergeOptions) -> Result<MergeJob> {
        if options.inputs.is_empty() {
            return Err(Error::InvalidInput("no SSTables to merge".to_owned()));
        }
        refuse_duplicates(&options.inputs)?;
        let at_open = look_at_inputs(&options)?;
        let mut inputs =
            open_inputs(&io, &mut options).map_err(|error| at_open.reason_for(error))?;
        newest_first(&mut inputs);
        refuse_mixed_repair(&inputs)?;
        let provided_by = may_provide(&io, &options, &inputs)?;
        let taken = Taken::by_inputs(&inputs);
        let job = MergeJob::decide(io, options, inputs, taken, &provided_by)?;
        let at_open = Some(at_open);
        Ok(MergeJob { at_open, ..job })
    }

    /// As [`MergeJob::open`], but makes a job of each [`RepairGroup`] among the inputs, in the order of
    /// the groups. To each the inputs of the others are SSTables that the table has besides: nothing is
    /// purged that may shadow data in them. They provide no tombstones to one another: all are rewritten
    /// at once, and of two that rely on each other for a deletion that both have, neither would keep it.
    ///
    /// # Errors
    /// As [`MergeJob::open`]; or there are several groups but one id.
    pub fn open_groups(io: Io, mut options: MergeOptions) -> Result<Vec<MergeJob>> {
        if options.inputs.is_empty() {
            return Err(Error::InvalidInput("no SSTables to merge".to_owned()));
        }
        refuse_duplicates(&options.inputs)?;
        let mut groups: BTreeMap<RepairGroup, Vec<InputSstable>> = BTreeMap::new();
        let at_open = look_at_inputs(&options)?;
        let mut inputs =
            open_inputs(&io, &mut options).map_err(|error| at_open.reason_for(error))?;
        let at_open = Some(at_open);
        newest_first(&mut inputs);
        let provided_by = may_provide(&io, &options, &inputs)?;
        // All are to be of one table.
        union_of(&inputs)?;
        refuse_mixed_partitioners(&inputs, &Surroundings::Unknown)?;
        let next = id_behind(&inputs, &options)?;
        // All stay open while the first ones are merged.
        let taken = Taken::by_inputs(&inputs);
        for input in inputs {
            let group = RepairGroup::of(&input.statistics.stats);
            groups.entry(group).or_default().push(input);
        }
        if groups.len() == 1 {
            let inputs = groups.into_values().flatten().collect();
            let job = MergeJob::decide(io, options, inputs, taken, &provided_by)?;
            return Ok(vec![MergeJob { at_open, ..job }]);
        }
        if options.id.is_some() {
            return Err(Error::InvalidInput(
                "inputs of several repair states make several outputs, which cannot have one id"
                    .to_owned(),
            ));
        }
        let paths: Vec<(RepairGroup, PathBuf)> = groups
            .iter()
            .flat_map(|(group, inputs)| inputs.iter().map(|i| (*group, i.data_path())))
            .collect();
        let ids = OutputIds::behind(next);
        let mut jobs = Vec::with_capacity(groups.len());
        for (group, inputs) in groups {
            let others = paths.iter().filter(|(other, _)| *other != group);
            let others = others.map(|(_, path)| path.clone());
            let options = MergeOptions {
                scope: match &options.scope {
                    Scope::Unknown => Scope::Unknown,
                    Scope::Complete => Scope::Overlapping(others.collect()),
                    Scope::Overlapping(known) => {
                        Scope::Overlapping(known.iter().cloned().chain(others).collect())
                    }
                },
                id: Some(if jobs.is_empty() { next } else { ids.take()? }),
                ..options.clone()
            };
            let io = io.clone();
            let job = MergeJob::decide(io, options, inputs, taken, &provided_by)?;
            jobs.push(MergeJob {
                ids: ids.clone(),
                at_open: at_open.clone(),
                ..job
            });
        }
        Ok(jobs)
    }

    /// Decides everything that does not need the inputs' data. They come newest first. So much of the
    /// memory is taken by them and others of the whole. Of the overlapping SSTables these may provide
    /// tombstones.
    pub(crate) fn decide(
        io: Io,
        options: MergeOptions,
        inputs: Vec<InputSstable>,
        taken: Taken,
        provided_by: &[PathBuf],
    ) -> Result<MergeJob> {
        if options.max_sstable_size == Some(0) {
            return Err(Error::InvalidInput(
                "SSTables of at most 0 bytes: name a greater size".to_owned(),
            ));
        }
        let is_divided = options.max_sstable_size.is_some() || options.outputs.get() > 1;
        if options.max_sstable_size.is_some() && options.outputs.get() > 1 {
            return Err(Error::InvalidInput(
                "outputs are so many, or of a greatest size: ask for one of them".to_owned(),
            ));
        }
        let mut inherited = inherited_settings(&inputs)?;
        if is_divided {
            inherited.level = 0;
        }
        let is_repaired = |i: &InputSstable| i.statistics.stats.repaired_at != 0;
        let surroundings = match &options.scope {
            _ if options.only_purge_repaired && !inputs.iter().all(is_repaired) => {
                Surroundings::Unknown
            }
            Scope::Unknown => Surroundings::Unknown,
            Scope::Complete => Surroundings::Nothing,
            Scope::Overlapping(paths) => Surroundings::Overlapping(
                paths
                    .iter()
                    .map(|path| options.overlapping.open(&io, path, options.read_mode))
                    .collect::<Result<_>>()?,
            ),
        };
        refuse_mixed_partitioners(&inputs, &surroundings)?;
        let settings = decide_settings(&options, &inputs, inherited)?;
        let paths: Vec<PathBuf> = inputs.iter().map(statistics_path).collect();
        surroundings.refuse_other_table(&header_sources(&inputs, &paths))?;
        let (expired, inputs) = match options.gc_before_s {
            Some(gc_before_s) => {
                set_fully_expired_apart(&io, options.read_mode, inputs, gc_before_s, &surroundings)?
            }
            None => (Vec::new(), inputs),
        };
        // What is dropped unread takes its columns and statistics with it. It tells all the same what the
        // table's SSTables are to be like: the newest may be one of those.
        let settings = match expired.is_empty() || inputs.is_empty() {
            true => settings,
            false => SstableSettings {
                header: output_header(&options, &inputs)?,
                expected_keys: estimate_keys(&inputs),
                ..settings
            },
        };
        let drops = match &options.table {
            None => DropTimes::default(),
            Some(table) => {
                // Where the columns of the union come from is told by the first that has one.
                for input in &inputs {
                    let path = input.descriptor.path(Component::Statistics);
                    DropTimes::of(table, input.header(), &path)?;
                }
                let path = settings.descriptor.path(Component::Statistics);
                DropTimes::of(table, &settings.header, &path)?
            }
        };
        let providers = match surroundings {
            Surroundings::Overlapping(_) => providers_of(&io, &options, provided_by)?,
            Surroundings::Unknown | Surroundings::Nothing => Vec::new(),
        };
        let originals = inputs.iter().chain(&expired);
        let shadow = ShadowPlan::decide(&options, originals, &settings, providers)?.map(Arc::new);
        let ids = OutputIds::behind(settings.descriptor.id);
        let demands = demands(taken, &options, &inputs, shadow.as_deref(), &settings);
        let budget = Budget::divide(&demands);
        let at_once = Budget::inputs_at_once(&Demands {
            // Intermediate SSTables are among them then.
            input_unit: demands.input_unit.max(INTERMEDIATE_CHUNK_LEN as usize),
            ..demands
        })?;
        Ok(MergeJob {
            io,
            options,
            inputs,
            expired,
            at_open: None,
            surroundings,
            settings,
            drops,
            shadow,
            taken,
            budget,
            ids,
            at_once,
        })
    }

    /// Divides the memory anew, after the inputs have changed.
    pub(crate) fn divide_memory(&mut self) {
        self.budget = Budget::divide(&demands(
            self.taken,
            &self.options,
            &self.inputs,
            self.shadow.as_deref(),
            &self.settings,
        ));
    }

    /// Equal clusterings or paths may be of other bytes, so that the order in which inputs are visited decides
    /// which are written.
    pub(crate) fn is_order_decisive(&self) -> bool {
        let mut inputs = self.inputs.iter();
        self.inputs.len() > 1 && inputs.any(|input| input.layout.has_several_encodings())
    }

    /// The inputs by their scanners in Cassandra's compaction, where their order is decisive.
    pub(crate) fn scanner_order(&self) -> Option<Vec<Vec<u32>>> {
        if !self.is_order_decisive() {
            return None;
        }
        let table = self.options.table.as_ref();
        let name = table.and_then(|table| Some((table.keyspace.as_deref()?, &*table.name)));
        Some(scanner_order(&self.inputs, &self.expired, name))
    }

    /// The inputs that will be read, newest first.
    pub fn inputs(&self) -> &[InputSstable] {
        &self.inputs
    }

    /// Inputs that are dropped unread: everything in them may be purged, and they shadow nothing.
    pub fn fully_expired(&self) -> &[InputSstable] {
        &self.expired
    }

    /// What the inputs were before they were opened, those of the table's other jobs included.
    pub fn inputs_at_open(&self) -> Option<&Arc<InputsAtOpen>> {
        self.at_open.as_ref()
    }

    /// The SSTables that were named as overlapping the inputs.
    pub fn overlapping(&self) -> &[Arc<OverlappingSstable>] {
        match &self.surroundings {
            Surroundings::Overlapping(sstables) => sstables,
            Surroundings::Unknown | Surroundings::Nothing => &[],
        }
    }

    /// How many SSTables are read beside the merge for what they shadow.
    pub fn shadow_sources(&self) -> usize {
        self.shadow.as_ref().map_or(0, |shadow| shadow.len())
    }

    /// What the output will be, or the first of several.
    pub fn settings(&self) -> &SstableSettings {
        &self.settings
    }

    /// How the memory is divided.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The I/O layer it uses.
    pub fn io(&self) -> &Io {
        &self.io
    }

    /// What the job was asked for, without the paths of the inputs.
    pub fn options(&self) -> &MergeOptions {
        &self.options
    }

    /// Uncompressed bytes of all inputs.
    pub fn uncompressed_bytes(&self) -> u64 {
        self.inputs.iter().map(InputSstable::data_len).sum()
    }

    /// What the repair of the inputs, and so of the output, has come to.
    pub fn repair_group(&self) -> RepairGroup {
        let any = self.inputs.first().or(self.expired.first());
        any.map_or_else(RepairGroup::default, |input| {
            RepairGroup::of(&input.statistics.stats)
        })
    }
}

fn id_behind(inputs: &[InputSstable], options: &MergeOptions) -> Result<SstableId> {
    let paths: Vec<PathBuf> = inputs.iter().map(InputSstable::data_path).collect();
    next_id(&options.output_directory, &paths, options.scope.named())
}

fn look_at_inputs(options: &MergeOptions) -> Result<Arc<InputsAtOpen>> {
    InputsAtOpen::look(&options.inputs, options.may_purge()).map(Arc::new)
}

/// Opens what is to be merged, of which the options no longer tell then: each knows its path.
fn open_inputs(io: &Io, options: &mut MergeOptions) -> Result<Vec<InputSstable>> {
    let paths = std::mem::take(&mut options.inputs);
    // Copies among the SSTables beside the merge are known by their distributions.
    let is_compared = options.overlapping_tombstones != TombstoneOption::None;
    let opened = |mut input: InputSstable| {
        if !is_compared {
            input.forget_distributions();
        }
        input
    };
    InputSstable::each_opened(io, &paths, options.read_mode, opened)
        .into_iter()
        .collect()
}

/// The overlapping SSTables that may remove what they shadow, if any may: not copies of inputs, also not
/// of those that another job merges at the same time.
fn may_provide(io: &Io, options: &MergeOptions, inputs: &[InputSstable]) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    if options.overlapping_tombstones != TombstoneOption::None {
        for path in options.scope.named() {
            options.overlapping.open(io, path, options.read_mode)?;
            let other = InputSstable::open(io, path, options.read_mode)?;
            let mut inputs = inputs.iter();
            if !inputs.any(|input| is_copy(io, options.read_mode, input, &other)) {
                paths.push(path.clone());
            }
        }
    }
    Ok(paths)
}

/// The SSTables of these paths, if the merge is to read them.
fn providers_of(io: &Io, options: &MergeOptions, paths: &[PathBuf]) -> Result<Vec<Provider>> {
    if options.overlapping_tombstones == TombstoneOption::None {
        return Ok(Vec::new());
    }
    let open = |path: &PathBuf| {
        let known = options.overlapping.open(io, path, options.read_mode)?;
        known.provider(io, options.read_mode)
    };
    paths.iter().map(open).collect()
}

/// What a merge of these inputs asks for.
fn demands(
    taken: Taken,
    options: &MergeOptions,
    inputs: &[InputSstable],
    shadow: Option<&ShadowPlan>,
    settings: &SstableSettings,
) -> Demands {
    let units = inputs.iter().map(InputSstable::block_unit);
    let input_unit = units.clone().max().unwrap_or(0);
    let output_unit = settings.compression.as_ref().map_or(0, |c| c.chunk_len);
    let data_len = inputs.iter().map(InputSstable::data_len).sum();
    Demands {
        memory_bytes: options.memory_bytes,
        taken: taken.with_output(settings, data_len),
        files: options.open_files.unwrap_or_else(free_files),
        data_len,
        indexed: (inputs.iter())
            .filter(|input| input.may_have_promoted_indexes())
            .count(),
        inputs: inputs.len(),
        sources: shadow.map_or(0, |shadow| shadow.at_once()),
        threads: options.threads,
        readahead_bytes: options.readahead_bytes,
        range_bytes: options.range_bytes,
        input_unit: input_unit.max(shadow.map_or(0, |shadow| shadow.block_unit())),
        output_unit: output_unit as usize,
        all_units: units.map(|unit| unit as u64).sum(),
        max_output_len: options.max_sstable_size,
    }
}

fn refuse_duplicates(inputs: &[PathBuf]) -> Result<()> {
    let mut seen: Vec<PathBuf> = Vec::with_capacity(inputs.len());
    for path in inputs {
        seen.push(path.canonicalize().map_err(Error::file("open", path))?);
    }
    seen.sort();
    match seen.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::InvalidInput(format!(
            "{} is named twice; name each SSTable once",
            pair[0].display()
        ))),
        None => Ok(()),
    }
}

/// What the output inherits, over all inputs, those dropped unread included.
fn inherited_settings(inputs: &[InputSstable]) -> Result<CollectorSettings> {
    let stats: Vec<&StatsMetadata> = inputs.iter().map(|i| &i.statistics.stats).collect();
    let mut inherited = CollectorSettings::merge(&stats)?;
    // One input keeps its level; several come from different places.
    inherited.level = match inputs {
        [only] => only.statistics.stats.level,
        _ => 0,
    };
    Ok(inherited)
}

/// Splits off the inputs that need not be read: all that they hold is past its grace, and none of it
/// is newer than anything that is not (`CompactionController.getFullyExpiredSSTables`).
fn set_fully_expired_apart(
    io: &Io,
    mode: ReadMode,
    inputs: Vec<InputSstable>,
    gc_before_s: i64,
    surroundings: &Surroundings,
) -> Result<(Vec<InputSstable>, Vec<InputSstable>)> {
    let overlapping: &[_] = match surroundings {
        Surroundings::Unknown => return Ok((Vec::new(), inputs)),
        Surroundings::Nothing => &[],
        Surroundings::Overlapping(sstables) => sstables,
    };
    let is_candidate = |input: &InputSstable, min_timestamp: i64| {
        let stats = &input.statistics.stats;
        // Nothing of the data is read then: the statistics had better be its own.
        input.has_its_ratio()
            && stats.max_local_deletion_time < gc_before_s
            && stats.max_timestamp < min_timestamp
    };
    let all_stats = inputs.iter().map(|input| &input.statistics.stats);
    let mut min_timestamp = all_stats
        .filter(|stats| stats.max_local_deletion_time >= gc_before_s)
        .map(|stats| stats.min_timestamp)
        .min()
        .unwrap_or(i64::MAX);
    let mut asked: Vec<_> = overlapping
        .iter()
        .filter(|s| s.max_local_deletion_time_s() >= gc_before_s)
        .collect();
    if !asked.is_empty()
        && inputs
            .iter()
            .any(|input| is_candidate(input, min_timestamp))
    {
        // Of the table's SSTables those count that may have a partition of some input, expired or not
        // (`ColumnFamilyStore.getOverlappingLiveSSTables`).
        let range_of = |input| match KeyRange::of(io, input, mode) {
            Ok(range) => Ok(Some(range)),
            // An input of which that cannot be told may lie anywhere; whoever checks it says what is wrong.
            Err(Error::Format(_)) => Ok(None),
            Err(error) => Err(error),
        };
        let ranges: Vec<Option<KeyRange>> = inputs.iter().map(range_of).collect::<Result<_>>()?;
        let may_meet = |keys| {
            let mut ranges = ranges.iter();
            ranges.any(|range| range.as_ref().is_none_or(|range| range.meets(keys)))
        };
        asked.retain(|s| may_meet(s.keys()));
        let timestamps = asked.iter().map(|s| s.min_timestamp());
        min_timestamp = timestamps.fold(min_timestamp, i64::min);
    }
    Ok(inputs
        .into_iter()
        .partition(|input| is_candidate(input, min_timestamp)))
}

/// The header over all inputs, newest first.
fn union_of(inputs: &[InputSstable]) -> Result<SerializationHeader> {
    let paths: Vec<PathBuf> = inputs.iter().map(statistics_path).collect();
    let stats = inputs.iter().map(|i| &i.statistics.stats);
    union(&header_sources(inputs, &paths), EncodingStats::merge(stats))
}

fn statistics_path(input: &InputSstable) -> PathBuf {
    input.descriptor.path(Component::Statistics)
}

fn header_sources<'a>(inputs: &'a [InputSstable], paths: &'a [PathBuf]) -> Vec<HeaderSource<'a>> {
    let pairs = inputs.iter().zip(paths);
    let source = |(input, path): (&'a InputSstable, &'a PathBuf)| HeaderSource {
        path,
        header: input.header(),
    };
    pairs.map(source).collect()
}

/// What the output of these inputs, newest first, is to be.
///
/// # Errors
/// Inputs that are not of one table, a version that is not written, or no id left.
pub fn decide_settings(
    options: &MergeOptions,
    inputs: &[InputSstable],
    collector: CollectorSettings,
) -> Result<SstableSettings> {
    let header = output_header(options, inputs)?;
    let newest = &inputs[0];
    let version = output_version(options, inputs)?;
    let compression = match &options.compression {
        OutputCompression::None => None,
        OutputCompression::Params(params) => Some(params.clone()),
        OutputCompression::AsNewestInput => {
            newest.compression_info().map(|i| i.params.for_output())
        }
    };
    Ok(SstableSettings {
        descriptor: Descriptor::new(
            &options.output_directory,
            version,
            options.id.map_or_else(|| id_behind(inputs, options), Ok)?,
        ),
        header,
        compression,
        bloom_filter_fp_chance: options
            .bloom_filter_fp_chance
            .unwrap_or(newest.statistics.validation.bloom_filter_fp_chance),
        expected_keys: estimate_keys(inputs),
        min_index_interval: options.min_index_interval,
        column_index_size: options
            .column_index_size
            .unwrap_or_else(|| default_column_index_size(version.format())),
        collector,
    })
}

/// The columns and types of the output of these inputs, newest first.
fn output_header(options: &MergeOptions, inputs: &[InputSstable]) -> Result<SerializationHeader> {
    let mut header = union_of(inputs)?;
    if let Some(table) = &options.table {
        for input in inputs {
            let path = input.descriptor.path(Component::Statistics);
            check_schema(
                table,
                &HeaderSource {
                    path: &path,
                    header: input.header(),
                },
            )?;
        }
        types_of_schema(table, &mut header);
    }
    Ok(header)
}

/// The version asked for; otherwise the one of the newest release that wrote any input, in the format
/// asked for or that of the newest input.
fn output_version(options: &MergeOptions, inputs: &[InputSstable]) -> Result<Version> {
    let newest = inputs[0].descriptor.version;
    let version = match (options.version, options.format) {
        (Some(version), Some(format)) if version.format() != format => {
            return Err(Error::InvalidInput(format!(
                "SSTable version {version} is one of format {}, not {}; choose one of them",
                version.format().name(),
                format.name()
            )));
        }
        (Some(version), _) => version,
        (None, format) => {
            let format = format.unwrap_or(newest.format());
            let versions = inputs
                .iter()
                .map(|i| i.descriptor.version.written_as(format));
            versions.max().unwrap_or(newest.written_as(format))
        }
    };
    if !WRITABLE.contains(&version) {
        return Err(Error::Format(FormatError::unsupported(format!(
            "writing SSTable version {version}; choose nb, oa, pa, da or ea"
        ))));
    }
    Ok(version)
}

fn refuse_mixed_repair(inputs: &[InputSstable]) -> Result<()> {
    let group = |i: &InputSstable| RepairGroup::of(&i.statistics.stats);
    let first = group(&inputs[0]);
    match inputs.iter().find(|i| group(i) != first) {
        None => Ok(()),
        Some(other) => Err(Error::Refused(format!(
            "{} is {first} but {} is {}: merged into one SSTable they would lose their repair \
             state. Merge each kind on its own",
            inputs[0].data_path().display(),
            other.data_path().display(),
            group(other)
        ))),
    }
}

/// Partitions are in another order under another partitioner.
fn refuse_mixed_partitioners(inputs: &[InputSstable], surroundings: &Surroundings) -> Result<()> {
    let overlapping = match surroundings {
        Surroundings::Overlapping(sstables) => &sstables[..],
        Surroundings::Nothing | Surroundings::Unknown => &[],
    };
    let first = inputs[0].partitioner;
    let others = inputs.iter().map(|i| i.partitioner);
    let mut others = others.chain(overlapping.iter().map(|s| s.partitioner()));
    match others.find(|other| *other != first) {
        None => Ok(()),
        Some(other) => Err(Error::InvalidInput(format!(
            "SSTables of one table have one partitioner: {} has {}, but another has {}",
            inputs[0].data_path().display(),
            first.class_name(),
            other.class_name()
        ))),
    }
}

/// The order in which Cassandra visits them to make the header.
fn newest_first(inputs: &mut [InputSstable]) {
    inputs.sort_by_key(|input| std::cmp::Reverse(input.descriptor.id));
}

//! Current SSTables of a table during its compaction.

mod forecast;
mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use compactor_engine::input::{InputSstable, KeyRange, RepairGroup};
use compactor_engine::job::{OutputCompression, OutputSplit, OverlappingSet, refuse_duplicates};
use compactor_io::{Io, ReadMode};
use compactor_sstable::Component;
use compactor_sstable::descriptor::Descriptor;
use compactor_strategy::context::Node;
use compactor_strategy::droppable::DroppableTombstones;
use compactor_strategy::key_estimate::KeyEstimate;
use compactor_strategy::manager::LONG_AGO;
use compactor_strategy::random::TieBreak;
use compactor_strategy::sstable::{Sstable, SstableId};
use compactor_strategy::task::{Task, TaskKind};
use compactor_strategy::{CompactionParams, CompactionStrategyManager};

use super::Plan;
use super::job::Job;
use super::replacements::{ReplacementId, Replacements};
use super::replay::ReplayedSstable;
use super::report::{CompactReport, FailedCompaction};
use crate::MergeRequest;
use crate::described::{describe, needs_tokens};
use crate::report::{MergeReport, SstableReport, TtlRemovedReport};
use crate::table_directories::TableDirectories;
use crate::{Error, ErrorKind, Result};

/// An SSTable of the table.
#[derive(Clone, Debug, Default)]
struct Live {
    data_path: PathBuf,
    group: RepairGroup,
    /// Number of its directory in [`TableDirectories`].
    directory: usize,
    data_bytes: u64,
    uncompressed_bytes: u64,
    level: i32,
    /// Inputs that it replaces; `None` for an input.
    replaces: Option<ReplacementId>,
    /// Report of the merge that wrote it.
    output: Option<SstableReport>,
    /// `level` differs from that in its statistics.
    is_level_changed: bool,
    /// It may have data with a TTL.
    may_have_ttl: bool,
    /// The SSTable is damaged, or cannot be read by this release: it is not compacted.
    is_suspect: bool,
}

/// SSTables of a table, and the ones already replaced.
#[derive(Debug)]
pub(super) struct TableState {
    live: BTreeMap<SstableId, Live>,
    directories: TableDirectories,
    /// `None` for a major compaction.
    planner: Option<CompactionStrategyManager>,
    params: Option<CompactionParams>,
    node: Node,
    now_ms: i64,
    next_id: u64,
    /// Cells and rows lose their TTL.
    strips_ttl: bool,
    /// A merge has ended since what the strategy does in intervals was due.
    has_merged: bool,
    /// All SSTables of the table, inputs or not, as overlapping SSTables of the merges.
    pub(super) set: OverlappingSet,
    /// Whether merges may purge, and so depend on the other SSTables.
    may_purge: bool,
    replacements: Replacements,
    /// Outputs that a later merge has consumed, to be removed.
    consumed: Vec<PathBuf>,
    /// Error of the first SSTable that could not be opened.
    pub(super) error: Option<Error>,
    /// Report of the merges so far, without names of SSTables.
    pub(super) report: CompactReport,
}

/// Milliseconds of a second.
const MS: i64 = 1000;

impl TableState {
    /// Opens every input for its statistics.
    pub(super) fn open(io: &Io, merges: &MergeRequest, plan: &Plan) -> Result<TableState> {
        refuse_duplicates(&merges.inputs)?;
        let mut params = match plan {
            Plan::Strategy(params) => Some(params.clone()),
            Plan::Major => None,
        };
        // What merges would keep must not be selected as fully expired: they would merge it with what is selected.
        if let Some(params) = &mut params {
            params.set_only_purge_repaired(merges.only_purge_repaired);
        }
        let mut state = TableState {
            live: BTreeMap::new(),
            directories: TableDirectories::of(&merges.inputs),
            planner: None,
            params,
            node: Node {
                gc_grace_s: (merges.gc_before_s).map_or(0, |gc_before_s| {
                    merges.now_s.saturating_sub(gc_before_s).max(0)
                }),
                // Then nothing is gained by a compaction for tombstones. Without its TTL nothing has expired.
                never_purges_tombstones: !merges.may_purge() || merges.strip_ttl,
                ..Node::default()
            },
            now_ms: merges.now_s.saturating_mul(MS),
            next_id: merges.inputs.len() as u64,
            strips_ttl: merges.strip_ttl,
            has_merged: false,
            set: OverlappingSet::default(),
            may_purge: merges.may_purge(),
            replacements: Replacements::default(),
            consumed: Vec::new(),
            error: None,
            report: CompactReport::default(),
        };
        let mode = merges.read_mode;
        let besides = merges.scope.named();
        for path in merges.inputs.iter().chain(besides) {
            state.set.name(path);
        }
        // There may be tens of thousands: their statistics are not kept.
        let of = |input: InputSstable| {
            refuse_chunks_of_uncompressed(&merges.compression, &input)?;
            let directory = state.directories.index_of(&input.data_path());
            state.live_of(io, &input, mode, directory)
        };
        let looked = InputSstable::open_all(io, &merges.inputs, mode, of);
        let mut sstables = Vec::new();
        for (number, (path, looked)) in merges.inputs.iter().zip(looked).enumerate() {
            let id = SstableId(number as u64);
            let live = match looked.and_then(|looked| looked) {
                Ok((live, sstable)) => {
                    sstables.extend(sstable.map(|sstable| Sstable { id, ..sstable }));
                    live
                }
                Err(e) if matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported) => {
                    state.leave_out(path, e)
                }
                Err(other) => return Err(other),
            };
            state.live.insert(id, live);
        }
        state.report.sstables_before = state.live.len();
        state.report.ttl_removed = merges.strip_ttl.then(TtlRemovedReport::default);
        state.planner = state.planner_of(sstables, state.outside(io, besides, mode)?);
        Ok(state)
    }

    /// SSTables besides the inputs, as the strategy sees them: data in them may be older than what has expired. Merges
    /// that may purge report those that cannot be read.
    fn outside(&self, io: &Io, besides: &[PathBuf], mode: ReadMode) -> Result<Vec<Arc<Sstable>>> {
        if self.params.is_none() || !self.may_purge {
            return Ok(Vec::new());
        }
        let described = InputSstable::open_all(io, besides, mode, |input| {
            let keys = KeyRange::of(io, &input, mode)?;
            self.set.add(io, &input, &keys, mode);
            let sstable = describe(None, io, &input, &keys, mode)?;
            // There may be tens of thousands, of which bounds and times are needed.
            Ok(Sstable {
                tombstones: DroppableTombstones::default(),
                keys: KeyEstimate::default(),
                ..sstable
            })
        });
        let mut outside = Vec::new();
        for sstable in described {
            match sstable.and_then(|sstable| sstable) {
                Ok(sstable) => outside.push(Arc::new(sstable)),
                Err(e) if matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(outside)
    }

    /// Notes that an SSTable cannot be read.
    fn leave_out(&mut self, path: &Path, error: Error) -> Live {
        self.report.failed.push(FailedCompaction {
            inputs: vec![path.to_owned()],
            error: error.to_string(),
            unreadable_overlapping: None,
        });
        self.error.get_or_insert(error);
        Live {
            data_path: path.to_owned(),
            is_suspect: true,
            may_have_ttl: true,
            ..Live::default()
        }
    }

    fn planner_of(
        &self,
        sstables: impl IntoIterator<Item = Sstable>,
        outside: impl IntoIterator<Item = Arc<Sstable>>,
    ) -> Option<CompactionStrategyManager> {
        let params = self.params.clone()?;
        let node = self.node.clone();
        let mut planner =
            CompactionStrategyManager::load(params, node, TieBreak::First, sstables, LONG_AGO);
        for sstable in outside {
            planner.add_outside(sstable);
        }
        Some(planner)
    }

    /// Returns an SSTable as an input, and as the strategy sees it.
    fn live_of(
        &self,
        io: &Io,
        input: &InputSstable,
        mode: ReadMode,
        directory: usize,
    ) -> Result<(Live, Option<Sstable>)> {
        let live = Live {
            directory,
            ..Live::of(input)
        };
        let Some(params) = &self.params else {
            return Ok((live, None));
        };
        let keys = KeyRange::of(io, input, mode)?;
        if self.may_purge {
            self.set.add(io, input, &keys, mode);
        }
        let sstable = describe(needs_tokens(params), io, input, &keys, mode)?;
        Ok((
            live,
            Some(Sstable {
                directory,
                ..sstable
            }),
        ))
    }

    /// From now on it is this time.
    pub(super) fn set_time(&mut self, now_s: i64) {
        self.now_ms = now_s.saturating_mul(MS);
    }

    /// Adds an SSTable that is written now.
    ///
    /// # Errors
    /// An SSTable that cannot be read.
    pub(super) fn add(&mut self, (io, mode): (&Io, ReadMode), data_path: &Path) -> Result<()> {
        let input = InputSstable::open(io, data_path, mode)?;
        let own = input.data_path();
        if self.live.values().any(|live| live.data_path == own) {
            return Err(Error::invalid(format!("{} is added twice", own.display())));
        }
        self.set.name(&own);
        let directory = self.directories.index_of(&own);
        let (live, sstable) = self.live_of(io, &input, mode, directory)?;
        let id = SstableId(self.next_id);
        self.next_id += 1;
        self.live.insert(id, live);
        self.report.sstables_before += 1;
        if let (Some(planner), Some(sstable)) = (&mut self.planner, sstable) {
            planner.add(Sstable {
                id,
                created_ms: self.now_ms,
                ..sstable
            });
        }
        Ok(())
    }

    /// SSTables at present.
    pub(super) fn present(&self) -> Vec<ReplayedSstable> {
        let present = self.live.values().map(|sstable| ReplayedSstable {
            data_path: sstable.data_path.clone(),
            data_bytes: sstable.data_bytes,
            level: u32::try_from(sstable.level).unwrap_or(0),
        });
        present.collect()
    }

    /// All that can be merged now, up to a number of compactions. Levels that change without a merge change here.
    ///
    /// # Errors
    /// A task that cannot be done.
    pub(super) fn next_round(&mut self, max_jobs: usize) -> Result<Vec<Job>> {
        let Some(planner) = &mut self.planner else {
            let mut jobs = self.major_jobs();
            jobs.truncate(max_jobs);
            return Ok(jobs);
        };
        let mut jobs = Vec::new();
        while jobs.len() < max_jobs
            && let Ok(task) = planner.next_task(self.now_ms)
        {
            planner.begin(&task);
            if task.kind == TaskKind::LevelOnly {
                change_level(planner, &mut self.live, &task);
                self.report.level_changes += 1;
            } else {
                jobs.push(Job::of_task(task)?);
            }
        }
        Ok(jobs)
    }

    /// As [`next_round`](TableState::next_round). If there is nothing, a node looks for expired SSTables again after
    /// an interval: since the last look, merges may have removed older data that kept one.
    pub(super) fn next_round_or_after_interval(&mut self, max_jobs: usize) -> Result<Vec<Job>> {
        let jobs = self.next_round(max_jobs)?;
        match &mut self.planner {
            Some(planner) if jobs.is_empty() && std::mem::take(&mut self.has_merged) => {
                planner.pass_interval();
                self.next_round(max_jobs)
            }
            _ => Ok(jobs),
        }
    }

    /// All SSTables of each repair state in a data directory. What a major compaction has left is not compacted again.
    fn major_jobs(&self) -> Vec<Job> {
        let mut groups: BTreeMap<(usize, RepairGroup), Vec<SstableId>> = BTreeMap::new();
        for (&id, sstable) in self.live.iter().filter(|(_, sstable)| !sstable.is_suspect) {
            let group = (sstable.directory, sstable.group);
            groups.entry(group).or_default().push(id);
        }
        let is_input = |id: &SstableId| self.live.get(id).is_some_and(Live::is_input);
        groups
            .into_values()
            .filter(|members| members.iter().all(is_input))
            .map(Job::whole)
            .collect()
    }

    /// Copies of the inputs that the strategy leaves alone, but whose level changed or that may have TTLs to be removed:
    /// inputs themselves are not modified.
    pub(super) fn copies(&self) -> Vec<Job> {
        let has_ttl = |sstable: &Live| self.strips_ttl && sstable.may_have_ttl;
        let changed = self.live.iter().filter(|(_, sstable)| {
            let is_changed = sstable.is_level_changed || has_ttl(sstable);
            sstable.is_input() && is_changed && !sstable.is_suspect
        });
        let copy = changed.map(|(&id, sstable)| Job {
            level: Some(sstable.level),
            ..Job::whole(vec![id])
        });
        copy.collect()
    }

    fn members<'t>(&'t self, job: &'t Job) -> impl Iterator<Item = &'t Live> {
        job.members.iter().filter_map(|id| self.live.get(id))
    }

    /// `Data.db` of a job's SSTables.
    pub(super) fn paths(&self, job: &Job) -> Vec<PathBuf> {
        let members = self.members(job);
        members.map(|sstable| sstable.data_path.clone()).collect()
    }

    /// Upper bound of the number of outputs.
    pub(super) fn max_outputs(&self, job: &Job) -> usize {
        match &job.split {
            OutputSplit::None => 1,
            OutputSplit::Count(outputs) => outputs.get(),
            OutputSplit::Tokens(tokens) => tokens.len() + 1,
            OutputSplit::MaxBytes(bytes) => {
                // Compressed data can be longer than the data itself, but not twice as long.
                let uncompressed = self.members(job).map(|sstable| sstable.uncompressed_bytes);
                let outputs = uncompressed.sum::<u64>() / (*bytes).max(1);
                usize::try_from(outputs.saturating_mul(2).saturating_add(2)).unwrap_or(usize::MAX)
            }
        }
    }

    /// Replaces the SSTables of a completed job by its outputs.
    ///
    /// # Errors
    /// An output that cannot be read.
    pub(super) fn replace(
        &mut self,
        (io, mode): (&Io, ReadMode),
        job: &Job,
        merged: MergeReport,
    ) -> Result<()> {
        let mut inputs = Vec::new();
        let mut replaced = Vec::new();
        let directory = self.members(job).next().map_or(0, |any| any.directory);
        for id in &job.members {
            let Some(sstable) = self.live.remove(id) else {
                continue;
            };
            self.set.remove(&sstable.data_path);
            match sstable.replaces {
                None => inputs.push(sstable.data_path),
                Some(set) => {
                    self.consumed.push(sstable.data_path);
                    replaced.push(set);
                }
            }
        }
        // One that was to be dropped, and is kept for an SSTable that the strategy does not know, is tried once.
        let is_merge = |task: &Task| task.kind != TaskKind::Expired;
        self.has_merged |= job.task.as_ref().is_some_and(is_merge);
        let set = self.replacements.join(inputs, replaced);
        self.report.add(&merged);
        let mut sstables = Vec::new();
        for output in merged.outputs {
            self.set.name(&output.data_path);
            let input = InputSstable::open(io, &output.data_path, mode)?;
            let (live, sstable) = self.live_of(io, &input, mode, directory)?;
            self.report.data_bytes_written += live.data_bytes;
            let id = SstableId(self.next_id);
            self.next_id += 1;
            sstables.extend(sstable.map(|sstable| Sstable {
                id,
                // Later than now: it is younger than any tombstone_compaction_interval, also one of zero, by which
                // an SSTable whose tombstones cannot be purged would be rewritten without end.
                created_ms: self.now_ms.saturating_add(1),
                ..sstable
            }));
            let live = Live {
                data_path: output.data_path.clone(),
                replaces: Some(set),
                output: Some(output),
                ..live
            };
            self.live.insert(id, live);
        }
        if let (Some(planner), Some(task)) = (&mut self.planner, &job.task) {
            planner.complete(task, sstables);
        }
        Ok(())
    }

    /// Excludes the SSTable that made a job fail from further jobs, or all of the job's if the cause is
    /// unknown. `known` are the outside SSTables.
    pub(super) fn set_aside(&mut self, job: &Job, error: &Error, known: &[PathBuf]) {
        if let (Some(planner), Some(task)) = (&mut self.planner, &job.task) {
            planner.abort(task);
        }
        if error.kind() == ErrorKind::Cancelled {
            return;
        }
        let damaged = error.path().and_then(|path| {
            let file = Descriptor::parse(path).ok()?;
            Some(file.descriptor.path(Component::Data))
        });
        let is_damaged = |live: &Live| damaged.as_ref() == Some(&live.data_path);
        let found = self.members(job).any(is_damaged);
        // The path may be that of an output that could not be written, which is not an SSTable of the table.
        let is_of_table =
            |path: &PathBuf| self.live.values().any(is_damaged) || known.contains(path);
        let unreadable_overlapping = damaged.clone().filter(|path| !found && is_of_table(path));
        let mut inputs = Vec::new();
        for &id in &job.members {
            let Some(sstable) = self.live.get_mut(&id) else {
                continue;
            };
            if found && damaged.as_ref() != Some(&sstable.data_path) {
                continue;
            }
            sstable.is_suspect = true;
            inputs.push(sstable.data_path.clone());
            // As one that could not be opened. The strategy would select a suspect one again: leveled compaction
            // merges those of L1 that overlap L0.
            if let Some(planner) = &mut self.planner {
                planner.exclude(id);
            }
        }
        self.report.failed.push(FailedCompaction {
            inputs,
            error: error.to_string(),
            unreadable_overlapping,
        });
    }

    /// Removes the files of outputs that were merged on.
    pub(super) fn remove_consumed(&mut self) -> Result<()> {
        for path in std::mem::take(&mut self.consumed) {
            let Ok(file) = Descriptor::parse(&path) else {
                continue;
            };
            for component in Component::ALL {
                let path = file.descriptor.path(component);
                match std::fs::remove_file(&path) {
                    Ok(()) => {}
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                    Err(e) => return Err(Error::file("remove", path)(e)),
                }
            }
        }
        Ok(())
    }

    /// `Data.db` of each SSTable that was made, and its level if that differs from the one in its statistics.
    pub(super) fn outputs(&self) -> impl Iterator<Item = (SstableId, &Path, Option<i32>)> {
        let made = self.live.iter().filter(|(_, sstable)| !sstable.is_input());
        made.map(|(&id, sstable)| {
            let level = sstable.is_level_changed.then_some(sstable.level);
            (id, &*sstable.data_path, level)
        })
    }

    /// `Data.db` of each SSTable that an output replaces, or of which nothing is left.
    pub(super) fn replaced(&self) -> BTreeSet<PathBuf> {
        let sets = self.replacements.iter();
        sets.flat_map(|(_, inputs)| inputs).cloned().collect()
    }

    /// `Data.db` of each SSTable that stays as it is.
    pub(super) fn untouched(&self) -> Vec<PathBuf> {
        let untouched = self.live.values().filter(|sstable| sstable.is_input());
        untouched.map(|sstable| sstable.data_path.clone()).collect()
    }

    /// An output is there now.
    pub(super) fn moved_to(&mut self, id: SstableId, data_path: PathBuf) {
        if let Some(output) = self.live.get_mut(&id).and_then(|live| live.output.as_mut()) {
            output.data_path = data_path;
        }
    }
}

/// Refuses another chunk length for an SSTable without chunks, before anything is merged.
fn refuse_chunks_of_uncompressed(
    compression: &OutputCompression,
    input: &InputSstable,
) -> Result<()> {
    match (compression, input.compression_info()) {
        (OutputCompression::AsNewestInputInChunks(_), None) => Err(Error::invalid(format!(
            "{} is not compressed, and so may an output be: a chunk length needs a compressor",
            input.data_path().display()
        ))),
        _ => Ok(()),
    }
}

impl Live {
    fn of(input: &InputSstable) -> Live {
        let stats = &input.statistics.stats;
        Live {
            data_path: input.data_path(),
            group: RepairGroup::of(stats),
            data_bytes: input.data.len(),
            uncompressed_bytes: input.data_len(),
            level: stats.level,
            may_have_ttl: input.may_have_ttl(),
            ..Live::default()
        }
    }

    fn is_input(&self) -> bool {
        self.replaces.is_none()
    }
}

/// Does a task that changes the level of an SSTable.
fn change_level(
    planner: &mut CompactionStrategyManager,
    live: &mut BTreeMap<SstableId, Live>,
    task: &Task,
) {
    let level = task.output.level;
    let changed = task.inputs.iter().filter_map(|&id| {
        let sstable = planner.live().get(id)?;
        let live = live.get_mut(&id)?;
        live.level = i32::try_from(level).unwrap_or(i32::MAX);
        live.is_level_changed = true;
        Some(Sstable {
            level,
            ..(**sstable).clone()
        })
    });
    let changed: Vec<Sstable> = changed.collect();
    planner.complete(task, changed);
}

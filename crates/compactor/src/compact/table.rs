//! Current SSTables of a table during its compaction.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use compactor_engine::input::{InputSstable, RepairGroup};
use compactor_engine::job::OverlappingSet;
use compactor_io::Io;
use compactor_sstable::Component;
use compactor_sstable::descriptor::Descriptor;
use compactor_strategy::context::Node;
use compactor_strategy::random::TieBreak;
use compactor_strategy::size_tiered::SizeTieredOptions;
use compactor_strategy::sstable::{Sstable, SstableId};
use compactor_strategy::{CompactionParams, CompactionStrategyManager};

use super::Plan;
use super::report::{
    CompactReport, CompactedSstable, FailedCompaction, PlannedCompaction, PlannedInput,
};
use crate::merge::MergeRequest;
use crate::report::{MergeReport, SstableReport, TtlRemovedReport};
use crate::{Error, ErrorKind, Result};

/// An SSTable of the table.
#[derive(Clone, Debug, Default)]
struct Live {
    data_path: PathBuf,
    group: RepairGroup,
    /// Bytes of `Data.db` as stored, and of all components.
    data_bytes: u64,
    bytes_on_disk: u64,
    uncompressed_bytes: u64,
    /// The input SSTables that it was made of; none for an input.
    replaces: Vec<PathBuf>,
    /// Report of the merge that wrote it.
    output: Option<SstableReport>,
    /// It is damaged, or cannot be read by this release: nothing is made of it.
    is_suspect: bool,
    /// It may have data with a TTL.
    may_have_ttl: bool,
}

/// SSTables to be merged into one, as indices into the table.
#[derive(Clone, Debug)]
pub(super) struct Job {
    members: Vec<usize>,
}

/// SSTables of a table, and the ones already replaced.
#[derive(Debug)]
pub(super) struct TableState {
    live: Vec<Live>,
    /// Outputs that were merged on, to be removed.
    consumed: Vec<PathBuf>,
    error: Option<Error>,
    /// Cells and rows lose their TTL.
    strips_ttl: bool,
    report: CompactReport,
}

impl TableState {
    /// Opens every input for its statistics.
    pub(super) fn open(io: &Io, merges: &MergeRequest) -> Result<TableState> {
        let mut seen = BTreeSet::new();
        for path in &merges.inputs {
            let own = path.canonicalize().map_err(Error::file("open", path))?;
            if !seen.insert(own) {
                return Err(Error::invalid(format!(
                    "{} is named twice; name each SSTable once",
                    path.display()
                )));
            }
        }
        let mut live = Vec::with_capacity(merges.inputs.len());
        let mut report = CompactReport::default();
        let mut first: Option<Error> = None;
        // There may be tens of thousands: their statistics are not kept.
        let of = |input: InputSstable| Live::of(&input);
        let looked = InputSstable::open_all_with(io, &merges.inputs, merges.read_mode, of);
        for (path, looked) in merges.inputs.iter().zip(looked) {
            match looked {
                Ok(input) => live.push(Live {
                    data_path: path.clone(),
                    ..input
                }),
                Err(e) if matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported) => {
                    report.failed.push(FailedCompaction {
                        inputs: vec![path.clone()],
                        error: e.to_string(),
                        beside: None,
                    });
                    first.get_or_insert(e);
                    live.push(Live {
                        data_path: path.clone(),
                        is_suspect: true,
                        may_have_ttl: true,
                        ..Live::default()
                    });
                }
                Err(other) => return Err(other),
            }
        }
        report.sstables_before = live.len();
        report.ttl_removed = merges.strip_ttl.then(TtlRemovedReport::default);
        Ok(TableState {
            live,
            consumed: Vec::new(),
            error: first,
            strips_ttl: merges.strip_ttl,
            report,
        })
    }

    /// SSTables of which nothing can be made.
    pub(super) fn failed(&self) -> &[FailedCompaction] {
        &self.report.failed
    }

    pub(super) fn first_error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    /// Takes the error of an SSTable that could not be opened.
    pub(super) fn take_error(&mut self) -> Option<Error> {
        self.error.take()
    }

    /// Merges done so far.
    pub(super) fn merges(&self) -> usize {
        self.report.compactions
    }

    pub(super) fn end_round(&mut self) {
        self.report.rounds += 1;
    }

    /// All that can be merged now, each repair state apart. If TTLs are to be removed and the strategy has
    /// nothing to do, each SSTable that it has left alone and that may have some is rewritten.
    pub(super) fn next_round(&self, plan: &Plan) -> Vec<Job> {
        let mut groups: BTreeMap<RepairGroup, Vec<usize>> = BTreeMap::new();
        for (place, sstable) in self.live.iter().enumerate() {
            if !sstable.is_suspect {
                groups.entry(sstable.group).or_default().push(place);
            }
        }
        let mut jobs = Vec::new();
        for members in groups.into_values() {
            match plan {
                Plan::Major => {
                    // What a major compaction has left is not compacted again.
                    if members.iter().all(|&m| self.live[m].replaces.is_empty()) {
                        jobs.push(Job { members });
                    }
                }
                Plan::SizeTiered(options) => jobs.extend(self.concurrent_jobs(*options, &members)),
            }
        }
        if jobs.is_empty() && self.strips_ttl {
            let with_ttl =
                |(_, sstable): &(usize, &Live)| sstable.may_have_ttl && !sstable.is_suspect;
            let places = self.live.iter().enumerate().filter(with_ttl);
            jobs.extend(places.map(|(place, _)| Job {
                members: vec![place],
            }));
        }
        jobs
    }

    /// Jobs that can run concurrently: the next one is selected repeatedly from the remaining SSTables, as by
    /// a node with a free compactor.
    fn concurrent_jobs(&self, options: SizeTieredOptions, members: &[usize]) -> Vec<Job> {
        let mut manager = CompactionStrategyManager::load(
            CompactionParams::size_tiered(options),
            Node::default(),
            TieBreak::First,
            members
                .iter()
                .map(|&member| self.live[member].planned(member)),
            0,
        );
        let mut jobs = Vec::new();
        while let Ok(task) = manager.next_task(0) {
            manager.begin(&task);
            let members = task.inputs.iter().map(|id| id.0 as usize);
            jobs.push(Job {
                members: members.collect(),
            });
        }
        jobs
    }

    /// `Data.db` of a job's SSTables.
    pub(super) fn paths(&self, job: &Job) -> Vec<PathBuf> {
        let path = |&member: &usize| self.live[member].data_path.clone();
        job.members.iter().map(path).collect()
    }

    /// `Data.db` of all others.
    pub(super) fn others(&self, job: &Job) -> Vec<PathBuf> {
        let members: BTreeSet<usize> = job.members.iter().copied().collect();
        let live = self.live.iter().enumerate();
        live.filter(|(place, _)| !members.contains(place))
            .map(|(_, sstable)| sstable.data_path.clone())
            .collect()
    }

    /// A job is done: its SSTables are gone, and its output is there.
    pub(super) fn replace(&mut self, job: &Job, merged: MergeReport) -> Result<()> {
        let group = job.members.first().map(|&m| self.live[m].group);
        let mut replaces = Vec::new();
        for &member in &job.members {
            // Marked, and removed when all jobs of the round have been looked at: places must not move.
            let sstable = &mut self.live[member];
            sstable.is_suspect = true;
            sstable.data_bytes = 0;
            if sstable.replaces.is_empty() {
                replaces.push(sstable.data_path.clone());
            } else {
                self.consumed.push(sstable.data_path.clone());
                replaces.append(&mut sstable.replaces);
            }
            sstable.output = None;
            sstable.data_path = PathBuf::new();
        }
        self.report.add(&merged);
        match merged.outputs.into_iter().next() {
            None => self.report.gone.extend(replaces),
            Some(output) => {
                let stored = std::fs::metadata(&output.data_path)
                    .map_err(Error::file("look up", &output.data_path))?
                    .len();
                self.live.push(Live {
                    data_path: output.data_path.clone(),
                    group: group.unwrap_or_default(),
                    data_bytes: stored,
                    bytes_on_disk: output.bytes,
                    uncompressed_bytes: output.uncompressed_bytes,
                    replaces,
                    output: Some(output),
                    is_suspect: false,
                    may_have_ttl: false,
                });
            }
        }
        Ok(())
    }

    /// A job failed: the SSTable that it failed for is not tried again, or none of them if it cannot be
    /// told which it was. `known`: the SSTables around the table.
    pub(super) fn set_aside(&mut self, job: &Job, error: &Error, known: &[PathBuf]) {
        if error.kind() == ErrorKind::Cancelled {
            return;
        }
        let damaged = error.path().and_then(|path| {
            let file = Descriptor::parse(path).ok()?;
            Some(file.descriptor.path(Component::Data))
        });
        let is_damaged = |live: &Live| damaged.as_ref() == Some(&live.data_path);
        let found = job.members.iter().any(|&m| is_damaged(&self.live[m]));
        // What could not be written is beside them as well, and is no SSTable of the table.
        let is_of_table = |path: &PathBuf| self.live.iter().any(is_damaged) || known.contains(path);
        let beside = damaged.clone().filter(|path| !found && is_of_table(path));
        let mut inputs = Vec::new();
        for &member in &job.members {
            let sstable = &mut self.live[member];
            if !found || damaged.as_ref() == Some(&sstable.data_path) {
                sstable.is_suspect = true;
                inputs.push(sstable.data_path.clone());
            }
        }
        self.report.failed.push(FailedCompaction {
            inputs,
            error: error.to_string(),
            beside,
        });
    }

    /// Notes that the compaction ended before all work was done.
    pub(super) fn note_interruption(&mut self) {
        self.report.interrupted = true;
    }

    /// Removes the files of outputs that were merged on.
    pub(super) fn remove_consumed(&mut self, overlapping: &OverlappingSet) -> Result<()> {
        self.live
            .retain(|sstable| !sstable.data_path.as_os_str().is_empty());
        for path in std::mem::take(&mut self.consumed) {
            overlapping.forget(&path);
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

    /// `Data.db` of each SSTable that was made.
    pub(super) fn outputs(&self) -> impl Iterator<Item = &Path> {
        let made = self.live.iter().filter(|s| !s.replaces.is_empty());
        made.map(|sstable| sstable.data_path.as_path())
    }

    /// `Data.db` of each SSTable that an output replaces, or of which nothing is left.
    pub(super) fn replaced(&self) -> BTreeSet<PathBuf> {
        let by_outputs = self.live.iter().flat_map(|sstable| &sstable.replaces);
        by_outputs.chain(&self.report.gone).cloned().collect()
    }

    /// `Data.db` of each SSTable that stays as it is.
    pub(super) fn untouched(&self) -> Vec<PathBuf> {
        let untouched = self.live.iter().filter(|sstable| sstable.output.is_none());
        untouched.map(|sstable| sstable.data_path.clone()).collect()
    }

    /// The outputs are there now.
    pub(super) fn moved_to(&mut self, directory: &Path) {
        for sstable in &mut self.live {
            if let (Some(output), Some(name)) = (&mut sstable.output, sstable.data_path.file_name())
            {
                output.data_path = directory.join(name);
            }
        }
    }

    /// Plans all merges, assuming that no merge reduces the size.
    pub(super) fn simulate(&self, plan: &Plan) -> Vec<PlannedCompaction> {
        let mut state = TableState {
            live: self.live.clone(),
            consumed: Vec::new(),
            error: None,
            strips_ttl: self.strips_ttl,
            report: CompactReport::default(),
        };
        let mut planned: Vec<PlannedCompaction> = Vec::new();
        // By place: the number of the compaction that leaves the SSTable.
        let mut number_of: BTreeMap<usize, usize> = BTreeMap::new();
        for round in 1.. {
            let jobs = state.next_round(plan);
            if jobs.is_empty() {
                break;
            }
            for job in jobs {
                let number = planned.len() + 1;
                let members = job.members.iter().map(|&m| &state.live[m]);
                let inputs = job.members.iter().map(|m| match number_of.get(m) {
                    None => PlannedInput::Sstable(state.live[*m].data_path.clone()),
                    Some(&number) => PlannedInput::OutputOf(number),
                });
                let sum = |of: fn(&Live) -> u64| members.clone().map(of).sum::<u64>();
                let group = state.live[job.members[0]].group;
                let (data, all, uncompressed) = (
                    sum(|s| s.data_bytes),
                    sum(|s| s.bytes_on_disk),
                    sum(|s| s.uncompressed_bytes),
                );
                planned.push(PlannedCompaction {
                    number,
                    round,
                    repair: group.to_string(),
                    inputs: inputs.collect(),
                    data_bytes: data,
                    uncompressed_bytes: uncompressed,
                });
                for &member in &job.members {
                    state.live[member].is_suspect = true;
                }
                number_of.insert(state.live.len(), number);
                state.live.push(Live {
                    data_path: PathBuf::new(),
                    group,
                    data_bytes: data,
                    bytes_on_disk: all,
                    uncompressed_bytes: uncompressed,
                    replaces: vec![PathBuf::new()],
                    output: None,
                    is_suspect: false,
                    may_have_ttl: false,
                });
            }
        }
        planned
    }

    /// Creates the report.
    pub(super) fn report(&self, plan: &Plan, elapsed: Duration) -> CompactReport {
        let mut report = self.report.clone();
        report.strategy = match plan {
            Plan::SizeTiered(_) => "SizeTieredCompactionStrategy",
            Plan::Major => "major",
        }
        .to_owned();
        for sstable in &self.live {
            if let Some(output) = &sstable.output {
                report.outputs.push(CompactedSstable {
                    sstable: output.clone(),
                    repair: sstable.group.to_string(),
                    replaces: sstable.replaces.clone(),
                });
            }
        }
        report.untouched = self.untouched();
        let with_ttl = (self.live.iter()).filter(|live| live.output.is_none() && live.may_have_ttl);
        let with_ttl = with_ttl.count();
        if self.strips_ttl && with_ttl > 0 {
            report.warnings.insert(format!(
                "{with_ttl} of the SSTables that stay as they are may have data with a TTL, which wins over \
                 copies without"
            ));
        }
        report.sstables_after = self.live.len();
        report.output_bytes = report.outputs.iter().map(|o| o.sstable.bytes).sum();
        report.elapsed_s = elapsed.as_secs_f64();
        report
    }
}

impl Live {
    /// As an input.
    fn of(input: &InputSstable) -> Live {
        Live {
            group: RepairGroup::of(&input.statistics.stats),
            data_bytes: input.data.len(),
            bytes_on_disk: input.disk_len(),
            uncompressed_bytes: input.data_len(),
            may_have_ttl: input.may_have_ttl(),
            ..Live::default()
        }
    }

    /// As the strategy sees it: size tiers depend on sizes alone.
    fn planned(&self, place: usize) -> Sstable {
        Sstable {
            id: SstableId(place as u64),
            data_bytes: self.data_bytes,
            bytes_on_disk: self.bytes_on_disk,
            ..Sstable::default()
        }
    }
}

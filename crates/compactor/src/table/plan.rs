//! Planning: the compactions that a node would start now, and why there are no more.

use std::path::PathBuf;

use compactor_engine::input::{InputSstable, KeyRange, RepairGroup};
use compactor_io::Io;
use compactor_strategy::context::Node;
use compactor_strategy::manager::LONG_AGO;
use compactor_strategy::random::TieBreak;
pub use compactor_strategy::sstable::Sstable;
use compactor_strategy::sstable::{RepairState, SstableId};
use compactor_strategy::task::{Split, Task, TaskKind};
use compactor_strategy::{CompactionParams, CompactionStrategyManager};
use serde::Serialize;

use super::strategy_choice::{Release, Resolved, StrategyChoice};
use super::{Resources, Table};
use crate::described::{describe, needs_tokens};
use crate::report::{lossy, lossy_or_none};
use crate::table_directories::TableDirectories;
use crate::{ErrorKind, Result};

/// A plan of the compactions of a [`Table`], to be configured. Nothing is written.
#[derive(Clone, Debug)]
#[must_use]
pub struct Planning<'t> {
    table: &'t Table,
    strategy: StrategyChoice,
    gc_grace_s: Option<i64>,
    resources: Resources,
}

/// `gc_grace_seconds` of a table that does not set it.
const DEFAULT_GC_GRACE_S: i64 = 864_000;

impl<'t> Planning<'t> {
    pub(super) fn new(table: &'t Table) -> Planning<'t> {
        Planning {
            table,
            strategy: StrategyChoice::default(),
            gc_grace_s: None,
            resources: Resources::default(),
        }
    }

    /// Sets the strategy. Default: the schema's.
    pub fn strategy(mut self, strategy: StrategyChoice) -> Planning<'t> {
        self.strategy = strategy;
        self
    }

    /// Age in seconds from which tombstones count as droppable. Default: the schema's, otherwise ten days.
    pub fn gc_grace_s(mut self, seconds: i64) -> Planning<'t> {
        self.gc_grace_s = Some(seconds);
        self
    }

    /// Sets how files are read.
    pub fn resources(mut self, resources: Resources) -> Planning<'t> {
        self.resources = resources;
        self
    }

    /// Plans at `now_ms`, milliseconds since 1970, from the metadata of each SSTable. Damaged SSTables are listed in
    /// `unreadable` and not planned, like suspect ones on a node.
    ///
    /// # Errors
    /// Unknown strategies and options, a partitioner that the strategy is not supported with, or a failed read.
    pub fn run(self, now_ms: i64) -> Result<TablePlan> {
        let io = self.resources.io()?;
        let Resolved {
            params, release, ..
        } = self.strategy.resolve(self.table)?;
        let (mut sstables, unreadable) = self.read_sstables(needs_tokens(&params), &io)?;
        let directories = TableDirectories::of(self.table.sstables());
        for sstable in &mut sstables {
            let path = &self.table.sstables()[sstable.id.0 as usize];
            sstable.directory = directories.index_of(path);
        }
        let schema = self.table.schema();
        let of_schema = schema.and_then(|schema| schema.options.gc_grace_seconds);
        let node = Node {
            gc_grace_s: self
                .gc_grace_s
                .or(of_schema.map(i64::from))
                .unwrap_or(DEFAULT_GC_GRACE_S),
            ..Node::default()
        };
        let mut plan = TablePlan {
            strategy: params.class().to_owned(),
            release: match release {
                Release::V5_0 => "5.0",
                Release::V6_0 => "6.0",
            }
            .to_owned(),
            sstables: sstables.len(),
            bytes: sstables.iter().map(|sstable| sstable.data_bytes).sum(),
            pending_tasks: pending_tasks(&params, &node, &sstables, now_ms),
            tasks: Vec::new(),
            idle: Vec::new(),
            unreadable,
        };
        let mut manager =
            CompactionStrategyManager::load(params, node, TieBreak::First, sstables, LONG_AGO);
        plan.idle = loop {
            match manager.next_task(now_ms) {
                Ok(task) => {
                    plan.tasks.push(self.planned(&manager, &task, &directories));
                    manager.begin(&task);
                }
                Err(idle) => {
                    let idle = idle.into_iter().map(|(group, why)| IdleGroup {
                        repair: repair_text(group.repair),
                        directory: directories.get(group.directory).cloned(),
                        reason: why.to_string(),
                    });
                    break idle.collect();
                }
            }
        };
        Ok(plan)
    }

    /// Sizes, bounds and statistics of the SSTables, by which strategies select, and those that are damaged.
    ///
    /// # Errors
    /// Another partitioner than Murmur3Partitioner, or a failed read.
    pub fn sstables(&self) -> Result<(Vec<Sstable>, Vec<UnreadableSstable>)> {
        self.read_sstables(Some("a simulation"), &self.resources.io()?)
    }

    /// Describes the SSTables. They must be of Murmur3Partitioner if `needs_tokens` names something that needs it.
    fn read_sstables(
        &self,
        needs_tokens: Option<&str>,
        io: &Io,
    ) -> Result<(Vec<Sstable>, Vec<UnreadableSstable>)> {
        let mode = self.resources.read_mode;
        let (mut sstables, mut unreadable) = (Vec::new(), Vec::new());
        let paths = self.table.sstables();
        // There may be tens of thousands: what is needed of each is taken before the next one is opened.
        let inputs = InputSstable::open_all(io, paths, mode, |input| {
            let keys = KeyRange::of(io, &input, mode)?;
            describe(needs_tokens, io, &input, &keys, mode)
        });
        for (place, (path, input)) in paths.iter().zip(inputs).enumerate() {
            let described = input.and_then(|described| described);
            match described {
                Ok(mut sstable) => {
                    sstable.id = SstableId(place as u64);
                    sstables.push(sstable);
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported) =>
                {
                    unreadable.push(UnreadableSstable {
                        data_path: path.clone(),
                        error: error.to_string(),
                        kind: error.kind(),
                    });
                }
                Err(error) => return Err(error),
            }
        }
        Ok((sstables, unreadable))
    }

    fn planned(
        &self,
        manager: &CompactionStrategyManager,
        task: &Task,
        directories: &TableDirectories,
    ) -> PlannedTask {
        let inputs = task.inputs.iter().filter_map(|&id| {
            let sstable = manager.live().get(id)?;
            Some(PlannedSstable {
                data_path: self.table.sstables().get(id.0 as usize)?.clone(),
                bytes: sstable.data_bytes,
                level: sstable.level,
                is_expired: task.expired.contains(&id),
            })
        });
        let inputs: Vec<PlannedSstable> = inputs.collect();
        let first = task.inputs.first().and_then(|&id| manager.live().get(id));
        PlannedTask {
            kind: task.kind.into(),
            reason: task.reason.to_string(),
            repair: first.map_or_else(String::new, |sstable| repair_text(sstable.repair)),
            directory: first.and_then(|sstable| directories.get(sstable.directory).cloned()),
            level: task.output.level,
            max_sstable_bytes: match task.output.split {
                Split::MaxBytes(bytes) if i64::try_from(bytes).is_ok_and(|b| b < i64::MAX) => {
                    Some(bytes)
                }
                _ => None,
            },
            shards: match &task.output.split {
                Split::Shards(shards) => shards.boundaries.len() + 1,
                _ => 1,
            },
            bytes: inputs.iter().map(|input| input.bytes).sum(),
            inputs,
        }
    }
}

/// Compactions that a node with nothing under way reports as pending (`nodetool compactionstats`), after it was asked
/// for the next one: some strategies count only then.
fn pending_tasks(
    params: &CompactionParams,
    node: &Node,
    sstables: &[Sstable],
    now_ms: i64,
) -> usize {
    let mut manager = CompactionStrategyManager::load(
        params.clone(),
        node.clone(),
        TieBreak::First,
        sstables.iter().cloned(),
        LONG_AGO,
    );
    // The answer does not matter here.
    let _ = manager.next_task(now_ms);
    manager.pending_tasks()
}

pub(crate) fn repair_text(repair: RepairState) -> String {
    let (pending_repair, is_transient) = match repair {
        RepairState::Transient(session) => (Some(session.0.to_be_bytes()), true),
        RepairState::Pending(session) => (Some(session.0.to_be_bytes()), false),
        RepairState::Repaired | RepairState::Unrepaired => (None, false),
    };
    let group = RepairGroup {
        pending_repair,
        is_transient,
        is_repaired: repair == RepairState::Repaired,
    };
    group.to_string()
}

/// Compactions that a node would start now.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct TablePlan {
    /// Class of the strategy, without its package.
    pub strategy: String,
    /// Release of Cassandra whose rules were applied.
    pub release: String,
    /// Number of SSTables that can be read.
    pub sstables: usize,
    /// Stored bytes of their `Data.db`.
    pub bytes: u64,
    /// Estimate of the compactions to be done, as `nodetool compactionstats` reports it.
    pub pending_tasks: usize,
    /// Tasks in the order in which a node would start them, each without the SSTables of the ones before it.
    pub tasks: Vec<PlannedTask>,
    /// Why there are no more tasks, for each repair state of a data directory.
    pub idle: Vec<IdleGroup>,
    /// SSTables that are left out.
    pub unreadable: Vec<UnreadableSstable>,
}

/// A task of a node.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PlannedTask {
    /// Operation on its inputs.
    pub kind: PlannedKind,
    /// The rule that selected its inputs.
    pub reason: String,
    /// Repair state of its inputs.
    pub repair: String,
    /// The table's directory that its inputs are in, if the SSTables are in several data directories.
    #[serde(serialize_with = "lossy_or_none")]
    pub directory: Option<PathBuf>,
    /// Level of its outputs.
    pub level: u32,
    /// Stored bytes after which an output ends.
    pub max_sstable_bytes: Option<u64>,
    /// Number of shards of the ring that the inputs extend over, each of which gets an output of its own.
    pub shards: usize,
    /// Stored bytes of the inputs' `Data.db`.
    pub bytes: u64,
    /// Inputs.
    pub inputs: Vec<PlannedSstable>,
}

/// Operation of a planned task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PlannedKind {
    /// Merges SSTables.
    Compact,
    /// Rewrites an SSTable for its droppable tombstones.
    Tombstones,
    /// Changes the level of an SSTable, without rewriting its data.
    LevelOnly,
    /// Drops SSTables in which everything has expired.
    DropExpired,
}

impl From<TaskKind> for PlannedKind {
    fn from(kind: TaskKind) -> PlannedKind {
        match kind {
            TaskKind::Compact => PlannedKind::Compact,
            TaskKind::Tombstones => PlannedKind::Tombstones,
            TaskKind::LevelOnly => PlannedKind::LevelOnly,
            TaskKind::Expired => PlannedKind::DropExpired,
        }
    }
}

/// Input of a planned task.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PlannedSstable {
    /// `Data.db`.
    #[serde(serialize_with = "lossy")]
    pub data_path: PathBuf,
    /// Stored bytes of `Data.db`.
    pub bytes: u64,
    /// Level in its statistics.
    pub level: u32,
    /// Everything in it has expired: it is dropped without being read.
    pub is_expired: bool,
}

/// A repair state, of a data directory, without a task.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct IdleGroup {
    /// Repair state.
    pub repair: String,
    /// The table's directory, if the SSTables are in several data directories.
    #[serde(serialize_with = "lossy_or_none")]
    pub directory: Option<PathBuf>,
    /// Why no more of its SSTables are compacted.
    pub reason: String,
}

/// An SSTable that is left out of a plan.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct UnreadableSstable {
    /// `Data.db`.
    #[serde(serialize_with = "lossy")]
    pub data_path: PathBuf,
    /// Why.
    pub error: String,
    /// Kind of the error: damage, or something that is not supported.
    #[serde(skip)]
    pub kind: ErrorKind,
}

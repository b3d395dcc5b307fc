//! Cassandra's strategies select among SSTables without files, and ours among the same: task after task, while tasks
//! run, end and fail, and flushes add SSTables.

mod cassandra;
mod random;

use anyhow::{Result, ensure};
use compactor_strategy::context::Node;
use compactor_strategy::random::TieBreak;
use compactor_strategy::release::Release;
use compactor_strategy::sstable::{Sstable, SstableId};
use compactor_strategy::task::{Split, Task, TaskKind};
use compactor_strategy::{CompactionParams, CompactionStrategyManager};

use crate::Cassandra;
use cassandra::{Session, TheirTask};
use random::RandomTable;
pub use random::Strategy;

/// Selections of Cassandra's that may differ from one another if several are equal: as many of ours are compared.
const TIES: usize = 32;

/// What was compared.
#[derive(Debug, Clone, Copy, Default)]
pub struct Compared {
    /// Tables.
    pub tables: usize,
    /// Times that both selected the same task.
    pub tasks: usize,
    /// Times that neither selected one.
    pub idle: usize,
    /// Of the tasks, those for tombstones.
    pub tombstones: usize,
    /// Of the tasks, those with fully expired SSTables.
    pub expired: usize,
    /// Of the tasks, those that only change a level.
    pub level_only: usize,
}

/// Compares the tasks of random tables, by their seeds.
///
/// # Errors
/// The first difference, with its table.
pub fn compare(
    cassandra: &mut Cassandra,
    strategy: Strategy,
    release: Release,
    seeds: std::ops::Range<u64>,
) -> Result<Compared> {
    let mut compared = Compared::default();
    let mut session = Session::start(cassandra)?;
    for seed in seeds {
        let table = RandomTable::new(strategy, release, seed);
        Comparison::open(&mut session, table)?
            .run(&mut compared)
            .map_err(|error| error.context(format!("{strategy:?}, {release:?}, seed {seed}")))?;
        compared.tables += 1;
    }
    Ok(compared)
}

/// A table as both sides see it.
struct Comparison<'s, 'c> {
    session: &'s mut Session<'c>,
    table: RandomTable,
    /// Ours, one for each selection among equals.
    ours: Vec<CompactionStrategyManager>,
    running: Vec<(u64, Task)>,
}

impl<'s, 'c> Comparison<'s, 'c> {
    fn open(session: &'s mut Session<'c>, mut table: RandomTable) -> Result<Comparison<'s, 'c>> {
        let sstables = table.first_sstables();
        session.open(&table, &sstables)?;
        let params =
            CompactionParams::from_options(table.strategy.class(), &table.options, table.release)?;
        let load = |tie| {
            let node = Node {
                gc_grace_s: table.gc_grace_s,
                ..Node::default()
            };
            let ties = TieBreak::Nth(tie);
            let now_ms = table.now_s * 1000;
            CompactionStrategyManager::load(params.clone(), node, ties, sstables.clone(), now_ms)
        };
        let ties = if table.strategy.draws_lots() { TIES } else { 1 };
        let ours = (0..ties).map(load).collect();
        Ok(Comparison {
            session,
            table,
            ours,
            running: Vec::new(),
        })
    }

    fn run(mut self, compared: &mut Compared) -> Result<()> {
        for _ in 0..self.table.steps() {
            self.next(compared)?;
            self.go_on()?;
        }
        Ok(())
    }

    /// Both select a task, which runs from then on.
    fn next(&mut self, compared: &mut Compared) -> Result<()> {
        let now_ms = self.table.now_s * 1000;
        let gc_before_s = self.table.now_s - self.table.gc_grace_s;
        let (theirs, remaining) = self.session.next(self.table.now_s, gc_before_s)?;
        let mut ours = Vec::new();
        for manager in &mut self.ours {
            ours.push(manager.next_task(now_ms));
            let counted = manager.remaining_tasks(now_ms);
            ensure!(
                counted == remaining,
                "{remaining} remaining tasks, ours {counted}, {theirs:?}, {}",
                self.table.describe(manager)
            );
        }
        let Some(theirs) = theirs else {
            let selected = ours.iter().find_map(|ours| ours.as_ref().ok());
            ensure!(
                selected.is_none(),
                "Cassandra selects nothing, ours {selected:?}, {}",
                self.table.describe(&self.ours[0])
            );
            compared.idle += 1;
            return Ok(());
        };
        let same = ours.iter().flatten().find(|task| theirs.is_same(task));
        let Some(task) = same.cloned() else {
            anyhow::bail!(
                "Cassandra selects {theirs:?}, ours {:?}, {}",
                ours.first(),
                self.table.describe(&self.ours[0])
            );
        };
        for manager in &mut self.ours {
            manager.begin(&task);
        }
        compared.count(&task);
        self.running.push((theirs.number, task));
        Ok(())
    }

    /// Something happens before the next selection.
    fn go_on(&mut self) -> Result<()> {
        self.table.pass_time();
        if self.table.flushes() {
            let flushed = self.table.flushed();
            self.session.add(&flushed)?;
            for manager in &mut self.ours {
                flushed
                    .iter()
                    .for_each(|sstable| manager.add(sstable.clone()));
            }
        }
        while self.table.ends_task(self.running.len()) {
            let (number, task) = self.running.remove(0);
            if self.table.fails() {
                self.session.abort(number)?;
                self.ours
                    .iter_mut()
                    .for_each(|manager| manager.abort(&task));
                continue;
            }
            let inputs = task.inputs.iter();
            let inputs: Vec<&Sstable> = inputs
                .filter_map(|&id| Some(self.ours[0].live().get(id)?.as_ref()))
                .collect();
            let outputs = self.table.outputs(&task, &inputs);
            self.session.complete(number, &outputs)?;
            for manager in &mut self.ours {
                manager.complete(&task, outputs.clone());
            }
        }
        Ok(())
    }
}

impl Compared {
    fn count(&mut self, task: &Task) {
        self.tasks += 1;
        self.tombstones += usize::from(task.kind == TaskKind::Tombstones);
        self.level_only += usize::from(task.kind == TaskKind::LevelOnly);
        self.expired += usize::from(!task.expired.is_empty());
    }
}

impl TheirTask {
    fn is_same(&self, ours: &Task) -> bool {
        let mut inputs: Vec<SstableId> = ours.inputs.clone();
        inputs.sort_unstable();
        let max_bytes = match ours.output.split {
            Split::MaxBytes(bytes) => bytes,
            _ => i64::MAX.unsigned_abs(),
        };
        inputs == self.inputs
            && ours.output.level == self.level
            && (!ours.expired.is_empty() || self.has_boundaries(ours))
            && max_bytes == self.max_sstable_bytes
            && (ours.kind == TaskKind::LevelOnly) == self.is_level_only
    }

    /// Whether the output shards are the same. With expired inputs they are not compared: Cassandra's task
    /// looks for those once more when it runs, and computes the shards from the others.
    fn has_boundaries(&self, ours: &Task) -> bool {
        let boundaries: Vec<i128> = match &ours.output.split {
            Split::Shards(shards) => shards.boundaries.iter().map(|token| token.0).collect(),
            _ => Vec::new(),
        };
        let theirs = self.boundaries.iter().map(|&token| i128::from(token));
        boundaries.into_iter().eq(theirs)
    }
}

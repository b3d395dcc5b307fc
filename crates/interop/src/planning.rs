//! Comparison of Cassandra's strategies with ours: both select among the same SSTables, which have no files, task after
//! task, while tasks run, end and fail, and flushes add SSTables.

mod cassandra;
mod pair;
mod random;
mod random_workload;
mod simulated;

use anyhow::Result;
use compactor_strategy::release::Release;
use compactor_strategy::task::{Task, TaskKind};

use crate::Cassandra;
use cassandra::Session;
use pair::{Opening, Pair};
use random::RandomTable;
pub use random::Strategy;
pub use simulated::compare_simulations;

/// Counts of a comparison.
#[derive(Debug, Clone, Copy, Default)]
pub struct Compared {
    /// Number of tables.
    pub tables: usize,
    /// Number of times that both selected the same task.
    pub tasks: usize,
    /// Number of times that neither selected one.
    pub idle: usize,
    /// Number of tasks whose SSTables differ from ours and have the same sizes.
    pub ties: usize,
    /// Number of tasks for tombstones.
    pub tombstones: usize,
    /// Number of tasks with fully expired SSTables.
    pub expired: usize,
    /// Number of tasks that only change a level.
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

/// The steps of a random table.
struct Comparison<'s, 'c> {
    pair: Pair<'s, 'c>,
    table: RandomTable,
    running: Vec<(u64, Task)>,
}

impl<'s, 'c> Comparison<'s, 'c> {
    fn open(session: &'s mut Session<'c>, mut table: RandomTable) -> Result<Comparison<'s, 'c>> {
        let sstables = table.first_sstables();
        let opening = Opening {
            strategy: table.strategy,
            release: table.release,
            options: table.options.clone(),
            gc_grace_s: table.gc_grace_s,
            now_ms: table.now_s * 1000,
        };
        Ok(Comparison {
            pair: Pair::open(session, opening, &sstables)?,
            table,
            running: Vec::new(),
        })
    }

    fn run(mut self, compared: &mut Compared) -> Result<()> {
        for _ in 0..self.table.steps() {
            let selected = self.pair.next(self.table.now_s * 1000, None)?;
            compared.count(selected.as_ref().map(|(_, task)| task));
            if let Some((number, task)) = selected {
                self.pair.begin(&task);
                self.running.push((number, task));
            }
            self.advance()?;
        }
        compared.ties += self.pair.ties;
        Ok(())
    }

    /// Advances the table to the next selection: flushes SSTables, and ends or fails tasks.
    fn advance(&mut self) -> Result<()> {
        self.table.pass_time();
        if self.table.flushes() {
            self.pair.add(&self.table.flushed())?;
        }
        while self.table.ends_task(self.running.len()) {
            let (number, task) = self.running.remove(0);
            if self.table.fails() {
                self.pair.abort(number, &task)?;
                continue;
            }
            let outputs = self.table.outputs(&task, &self.pair.inputs(&task));
            self.pair.complete(number, &task, &outputs)?;
        }
        Ok(())
    }
}

impl Compared {
    /// Counts a selection that both sides made.
    fn count(&mut self, task: Option<&Task>) {
        let Some(task) = task else {
            self.idle += 1;
            return;
        };
        self.tasks += 1;
        self.tombstones += usize::from(task.kind == TaskKind::Tombstones);
        self.level_only += usize::from(task.kind == TaskKind::LevelOnly);
        self.expired += usize::from(!task.expired.is_empty());
    }
}

//! Simulations whose compactions Cassandra's strategy selects together with ours. Flushes, the outputs of merges and
//! the times at which these end are simulated.

use anyhow::{Context, Error, Result, bail};
use compactor_simulate::{Selection, simulate_with};
use compactor_strategy::CompactionStrategyManager;
use compactor_strategy::release::Release;
use compactor_strategy::sstable::Sstable;
use compactor_strategy::task::Task;

use super::Compared;
use super::cassandra::Session;
use super::pair::{Opening, Pair};
use super::random::Strategy;
use super::random_workload::RandomWorkload;
use crate::Cassandra;

/// Compares the compactions of simulations of random workloads, by their seeds.
///
/// # Errors
/// The first difference, with its table.
pub fn compare_simulations(
    cassandra: &mut Cassandra,
    strategy: Strategy,
    release: Release,
    seeds: std::ops::Range<u64>,
) -> Result<Compared> {
    let mut compared = Compared::default();
    let mut session = Session::start(cassandra)?;
    for seed in seeds {
        let workload = RandomWorkload::new(strategy, release, seed)?;
        simulate(&mut session, workload, &mut compared)
            .with_context(|| format!("simulation: {strategy:?}, {release:?}, seed {seed}"))?;
        compared.tables += 1;
    }
    Ok(compared)
}

fn simulate(
    session: &mut Session,
    workload: RandomWorkload,
    compared: &mut Compared,
) -> Result<()> {
    let mut both = Both {
        state: State::New(session, workload.opening),
        running: Vec::new(),
        compared,
    };
    simulate_with(&workload.setup, &mut both)?;
    match both.state {
        State::Failed(error) => Err(error),
        State::New(..) => bail!("the simulation did not start"),
        State::Open(pair) => {
            compared.ties += pair.ties;
            Ok(())
        }
    }
}

/// Both sides of a simulation, which continues as long as they select the same.
struct Both<'s, 'c> {
    state: State<'s, 'c>,
    running: Vec<(u64, Task)>,
    compared: &'s mut Compared,
}

enum State<'s, 'c> {
    New(&'s mut Session<'c>, Opening),
    Open(Pair<'s, 'c>),
    Failed(Error),
}

impl<'s, 'c> Both<'s, 'c> {
    /// Calls `act` with the table; `None` after an error, after which nothing is compared.
    fn with<T>(&mut self, act: impl FnOnce(&mut Pair<'s, 'c>) -> Result<T>) -> Option<T> {
        let State::Open(pair) = &mut self.state else {
            return None;
        };
        act(pair)
            .map_err(|error| self.state = State::Failed(error))
            .ok()
    }
}

impl Selection for Both<'_, '_> {
    fn start(&mut self, sstables: &[Sstable], now_ms: i64) {
        let failed = State::Failed(Error::msg("the simulation started twice"));
        let State::New(session, opening) = std::mem::replace(&mut self.state, failed) else {
            return;
        };
        let opening = Opening { now_ms, ..opening };
        self.state = match Pair::open(session, opening, sstables) {
            Ok(pair) => State::Open(pair),
            Err(error) => State::Failed(error),
        };
    }

    fn next_task(&mut self, manager: &mut CompactionStrategyManager, now_ms: i64) -> Option<Task> {
        let selected = self.with(|pair| pair.next(now_ms, Some(manager)))?;
        self.compared.count(selected.as_ref().map(|(_, task)| task));
        let (number, task) = selected?;
        self.with(|pair| {
            pair.begin(&task);
            Ok(())
        });
        self.running.push((number, task.clone()));
        Some(task)
    }

    fn flushed(&mut self, sstable: &Sstable) {
        self.with(|pair| pair.add(std::slice::from_ref(sstable)));
    }

    fn completed(&mut self, task: &Task, outputs: &[Sstable]) {
        let ended = self.running.iter().position(|(_, running)| running == task);
        let number = ended.map(|at| self.running.remove(at).0);
        self.with(|pair| {
            let number = number.context("a task that does not run has ended")?;
            pair.complete(number, task, outputs)
        });
    }
}

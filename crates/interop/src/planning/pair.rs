//! The same SSTables in a strategy of Cassandra's and in ours.

use anyhow::{Result, bail, ensure};
use compactor_strategy::context::Node;
use compactor_strategy::options::Options;
use compactor_strategy::random::TieBreak;
use compactor_strategy::release::Release;
use compactor_strategy::sstable::Sstable;
use compactor_strategy::task::Task;
use compactor_strategy::{CompactionParams, CompactionStrategyManager};

use super::cassandra::Session;
use super::random::Strategy;

/// Number of our selections that are compared with Cassandra's if it selects at random among equals.
const TIES: usize = 32;

/// Initial state of a table.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) strategy: Strategy,
    pub(super) release: Release,
    pub(super) options: Options,
    pub(super) gc_grace_s: i64,
    pub(super) now_ms: i64,
}

/// A table in Cassandra and in our strategy.
pub(super) struct Pair<'s, 'c> {
    session: &'s mut Session<'c>,
    opening: Opening,
    /// Our strategies, one for each selection among equals.
    ours: Vec<CompactionStrategyManager>,
    /// Number of times that Cassandra selected other SSTables of the same sizes.
    pub(super) ties: usize,
}

impl<'s, 'c> Pair<'s, 'c> {
    pub(super) fn open(
        session: &'s mut Session<'c>,
        opening: Opening,
        sstables: &[Sstable],
    ) -> Result<Pair<'s, 'c>> {
        session.open(&opening, sstables)?;
        let class = opening.strategy.class();
        let params = CompactionParams::from_options(class, &opening.options, opening.release)?;
        let load = |tie| {
            let node = Node {
                gc_grace_s: opening.gc_grace_s,
                ..Node::default()
            };
            let ties = TieBreak::Nth(tie);
            let sstables = sstables.iter().cloned();
            CompactionStrategyManager::load(params.clone(), node, ties, sstables, opening.now_ms)
        };
        let ties = if opening.strategy.selects_at_random() {
            TIES
        } else {
            1
        };
        Ok(Pair {
            ours: (0..ties).map(load).collect(),
            session,
            opening,
            ties: 0,
        })
    }

    /// Returns the task that both select, with Cassandra's number of it, or `None` if neither selects one. `more` is a
    /// further strategy of ours, which is compared too.
    pub(super) fn next(
        &mut self,
        now_ms: i64,
        more: Option<&mut CompactionStrategyManager>,
    ) -> Result<Option<(u64, Task)>> {
        let gc_before_s = now_ms / 1000 - self.opening.gc_grace_s;
        let (theirs, remaining) = self.session.next(now_ms, gc_before_s)?;
        let mut ours = Vec::new();
        for manager in self.ours.iter_mut().chain(more) {
            ours.push(manager.next_task(now_ms).ok());
            let counted = manager.remaining_tasks();
            if counted != remaining {
                bail!(
                    "{remaining} remaining tasks, ours {counted}, {theirs:?}, {}",
                    describe(&self.opening, now_ms, manager)
                );
            }
        }
        let Some(theirs) = theirs else {
            let selected = ours.iter().flatten().next();
            ensure!(
                selected.is_none(),
                "Cassandra selects nothing, ours {selected:?}, {}",
                describe(&self.opening, now_ms, &self.ours[0])
            );
            return Ok(None);
        };
        let live = self.ours[0].live();
        let same = ours
            .iter()
            .flatten()
            .find(|task| theirs.is_same(task, live));
        if let Some(task) = same {
            return Ok(Some((theirs.number, task.clone())));
        }
        let tie = ours.iter().flatten().find(|task| theirs.is_tie(task, live));
        let Some(tie) = tie else {
            bail!(
                "Cassandra selects {theirs:?}, ours {:?}, {}",
                ours.first(),
                describe(&self.opening, now_ms, &self.ours[0])
            );
        };
        let task = Task {
            inputs: theirs.inputs,
            ..tie.clone()
        };
        self.ties += 1;
        Ok(Some((theirs.number, task)))
    }

    /// A selected task runs.
    pub(super) fn begin(&mut self, task: &Task) {
        for manager in &mut self.ours {
            manager.begin(task);
        }
    }

    /// SSTables were flushed.
    pub(super) fn add(&mut self, flushed: &[Sstable]) -> Result<()> {
        self.session.add(flushed)?;
        for manager in &mut self.ours {
            for sstable in flushed {
                manager.add(sstable.clone());
            }
        }
        Ok(())
    }

    /// A task failed.
    pub(super) fn abort(&mut self, number: u64, task: &Task) -> Result<()> {
        self.session.abort(number)?;
        for manager in &mut self.ours {
            manager.abort(task);
        }
        Ok(())
    }

    /// A task ended.
    pub(super) fn complete(&mut self, number: u64, task: &Task, outputs: &[Sstable]) -> Result<()> {
        self.session.complete(number, outputs)?;
        for manager in &mut self.ours {
            manager.complete(task, outputs.iter().cloned());
        }
        Ok(())
    }

    pub(super) fn inputs(&self, task: &Task) -> Vec<Sstable> {
        let live = self.ours[0].live();
        let inputs = task.inputs.iter().filter_map(|&id| live.get(id));
        inputs.map(|input| Sstable::clone(input)).collect()
    }
}

/// A table for the message of a difference.
fn describe(opening: &Opening, now_ms: i64, manager: &CompactionStrategyManager) -> String {
    let mut text = format!("{opening:?}, now {now_ms}\n");
    for sstable in manager.live().iter() {
        let is_compacting = manager.live().is_compacting(sstable.id);
        text.push_str(&format!(
            "{} L{} {} bytes [{} {:?}, {} {:?}] timestamps {}..{} tombstones {:?} suspect {} compacting {is_compacting}\n",
            sstable.id.0,
            sstable.level,
            sstable.data_bytes,
            sstable.first.token.0,
            sstable.first.key,
            sstable.last.token.0,
            sstable.last.key,
            sstable.min_timestamp,
            sstable.max_timestamp,
            sstable.tombstones.points(),
            sstable.is_suspect,
        ));
    }
    text
}

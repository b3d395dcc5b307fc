//! Interface of the strategies.
//!
//! Source: `AbstractCompactionStrategy`.

use std::fmt::Debug;
use std::sync::Arc;

use crate::context::Context;
use crate::sstable::Sstable;
use crate::task::{Idle, Task};

/// Strategy of one group of a table's SSTables: one repair state in one data directory.
///
/// It keeps the group's SSTables in the order that it needs, so that a selection is cheap. Which of them are
/// being compacted is in the [`Context`].
pub trait Strategy: Debug + Send + Sync {
    /// Adds an SSTable, as after a flush.
    fn add(&mut self, sstable: &Arc<Sstable>);

    /// Removes an SSTable.
    fn remove(&mut self, sstable: &Sstable);

    /// Replaces the inputs of a compaction by its outputs.
    fn replace(&mut self, removed: &[Arc<Sstable>], added: &[Arc<Sstable>]) {
        for sstable in removed {
            self.remove(sstable);
        }
        for sstable in added {
            self.add(sstable);
        }
    }

    /// Notes that the SSTables of the table are loaded, as when a node starts at this time.
    fn start(&mut self, _now_ms: i64) {}

    /// Makes what it does in intervals due.
    fn pass_interval(&mut self) {}

    /// Selects the compaction to run next (`getNextBackgroundTasks`).
    ///
    /// # Errors
    /// Why there is none.
    fn next_task(&mut self, context: &mut Context<'_>) -> Result<Task, Idle>;

    /// Number of remaining compactions as the node reports it: for most strategies as of the last call of
    /// [`next_task`](Strategy::next_task) (`getEstimatedRemainingTasks`).
    fn remaining_tasks(&self) -> usize;

    /// Selects all SSTables, as `nodetool compact` does (`getMaximalTasks`). `splits_output`: its option
    /// `--split-output`.
    fn major(&self, context: &Context<'_>, splits_output: bool) -> Vec<Task>;

    /// Level of an SSTable; `None` for strategies without levels.
    fn level(&self, _sstable: &Sstable) -> Option<u32> {
        None
    }
}

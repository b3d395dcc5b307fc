//! A merge that the strategy has selected.

use compactor_engine::job::OutputSplit;
use compactor_strategy::sstable::SstableId;
use compactor_strategy::task::{Split, Task};

use crate::{Error, Result};

/// SSTables to be merged.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) members: Vec<SstableId>,
    /// Task of the strategy; `None` for a major compaction, or the copy of an SSTable that it leaves alone.
    pub(super) task: Option<Task>,
    pub(super) split: OutputSplit,
    pub(super) level: Option<i32>,
}

impl Job {
    /// One output of everything in these.
    pub(super) fn whole(members: Vec<SstableId>) -> Job {
        Job {
            members,
            task: None,
            split: OutputSplit::None,
            level: None,
        }
    }

    pub(super) fn of_task(task: Task) -> Result<Job> {
        let split = match &task.output.split {
            Split::None => OutputSplit::None,
            // A greater size is no limit.
            Split::MaxBytes(bytes) if *bytes >= i64::MAX as u64 => OutputSplit::None,
            Split::MaxBytes(bytes) => OutputSplit::MaxBytes(*bytes),
            Split::Shards(shards) => {
                let ends = shards.boundaries.iter();
                let ends = ends.map(|end| i64::try_from(end.0).ok());
                let ends: Option<Vec<i64>> = ends.collect();
                OutputSplit::Tokens(ends.ok_or_else(|| {
                    Error::Internal("a shard that ends outside of the ring".to_owned())
                })?)
            }
            Split::Levels(_) | Split::Halves { .. } => {
                return Err(Error::Internal(
                    "a background task with the outputs of a major compaction".to_owned(),
                ));
            }
        };
        Ok(Job {
            members: task.inputs.clone(),
            split,
            level: Some(i32::try_from(task.output.level).unwrap_or(i32::MAX)),
            task: Some(task),
        })
    }
}

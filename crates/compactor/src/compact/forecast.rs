//! Forecast of all compactions, for a dry run and the length of a progress bar.
//!
//! The first round is exact. Outputs are estimated as if no merge made anything smaller and all keys were evenly
//! distributed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use compactor_strategy::CompactionStrategyManager;
use compactor_strategy::sstable::{Sstable, SstableId};
use compactor_strategy::task::{Split, Task, TaskKind};
use compactor_strategy::token::{Position, Token};

use super::report::{PlannedCompaction, PlannedInput};
use crate::table::plan::repair_text;

/// State of a table while its compactions are forecast.
pub(super) struct Forecast {
    /// Planner with the current SSTables.
    pub(super) planner: CompactionStrategyManager,
    /// `Data.db` of an SSTable of the table, and its uncompressed bytes.
    pub(super) known: BTreeMap<SstableId, (PathBuf, u64)>,
    /// Id after all known ones.
    pub(super) next_id: u64,
    pub(super) now_ms: i64,
}

impl Forecast {
    /// Plans until nothing is left to do, or up to a number of compactions.
    pub(super) fn run(mut self, max_compactions: usize) -> Vec<PlannedCompaction> {
        let mut planned = Vec::new();
        // The compaction that an SSTable is an output of.
        let mut made_by: BTreeMap<SstableId, usize> = BTreeMap::new();
        let mut merges = 0;
        for round in 1.. {
            let mut tasks = Vec::new();
            while merges < max_compactions
                && let Ok(task) = self.planner.next_task(self.now_ms)
            {
                self.planner.begin(&task);
                planned.push(self.planned(&task, planned.len() + 1, round, &made_by));
                if task.kind == TaskKind::LevelOnly {
                    // Done at once, and it counts as no compaction.
                    let moved = self.outputs(&task);
                    self.planner.complete(&task, moved);
                } else {
                    merges += 1;
                    tasks.push((planned.len(), task));
                }
            }
            if tasks.is_empty() {
                break;
            }
            for (number, task) in tasks {
                let outputs = self.outputs(&task);
                made_by.extend(outputs.iter().map(|output| (output.id, number)));
                self.planner.complete(&task, outputs);
            }
        }
        planned
    }

    fn planned(
        &self,
        task: &Task,
        number: usize,
        round: usize,
        made_by: &BTreeMap<SstableId, usize>,
    ) -> PlannedCompaction {
        let mut sources = BTreeSet::new();
        let inputs = task.inputs.iter().filter_map(|id| match made_by.get(id) {
            Some(&source) => sources
                .insert(source)
                .then_some(PlannedInput::OutputOf(source)),
            None => Some(PlannedInput::Sstable(self.known.get(id)?.0.clone())),
        });
        let inputs = inputs.collect();
        let sstables = self.inputs(task);
        let is_read = task.kind != TaskKind::LevelOnly;
        let uncompressed = task.inputs.iter().filter(|id| !task.expired.contains(id));
        let uncompressed = uncompressed.filter_map(|id| Some(self.known.get(id)?.1));
        PlannedCompaction {
            number,
            round,
            kind: task.kind.into(),
            reason: task.reason.to_string(),
            repair: sstables
                .first()
                .map_or_else(String::new, |sstable| repair_text(sstable.repair)),
            level: task.output.level,
            inputs,
            data_bytes: sstables.iter().map(|sstable| sstable.data_bytes).sum(),
            uncompressed_bytes: if is_read { uncompressed.sum() } else { 0 },
        }
    }

    fn inputs(&self, task: &Task) -> Vec<Arc<Sstable>> {
        let live = self.planner.live();
        let inputs = task.inputs.iter();
        inputs.filter_map(|&id| live.get(id).cloned()).collect()
    }

    fn outputs(&mut self, task: &Task) -> Vec<Sstable> {
        let inputs = self.inputs(task);
        if task.kind == TaskKind::LevelOnly {
            let same = inputs.iter().map(|sstable| Sstable {
                level: task.output.level,
                ..(**sstable).clone()
            });
            return same.collect();
        }
        let read: Vec<&Sstable> = (inputs.iter())
            .filter(|sstable| !task.expired.contains(&sstable.id))
            .map(Arc::as_ref)
            .collect();
        let whole = merged(&read, task.output.level, self.now_ms);
        let uncompressed: u64 = (read.iter())
            .filter_map(|sstable| Some(self.known.get(&sstable.id)?.1))
            .sum();
        let bounds = whole
            .as_ref()
            .map_or_else(Vec::new, |whole| bounds(whole, &task.output.split));
        let outputs = bounds.len() as u64;
        let Some(whole) = whole else {
            return Vec::new();
        };
        let mut parts = Vec::new();
        for (first, last) in bounds {
            let id = SstableId(self.next_id);
            self.next_id += 1;
            let of_outputs = uncompressed / outputs;
            self.known.insert(id, (PathBuf::new(), of_outputs));
            parts.push(Sstable {
                id,
                first,
                last,
                data_bytes: whole.data_bytes / outputs,
                bytes_on_disk: whole.bytes_on_disk / outputs,
                ..whole.clone()
            });
        }
        parts
    }
}

/// One SSTable of everything in these; `None` if there are none.
fn merged(inputs: &[&Sstable], level: u32, now_ms: i64) -> Option<Sstable> {
    let (any, inputs) = (inputs.first()?, inputs.iter());
    Some(Sstable {
        data_bytes: inputs.clone().map(|s| s.data_bytes).sum(),
        bytes_on_disk: inputs.clone().map(|s| s.bytes_on_disk).sum(),
        first: inputs.clone().map(|s| &s.first).min()?.clone(),
        last: inputs.clone().map(|s| &s.last).max()?.clone(),
        min_timestamp: inputs.clone().map(|s| s.min_timestamp).min()?,
        max_timestamp: inputs.clone().map(|s| s.max_timestamp).max()?,
        max_local_deletion_time: inputs.map(|s| s.max_local_deletion_time).max()?,
        level,
        repair: any.repair,
        directory: any.directory,
        created_ms: now_ms,
        ..Sstable::default()
    })
}

/// First and last position of each output.
fn bounds(whole: &Sstable, split: &Split) -> Vec<(Position, Position)> {
    let (first, last) = (whole.first.token.0, whole.last.token.0);
    let ends: Vec<Token> = match split {
        Split::None | Split::Levels(_) | Split::Halves { .. } => Vec::new(),
        Split::MaxBytes(bytes) => {
            let outputs = i128::from(whole.data_bytes.div_ceil((*bytes).max(1)).max(1));
            let width = last.saturating_sub(first) / outputs;
            let ends = (1..outputs).map(|n| Token(first + width * n));
            // A partition is not split.
            let mut ends: Vec<Token> = ends.filter(|end| (first..last).contains(&end.0)).collect();
            ends.dedup();
            ends
        }
        Split::Shards(shards) => {
            let ends = shards.boundaries.iter().copied();
            ends.filter(|end| (first..last).contains(&end.0)).collect()
        }
    };
    let firsts = ends.iter().map(|end| Position::from(Token(end.0 + 1)));
    let firsts = std::iter::once(whole.first.clone()).chain(firsts);
    let lasts = ends.iter().map(|end| Position::from(*end));
    let lasts = lasts.chain([whole.last.clone()]);
    firsts.zip(lasts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use compactor_strategy::task::Shards;

    #[test]
    fn outputs_are_of_equal_size_or_shards() {
        let whole = Sstable::new(SstableId(1), 100, Token(0), Token(99));
        let tokens = |split: &Split| -> Vec<(i128, i128)> {
            let bounds = bounds(&whole, split).into_iter();
            bounds.map(|(a, b)| (a.token.0, b.token.0)).collect()
        };
        assert_eq!(tokens(&Split::None), [(0, 99)]);
        assert_eq!(tokens(&Split::MaxBytes(100)), [(0, 99)]);
        assert_eq!(tokens(&Split::MaxBytes(40)), [(0, 33), (34, 66), (67, 99)]);
        let one = Sstable::new(SstableId(1), 100, Token(7), Token(7));
        let bounds_of_one = bounds(&one, &Split::MaxBytes(40));
        assert_eq!(bounds_of_one, [(one.first.clone(), one.last.clone())]);
        let shards = Shards {
            boundaries: [-5, 49, 99, 200].map(Token).to_vec(),
            is_parallel: false,
        };
        assert_eq!(tokens(&Split::Shards(shards)), [(0, 49), (50, 99)]);
    }
}

//! Expected outputs of a merge.

use compactor_strategy::sstable::SstableId;
use compactor_strategy::task::Task;

use crate::cohort::US;
use crate::lifetime::Lifetime;
use crate::outputs::{Merged, split};
use crate::overlap::Overlaps;
use crate::popularity::Popularity;
use crate::segments::segments;
use crate::shadow::newest;
use crate::stored::{Range, Stored};
use crate::table::Table;
use crate::workload::Workload;

/// Time and workload of a merge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Merge<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) popularity: &'a Popularity,
    /// Time of the start of the simulation, microseconds since 1970.
    pub(crate) start_us: i64,
    /// Time since then, seconds.
    pub(crate) elapsed_s: f64,
}

impl Merge<'_> {
    /// Outputs of a task, whose fully expired inputs are not read.
    pub(crate) fn outputs(&self, task: &Task, table: &Table) -> Vec<Stored> {
        let read = task.inputs.iter().filter(|id| !task.expired.contains(id));
        let inputs: Vec<&Stored> = read.filter_map(|&id| table.get(id)).collect();
        let now_us = self.start_us + (self.elapsed_s * US) as i64;
        let lifetime = Lifetime::at(now_us, self.workload);
        let overlaps = self.overlaps(&inputs, &task.inputs, table, lifetime);
        let ranges: Vec<Range> = inputs.iter().map(|input| input.range).collect();
        let merged = segments(&ranges).into_iter().map(|segment| {
            let cohorts = lifetime.remaining(newest(&inputs, &segment.parts), |dead| {
                overlaps
                    .as_ref()
                    .map_or(1.0, |overlaps| overlaps.purgeable(segment.range, dead))
            });
            Merged {
                range: segment.range,
                cohorts,
            }
        });
        let generation = inputs.iter().map(|input| input.generation).max();
        let generation = generation.unwrap_or(0) + 1;
        split(merged.collect(), &task.output, generation, self.workload)
    }

    /// SSTables that may prevent that tombstones are purged; `None` if there is nothing to purge, or if no row
    /// can be in several.
    fn overlaps<'a>(
        &'a self,
        inputs: &[&Stored],
        ids: &[SstableId],
        table: &'a Table,
        lifetime: Lifetime,
    ) -> Option<Overlaps<'a>> {
        let mut cohorts = inputs.iter().flat_map(|input| &input.cohorts);
        if !Overlaps::matter(self.workload) || !cohorts.any(|c| lifetime.applies_to(c)) {
            return None;
        }
        let start = inputs.iter().map(|input| input.range.start).min()?;
        let end = inputs.iter().map(|input| input.range.end).max()?;
        let overlaps = |stored: &Stored| stored.range.start < end && start < stored.range.end;
        let outside = table
            .iter()
            .filter(|(id, stored)| overlaps(stored) && !ids.contains(id))
            .map(|(_, stored)| stored);
        Some(Overlaps {
            workload: self.workload,
            popularity: self.popularity,
            outside: outside.collect(),
            existing: self.workload.existing_rows(self.elapsed_s),
        })
    }
}

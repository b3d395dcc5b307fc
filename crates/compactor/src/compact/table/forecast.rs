//! The compactions that a table still needs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::{Live, TableState};
use crate::compact::forecast::Forecast;
use crate::compact::job::Job;
use crate::compact::report::{PlannedCompaction, PlannedInput};
use crate::table::plan::PlannedKind;

impl TableState {
    /// Whether the strategy selects anything else.
    pub(in crate::compact) fn has_more(&self) -> bool {
        match self.forecast_of_strategy() {
            Some(forecast) => !forecast.run(1).is_empty(),
            None => !self.major_jobs().is_empty(),
        }
    }

    /// Plans all merges, assuming that no merge reduces the size.
    pub(in crate::compact) fn forecast(&self, max_compactions: usize) -> Vec<PlannedCompaction> {
        let Some(forecast) = self.forecast_of_strategy() else {
            return self.major_forecast();
        };
        let mut planned = forecast.run(max_compactions);
        self.add_copies(&mut planned);
        planned
    }

    /// `None` for a major compaction.
    fn forecast_of_strategy(&self) -> Option<Forecast> {
        let live = self.planner.as_ref()?.live();
        let sstables = live.iter().map(|sstable| (**sstable).clone());
        let planner = self.planner_of(sstables, live.outside().iter().cloned())?;
        let known = self
            .live
            .iter()
            .map(|(&id, sstable)| (id, (sstable.data_path.clone(), sstable.uncompressed_bytes)));
        Some(Forecast {
            planner,
            known: known.collect(),
            next_id: self.next_id,
            now_ms: self.now_ms,
        })
    }

    /// Adds the copies of the SSTables that no planned compaction merges.
    fn add_copies(&self, planned: &mut Vec<PlannedCompaction>) {
        let merged: BTreeSet<PathBuf> = (planned.iter())
            .flat_map(|planned| &planned.inputs)
            .filter_map(|input| match input {
                PlannedInput::Sstable(path) => Some(path.clone()),
                PlannedInput::OutputOf(_) => None,
            })
            .collect();
        let round = planned.last().map_or(1, |last| last.round + 1);
        for copy in self.copies() {
            if !self.paths(&copy).iter().any(|path| merged.contains(path)) {
                let number = planned.len() + 1;
                planned.push(self.planned(&copy, number, round, "its TTLs are removed"));
            }
        }
    }

    fn major_forecast(&self) -> Vec<PlannedCompaction> {
        let jobs = self.major_jobs().into_iter().enumerate();
        let planned =
            jobs.map(|(before, job)| self.planned(&job, before + 1, 1, "major compaction"));
        planned.collect()
    }

    /// A job without a task of the strategy.
    fn planned(&self, job: &Job, number: usize, round: usize, reason: &str) -> PlannedCompaction {
        let sum = |of: fn(&Live) -> u64| self.members(job).map(of).sum();
        let inputs = self.members(job).map(|s| s.data_path.clone());
        let any = self.members(job).next();
        PlannedCompaction {
            number,
            round,
            kind: PlannedKind::Compact,
            reason: reason.to_owned(),
            repair: any.map_or_else(String::new, |sstable| sstable.group.to_string()),
            level: job.level.unwrap_or(0).try_into().unwrap_or(0),
            inputs: inputs.map(PlannedInput::Sstable).collect(),
            data_bytes: sum(|s| s.data_bytes),
            uncompressed_bytes: sum(|s| s.uncompressed_bytes),
        }
    }
}

//! A table's SSTables compacted until its strategy finds nothing more to do, or all at once.
//!
//! Intermediate SSTables stay in a staging directory. Only the final ones are published, all or nothing: the output
//! directory never holds an SSTable together with its sources, which would resurrect purged data. The report says which
//! of them replace which inputs.
//!
//! Compactions run in rounds: a round runs all that can run concurrently, and its outputs are candidates of the next.
//! A node selects again whenever a compaction ends, so its selection depends on timing. Rounds are deterministic: one
//! compactor or sixteen produce the same SSTables.

mod forecast;
mod job;
mod level_change;
mod replacements;
pub mod replay;
mod report;
mod table;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use compactor_check::input_check::InputCheck;
use compactor_engine::input::ComponentList;
use compactor_engine::job::{OutputSplit, Scope, free_files};
use compactor_engine::merge::Observer;
use compactor_engine::publish::{
    InputsAtOpen, OutputClaim, OutputIds, Replaceable, Staging, next_id, publish_all,
};
use compactor_io::Io;
use compactor_sstable::Component;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::sstable_id::SstableId;
pub use compactor_strategy::CompactionParams;

use crate::MergeRequest;
use crate::concurrent::{
    ConcurrentMerges, MIN_MEMORY, SharedObserver, files_of_each, jobs_at_once,
};
use crate::report::PageCache;
use crate::run_record::{Recorder, descriptor_of};
use crate::table::OutputCheck;
use crate::{Error, ErrorKind, Result};

use job::Job;
use level_change::set_level;
pub use report::{
    CompactReport, CompactedSstable, FailedCompaction, PlannedCompaction, PlannedInput, Replacement,
};
use table::TableState;

/// Selection of the SSTables to compact together.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// SSTables that a strategy selects, until it selects none. Whether only tombstones of repaired ones are purged is
    /// an option of the merges, for the strategy too.
    Strategy(CompactionParams),
    /// All SSTables of a repair state in a data directory, once (`getMaximalTasks`).
    Major,
}

/// Options of a compaction.
#[derive(Clone, Debug)]
pub struct CompactRequest {
    /// Options of each merge. Its inputs are the SSTables of the table, its scope is what the table has besides, its
    /// output directory is that of the final SSTables. Threads, memory, descriptors and the rate of reading are
    /// shared by the merges that run at once.
    pub merges: MergeRequest,
    /// Selection of the SSTables to compact together.
    pub plan: Plan,
    /// Limit on the number of compactions; `None` for no limit.
    pub max_compactions: Option<usize>,
    /// Maximum number of concurrent merges; limited by the number of threads.
    pub concurrent: usize,
    /// Checks of the inputs during the merges.
    pub check: InputCheck,
    /// Reads each output back, and verifies it, before it is published.
    pub verify_outputs: bool,
    /// Writes a record of the inputs and outputs, which [`swap`](crate::swap) needs.
    pub recorder: Option<Recorder>,
}

/// Opened table with its planned compactions.
#[derive(Debug)]
pub struct Compaction {
    io: Io,
    request: CompactRequest,
    table: TableState,
    at_open: Arc<InputsAtOpen>,
    output_check: OutputCheck,
}

/// Result of a compaction, also of one in which some merges failed: see [`Compacted::into_result`].
#[derive(Debug)]
#[must_use = "it may hold an error"]
pub struct Compacted {
    /// Report, also of an interrupted or failed compaction: the SSTables in it are in place.
    pub report: CompactReport,
    /// First error.
    pub error: Option<Error>,
}

impl Compacted {
    /// The report, if all compactions were done.
    ///
    /// # Errors
    /// The first error, or cancellation. SSTables that were compacted before are in place, unless they would have
    /// replaced those of an earlier run.
    pub fn into_result(self) -> Result<CompactReport> {
        match self.error {
            Some(error) => Err(error),
            None if self.report.interrupted => Err(Error::Cancelled),
            None => Ok(self.report),
        }
    }
}

impl Compaction {
    /// Reads the statistics of every SSTable. A damaged one is left out, and named in the report.
    ///
    /// # Errors
    /// An SSTable that is named twice, outputs that are split, or a failed read.
    pub fn open(io: Io, request: CompactRequest) -> Result<Compaction> {
        if request.merges.split != OutputSplit::None {
            return Err(Error::invalid(
                "the strategy decides where the outputs of a compaction are split",
            ));
        }
        let at_open = InputsAtOpen::look(&request.merges.inputs, request.merges.may_purge())?;
        let at_open = Arc::new(at_open);
        let table = TableState::open(&io, &request.merges, &request.plan)
            .map_err(|error| at_open.reason_for_open(error))?;
        let output_check = OutputCheck::new(request.verify_outputs, &io, request.merges.read_mode);
        Ok(Compaction {
            io,
            request,
            table,
            at_open,
            output_check,
        })
    }

    /// Lists the planned compactions. The first round is exact; sizes and inputs of later ones are estimated as if no
    /// merge made anything smaller.
    pub fn plan(&self) -> Vec<PlannedCompaction> {
        self.table.forecast(self.max_compactions())
    }

    fn max_compactions(&self) -> usize {
        self.request.max_compactions.unwrap_or(usize::MAX)
    }

    /// Returns the unreadable SSTables, which are not compacted, with the reasons.
    pub fn unreadable(&self) -> &[FailedCompaction] {
        &self.table.report.failed
    }

    /// Returns the error of the first unreadable SSTable.
    pub fn first_error(&self) -> Option<&Error> {
        self.table.error.as_ref()
    }

    /// Estimate of the uncompressed bytes that will be read.
    pub fn expected_bytes(&self) -> u64 {
        self.plan()
            .iter()
            .map(|planned| planned.uncompressed_bytes)
            .sum()
    }

    /// Compacts, and publishes the final SSTables. The observer sees the sum of all rounds.
    ///
    /// # Errors
    /// A failure before the first merge, inputs that were replaced meanwhile, or a failure to publish: then there is
    /// no output. Errors of merges are in the outcome: those that have ended count, unless their outputs would replace
    /// those of an earlier run, and the others' SSTables stay as they are. A damaged or unsupported SSTable is left
    /// out; anything else, or an interruption, ends it all after the merges under way.
    pub fn run(mut self, observer: &mut dyn Observer) -> Result<Compacted> {
        let observer = &SharedObserver::new(observer);
        let started = Instant::now();
        let merges = &mut self.request.merges;
        let output = merges.output_directory.clone();
        let claim = match merges.claim.take() {
            Some(claim) => claim,
            None => {
                let replaceable = Replaceable::of_inputs(&merges.inputs);
                OutputClaim::take(&output, merges.existing_output, replaceable)?
            }
        };
        let mut jobs = self.table.next_round(self.max_compactions())?;
        let mut error = self.table.error.take();
        if error.is_some() && claim.replaces() {
            return Ok(self.unpublished(&claim, &output, started, error));
        }
        if jobs.is_empty() && self.table.copies().is_empty() {
            let mut report = self.table.report(started.elapsed());
            if error.is_none() {
                claim.commit()?;
                if claim.replaces() {
                    report.warnings.insert(format!(
                        "the SSTables that an earlier run left in {} were removed: this run has no output",
                        output.display()
                    ));
                }
            }
            return Ok(Compacted { report, error });
        }
        let work = Staging::create(&claim)?;
        let inside = work.as_output_directory();
        let first = self.first_id()?;
        let mut next = first;
        let mut goes_on = true;
        while !jobs.is_empty() {
            goes_on = self.round(&inside, &jobs, &mut next, observer, &mut error)?;
            self.table.report.rounds += 1;
            let is_cancelled = observer.is_cancelled();
            if goes_on {
                jobs = self.next_jobs()?;
            }
            goes_on &= !is_cancelled;
            if !goes_on {
                break;
            }
        }
        let copies = self.table.copies();
        if goes_on && !copies.is_empty() {
            self.round(&inside, &copies, &mut next, observer, &mut error)?;
            self.table.report.rounds += 1;
        }
        let is_anything_left = !jobs.is_empty() || !self.table.copies().is_empty();
        if is_anything_left && observer.is_cancelled() {
            self.table.report.interrupted = true;
        }
        self.at_open.recheck()?;
        let is_any = self.table.outputs().next().is_some();
        let is_complete = error.is_none() && !self.table.report.interrupted;
        // An output in part is better than none, but not than a whole one.
        let is_published = is_complete || is_any && !claim.replaces();
        if !is_published {
            return Ok(self.unpublished(&claim, &output, started, error));
        }
        self.publish(&claim, &output, first)?;
        let mut report = self.table.report(started.elapsed());
        report.warnings.extend(claim.note());
        Ok(Compacted { report, error })
    }

    /// Result of a compaction that publishes nothing. The output of an earlier run stays: it would be replaced by a part.
    fn unpublished(
        &self,
        claim: &OutputClaim,
        output: &Path,
        started: Instant,
        error: Option<Error>,
    ) -> Compacted {
        let mut report = self.table.report(started.elapsed());
        report.discard_outputs(&self.request.merges.inputs);
        if !claim.replaces() {
            return Compacted { report, error };
        }
        let advice = match error {
            Some(_) => ": leave out what is damaged, or choose another directory",
            None => "",
        };
        report.warnings.insert(format!(
            "nothing was written, and the SSTables that an earlier run left in {} are still there, since not everything \
             could be compacted{advice}",
            output.display()
        ));
        Compacted { report, error }
    }

    /// The jobs of the next round, up to the number of compactions that was asked for.
    fn next_jobs(&mut self) -> Result<Vec<Job>> {
        match self
            .max_compactions()
            .saturating_sub(self.table.report.compactions)
        {
            0 => {
                if self.table.has_more() {
                    let note = "stopped at --max-compactions; more compactions are left to do";
                    self.table.report.warnings.insert(note.to_owned());
                }
                Ok(Vec::new())
            }
            left => self.table.next_round_or_after_interval(left),
        }
    }

    /// Runs jobs, of which none has an input of another. Returns false if nothing more is to be begun.
    fn round(
        &mut self,
        work: &Arc<OutputClaim>,
        jobs: &[Job],
        next: &mut Option<SstableId>,
        observer: &SharedObserver<'_>,
        error: &mut Option<Error>,
    ) -> Result<bool> {
        let results = self.merge_all(work, jobs, next, observer)?;
        let known = self.request.merges.scope.named().to_vec();
        let mut goes_on = true;
        for (job, result) in jobs.iter().zip(results) {
            match result {
                Some(Ok(merged)) => {
                    let reading = (&self.io, self.request.merges.read_mode);
                    self.table.replace(reading, job, merged)?;
                }
                Some(Err(failure)) => {
                    let failure = self.at_open.reason_for_read(failure);
                    let only_this =
                        matches!(failure.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported);
                    goes_on &= only_this;
                    self.table.set_aside(job, &failure, &known);
                    error.get_or_insert(failure);
                }
                // Not begun.
                None => goes_on = false,
            }
        }
        self.table.remove_consumed()?;
        Ok(goes_on)
    }

    fn merge_all(
        &self,
        work: &Arc<OutputClaim>,
        jobs: &[Job],
        next: &mut Option<SstableId>,
        observer: &SharedObserver<'_>,
    ) -> Result<Vec<Option<Result<crate::MergeReport>>>> {
        let merges = &self.request.merges;
        let open_files = merges.open_files.unwrap_or_else(free_files);
        let concurrent = jobs_at_once(
            self.request.concurrent,
            merges.threads,
            (merges.memory_bytes, MIN_MEMORY),
            open_files,
            jobs.len(),
        );
        let mut ids = Vec::with_capacity(jobs.len());
        for job in jobs {
            ids.push(*next);
            // Ids must not depend on which of the merges is faster.
            for _ in 0..self.table.max_outputs(job) {
                *next = next.map(id_after).transpose()?;
            }
        }
        // Without the names of all SSTables, of which each job has a few. Concurrent merges of others add no data.
        let like_all = MergeRequest {
            inputs: Vec::new(),
            scope: if merges.may_purge() {
                Scope::RestOfSet
            } else {
                Scope::Unknown
            },
            overlapping: self.table.set.clone(),
            ..merges.clone()
        };
        let request_of = |number: usize| MergeRequest {
            inputs: self.table.paths(&jobs[number]),
            output_directory: work.directory().to_owned(),
            claim: Some(Arc::clone(work)),
            inputs_at_open: Some(Arc::clone(&self.at_open)),
            ids: ids[number].map(OutputIds::starting_at),
            split: jobs[number].split.clone(),
            level: jobs[number].level,
            threads: (merges.threads / concurrent).max(1),
            memory_bytes: merges.memory_bytes / concurrent,
            open_files: Some(files_of_each(open_files, concurrent)),
            ..like_all.clone()
        };
        let merges = ConcurrentMerges {
            io: &self.io,
            concurrent,
            input_check: self.request.check,
            output_check: &self.output_check,
            // Of tens of thousands of SSTables.
            page_cache: PageCache::NotCounted,
            observer,
            previous_merges: self.table.report.compactions,
            ends_all: |error| !matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported),
        };
        Ok(merges.run(jobs.len(), &request_of))
    }

    /// Publishes the final SSTables from the staging directory, all or nothing. Their ids follow one another from
    /// `first`, or are kept if they are UUIDs.
    fn publish(
        &mut self,
        claim: &Arc<OutputClaim>,
        output: &Path,
        first: Option<SstableId>,
    ) -> Result<()> {
        let staging = Arc::new(Staging::create(claim)?);
        let mut moved = Vec::new();
        let mut staged = Vec::new();
        let mut published_as = Vec::new();
        let mut id = first;
        for (number, path, level) in self.table.outputs() {
            let from = descriptor_of(path)?;
            if let Some(level) = level {
                set_level(path, level)?;
            }
            let to = Descriptor {
                id: id.unwrap_or(from.id),
                ..from.clone()
            };
            id = id.map(id_after).transpose()?;
            let present = ComponentList::known(&from)?.present;
            let components: Vec<Component> = present.into_iter().map(|(c, _)| c).collect();
            for component in &components {
                let (from, to) = (from.path(*component), staging.path(&to, *component));
                std::fs::rename(&from, &to).map_err(Error::file("rename", &from))?;
            }
            staged.push(staging.path(&to, Component::Data));
            published_as.push((number, output.join(to.file_name(Component::Data))));
            moved.push((Arc::clone(&staging), to, components));
        }
        let replaced = self.table.replaced();
        let record = match &self.request.recorder {
            Some(recorder) if !replaced.is_empty() => Some(recorder.write(
                claim,
                &staged,
                self.at_open.inputs(),
                &|input| replaced.contains(input),
                &self.table.untouched(),
            )?),
            _ => None,
        };
        let published = publish_all(&moved).and_then(|()| claim.commit());
        if let Err(error) = published {
            if let Some(record) = record {
                record.undo();
            }
            return Err(error);
        }
        for (number, data_path) in published_as {
            self.table.moved_to(number, data_path);
        }
        Ok(())
    }

    /// First id after all existing ones in the inputs' directories. `None` where ids are UUIDs, which every merge
    /// makes for itself.
    fn first_id(&self) -> Result<Option<SstableId>> {
        let merges = &self.request.merges;
        let next = next_id(
            &merges.output_directory,
            &merges.inputs,
            merges.scope.named(),
        )?;
        Ok(Some(next).filter(|id| !matches!(id, SstableId::Uuid { .. })))
    }
}

fn id_after(id: SstableId) -> Result<SstableId> {
    id.next()
        .ok_or_else(|| Error::invalid("no SSTable id is left"))
}

//! Merges SSTables into one and reports what was read, written and purged.
//!
//! These functions purge as their request says. They know nothing of other SSTables of the table, of a node that has them
//! open, nor of views and transactions: [`Table::merge`](crate::Table::merge) refuses what might lose data, and is the
//! function to use. These are for benchmarks and tests, which merge SSTables of their own.

use std::path::PathBuf;

use compactor_check::input_check::InputCheck;
use compactor_engine::job::{self, MergeJob, StagedMerge};
use compactor_engine::merge::Observer;
use compactor_engine::publish::InputsAtOpen;
use compactor_io::{Io, IoOptions};

pub use compactor_engine::merge::InputRead;

use crate::MergeRequest;
use crate::concurrent::{OneMerge, SharedObserver};
use crate::process::Usage;
use crate::report::{MergeReport, PageCache};
use crate::run_record::Recorder;
use crate::{Error, Result};

/// Merges SSTables with the default I/O options, checking every component of them.
///
/// # Errors
/// Damaged or unsupported inputs, a failed read or write, cancellation. Nothing is written then.
pub fn merge(request: MergeRequest, observer: &mut dyn Observer) -> Result<MergeReport> {
    let job = open_merge(IoOptions::default(), request)?;
    run_merge(job, InputCheck::AllComponents, observer)
}

/// Opens the inputs and decides everything that does not need their data.
///
/// # Errors
/// Damaged or unsupported inputs, or ones that must not be merged with one another.
pub fn open_merge(io: IoOptions, request: MergeRequest) -> Result<MergeJob> {
    let io = Io::new(io)?;
    MergeJob::open(io, request)
}

/// Runs an opened merge and reports on it.
///
/// # Errors
/// As [`merge`].
pub fn run_merge(
    job: MergeJob,
    check: InputCheck,
    observer: &mut dyn Observer,
) -> Result<MergeReport> {
    run_one_merge(job, check, PageCache::Counted, observer)
}

pub(crate) fn run_one_merge(
    job: MergeJob,
    check: InputCheck,
    page_cache: PageCache,
    observer: &mut dyn Observer,
) -> Result<MergeReport> {
    let mut reports = run(vec![job], check, None, page_cache, observer)?;
    let report = reports.pop();
    report.ok_or_else(|| Error::Internal("a merge without a report".to_owned()))
}

/// Runs merges into one directory, one after the other, and publishes their outputs when all are
/// complete: all or none. The observer sees them as one. The jobs are those of one request
/// ([`MergeJob::open_groups`]) if a recorder is given: it leaves a record of the inputs and outputs, which
/// [`swap`](crate::swap) needs.
///
/// # Errors
/// As [`merge`], from any of them, or a failed write of the record.
pub fn run_merges(
    jobs: Vec<MergeJob>,
    check: InputCheck,
    recorder: Option<&Recorder>,
    observer: &mut dyn Observer,
) -> Result<Vec<MergeReport>> {
    run(jobs, check, recorder, PageCache::Counted, observer)
}

fn run(
    mut jobs: Vec<MergeJob>,
    check: InputCheck,
    recorder: Option<&Recorder>,
    page_cache: PageCache,
    observer: &mut dyn Observer,
) -> Result<Vec<MergeReport>> {
    let inputs = jobs.first().and_then(MergeJob::inputs_at_open).cloned();
    let mut claimed = None;
    if let [first, others @ ..] = &mut jobs[..] {
        let claim = first.claim()?;
        others.iter_mut().for_each(|job| job.use_claim(&claim));
        claimed = Some(claim);
    }
    let mut reports = Vec::with_capacity(jobs.len());
    let mut staged = Vec::with_capacity(jobs.len());
    let observer = &SharedObserver::new(observer);
    for (number, job) in jobs.into_iter().enumerate() {
        let before = Usage::now();
        let mut report = MergeReport::before(&job, page_cache);
        let io = job.io().clone();
        let merged = check.stage(job, &mut OneMerge { observer, number });
        let (merge, ignored) =
            merged.map_err(|error| because_replaced(error, inputs.as_deref()))?;
        staged.push(merge);
        report.warnings.extend(ignored);
        reports.push((report, io, Usage::now().since(&before)));
    }
    let record = match (recorder, inputs, &claimed) {
        (Some(recorder), Some(inputs), Some(claim)) => {
            let staged: Vec<PathBuf> = staged.iter().flat_map(StagedMerge::data_paths).collect();
            Some(recorder.write(claim, &staged, inputs.inputs(), &|_| true, &[])?)
        }
        _ => None,
    };
    let outcomes = match job::publish(staged) {
        Ok(outcomes) => outcomes,
        Err(error) => {
            if let Some(record) = record {
                record.undo();
            }
            return Err(error);
        }
    };
    let mut note = claimed.and_then(|claim| claim.note());
    let reports = reports.into_iter().zip(outcomes);
    Ok(reports
        .map(|((mut report, io, usage), outcome)| {
            let elapsed = outcome.elapsed;
            report.complete(&io, outcome, usage, elapsed, page_cache);
            report.warnings.extend(note.take());
            report
        })
        .collect())
}

/// The reason why a merge failed, if that is that its inputs were replaced while it read them.
fn because_replaced(error: Error, inputs: Option<&InputsAtOpen>) -> Error {
    match inputs {
        Some(inputs) => inputs.reason_for_read(error),
        None => error,
    }
}

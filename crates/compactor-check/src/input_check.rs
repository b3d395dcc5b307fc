//! Checking the inputs of a merge while it runs: all their components, against one another and against the data.

mod checked_merge;
mod inputs;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;

use compactor_engine::job::{MergeJob, StagedMerge};
use compactor_engine::merge::Observer;
use compactor_engine::{Error, Result};

use crate::verify::Finding;
use crate::verify::bti_sidecar_components;
use crate::verify::indexed_partitions;
use checked_merge::{CheckedMerge, Feeds};
use inputs::InputsToCheck;

/// Checks of the inputs during a merge, beyond the components that are read in any case: every chunk, row and order
/// of `Data.db`, `Statistics.db`, `CompressionInfo.db` or `CRC.db`, and `TOC.txt`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InputCheck {
    /// `Index.db`, `Summary.db`, `Filter.db` and `Digest.crc32` too, concurrently with the merge, and
    /// `Statistics.db` against the data. It finds the same damage as [`verify`](crate::verify::verify), except that
    /// it does not validate values against their types. Overlapping SSTables and inputs that are dropped unread are
    /// checked except for their `Data.db`. Promoted indexes are compared with the rows only where one pass is enough
    /// for all inputs ([`MergeJob::is_in_passes`]).
    #[default]
    AllComponents,
    /// Nothing beyond. Components of SSTables that are not read are trusted: those of overlapping SSTables, and the
    /// `Summary.db` or `Index.db` of inputs in which everything has expired.
    DataOnly,
}

impl InputCheck {
    /// Runs a merge up to its publication. Also returns a sentence per file on input damage that does not stop it.
    ///
    /// # Errors
    /// Those of [`MergeJob::stage`], and damage found by the checks.
    pub fn stage(
        self,
        job: MergeJob,
        observer: &mut dyn Observer,
    ) -> Result<(StagedMerge, Vec<String>)> {
        match self {
            InputCheck::DataOnly => Ok((job.stage(observer)?, Vec::new())),
            InputCheck::AllComponents => stage_and_check(job, observer),
        }
    }
}

/// Runs a merge while other threads check the components of its inputs.
fn stage_and_check(
    job: MergeJob,
    observer: &mut dyn Observer,
) -> Result<(StagedMerge, Vec<String>)> {
    let io = job.io().clone();
    let inputs = InputsToCheck::of(&job)?;
    let index_ahead = job.budget().index_ahead;
    let (stop, failed) = (AtomicBool::new(false), AtomicBool::new(false));
    let stop = &stop;
    std::thread::scope(|scope| {
        let refused = |error| {
            // Those that run already end; the scope waits for them.
            stop.store(true, Ordering::Relaxed);
            Error::thread("the check of components")(error)
        };
        let (inputs, io, failed) = (&inputs, &io, &failed);
        let check = move || inputs.check(io, stop, failed);
        let started = Builder::new().spawn_scoped(scope, check);
        let mut threads = vec![started.map_err(refused)?];
        let mut feeds = Feeds::default();
        if !inputs.tries.is_empty() {
            let (ours, theirs) = bti_sidecar_components::channel(&inputs.tries);
            let follow = move || inputs.follow(io, &theirs, stop, failed);
            let started = Builder::new().spawn_scoped(scope, follow);
            threads.push(started.map_err(refused)?);
            feeds.tries = Some(ours);
        }
        if !inputs.indexed.is_empty() {
            let (ours, reader) = indexed_partitions::connect(&inputs.indexed, index_ahead);
            let read = move || inputs.read_indexes(io, reader, stop, failed);
            let started = Builder::new().spawn_scoped(scope, read);
            threads.push(started.map_err(refused)?);
            feeds.indexed = Some(ours);
        }
        let mut checking = CheckedMerge {
            inner: observer,
            threads,
            feeds,
            stop,
            failed,
            error: None,
            ignored: Vec::new(),
        };
        let staged = job.stage(&mut checking);
        stop.store(true, Ordering::Relaxed);
        checking.join();
        match (checking.error.take(), staged) {
            // The merge was stopped because of it, or failed on the same damage.
            (Some(error), Err(_)) if failed.load(Ordering::Relaxed) => Err(error),
            (_, staged) => Ok((staged?, sentences(std::mem::take(&mut checking.ignored)))),
        }
    })
}

/// Formats the damage that does not stop a merge, a sentence per file.
fn sentences(ignored: Vec<Finding>) -> Vec<String> {
    let mut by_file: BTreeMap<PathBuf, (Finding, usize)> = BTreeMap::new();
    for finding in ignored {
        let path = finding.path.clone();
        by_file.entry(path).or_insert_with(|| (finding, 0)).1 += 1;
    }
    let sentence = |(finding, count): (Finding, usize)| {
        let more = match count {
            1 => String::new(),
            _ => format!(", and {} more", count - 1),
        };
        format!(
            "{} is damaged; the merge does not need it, since it writes its own, but a node may not find rows through \
             it. {}{more} (`compactor verify` lists all)",
            finding.component,
            finding.statement()
        )
    };
    by_file.into_values().map(sentence).collect()
}

//! Replaces exactly the inputs of a run by its outputs, in the directory of a table whose node is stopped.
//!
//! Atomic under a crash at any time, by Cassandra's own transaction log: a starting node applies it as it does those
//! of its compactions, and so does the next [`swap()`] of the same output.
//!
//! 1. A note in the output's directory records the log and the destinations.
//! 2. The inputs are linked, or copied, to a directory that the caller names.
//! 3. The log is written with an ADD record for each output.
//! 4. The outputs are linked, or copied, into the table's directory.
//! 5. The log gets a REMOVE record for each input, and COMMIT. Recovery deletes the outputs without COMMIT, and the
//!    inputs with it.
//! 6. The inputs are removed from the table's directory, and the log after them; then the outputs from the run's
//!    output directory.
//!
//! Source: `LogTransaction`, `LogFile`.

mod index_advice;
mod new_names;
mod other_directories;
mod outputs;
mod place;
mod plan;
mod unfinished;
mod update_time;
mod version_advice;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use compactor_engine::publish::{FileIdentity, TransactionFile, lock_directory, new_time_uuid};
use compactor_io::{Io, IoOptions, remove_if_exists, sync_directory};
use compactor_sstable::transaction_log::{self, Record};
use serde::Serialize;

use crate::node_processes::Users;
use crate::report::lossy;
use crate::run_record::{descriptor_of, make_directory};
use crate::{Error, ErrorKind, Result};
use new_names::key_cache_advice;
use place::{Placement, Placing};
use plan::Plan;
use unfinished::{Note, Unfinished};

/// Swap to perform.
#[derive(Clone, Debug)]
pub struct SwapRequest {
    /// Directory that a run was asked to write to, or the one below it that has its record.
    pub output: PathBuf,
    /// The table's own directory, of a node that is stopped.
    pub table_directory: PathBuf,
    /// Directory that receives the inputs; created if missing.
    pub inputs_to: PathBuf,
}

/// A step of a swap that is done and durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The planned steps are recorded in the output's directory.
    Noted,
    /// The inputs are in their new directory as well.
    InputsKept,
    /// The transaction log names the outputs.
    Begun,
    /// One of the outputs is in place.
    OutputPlaced,
    /// All outputs are in place.
    OutputsPlaced,
    /// The transaction log names the inputs.
    RemovalsLogged,
    /// The transaction log is complete: from here on everything is new.
    Committed,
    /// A file of an input is removed from the table's directory.
    FileRemoved,
    /// The inputs are removed from the table's directory.
    InputsRemoved,
}

/// Result of a swap or of its plan.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct SwapReport {
    /// The table's directory.
    #[serde(serialize_with = "lossy")]
    pub table_directory: PathBuf,
    /// Directory that the inputs are in.
    #[serde(serialize_with = "lossy")]
    pub inputs_directory: PathBuf,
    /// File names of the `Data.db` of the inputs, which are no longer in the table's directory.
    pub inputs: Vec<String>,
    /// The outputs.
    pub outputs: Vec<SwappedOutput>,
    /// State that the swap found.
    pub state: SwapState,
    /// Notes for the operator.
    #[serde(rename = "warnings")]
    pub notes: Vec<String>,
}

/// State of a swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SwapState {
    /// It would be done: nothing was changed.
    Planned,
    /// It was done.
    Done,
    /// A swap interrupted after its COMMIT was completed.
    Finished,
    /// It had been done before.
    AlreadyDone,
}

/// An output of a swap.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct SwappedOutput {
    /// Its `Data.db` in the output's directory.
    #[serde(serialize_with = "lossy")]
    pub from: PathBuf,
    /// Its `Data.db` in the table's directory.
    #[serde(serialize_with = "lossy")]
    pub to: PathBuf,
}

/// Reports the actions of [`swap()`], with the same refusals, without changing anything.
///
/// # Errors
/// As [`swap()`].
pub fn plan_swap(request: &SwapRequest) -> Result<SwapReport> {
    let table = plan::table_directory(request)?;
    let request = &with_record(request, &table)?;
    if let Some(unfinished) = Unfinished::find(&request.output, &table)? {
        let mut report = unfinished.note.report(&table, SwapState::Planned);
        let will = if unfinished.log.is_committed() {
            note_other_directory(&mut report, request);
            "finished"
        } else {
            report.notes.extend(left_behind(&unfinished, request));
            let named = &request.inputs_to;
            report.inputs_directory = std::path::absolute(named).unwrap_or_else(|_| named.clone());
            "undone, and then repeated"
        };
        report.notes.push(format!(
            "an interrupted swap was found: without --dry-run it will be {will}"
        ));
        return Ok(report);
    }
    let Some(note) = done_before(request, &table)? else {
        return Ok(Plan::make(request, &table)?.report(SwapState::Planned));
    };
    let mut report = note.report(&table, SwapState::AlreadyDone);
    note_other_directory(&mut report, request);
    Ok(report)
}

/// Replaces the inputs of a run by its outputs. `reached` is called after each step; its error before
/// [`Step::Committed`] undoes everything, later ones leave the rest to the next swap or to the node's start.
///
/// # Errors
/// [`Refused`](crate::ErrorKind::Refused) if the table's directory has other SSTables than the run knew,
/// inputs are gone, a process has files of the directory open, a transaction is under way, or names are
/// taken; or a failed file operation. The table is then as it was before, unless the message states otherwise.
pub fn swap(
    request: &SwapRequest,
    reached: &mut dyn FnMut(Step) -> Result<()>,
) -> Result<SwapReport> {
    let table = plan::table_directory(request)?;
    // Two swaps at once, or a run that publishes here.
    let _guard = lock_directory(&table)?;
    let request = &with_record(request, &table)?;
    let mut left = None;
    if let Some(unfinished) = Unfinished::find(&request.output, &table)? {
        let processes = refuse_node(&table)?;
        if unfinished.log.is_committed() {
            unfinished.finish(&table, reached)?;
            let mut report = unfinished.note.report(&table, SwapState::Finished);
            note_other_directory(&mut report, request);
            let outputs = report.outputs.iter();
            let outputs = outputs.filter_map(|output| descriptor_of(&output.to).ok());
            let advice = key_cache_advice(outputs);
            report.notes.extend(advice);
            report.notes.extend(processes);
            report
                .notes
                .extend(unfinished.note.remove_sources(&request.output, &table));
            return Ok(report);
        }
        left = left_behind(&unfinished, request);
        unfinished.undo(&table)?;
    }
    if let Some(note) = done_before(request, &table)? {
        let mut report = note.report(&table, SwapState::AlreadyDone);
        note_other_directory(&mut report, request);
        report
            .notes
            .extend(note.remove_sources(&request.output, &table));
        return Ok(report);
    }
    let plan = Plan::make(request, &table)?;
    let note = run(&plan, reached)?;
    let mut report = plan.report(SwapState::Done);
    report.notes.extend(left);
    report
        .notes
        .extend(note.remove_sources(&request.output, &table));
    Ok(report)
}

/// Adds a note if the inputs of an earlier swap are in another directory than the request names.
fn note_other_directory(report: &mut SwapReport, request: &SwapRequest) {
    let kept = &report.inputs_directory;
    if is_elsewhere(kept, request) {
        report.notes.push(format!(
            "the first run of this swap moved the inputs to {}; --inputs-to {} is not used",
            kept.display(),
            request.inputs_to.display()
        ));
    }
}

/// Note on a swap that was cut off before its COMMIT, and had named another directory than the request does.
fn left_behind(unfinished: &Unfinished, request: &SwapRequest) -> Option<String> {
    let kept = Path::new(&unfinished.note.inputs_directory);
    is_elsewhere(kept, request).then(|| {
        format!(
            "an earlier run of this swap was cut off, and has left links or copies of inputs in {}",
            kept.display()
        )
    })
}

/// Whether this directory exists, and is another one than the request names for the inputs.
fn is_elsewhere(kept: &Path, request: &SwapRequest) -> bool {
    let named = &request.inputs_to;
    let named = named.canonicalize().or_else(|_| std::path::absolute(named));
    kept.canonicalize()
        .is_ok_and(|kept| named.is_ok_and(|named| named != kept))
}

/// The request with the directory that has the run's record.
fn with_record(request: &SwapRequest, table: &Path) -> Result<SwapRequest> {
    Ok(SwapRequest {
        output: outputs::directory_of_record(&request.output, table)?,
        ..request.clone()
    })
}

fn done_before(request: &SwapRequest, table: &Path) -> Result<Option<Note>> {
    let note = Note::read(&request.output)?.filter(|note| note.is_of(table));
    Ok(note.filter(|note| note.is_done(&request.output, table)))
}

/// Refuses a directory that a running node may use. Returns a sentence on what could not be checked.
pub(crate) fn refuse_node(table: &Path) -> Result<Option<String>> {
    let users = Users::of(table).map_err(|error| {
        Error::refused(format!(
            "cannot determine whether a running node has {} open ({error}): run this where /proc is mounted",
            table.display()
        ))
    })?;
    if let Some(user) = users.processes.first() {
        let file = user.file.as_deref().unwrap_or(table);
        return Err(Error::refused(format!(
            "{user} has {} open: stop the node first (`nodetool drain`, then stop it), or wait until that \
             process ends",
            file.display()
        )));
    }
    if let Some(user) = users.hidden_nodes.first() {
        return Err(Error::refused(format!(
            "{user} looks like a Cassandra node, and this user may not inspect its open files: run this as \
             root or as the node's user, with the node stopped"
        )));
    }
    Ok((users.hidden > 0 || users.hides_others).then(|| {
        format!(
            "cannot inspect the open files of other users' processes: make sure that none of them uses {}",
            table.display()
        )
    }))
}

/// Changes to undo if a swap fails before its COMMIT.
#[derive(Default)]
struct Taken {
    kept: Vec<PathBuf>,
    /// The directory for the inputs was created.
    is_made: bool,
    placed: Vec<PathBuf>,
    log: Option<TransactionFile>,
}

/// Performs the swap. Returns its note.
fn run(plan: &Plan, reached: &mut dyn FnMut(Step) -> Result<()>) -> Result<Note> {
    let mut taken = Taken::default();
    let cut_off = |error: Error, advice: &str| {
        let why = format!("{error}. {advice}: run the same command again, or start the node");
        match error.kind() {
            ErrorKind::Refused => Error::refused(why),
            _ => Error::file("swap SSTables in", &plan.table)(io::Error::other(why)),
        }
    };
    let (note, log) = match commit(plan, &mut taken, reached) {
        Ok(done) => done,
        Err(error) if taken.log.as_ref().is_some_and(TransactionFile::is_in_doubt) => {
            return Err(cut_off(
                error,
                "The transaction log may or may not be complete, so all files of both are left there; which \
                 of them stay is decided by that log",
            ));
        }
        Err(error) => {
            return Err(match undo(plan, &taken) {
                Ok(()) => error,
                Err(_) => cut_off(error, "What was put there is still to be removed"),
            });
        }
    };
    let removed = reached(Step::Committed)
        .and_then(|()| remove_inputs(&plan.table, log.path(), plan.old_files(), reached));
    match removed {
        Ok(()) => Ok(note),
        Err(error) => Err(cut_off(
            error,
            "The outputs are in place, and some inputs are still to be removed",
        )),
    }
}

/// Carries out the swap up to the COMMIT, which is durable when this returns.
fn commit(
    plan: &Plan,
    taken: &mut Taken,
    reached: &mut dyn FnMut(Step) -> Result<()>,
) -> Result<(Note, TransactionFile)> {
    let io = Io::new(IoOptions::default())?;
    let (ticks, lsb) = new_time_uuid();
    let name = transaction_log::file_name(plan.version, ticks, lsb);
    let note = plan.note(&name);
    note.write(&plan.output)?;
    reached(Step::Noted)?;

    taken.is_made = !plan.inputs_to.exists();
    make_directory(&plan.inputs_to)?;
    let keeping = Placing::new(&io, Placement::Keeping);
    for old in &plan.inputs {
        for file in &old.files {
            let (from, to) = (plan.table.join(&file.name), plan.inputs_to.join(&file.name));
            if keeping.place(&from, &to)? {
                taken.kept.push(to);
            }
        }
    }
    sync_directory(&plan.inputs_to)?;
    reached(Step::InputsKept)?;

    let path = |prefix: &str| plan.table.join(prefix).to_string_lossy().into_owned();
    let adds = plan
        .outputs
        .iter()
        .map(|new| Record::add(&path(&new.prefix()), new.from.components.len()).line());
    let adds: String = adds.collect();
    // The node must be able to read it, whatever our umask is.
    let own = |path: &Path| plan.owner.take(path);
    let log = TransactionFile::create(&plan.table, &name)?;
    taken.log.insert(log).begin(&adds, own)?;
    reached(Step::Begun)?;

    let placing = Placing::new(&io, Placement::As(plan.owner));
    for new in &plan.outputs {
        for (component, _) in &new.from.components {
            let to = plan.table.join(new.to.file_name(*component));
            // Known before it is there: a copy may be cut off in its middle.
            taken.placed.push(to.clone());
            placing.place(&new.from.descriptor.path(*component), &to)?;
        }
        reached(Step::OutputPlaced)?;
    }
    sync_directory(&plan.table)?;
    reached(Step::OutputsPlaced)?;

    let removes = plan
        .inputs
        .iter()
        .map(|old| Record::remove(&path(&old.prefix), old.update_time_ms(), old.files.len()));
    let removes: String = removes.map(|record| record.line()).collect();
    let no_log = || Error::refused("the transaction log is gone");
    let log = taken.log.as_mut().ok_or_else(no_log)?;
    log.append(&removes)?;
    reached(Step::RemovalsLogged)?;

    // A node may have been started meanwhile.
    refuse_node(&plan.table)?;
    plan.recheck()?;
    log.append(&Record::commit().line())?;
    Ok((note, taken.log.take().ok_or_else(no_log)?))
}

/// Removes all files that a failed swap created; the log last.
fn undo(plan: &Plan, taken: &Taken) -> Result<()> {
    if let Some(log) = &taken.log {
        for path in &taken.placed {
            remove_if_exists(path)?;
        }
        sync_directory(&plan.table)?;
        log.remove()?;
        sync_directory(&plan.table)?;
    }
    for path in &taken.kept {
        let _ = fs::remove_file(path);
    }
    if taken.is_made {
        let _ = fs::remove_dir(&plan.inputs_to);
    }
    let _ = Note::remove(&plan.output);
    Ok(())
}

/// Removes the files of inputs, the one that was changed last at the end, as Cassandra does: it compares
/// that time with the log's, also of what a crash left (`LogFile.deleteRecordFiles`).
fn remove_inputs(
    table: &Path,
    log: &Path,
    mut files: Vec<(FileIdentity, PathBuf)>,
    reached: &mut dyn FnMut(Step) -> Result<()>,
) -> Result<()> {
    // A node that was started in between may have found the log without its COMMIT, and removed the
    // outputs.
    refuse_node(table)?;
    if !log.exists() {
        return Err(Error::refused(format!("{} is gone", log.display())));
    }
    files.sort_by_key(|(file, _)| file.modified_ns);
    for (_, path) in files {
        remove_if_exists(&path)?;
        reached(Step::FileRemoved)?;
    }
    sync_directory(table)?;
    reached(Step::InputsRemoved)?;
    remove_if_exists(log)?;
    Ok(sync_directory(table)?)
}

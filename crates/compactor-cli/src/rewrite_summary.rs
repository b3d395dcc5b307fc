//! Results of the commands that rewrite each SSTable on its own.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use compactor::report::{TtlRemovedReport, lossy};
use compactor::table::{Failure, RewriteOutcome, RewritePlan};
use serde::Serialize;

use crate::error_report::{self, Writes};
use crate::exit_code;
use crate::flags::ByteSize;
use crate::output::say;
use crate::text_table::counted;
use crate::ttl_removed;

/// An SSTable that failed, so that nothing was written for it.
#[derive(Debug, Serialize)]
pub struct Failed<'a> {
    #[serde(serialize_with = "lossy")]
    data_path: &'a Path,
    error: String,
}

impl<'a> Failed<'a> {
    pub fn of(failures: &'a [Failure]) -> Vec<Failed<'a>> {
        let failed = failures.iter().map(|failure| Failed {
            data_path: &failure.data_path,
            error: failure.error.to_string(),
        });
        failed.collect()
    }
}

/// Totals over all SSTables of a run.
#[derive(Debug, Serialize)]
pub struct Totals<'a> {
    sstables: usize,
    failed: Vec<Failed<'a>>,
    interrupted: bool,
    input_bytes: u64,
    output_bytes: u64,
    rows: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_removed: Option<TtlRemovedReport>,
    elapsed_s: f64,
    warnings: BTreeSet<&'a str>,
}

impl<'a> Totals<'a> {
    /// Totals of a run over `sstables` SSTables.
    pub fn new(outcome: &'a RewriteOutcome, sstables: usize) -> Totals<'a> {
        let reports = &outcome.reports;
        let notes = reports
            .iter()
            .flat_map(|r| r.io.fallbacks.iter().chain(&r.warnings));
        let mut ttl_removed: Option<TtlRemovedReport> = None;
        for removed in reports.iter().filter_map(|report| report.ttl_removed) {
            *ttl_removed.get_or_insert_default() += removed;
        }
        Totals {
            sstables,
            failed: Failed::of(&outcome.failures),
            interrupted: outcome.is_interrupted,
            input_bytes: reports.iter().map(|r| r.input_bytes).sum(),
            output_bytes: reports.iter().map(|r| r.output_bytes).sum(),
            rows: reports.iter().map(|r| r.rows_written).sum(),
            ttl_removed,
            elapsed_s: outcome.elapsed_s,
            // Each once.
            warnings: notes.map(String::as_str).collect(),
        }
    }

    /// True if nothing failed or was interrupted.
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty() && !self.interrupted
    }

    /// Appends the last lines of a summary in text. `done` is what was done, such as `upgraded 2`.
    ///
    /// # Errors
    /// Those of the formatter.
    pub fn show(&self, text: &mut String, done: &str, into: &str) -> std::fmt::Result {
        writeln!(
            text,
            "{done} of {}{into} in {:.2} s: {}, {} -> {} on disk",
            counted(self.sstables as u64, "SSTable"),
            self.elapsed_s,
            counted(self.rows, "row"),
            ByteSize(self.input_bytes),
            ByteSize(self.output_bytes)
        )?;
        if let Some(removed) = &self.ttl_removed {
            writeln!(text, "{}", ttl_removed::line(removed))?;
        }
        for note in &self.warnings {
            writeln!(text, "note: {note}")?;
        }
        Ok(())
    }
}

/// Prints failures on stderr, each remedy once; `any_written` says whether other SSTables were written.
pub fn say_failures(failures: &[Failure], any_written: bool) {
    let writes = Writes::of_several(any_written);
    let mut failures = failures.iter().peekable();
    while let Some(failure) = failures.next() {
        say(format_args!("compactor: {}", failure.error));
        let next = failures.peek().map(|next| &next.error);
        error_report::say_remedy_before(&failure.error, next, writes);
    }
}

/// Prints failures and an interruption on stderr. `done` is what was done to an SSTable, such as
/// `upgraded`.
pub fn say_end(outcome: &RewriteOutcome, sstables: usize, done: &str) {
    say_failures(&outcome.failures, !outcome.reports.is_empty());
    let (some, failed) = (outcome.reports.len(), outcome.failures.len());
    say_incomplete(outcome.is_interrupted, some, failed, sstables, done);
}

/// Prints on stderr that only `some` of the SSTables were `done` if the run was interrupted, or how many were not begun.
pub fn say_incomplete(
    is_interrupted: bool,
    some: usize,
    failed: usize,
    sstables: usize,
    done: &str,
) {
    let not_begun = sstables.saturating_sub(some + failed);
    if is_interrupted {
        let sstables = counted(sstables as u64, "SSTable");
        say(format_args!(
            "compactor: interrupted; {some} of {sstables} {done}"
        ));
    } else if not_begun > 0 {
        let others = counted(not_begun as u64, "SSTable");
        say(format_args!("compactor: {others} not begun"));
    }
}

/// Prints what a run could not open on stderr, and returns its exit code.
pub fn end_of_plan(plan: &RewritePlan) -> ExitCode {
    say_failures(&plan.failures, false);
    match plan.failures.first() {
        Some(first) => ExitCode::from(exit_code::of(&first.error)),
        None => ExitCode::SUCCESS,
    }
}

/// `Data.db` of every output.
pub fn outputs(outcome: &RewriteOutcome) -> Vec<&Path> {
    let outputs = outcome.reports.iter().flat_map(|report| &report.outputs);
    outputs.map(|output| output.data_path.as_path()).collect()
}

/// The exit code of a run.
pub fn exit_code(outcome: &RewriteOutcome) -> ExitCode {
    match outcome.failures.first() {
        _ if outcome.is_interrupted => ExitCode::from(exit_code::INTERRUPTED),
        Some(first) => ExitCode::from(exit_code::of(&first.error)),
        None => ExitCode::SUCCESS,
    }
}

//! Results of the commands that rewrite each SSTable on its own.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use compactor::report::TtlRemovedReport;
use compactor::table::{Failure, NextSteps, RewriteOutcome, RewritePlan};
use serde::Serialize;

use crate::error_report::{self, Writes};
use crate::exit_code;
use crate::flags::ByteSize;
use crate::output::{print_of, say};
use crate::output_args::show_next_steps;
use crate::text_table::counted;
use crate::ttl_removed;

/// Totals over all SSTables of a run.
#[derive(Debug, Serialize)]
pub struct Totals<'a> {
    sstables: usize,
    failed: &'a [Failure],
    interrupted: bool,
    input_bytes: u64,
    output_bytes: u64,
    rows: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_removed: Option<TtlRemovedReport>,
    elapsed_s: f64,
    warnings: BTreeSet<&'a str>,
    #[serde(flatten)]
    next_steps: &'a NextSteps,
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
            failed: &outcome.failures,
            interrupted: outcome.is_interrupted,
            input_bytes: reports.iter().map(|r| r.input_bytes).sum(),
            output_bytes: reports.iter().map(|r| r.output_bytes).sum(),
            rows: reports.iter().map(|r| r.rows_written).sum(),
            ttl_removed,
            elapsed_s: outcome.elapsed_s,
            // Each once.
            warnings: notes.map(String::as_str).collect(),
            next_steps: &outcome.next_steps,
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
        show_next_steps(self.next_steps, text)
    }
}

/// Prints failures on stderr, each remedy once; `any_written` says whether other SSTables were written.
fn say_failures(failures: &[Failure], any_written: bool) {
    let writes = Writes::of_several(any_written);
    let errors = failures.iter().map(|failure| &failure.error);
    error_report::say_each(errors, None, writes);
}

/// Prints failures and an interruption on stderr: only some of the SSTables were `done`, such as `upgraded`, or some
/// were not begun.
pub fn say_end<R>(outcome: &RewriteOutcome<R>, sstables: usize, done: &str) {
    let (some, failed) = (outcome.reports.len(), outcome.failures.len());
    say_failures(&outcome.failures, some > 0);
    let not_begun = sstables.saturating_sub(some + failed);
    if outcome.is_interrupted {
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
    ExitCode::from(code_of(&plan.failures))
}

/// Ends a run whose outputs are in place: prints what went wrong on stderr and the summary on stdout. `done` is what was
/// done to an SSTable, such as `upgraded`.
///
/// # Errors
/// If stdout cannot be written.
pub fn end(
    outcome: &RewriteOutcome,
    sstables: usize,
    done: &str,
    summary: impl FnOnce() -> anyhow::Result<String>,
) -> anyhow::Result<ExitCode> {
    say_end(outcome, sstables, done);
    let outputs = outcome.reports.iter().flat_map(|report| &report.outputs);
    let outputs: Vec<&Path> = outputs.map(|output| output.data_path.as_path()).collect();
    print_of(&summary()?, &outputs)?;
    Ok(ExitCode::from(exit_code(outcome)))
}

/// The exit code of a run.
pub fn exit_code<R>(outcome: &RewriteOutcome<R>) -> u8 {
    if outcome.is_interrupted {
        exit_code::INTERRUPTED
    } else {
        code_of(&outcome.failures)
    }
}

fn code_of(failures: &[Failure]) -> u8 {
    failures
        .first()
        .map_or(0, |first| exit_code::of(&first.error))
}

//! `compactor swap`: the outputs of a run in the place of its inputs, in a stopped node's table.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::Context;
use compactor::Error;
use compactor::swap::{Step, SwapReport, SwapRequest, SwapState, plan_swap, swap};
use compactor_lab::text_table::counted;

use crate::flags::Format;
use crate::interrupt;
use crate::output::print;

/// Put the outputs of a run into the place of its inputs, with the node stopped.
///
/// The run is one of merge, compact, upgrade, split or scrub. Moves exactly the SSTables that it rewrote out of the
/// table's directory, to a directory that you name, and puts its outputs there, under ids that are free and with
/// owner, group and mode of the inputs. What upgrade, split or scrub left out stays. Atomic: a transaction log as
/// Cassandra's compactions write it is in the table's directory meanwhile. After a crash or kill -9 run the same
/// command again, or start the node, which undoes or finishes it by the log.
///
/// Refused (exit code 4), with nothing changed: if a process has SSTables of the table open; if inputs are
/// gone or have changed; if the run may have purged tombstones and the table has SSTables that it did not
/// see, as after a flush: bring the output in with `nodetool import` then, or merge again with the node
/// stopped. Only processes of this machine and container are seen.
///
/// Before the node starts, remove saved_caches/KeyCache-*, unless the ids are UUIDs or the format is BTI: a saved
/// key cache has positions by id, also in SSTables that were there once, such as what a compaction had written that
/// was stopped with the node.
///
/// To go back, with the node stopped: move the outputs away, the inputs back, and remove
/// saved_caches/KeyCache-*, since an SSTable written later may get the id of an output.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  Merge what a stopped node has, and swap:
    cqlsh -e \"DESCRIBE TABLE ks.t WITH INTERNALS\" > t.cql
    nodetool drain    # and stop the node
    compactor merge /data/ks/t-1c6a... --schema t.cql --output /scratch/t --complete --verify
    compactor swap /scratch/t --into /data/ks/t-1c6a... --inputs-to /scratch/inputs

  Upgrade what a stopped node has in place; 5.0 does not start with oa in its default mode, CASSANDRA_4:
    compactor upgrade /data/ks/t-1c6a... --output /scratch/t --sstable-version oa --verify
    compactor swap /scratch/t --into /data/ks/t-1c6a... --inputs-to /scratch/inputs

  What would be moved:
    compactor swap /scratch/t --into /data/ks/t-1c6a... --inputs-to /scratch/inputs --dry-run")]
pub struct Args {
    /// Directory that the run was given as --output, or the one below it that holds compactor-run.json.
    #[arg(value_name = "OUTPUT")]
    output: PathBuf,

    /// The table's own directory in the node's data directory.
    #[arg(long, value_name = "TABLE_DIR")]
    into: PathBuf,

    /// Directory that the inputs are moved to; created if missing. It must have no other SSTables. On the
    /// table's file system no bytes are copied.
    #[arg(long, value_name = "DIR")]
    inputs_to: PathBuf,

    /// Check everything, print the plan, and change nothing.
    #[arg(long)]
    dry_run: bool,

    /// How the summary is printed on stdout.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let interrupted = interrupt::flag_of_swap().context("install signal handlers")?;
    let request = SwapRequest {
        output: args.output,
        table_directory: args.into,
        inputs_to: args.inputs_to,
    };
    let report = if args.dry_run {
        plan_swap(&request)?
    } else {
        swap(&request, &mut |step| {
            // After the COMMIT it is shorter to finish.
            let is_committed = matches!(
                step,
                Step::Committed | Step::FileRemoved | Step::InputsRemoved
            );
            if interrupted.load(Ordering::Relaxed) && !is_committed {
                Err(Error::Cancelled)
            } else {
                Ok(())
            }
        })?
    };
    let printed = print(&match args.format {
        Format::Text => text(&report),
        Format::Json => serde_json::to_string_pretty(&report)?,
    });
    printed.map_err(|error| match report.state {
        SwapState::Planned => error,
        _ => error.context("the swap is complete"),
    })
}

fn text(report: &SwapReport) -> String {
    let mut out = String::new();
    let what = match report.state {
        SwapState::Planned => "would swap",
        SwapState::Done => "swapped",
        SwapState::Finished => "finished a swap that was cut off:",
        SwapState::AlreadyDone => "already swapped:",
    };
    let _ = writeln!(
        out,
        "{what} {} for {} in {}",
        counted(report.inputs.len() as u64, "SSTable"),
        report.outputs.len(),
        report.table_directory.display()
    );
    for output in &report.outputs {
        let _ = writeln!(
            out,
            "  output      {} (from {})",
            output.to.display(),
            output.from.display()
        );
    }
    for input in &report.inputs {
        let _ = writeln!(
            out,
            "  input       {}",
            report.inputs_directory.join(input).display()
        );
    }
    for note in &report.notes {
        let _ = writeln!(out, "  note        {note}");
    }
    if matches!(report.state, SwapState::Done | SwapState::Finished) {
        let _ = writeln!(
            out,
            "start the node; when it serves what it should, remove {}",
            report.inputs_directory.display()
        );
    }
    out
}

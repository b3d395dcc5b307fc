//! `compactor split`: each large SSTable alone into several.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use compactor::report::SstableReport;
use compactor::table::{Failure, PlannedRewrite, RewriteOutcome, RewritePlan, Unsplit};
use compactor_io::raise_open_files_limit;
use serde::Serialize;

use crate::flags::{ByteSize, Format};
use crate::interrupt;
use crate::numbers::{SSTABLE_SIZE, within};
use crate::output::print;
use crate::progress::Progress;
use crate::rewrite_args::RewriteArgs;
use crate::rewrite_summary::{self, Totals};
use crate::table_args::TableArgs;
use crate::text_table::counted;

/// Split each SSTable larger than a size into several.
///
/// Does the work of `sstablesplit` outside the node: an SSTable whose Data.db is larger than --size becomes
/// several, the next of which begins at the first partition after that size was reached. Partitions
/// are never divided: one that is larger makes an SSTable that is larger. Rows, tombstones and repair
/// state stay as they are, and the level becomes 0; nothing is purged, and what has expired becomes a
/// tombstone. SSTables that are not larger are left where they are, and named.
///
/// Inputs are only read. The outputs of an SSTable appear all or none. One that is damaged is named and
/// left out; the others are split, and the exit code is 3.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  One SSTable of a major compaction, for the size-tiered strategy to choose from again:
    compactor split nb-1290-big-Data.db --output out --size 1GiB

  What is too large in a snapshot, and how many SSTables it would become:
    compactor split snapshot --output out --size 160MiB --dry-run")]
pub struct Args {
    /// Directory of the outputs; created if missing; refused if it contains SSTables.
    #[arg(long, value_name = "DIR")]
    output: PathBuf,

    #[command(flatten)]
    table: TableArgs,

    /// Bytes of Data.db on disk after which the next partition begins another SSTable.
    #[arg(long, value_name = "SIZE", default_value = "50MiB", value_parser = within(SSTABLE_SIZE))]
    size: ByteSize,

    #[command(flatten)]
    pub rewrite: RewriteArgs,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let _ = raise_open_files_limit();
    let interrupted = interrupt::flag().context("install signal handlers")?;
    args.rewrite.io.check()?;
    let table = args.table.open()?;
    let split = table
        .split(args.size.0)
        .form(args.rewrite.output_form.form()?)
        .resources(args.rewrite.io.resources())
        .verify(args.rewrite.verify);
    let skipped = split.unsplit()?;
    if args.rewrite.dry_run {
        let planned = split.plan(&args.output)?;
        print(&plan(&args, &planned, &skipped)?)?;
        return Ok(rewrite_summary::end_of_plan(&planned));
    }
    let total = split.expected_bytes()?;
    let mut progress = Progress::new(args.rewrite.progress, total, interrupted);
    let outcome = split.into(&args.output, &mut progress);
    drop(progress);
    let (outcome, sstables) = (outcome?, table.sstables().len());
    rewrite_summary::end(&outcome, sstables - skipped.len(), "split", || {
        Summary::new(&outcome, sstables, &skipped).show(&args)
    })
}

fn skipped_line(unsplit: &Unsplit, size: ByteSize) -> String {
    format!(
        "skipped {}: {} is not more than {size}; it stays where it is",
        unsplit.data_path.display(),
        ByteSize(unsplit.bytes)
    )
}

/// Plan of a split.
#[derive(Debug, Serialize)]
struct Plan<'a> {
    dry_run: bool,
    size: u64,
    split: &'a [PlannedRewrite],
    skipped: &'a [Unsplit],
    failed: &'a [Failure],
}

fn plan(args: &Args, planned: &RewritePlan, skipped: &[Unsplit]) -> anyhow::Result<String> {
    let plan = Plan {
        dry_run: true,
        size: args.size.0,
        split: &planned.planned,
        skipped,
        failed: &planned.failures,
    };
    if args.rewrite.format == Format::Json {
        return Ok(serde_json::to_string_pretty(&plan)?);
    }
    let mut text = String::new();
    for planned in plan.split {
        writeln!(
            text,
            "would split {}: Data.db of {} into about {}, version {}",
            planned.data_path.display(),
            ByteSize(planned.bytes),
            counted(planned.expected_outputs, "SSTable"),
            planned.output_version
        )?;
    }
    for skipped in skipped {
        writeln!(text, "{}", skipped_line(skipped, args.size))?;
    }
    if plan.split.is_empty() && plan.failed.is_empty() {
        writeln!(text, "no SSTable is larger than {}", args.size)?;
    }
    Ok(text)
}

/// Result of a split.
#[derive(Debug, Serialize)]
struct Summary<'a> {
    split: Vec<Split<'a>>,
    skipped: &'a [Unsplit],
    #[serde(flatten)]
    totals: Totals<'a>,
}

/// An SSTable and its outputs.
#[derive(Debug, Serialize)]
struct Split<'a> {
    input: &'a SstableReport,
    outputs: &'a [SstableReport],
}

impl<'a> Summary<'a> {
    fn new(outcome: &'a RewriteOutcome, sstables: usize, skipped: &'a [Unsplit]) -> Summary<'a> {
        Summary {
            split: outcome
                .reports
                .iter()
                .filter_map(|r| {
                    let (input, outputs) = (r.inputs.first()?, &r.outputs[..]);
                    Some(Split { input, outputs })
                })
                .collect(),
            skipped,
            totals: Totals::new(outcome, sstables),
        }
    }

    fn show(&self, args: &Args) -> anyhow::Result<String> {
        if args.rewrite.format == Format::Json {
            return Ok(serde_json::to_string_pretty(self)?);
        }
        let mut text = String::new();
        let mut written = 0;
        for Split { input, outputs } in &self.split {
            written += outputs.len();
            writeln!(
                text,
                "{} ({}) ->",
                input.data_path.display(),
                ByteSize(input.bytes)
            )?;
            for output in *outputs {
                writeln!(
                    text,
                    "  {} ({})",
                    output.data_path.display(),
                    ByteSize(output.bytes)
                )?;
            }
        }
        for skipped in self.skipped {
            writeln!(text, "{}", skipped_line(skipped, args.size))?;
        }
        if self.split.is_empty() && self.totals.is_complete() {
            writeln!(text, "no SSTable is larger than {}", args.size)?;
            return Ok(text);
        }
        let done = format!("split {}", self.split.len());
        self.totals
            .show(&mut text, &done, &format!(" into {written}"))?;
        Ok(text)
    }
}

//! `compactor upgrade`: each SSTable rewritten alone, in another form.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use compactor::report::SstableReport;
use compactor::table::{Failure, PlannedRewrite, RewriteOutcome, RewritePlan};
use compactor_io::raise_open_files_limit;
use serde::Serialize;

use crate::flags::{ByteSize, Format};
use crate::interrupt;
use crate::numbers::{CONCURRENT, within};
use crate::output::print;
use crate::progress::Progress;
use crate::rewrite_args::RewriteArgs;
use crate::rewrite_summary::{self, Totals};
use crate::table_args::TableArgs;

/// Rewrite each SSTable separately in another version, compressor or chunk length.
///
/// Does the work of `nodetool upgradesstables -a` and `sstableupgrade` outside the node: rows, tombstones,
/// repair state, level and id stay as they are; nothing is purged, and what has expired becomes a
/// tombstone, unless --strip-ttl removes its TTL. Inputs are only read. Each output appears whole or not at
/// all, in a directory that must not hold SSTables yet.
///
/// At least one of --sstable-version, --sstable-format, --compression, --chunk-length and --strip-ttl says what is to
/// change. An SSTable that is damaged is named and left out; the others are written, and the exit code is 3.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  Everything in a snapshot for Cassandra 5 in storage_compatibility_mode UPGRADING or NONE:
    compactor upgrade /data/ks/t-1c6a.../snapshots/before --output out --sstable-version oa

  Chunks of 4KiB for a table that is read at random, one SSTable at a time:
    compactor upgrade snapshot --output out --compression lz4 --chunk-length 4KiB --concurrent 1")]
pub struct Args {
    /// Directory of the outputs; created if missing; refused if it contains SSTables.
    #[arg(long, value_name = "DIR")]
    output: PathBuf,

    #[command(flatten)]
    table: TableArgs,

    /// SSTables rewritten at a time, 1 to 256, but no more than --threads; they share those and --memory,
    /// which allows one for each 8MiB beyond 16MiB. Default: one per thread.
    #[arg(long, value_name = "N", value_parser = within(CONCURRENT))]
    concurrent: Option<usize>,

    /// Remove the TTL of cells and rows before any is judged expired: a restored backup has all of its data
    /// again, and it never expires. Tombstones stay, also those that a compaction has made of expired cells.
    #[arg(long)]
    strip_ttl: bool,

    #[command(flatten)]
    pub rewrite: RewriteArgs,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let _ = raise_open_files_limit();
    let interrupted = interrupt::flag().context("install signal handlers")?;
    args.rewrite.io.check()?;
    let form = args.rewrite.output_form.form()?;
    if !args.strip_ttl {
        form.refuse_no_change()?;
    }
    let table = args.table.open()?;
    let mut upgrade = table
        .upgrade(form)
        .resources(args.rewrite.io.resources())
        .strip_ttl(args.strip_ttl)
        .verify(args.rewrite.verify);
    if let Some(sstables) = args.concurrent {
        upgrade = upgrade.concurrent(sstables);
    }
    if args.rewrite.dry_run {
        let planned = upgrade.plan(&args.output)?;
        print(&plan(&planned, args.rewrite.format)?)?;
        return Ok(rewrite_summary::end_of_plan(&planned));
    }
    let total = upgrade.expected_bytes();
    let mut progress = Progress::new(args.rewrite.progress, total, interrupted);
    let outcome = upgrade.into(&args.output, &mut progress);
    drop(progress);
    let (outcome, sstables) = (outcome?, table.sstables().len());
    rewrite_summary::end(&outcome, sstables, "upgraded", || {
        Summary::new(&outcome, sstables).show(args.rewrite.format)
    })
}

/// Plan of an upgrade.
#[derive(Debug, Serialize)]
struct Plan<'a> {
    dry_run: bool,
    upgrade: &'a [PlannedRewrite],
    failed: &'a [Failure],
}

fn plan(plan: &RewritePlan, format: Format) -> anyhow::Result<String> {
    if format == Format::Json {
        return Ok(serde_json::to_string_pretty(&Plan {
            dry_run: true,
            upgrade: &plan.planned,
            failed: &plan.failures,
        })?);
    }
    let mut text = String::new();
    for planned in &plan.planned {
        writeln!(
            text,
            "would upgrade {}: Data.db of {}, to version {}",
            planned.data_path.display(),
            ByteSize(planned.bytes),
            planned.output_version
        )?;
    }
    Ok(text)
}

/// Result of an upgrade.
#[derive(Debug, Serialize)]
struct Summary<'a> {
    upgraded: Vec<Upgraded<'a>>,
    #[serde(flatten)]
    totals: Totals<'a>,
}

/// One SSTable, before and after.
#[derive(Debug, Serialize)]
struct Upgraded<'a> {
    input: &'a SstableReport,
    output: &'a SstableReport,
}

impl<'a> Summary<'a> {
    fn new(outcome: &'a RewriteOutcome, sstables: usize) -> Summary<'a> {
        Summary {
            upgraded: outcome
                .reports
                .iter()
                .filter_map(|r| {
                    let (input, output) = (r.inputs.first()?, r.outputs.first()?);
                    Some(Upgraded { input, output })
                })
                .collect(),
            totals: Totals::new(outcome, sstables),
        }
    }

    fn show(&self, format: Format) -> anyhow::Result<String> {
        if format == Format::Json {
            return Ok(serde_json::to_string_pretty(self)?);
        }
        let mut text = String::new();
        for Upgraded { input, output } in &self.upgraded {
            writeln!(
                text,
                "{} -> {}  {} -> {}",
                input.data_path.display(),
                output.data_path.display(),
                ByteSize(input.bytes),
                ByteSize(output.bytes)
            )?;
        }
        let done = format!("upgraded {}", self.upgraded.len());
        self.totals.show(&mut text, &done, "")?;
        Ok(text)
    }
}

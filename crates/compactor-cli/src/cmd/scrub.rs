//! `compactor scrub`: salvages the readable rows of damaged SSTables into new ones.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use compactor::scrub::ScrubReport;
use compactor::table::Failure;
use compactor_io::raise_open_files_limit;
use serde::Serialize;

use crate::exit_code;
use crate::flags::{ByteSize, Format};
use crate::interrupt;
use crate::io_args::IoArgs;
use crate::numbers::{CONCURRENT, within};
use crate::output::{print_of, say_notes};
use crate::output_args::{json, show_next_steps};
use crate::output_form::OutputFormArgs;
use crate::progress::{Progress, ProgressMode};
use crate::rewrite_summary;
use crate::table_args::TableArgs;
use crate::text_table::{count, counted};

/// Salvage the readable partitions and rows of damaged SSTables into new ones.
///
/// Works like `nodetool scrub` and `sstablescrub`, outside the node, but keeps more: of a partition with damage in it,
/// the rows before it are kept, and those after it from the next block of its index on (of the BTI format, only the
/// next partitions); without an index, reading continues at the next position that is certainly a partition. Index,
/// summary, filter, digest and statistics are rebuilt; partitions and rows that were out of order are brought in
/// order. Each loss is listed, with its position in the uncompressed data, the chunk's offset in the file, bytes, key
/// and token.
///
/// A range tombstone that damage cuts ends with the last row before it. What is lost comes back from other replicas by
/// `nodetool repair -full`, not by an incremental repair where they have it as repaired. If anything is lost of an
/// SSTable that was repaired, or in a repair that has not ended, the new one is unrepaired.
/// Counter tables are refused if anything would be lost, unless --skip-corrupted is given: the counters would be too
/// low.
///
/// Statistics.db and, for compressed data, CompressionInfo.db must be sound: nothing can be read
/// without them. With the Statistics.db of another SSTable all times are wrong: a note says if the data
/// does not fit it. A file that the disk itself fails to read ends the scrub of its SSTable, with nothing
/// written: copy all of its files with `ddrescue`, which leaves zeros in such places, and scrub the
/// copy. Inputs are only read. Exit code 0 if nothing is lost, whatever was wrong with other
/// components; 2 if an SSTable is not of the table of the schema (--schema, or schema.cql next to the inputs); 3 if
/// anything is or may be wrong, with the output written; 4 if counters would be.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  One damaged SSTable of a stopped node, or of a snapshot:
    compactor scrub /data/ks/t-1c6a.../nb-7-big-Data.db --output /scratch/t

  Find out what would be lost, for a program:
    compactor scrub --dry-run --format json nb-7-big-Data.db

  What a loss looks like:
    lost: rows at position 65536 (chunk at offset 6248), 16384 bytes, partition 6b31 token
    -1242414: the chunk at offset 6248 of Data.db is damaged")]
pub struct Args {
    /// Directory of the outputs; created if missing; refused if it contains SSTables.
    #[arg(long, value_name = "DIR", required_unless_present = "dry_run")]
    output: Option<PathBuf>,

    #[command(flatten)]
    table: TableArgs,

    /// SSTables scrubbed at a time, 1 to 256, but no more than --threads; they share those and --memory, which allows
    /// one for each 12MiB beyond 16MiB. Default: one per thread.
    #[arg(long, value_name = "N", value_parser = within(CONCURRENT))]
    concurrent: Option<usize>,

    /// Leave damaged rows of counter tables out, although counters are too low then.
    #[arg(short, long)]
    skip_corrupted: bool,

    /// Do not validate values against column types, and keep rows with invalid ones.
    #[arg(short, long)]
    no_validate: bool,

    #[command(flatten)]
    output_form: OutputFormArgs,

    #[command(flatten)]
    io: IoArgs,

    /// Losses listed per SSTable; all are counted.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = within(0..=usize::MAX))]
    max_losses: usize,

    /// Verify each output before it is published, as `compactor verify` does.
    #[arg(long, help_heading = "Checking")]
    verify: bool,

    /// Print what would be lost, and write nothing.
    #[arg(long)]
    dry_run: bool,

    /// How progress is shown on stderr.
    #[arg(long, value_enum, default_value = "auto")]
    progress: ProgressMode,

    /// How the report is printed on stdout.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// JSON output.
#[derive(Serialize)]
struct Document<'a> {
    dry_run: bool,
    /// SSTables to scrub.
    inputs: usize,
    interrupted: bool,
    lossy: usize,
    sstables: &'a [ScrubReport],
    failed: &'a [Failure],
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let _ = raise_open_files_limit();
    let interrupted = interrupt::flag().context("install signal handlers")?;
    args.io.check()?;
    let table = args.table.open()?;
    let mut scrub = table
        .scrub()
        .form(args.output_form.form()?)
        .resources(args.io.resources())
        .skip_corrupted(args.skip_corrupted)
        .validate(!args.no_validate)
        .max_losses(args.max_losses)
        .verify(args.verify);
    if let Some(sstables) = args.concurrent {
        scrub = scrub.concurrent(sstables);
    }
    let total = if args.dry_run {
        scrub.expected_bytes_of_dry_run()
    } else {
        scrub.expected_bytes()
    };
    let mut progress = Progress::new(args.progress, total, interrupted);
    let outcome = match args.output.as_deref() {
        Some(output) if !args.dry_run => scrub.into(output, &mut progress),
        output => scrub.dry_run(output, &mut progress),
    };
    drop(progress);
    let outcome = outcome?;
    let reports = &outcome.reports;
    let inputs = table.sstables().len();
    rewrite_summary::say_end(&outcome, inputs, "scrubbed");
    let lossy = reports.iter().filter(|r| r.is_lossy()).count();
    let outputs = reports.iter().filter_map(|report| report.output.as_ref());
    let outputs: Vec<&Path> = outputs.map(|o| o.data_path.as_path()).collect();
    let results = match args.format {
        Format::Text => {
            let reports = reports.iter().map(|report| text(report, args.dry_run));
            let mut text: String = reports.collect();
            show_next_steps(&outcome.next_steps, &mut text)?;
            text
        }
        Format::Json => {
            let document = Document {
                dry_run: args.dry_run,
                inputs,
                interrupted: outcome.is_interrupted,
                lossy,
                sstables: reports,
                failed: &outcome.failures,
            };
            json(&document, &outcome.next_steps)?
        }
    };
    if !results.is_empty() {
        print_of(&results, &outputs)?;
    }
    say_notes(&outcome.notes);
    Ok(ExitCode::from(match rewrite_summary::exit_code(&outcome) {
        0 if lossy > 0 => exit_code::CORRUPT,
        code => code,
    }))
}

fn text(report: &ScrubReport, dry_run: bool) -> String {
    let mut out = String::new();
    let name = report.data_path.display();
    for finding in &report.findings {
        let _ = writeln!(out, "{finding}");
    }
    for loss in &report.losses {
        let _ = writeln!(out, "lost: {loss}");
    }
    let unlisted = report.loss_count - report.losses.len() as u64;
    if unlisted > 0 {
        let more = counted(unlisted, "more place");
        let _ = writeln!(out, "lost: {more}, not listed");
    }
    let out_of_order = report.partitions_out_of_order + report.partitions_with_rows_out_of_order;
    if out_of_order > 0 {
        let _ = writeln!(
            out,
            "note: {name}: {}, or with rows out of order, brought in order",
            counted(out_of_order, "partition") + " out of order"
        );
    }
    if report.is_doubtful {
        let _ = writeln!(
            out,
            "note: {name}: Data.db does not match its digest, and no checksum locates the damage: values that \
             look right may be wrong"
        );
    }
    if report.contradicts_statistics {
        let _ = writeln!(
            out,
            "note: {name}: Statistics.db does not fit Data.db: if it is of another SSTable, all timestamps, TTLs and \
             times of deletion are wrong. Take it from a snapshot or a backup of this one, and scrub again"
        );
    }
    if report.is_repair_state_reset {
        let _ = writeln!(
            out,
            "note: {name}: it was repaired, or in a repair that has not ended; the new one is unrepaired, since something \
             is lost, which `nodetool repair -full` brings back"
        );
    }
    let verdict = match (report.is_lossy(), &report.output) {
        (false, _) => "NOTHING LOST",
        (true, Some(_)) => "SALVAGED IN PART",
        (true, None) if dry_run => "DAMAGED",
        (true, None) => "NOTHING SALVAGED, nothing written",
    };
    let _ = write!(
        out,
        "{name}: {verdict}: {} whole, {} cut, {} lost; {}; {} lost in {}",
        counted(report.partitions_good, "partition"),
        count(report.partitions_cut),
        count(report.partitions_lost),
        counted(report.rows_good, "row"),
        ByteSize(report.bytes_lost),
        counted(report.loss_count, "place")
    );
    if let Some(output) = &report.output {
        let _ = write!(
            out,
            " -> {}, {}",
            output.data_path.display(),
            ByteSize(output.bytes)
        );
    }
    let _ = writeln!(out, " in {:.2} s", report.elapsed_s);
    out
}

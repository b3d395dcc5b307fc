//! `compactor compact`: a table's SSTables merged until its strategy finds nothing more to do.

mod summary;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use compactor::compact::Compacted;
use compactor_io::raise_open_files_limit;

use crate::error_report::{self, Writes};
use crate::exit_code;
use crate::flags::{ByteRate, Format};
use crate::interrupt;
use crate::io_args::IoArgs;
use crate::numbers::{CONCURRENT, MAX_COMPACTIONS, rate_limiter, throughput, within};
use crate::output::{print, print_of, say, say_warnings};
use crate::output_args::OutputArgs;
use crate::output_form::OutputFormArgs;
use crate::progress::{Progress, ProgressMode};
use crate::purge_args::PurgeArgs;
use crate::strategy_args::StrategyArgs;
use crate::table_args::TableArgs;

/// Compact a table's SSTables as a node with the table's compaction strategy would, until nothing is left to do.
///
/// The strategy is that of schema.cql, or another one by --strategy. It selects compactions, of which several run at a
/// time; their outputs are candidates for further ones, as in a node. Outputs have the levels, sizes and shards of the
/// strategy. SSTables in which everything has expired are dropped unread, and an SSTable that only moves to another
/// level is not merged. The final SSTables appear in the output directory, all or nothing, and the summary lists which of
/// the table's SSTables each of them replaces: `compactor swap` puts it in their place, with the node stopped. Inputs
/// are only read. Repaired, unrepaired and pending SSTables are never mixed.
///
/// Compactions run in rounds of all that can run at once, so that the result is the same whatever
/// --concurrent-compactors. SSTables of several data directories are compacted separately, as by a node, and have their
/// outputs in one directory. The node is assumed to own the whole ring, and to have been running for long. Unless
/// --complete or --overlapping declares the table's other SSTables, nothing is purged, and no SSTable is dropped or
/// rewritten for its tombstones.
///
/// An SSTable that is damaged is named and left out; the others are compacted, and the exit code is 3. If its
/// metadata or filter is what is damaged, nothing can be purged alongside it: use --no-purge. Interrupted, or after
/// another failure, it publishes the SSTables completed so far, and lists the inputs that they replace. With
/// --replace-output it publishes all or nothing: a part does not replace an earlier output. A run that is
/// killed leaves no SSTables behind.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  What a node would do with a snapshot, four compactions at a time:
    compactor compact /data/ks/t-1c6a.../snapshots/before --output /scratch/t \\
        --concurrent-compactors 4

  What that would be, without doing it:
    compactor compact /data/ks/t-1c6a.../snapshots/before --output /scratch/t --dry-run

  Levels of SSTables of 160 MiB, each level four times as large as the one below:
    compactor compact /data/ks/t-1c6a.../snapshots/before --output /scratch/t --strategy leveled \\
        --sstable-size 160MiB --fanout-size 4

  One SSTable of each repair state, as `nodetool compact` makes, purging what may go:
    compactor compact /data/ks/t-1c6a.../snapshots/before --output /scratch/t --major --complete")]
pub struct Args {
    #[command(flatten)]
    output: OutputArgs,

    /// Compactions at a time, 1 to 256, but no more than --threads; they share those and --memory, which
    /// allows one for each 8MiB beyond 16MiB. Default: one per thread.
    #[arg(long, value_name = "N", value_parser = within(CONCURRENT))]
    concurrent_compactors: Option<usize>,

    #[command(flatten)]
    table: TableArgs,

    /// One compaction of all SSTables of a repair state in a data directory, into one SSTable.
    #[arg(long, help_heading = "Strategy", conflicts_with_all = ["StrategyArgs", "max_compactions"])]
    major: bool,

    /// Stop after this number of compactions. Default: go on until nothing is left to do.
    #[arg(long, help_heading = "Strategy", value_name = "N", value_parser = within(MAX_COMPACTIONS))]
    max_compactions: Option<usize>,

    #[command(flatten)]
    purge: PurgeArgs,

    #[command(flatten)]
    output_form: OutputFormArgs,

    #[command(flatten)]
    io: IoArgs,

    /// Limit on stored bytes of Data.db that all compactions together read per second, such as 64MiB/s or 50MB/s,
    /// 1MiB/s and more: Cassandra's compaction_throughput. Default: no limit.
    #[arg(long, help_heading = "Input and output", value_name = "RATE",
        value_parser = throughput)]
    throughput: Option<ByteRate>,

    /// Verify each output before it is used, as `compactor verify` does.
    #[arg(long, help_heading = "Checking")]
    verify: bool,

    /// Read every SSTable's statistics, print the planned compactions, and write nothing. Later rounds depend on the
    /// outputs of earlier ones: they are planned as if no merge reduced the size.
    #[arg(long)]
    dry_run: bool,

    /// How progress is shown on stderr.
    #[arg(long, value_enum, default_value = "auto")]
    progress: ProgressMode,

    /// How the summary is printed on stdout.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,

    // Last: its heading of the help would go on to the options after it.
    #[command(flatten)]
    strategy: StrategyArgs,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let _ = raise_open_files_limit();
    let interrupted = interrupt::flag_of_long_end().context("install signal handlers")?;
    args.io.check()?;
    let table = args.table.open()?;
    let mut resources = args.io.resources();
    resources.rate_limiter = args
        .throughput
        .and_then(|rate| rate_limiter(rate, &interrupted));
    let mut compact = table
        .compact()
        .strategy(args.strategy.choice(&table)?)
        .purging(args.purge.purging())
        .form(args.output_form.form()?)
        .resources(resources)
        .existing_output(args.output.existing())
        .flat(args.output.flat)
        .verify(args.verify);
    if args.major {
        compact = compact.major();
    }
    if let Some(compactions) = args.max_compactions {
        compact = compact.max_compactions(compactions);
    }
    if let Some(compactions) = args.concurrent_compactors {
        compact = compact.concurrent(compactions);
    }
    let output = &args.output.output;
    if args.dry_run {
        let plan = compact.plan(output)?;
        say_warnings(plan.warnings());
        for failed in plan.unreadable() {
            say(format_args!("compactor: {}", failed.error));
        }
        print(&summary::plan(&plan, args.format)?)?;
        // As the run would end.
        return Ok(match plan.first_error() {
            Some(error) => ExitCode::from(exit_code::of(error)),
            None => ExitCode::SUCCESS,
        });
    }
    let opened = compact.open(output)?;
    say_warnings(opened.warnings());
    let mut progress = Progress::new(
        args.progress,
        opened.expected_bytes(),
        Arc::clone(&interrupted),
    );
    let result = opened.run(&mut progress);
    drop(progress);
    let (Compacted { report, error }, next_steps) = result?;
    let writes = Writes::of_several(!report.outputs.is_empty());
    // Every compaction alongside an unreadable SSTable fails for the same reason.
    let mut reported = BTreeSet::new();
    for failed in &report.failed {
        if !reported.insert(&failed.error) {
            continue;
        }
        say(format_args!("compactor: {}", failed.error));
        // The report has the text of each, and the first is returned as well.
        let first = error
            .as_ref()
            .filter(|error| error.to_string() == failed.error);
        if let (Some(error), None) = (first, &failed.unreadable_overlapping) {
            error_report::say_remedy(error, writes);
        }
    }
    if let (Some(error), [], false) = (&error, &report.failed[..], report.interrupted) {
        say(format_args!("compactor: {error}"));
        error_report::say_remedy(error, writes);
    }
    if report
        .failed
        .iter()
        .any(|failed| failed.unreadable_overlapping.is_some())
    {
        say(format_args!(
            "  Nothing can be purged while an overlapping SSTable is unreadable: use --no-purge, or put a sound \
             copy in its place, from another replica, a backup or `compactor scrub`."
        ));
    }
    if report.interrupted {
        let left = if report.outputs.is_empty() {
            "no SSTable was written"
        } else {
            "the SSTables compacted before that are in place"
        };
        say(format_args!("compactor: interrupted; {left}"));
    }
    let outputs: Vec<&Path> = report
        .outputs
        .iter()
        .map(|output| output.sstable.data_path.as_path())
        .collect();
    let summary = summary::report(&report, &next_steps, args.format)?;
    print_of(&summary, &outputs)?;
    Ok(match error {
        _ if report.interrupted => ExitCode::from(exit_code::INTERRUPTED),
        Some(error) => ExitCode::from(exit_code::of(&error)),
        None => ExitCode::SUCCESS,
    })
}

//! `compactor merge`: SSTables of one table in, one SSTable out, or several of a size.

mod summary;

use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use compactor::{InputCheck, OutputSplit, TombstoneOption};
use compactor_io::raise_open_files_limit;

use crate::flags::{ByteRate, ByteSize, Format};
use crate::interrupt;
use crate::io_args::IoArgs;
use crate::numbers::{OUTPUTS, SSTABLE_SIZE, rate_limiter, throughput, within};
use crate::output::{print, print_of, say_warnings};
use crate::output_args::OutputArgs;
use crate::output_form::OutputFormArgs;
use crate::progress::{Progress, ProgressMode};
use crate::purge_args::PurgeArgs;
use crate::table_args::TableArgs;

/// Merge SSTables of one table into one, as Cassandra's compaction would.
///
/// Inputs are only read. The output appears whole or not at all, in a directory that holds no SSTables. Repaired,
/// unrepaired and pending inputs are not mixed: each kind gets an output of its own, and they appear all or none.
/// Tombstones and expired data past gc_grace_seconds are purged only if that is safe: with --complete, or if
/// --overlapping lists the table's other SSTables; otherwise every tombstone is kept.
///
/// A schema.cql next to the inputs, as snapshots have, or one named by --schema supplies
/// gc_grace_seconds, compression, bloom_filter_fp_chance and min_index_interval; options take precedence. Inputs must
/// agree with it, and cells of dropped columns are dropped, as in the node.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  A snapshot that is the whole table on this node, purging what has passed gc_grace_seconds:
    compactor merge /data/ks/t-1c6a.../snapshots/before --output /scratch/t --complete

  The table of a node that is stopped, whose directory has no schema.cql:
    cqlsh -e \"DESCRIBE TABLE ks.t WITH INTERNALS\" > t.cql
    nodetool drain    # and stop the node
    compactor merge /data/ks/t-1c6a... --schema t.cql --output /scratch/t --complete

  Two SSTables of many; tombstones stay, since others may need them:
    compactor merge nb-7-big-Data.db nb-9-big-Data.db --output /scratch/t

  For a Cassandra 4.x node, bypassing the page cache, verified before and after:
    compactor merge snapshot --output out --sstable-version nb --read-io direct \\
        --write-io direct --verify

  A backup of a table with TTLs, whose data has expired meanwhile:
    compactor merge /backup/ks/t-1c6a... --output /scratch/t --strip-ttl

  On 16 processors, with memory for more concurrent ranges, into one output:
    compactor merge snapshot --output out --threads 16 --memory 256MiB")]
pub struct Args {
    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    table: TableArgs,

    #[command(flatten)]
    purge: PurgeArgs,

    /// Drop data from the output that tombstones of --overlapping SSTables shadow: they are read alongside the
    /// inputs, and must stay in the table unchanged as long as the output. One that is a copy of an input is
    /// ignored. Default: the table's compaction options in schema.cql, otherwise none.
    #[arg(
        long,
        help_heading = "Purging",
        value_enum,
        value_name = "GRANULARITY",
        ignore_case = true
    )]
    provide_overlapping_tombstones: Option<Provided>,

    #[command(flatten)]
    output_form: OutputFormArgs,

    /// Begin another output at the first partition after Data.db has reached this size on disk, such
    /// as 160MiB; they appear all or none. Default: one output.
    #[arg(long, help_heading = "Output", value_name = "SIZE", value_parser = within(SSTABLE_SIZE))]
    max_sstable_size: Option<ByteSize>,

    /// Number of outputs, of similar size and consecutive in the ring; they appear all or none. Default: one.
    #[arg(
        long,
        help_heading = "Output",
        value_name = "N",
        value_parser = within(OUTPUTS),
        conflicts_with = "max_sstable_size"
    )]
    outputs: Option<usize>,

    #[command(flatten)]
    io: IoArgs,

    /// Limit on stored bytes of Data.db that are read from the inputs per second, such as 64MiB/s or
    /// 50MB/s, 1MiB/s and more: Cassandra's compaction_throughput. Default: no limit.
    #[arg(long, help_heading = "Input and output", value_name = "RATE",
        value_parser = throughput)]
    throughput: Option<ByteRate>,

    /// Verify the inputs before, and the output before it is published, as `compactor verify` does:
    /// every byte of every component.
    #[arg(long, help_heading = "Checking")]
    verify: bool,

    /// Checks of the inputs during the merge.
    #[arg(long, help_heading = "Checking", value_enum, default_value = "all")]
    input_check: Check,

    /// Open and check the inputs, print the plan, and write nothing.
    #[arg(long)]
    dry_run: bool,

    /// How progress is shown on stderr.
    #[arg(long, value_enum, default_value = "auto")]
    progress: ProgressMode,

    /// How the summary is printed on stdout.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Checks of the inputs during the merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Check {
    /// Data, metadata, index, summary, filter and digest, as `compactor verify` does. Values that are invalid for
    /// their type are copied, as in Cassandra; only `compactor verify` or --verify finds them.
    All,
    /// Only data and metadata, which a merge reads in any case.
    Data,
}

/// Data that overlapping SSTables remove from the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Provided {
    /// Nothing; they only keep tombstones from being purged.
    None,
    /// Data covered by their deletions of partitions, ranges and rows, as nodetool garbagecollect -g ROW.
    Row,
    /// Also cells shadowed by their newer cells and cell deletions, as nodetool garbagecollect -g CELL.
    Cell,
}

impl From<Provided> for TombstoneOption {
    fn from(provided: Provided) -> TombstoneOption {
        match provided {
            Provided::None => TombstoneOption::None,
            Provided::Row => TombstoneOption::Row,
            Provided::Cell => TombstoneOption::Cell,
        }
    }
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    // Up to six descriptors per input: the usual soft limit of 1024 is soon reached.
    let _ = raise_open_files_limit();
    let interrupted = interrupt::flag().context("install signal handlers")?;
    args.io.check()?;
    let table = args.table.open()?;
    let mut purging = args.purge.purging();
    purging.overlapping_tombstones = args.provide_overlapping_tombstones.map(Into::into);
    let mut resources = args.io.resources();
    resources.rate_limiter = args
        .throughput
        .and_then(|rate| rate_limiter(rate, &interrupted));
    let merge = table
        .merge()
        .purging(purging)
        .form(args.output_form.form()?)
        .resources(resources)
        .existing_output(args.output.existing())
        .flat(args.output.flat)
        .split(
            match (
                args.max_sstable_size,
                args.outputs.and_then(NonZeroUsize::new),
            ) {
                (Some(size), _) => OutputSplit::MaxBytes(size.0),
                (None, Some(outputs)) => OutputSplit::Count(outputs),
                (None, None) => OutputSplit::None,
            },
        )
        .check(match args.input_check {
            Check::All => InputCheck::AllComponents,
            Check::Data => InputCheck::DataOnly,
        })
        .verify(args.verify);
    let output = &args.output.output;
    if args.dry_run {
        let plan = merge.plan(output)?;
        say_warnings(plan.warnings());
        return print(&summary::plan(&plan, args.format)?);
    }
    let opened = merge.open(output)?;
    // There may be tens of thousands of SSTables, and the jobs know them all.
    drop(table);
    say_warnings(opened.warnings());
    let total = opened.uncompressed_bytes();
    let mut progress = Progress::new(args.progress, total, interrupted);
    let result = opened.run(&mut progress);
    drop(progress);
    let merged = result?;
    let outputs: Vec<&Path> = merged.outputs().map(|o| o.data_path.as_path()).collect();
    print_of(&summary::merged(&merged, args.format)?, &outputs)
}

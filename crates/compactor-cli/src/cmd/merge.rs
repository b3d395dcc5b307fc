//! `compactor merge`: SSTables of one table in, one SSTable out, or several of a size.

mod summary;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use compactor::catalog;
use compactor::io::{ReadMode, raise_open_files_limit};
use compactor::run_record::Recorder;
use compactor::{Error, InputCheck, MergeJob, MergeRequest, Observer, Scope, TombstoneOption};

use crate::flags::{ByteRate, ByteSize, Format};
use crate::interrupt;
use crate::io_args::IoArgs;
use crate::numbers::{OUTPUTS, SSTABLE_SIZE, rate_limiter, throughput, within};
use crate::output::{print, print_of, say};
use crate::output_args::{OutputArgs, WayBack};
use crate::output_form::OutputForm;
use crate::progress::{Progress, ProgressMode};
use crate::purge_args::PurgeArgs;
use crate::strategy_note::warn_of_one_sstable;
use crate::verify_step;

/// Merge SSTables of one table into one, as Cassandra's compaction would.
///
/// Inputs are only read. The output appears whole or not at all, in a directory that holds no SSTables. Repaired, unrepaired and pending
/// inputs are not mixed: each kind gets an output of its own, and they appear all or none. Tombstones
/// and expired data past gc_grace_seconds are purged only where that is safe: with --complete, or where
/// --overlapping names what else the table has; otherwise every tombstone is kept.
///
/// A schema.cql beside the inputs, as snapshots have, or one named by --schema supplies
/// gc_grace_seconds, compression, the Bloom filter's chance and the summary's interval; options take
/// precedence. Inputs must agree with it, and cells of dropped columns are dropped, as in the node.
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

  Written for a Cassandra 4.x node, past the page cache, checked before and after:
    compactor merge snapshot --output out --sstable-version nb --read-io direct \\
        --write-io direct --verify

  On 16 processors, six ranges at a time, into one output:
    compactor merge snapshot --output out --threads 16 --memory 256MiB")]
pub struct Args {
    /// A table or snapshot directory, or Data.db files.
    #[arg(required = true, value_name = "TABLE_DIR|SNAPSHOT_DIR|Data.db")]
    inputs: Vec<PathBuf>,

    #[command(flatten)]
    output: OutputArgs,

    /// The table's schema as CQL, as a snapshot's schema.cql or `DESCRIBE TABLE ks.t WITH INTERNALS` of
    /// cqlsh has it; without WITH INTERNALS dropped columns are missing. Default: schema.cql beside the
    /// inputs.
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,

    #[command(flatten)]
    purge: PurgeArgs,

    /// Drop from the output what tombstones of --overlapping SSTables shadow: they are read alongside the
    /// inputs, and must stay in the table unchanged as long as the output. Copies of inputs among them
    /// remove nothing. Default: what the table's compaction options in schema.cql say, otherwise none.
    #[arg(
        long,
        help_heading = "Purging",
        value_enum,
        value_name = "GRANULARITY",
        ignore_case = true
    )]
    provide_overlapping_tombstones: Option<Provided>,

    #[command(flatten)]
    output_form: OutputForm,

    /// Begin another output at the first partition after Data.db has reached this size on disk, such
    /// as 160MiB; they appear all or none. Default: one output.
    #[arg(long, help_heading = "Output", value_name = "SIZE", value_parser = within(SSTABLE_SIZE),
        allow_hyphen_values = true)]
    max_sstable_size: Option<ByteSize>,

    /// Write so many outputs, of similar size and consecutive in the ring; they appear all or none.
    /// Default: one.
    #[arg(
        long,
        help_heading = "Output",
        value_name = "N",
        value_parser = within(OUTPUTS),
        allow_negative_numbers = true,
        conflicts_with = "max_sstable_size"
    )]
    outputs: Option<usize>,

    #[command(flatten)]
    io: IoArgs,

    /// Limit on stored bytes of Data.db that are read from the inputs per second, such as 64MiB/s or
    /// 50MB/s, 1MiB/s and more: Cassandra's compaction_throughput. Default: no limit.
    #[arg(long, help_heading = "Input and output", value_name = "RATE",
        value_parser = throughput, allow_hyphen_values = true)]
    throughput: Option<ByteRate>,

    /// Verify the inputs before, and the output before it is published, as `compactor verify` does:
    /// every byte of every component.
    #[arg(long, help_heading = "Checking")]
    verify: bool,

    /// What of the inputs is checked while they are merged.
    #[arg(long, help_heading = "Checking", value_enum, default_value = "all")]
    input_check: Check,

    /// Open and check the inputs, say what would be done, and write nothing.
    #[arg(long)]
    dry_run: bool,

    /// How progress is shown on stderr.
    #[arg(long, value_enum, default_value = "auto")]
    progress: ProgressMode,

    /// How the summary is printed on stdout.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// What of the inputs is checked while they are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Check {
    /// Data, metadata, index, summary, filter and digest, as `compactor verify` does. Only that one, or
    /// --verify, finds values that are not of their type, which a merge copies as Cassandra does.
    All,
    /// Data and metadata, which is what a merge reads.
    Data,
}

/// What overlapping SSTables remove from the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Provided {
    /// Nothing; they only keep tombstones from being purged.
    None,
    /// What their deletions of partitions, ranges and rows cover, as nodetool garbagecollect -g ROW.
    Row,
    /// Also what their newer cells and deletions of cells shadow, as nodetool garbagecollect -g CELL.
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
    // Two descriptors per input and some: the usual soft limit of 1024 is soon reached.
    let _ = raise_open_files_limit();
    let interrupted = interrupt::flag().context("install signal handlers")?;
    args.io.check()?;
    let catalog = catalog::find_with_schema(&args.inputs, args.schema.as_deref())?;
    for note in &catalog.notes {
        say(format_args!("note: {note}"));
    }
    let layout = args.output.layout(&catalog)?;
    let (mut request, mut notes) =
        args.purge
            .request(&catalog, layout.directory(), &args.output_form, &args.io)?;
    request.rate_limiter = args
        .throughput
        .and_then(|rate| rate_limiter(rate, &interrupted));
    if let Some(outputs) = args.outputs.and_then(NonZeroUsize::new) {
        request.outputs = outputs;
    }
    request.max_sstable_size = args.max_sstable_size.map(|size| size.0);
    request.overlapping_tombstones = overlapping_tombstones(&args, &request, &mut notes)?;
    let is_split = args.max_sstable_size.is_some();
    notes.extend(warn_of_one_sstable(request.table.as_ref(), is_split));
    let mut sstables = catalog.sstables.clone();
    if let Scope::Overlapping(others) = &request.scope {
        sstables.extend_from_slice(others);
    }
    catalog::refuse_two_tables(&sstables)?;
    let recorder = Recorder::new("merge", &request)?;
    request.existing_output = args.output.existing();
    layout.claim(&mut request, args.dry_run)?;
    let may_purge = request.may_purge();
    let jobs = compactor::open_merge_groups(args.io.options(), request)?;
    if may_purge {
        catalog.refuse_newcomers()?;
    }
    if let Some(doubt) = catalog::doubt_one_table(&sstables) {
        say(format_args!("note: {doubt}"));
    }
    // There may be tens of thousands, of which the jobs know all.
    drop((catalog, sstables));
    if args.dry_run {
        return print(&summary::plan(&jobs, &notes, args.format)?);
    }
    let mut progress = Progress::new(
        args.progress,
        jobs.iter().map(MergeJob::uncompressed_bytes).sum(),
        std::sync::Arc::clone(&interrupted),
    );
    let io = jobs.first().map(|job| job.io().clone());
    let verify = io.filter(|_| args.verify).map(|io| (io, args.io.read_io));
    if let Some((io, mode)) = &verify {
        // Those that would be dropped unread as well.
        let inputs = jobs
            .iter()
            .flat_map(|job| job.inputs().iter().chain(job.fully_expired()));
        let inputs: Vec<PathBuf> = inputs.map(|i| i.data_path()).collect();
        verify_step::inputs(io, &inputs, *mode, &progress)?;
    }
    let mut observer = VerifyingObserver {
        progress: &mut progress,
        verify,
    };
    let check = match args.input_check {
        Check::All => InputCheck::AllComponents,
        Check::Data => InputCheck::DataOnly,
    };
    let result = compactor::run_merges_recorded(jobs, check, Some(&recorder), &mut observer);
    progress.finish();
    let mut reports = result?;
    if let Some(first) = reports.first_mut() {
        first.warnings.extend(notes);
    }
    let outputs = reports.iter().flat_map(|report| &report.outputs);
    let outputs: Vec<&Path> = outputs.map(|o| o.data_path.as_path()).collect();
    let way_back = WayBack::of(&layout, !outputs.is_empty());
    let summary = summary::reports(&reports, &way_back, args.format)?;
    print_of(&summary, &outputs)
}

/// Progress, and a check of the output before it is published.
struct VerifyingObserver<'a> {
    progress: &'a mut Progress,
    verify: Option<(compactor::io::Io, ReadMode)>,
}

impl Observer for VerifyingObserver<'_> {
    fn is_cancelled(&self) -> bool {
        self.progress.is_cancelled()
    }

    fn progress(&mut self, read_bytes: u64, rows: u64, partitions: u64) {
        self.progress.progress(read_bytes, rows, partitions);
    }

    fn inputs_read(&mut self, inputs: &[compactor::InputRead]) -> compactor::EngineResult<()> {
        self.progress.inputs_read(inputs)
    }

    fn before_publish(&mut self, data_path: &Path) -> compactor::EngineResult<()> {
        match &self.verify {
            None => Ok(()),
            Some((io, mode)) => verify_step::output(io, data_path, *mode),
        }
    }
}

/// What overlapping SSTables remove: by option, else as the table has it.
fn overlapping_tombstones(
    args: &Args,
    request: &MergeRequest,
    notes: &mut Vec<String>,
) -> anyhow::Result<TombstoneOption> {
    if let Some(option) = args.provide_overlapping_tombstones {
        if option != Provided::None && !matches!(request.scope, Scope::Overlapping(_)) {
            return Err(Error::invalid(
                "--provide-overlapping-tombstones needs --overlapping, and the SSTables that provide them",
            )
            .into());
        }
        return Ok(option.into());
    }
    let table = request.table.as_ref();
    let name = table.and_then(|t| t.compaction_option("provide_overlapping_tombstones"));
    let Some(name) = name else {
        return Ok(TombstoneOption::None);
    };
    let option = TombstoneOption::from_name(name).ok_or_else(|| {
        Error::invalid(format!(
            "the table has provide_overlapping_tombstones {name:?}, which Cassandra does not know: say \
             --provide-overlapping-tombstones none, row or cell"
        ))
    })?;
    if option != TombstoneOption::None && request.scope == Scope::Unknown {
        notes.push(format!(
            "the table has provide_overlapping_tombstones {}, but no SSTables that provide any: name \
             them with --overlapping",
            option.name()
        ));
    }
    Ok(option)
}

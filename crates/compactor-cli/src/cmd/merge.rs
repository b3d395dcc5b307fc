//! `compactor merge`: SSTables of one table in, one SSTable out.

mod summary;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use compactor::catalog::{self, Catalog};
use compactor::io::{ReadMode, raise_open_files_limit};
use compactor::sstable::schema::Table;
use compactor::{Error, InputCheck, MergeJob, MergeRequest, Observer, Scope};

use crate::flags::Format;
use crate::interrupt;
use crate::io_args::IoArgs;
use crate::numbers::{GC_GRACE_SECONDS, moment, moment_or_before_1970, within};
use crate::output::{print, print_of, say};
use crate::output_directory;
use crate::output_form::OutputForm;
use crate::progress::{Progress, ProgressMode};
use crate::verify_step;

/// Cassandra's default, for tables whose schema is not at hand.
const DEFAULT_GC_GRACE_SECONDS: i64 = 864_000;
/// Merge SSTables of one table into one, as Cassandra's compaction would.
///
/// Inputs are only read. The output appears whole or not at all. Repaired, unrepaired and pending
/// inputs are not mixed: each kind gets an output of its own, and all of them appear together. Tombstones and expired data past
/// gc_grace_seconds are purged only where that is safe: with --complete, or where --overlapping names
/// what else the table has; otherwise every tombstone is kept.
///
/// A schema.cql beside the inputs, as snapshots have, or one named by --schema supplies
/// gc_grace_seconds, compression, the Bloom filter's chance and the summary's interval; options go
/// before it. Inputs must agree with it, and cells of dropped columns go, as in the node.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  A snapshot that is the whole table on this node, purging what has passed gc_grace_seconds:
    compactor merge /data/ks/t-1c6a.../snapshots/before --output /scratch/t --complete

  Two SSTables of many; tombstones stay, since others may need them:
    compactor merge nb-7-big-Data.db nb-9-big-Data.db --output /scratch/t

  Written for a Cassandra 4.x node, past the page cache, checked before and after:
    compactor merge snapshot --output out --sstable-version nb --read-io direct \\
        --write-io direct --verify")]
pub struct Args {
    /// A table or snapshot directory, or Data.db files.
    #[arg(required = true, value_name = "TABLE_DIR|SNAPSHOT_DIR|Data.db")]
    inputs: Vec<PathBuf>,

    /// Directory of the output; made if missing. Not one that holds inputs.
    #[arg(long, value_name = "DIR")]
    output: PathBuf,

    /// The table's schema as CQL: types, dropped columns and options. Default: schema.cql beside the
    /// inputs.
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,

    /// The inputs are all that the table has on this node, so tombstones may be purged.
    #[arg(long, help_heading = "Purging", conflicts_with = "overlapping")]
    complete: bool,

    /// An SSTable, or a directory of them, that the table has besides the inputs. Repeat it for all
    /// of them: tombstones that may shadow data in these stay.
    #[arg(long, help_heading = "Purging", value_name = "TABLE_DIR|Data.db")]
    overlapping: Vec<PathBuf>,

    /// Seconds that tombstones must live. Default: schema.cql's, otherwise 864000.
    #[arg(long, help_heading = "Purging", value_name = "N",
        conflicts_with_all = ["gc_before", "no_purge"],
        value_parser = within(GC_GRACE_SECONDS), allow_negative_numbers = true)]
    gc_grace_seconds: Option<u32>,

    /// Purge tombstones with a local deletion time before this, in seconds since 1970.
    #[arg(
        long,
        help_heading = "Purging",
        value_name = "EPOCH",
        conflicts_with = "no_purge",
        value_parser = moment_or_before_1970,
        allow_negative_numbers = true
    )]
    gc_before: Option<i64>,

    /// Keep every tombstone.
    #[arg(long, help_heading = "Purging")]
    no_purge: bool,

    /// Keep the tombstones of inputs that are not repaired, which replicas may not have yet. Default:
    /// what the table's compaction options in schema.cql say, otherwise false.
    #[arg(long, help_heading = "Purging", value_name = "true|false", num_args = 0..=1,
        require_equals = true, default_missing_value = "true")]
    only_purge_repaired_tombstones: Option<bool>,

    /// The moment that expiry is judged at, in seconds since 1970. Default: the clock.
    #[arg(
        long,
        help_heading = "Purging",
        value_name = "EPOCH",
        value_parser = moment,
        allow_negative_numbers = true
    )]
    now: Option<i64>,

    #[command(flatten)]
    output_form: OutputForm,

    #[command(flatten)]
    io: IoArgs,

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
    format: Format,
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
    output_directory::check(&args.output, &catalog)?;
    let (request, notes) = request(&args, &catalog)?;
    let mut sstables = catalog.sstables.clone();
    if let Scope::Overlapping(others) = &request.scope {
        sstables.extend_from_slice(others);
    }
    catalog::refuse_two_tables(&sstables)?;
    let jobs = compactor::open_merge_groups(args.io.options(), request)?;
    if let Some(doubt) = catalog::doubt_one_table(&sstables) {
        say(format_args!("note: {doubt}"));
    }
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
    let result = compactor::run_merges_together(jobs, check, &mut observer);
    progress.finish();
    let mut reports = result?;
    if let Some(first) = reports.first_mut() {
        first.warnings.extend(notes);
    }
    let outputs = reports.iter().filter_map(|report| report.output.as_ref());
    let outputs: Vec<&Path> = outputs.map(|o| o.data_path.as_path()).collect();
    print_of(&summary::reports(&reports, args.format)?, &outputs)
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

/// Turns options and schema into a request, with what a person should know of the choices.
fn request(args: &Args, catalog: &Catalog) -> anyhow::Result<(MergeRequest, Vec<String>)> {
    let mut notes = Vec::new();
    let mut request = MergeRequest::new(catalog.sstables.clone(), &args.output);
    let table = catalog.schema.as_ref().map(|(_, table)| table);
    request.now_s = args.now.unwrap_or_else(now_s);
    request.scope = scope(args, catalog, &mut notes)?;
    request.gc_before_s = gc_before_s(args, catalog, request.now_s, &mut notes);
    if request.scope == Scope::Unknown && !args.no_purge {
        notes.push(
            "every tombstone was kept, since other SSTables of the table may need them: say \
             --complete if there are none, or name them with --overlapping"
                .to_owned(),
        );
    }
    request.version = args.output_form.sstable_version;
    request.format = args.output_form.sstable_format();
    request.compression = args.output_form.compression(catalog)?;
    request.only_purge_repaired = args
        .only_purge_repaired_tombstones
        .unwrap_or_else(|| table.is_some_and(Table::only_purge_repaired_tombstones));
    let provides = table.and_then(|t| t.compaction_option("provide_overlapping_tombstones"));
    if let Some(option) = provides.filter(|o| !o.eq_ignore_ascii_case("none")) {
        notes.push(format!(
            "the table has provide_overlapping_tombstones {option}, which is not followed: data that \
             tombstones outside the inputs shadow stays, as it does without the option"
        ));
    }
    request.table = table.cloned();
    if let Some(options) = table.map(|t| &t.options) {
        request.bloom_filter_fp_chance = options.bloom_filter_fp_chance;
        if let Some(interval) = options.min_index_interval {
            request.min_index_interval = interval.max(1);
        }
    }
    if let Some(table) = table.filter(|t| !t.indexes.is_empty()) {
        notes.push(format!(
            "table {} has {} secondary indexes; Cassandra rebuilds them when it loads the output",
            table.name,
            table.indexes.len()
        ));
    }
    args.io.apply(&mut request);
    Ok((request, notes))
}

fn now_s() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs() as i64)
}

fn scope(args: &Args, catalog: &Catalog, notes: &mut Vec<String>) -> anyhow::Result<Scope> {
    if args.complete {
        if let [first, ..] = &catalog.siblings[..] {
            return Err(Error::refused(format!(
                "--complete says that the inputs are all that the table has, but {} and {} more lie \
                 beside them. Name the directory to merge all, or name these with --overlapping",
                first.display(),
                catalog.siblings.len() - 1
            ))
            .into());
        }
        notes.extend(catalog::outside_snapshot(&catalog.sstables));
        return Ok(Scope::Complete);
    }
    if args.overlapping.is_empty() {
        return Ok(Scope::Unknown);
    }
    let others = catalog::find_sstables(&args.overlapping)?.sstables;
    let named = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let inputs: Vec<PathBuf> = catalog.sstables.iter().map(named).collect();
    // Naming the table's whole directory is convenient: inputs do not overlap themselves.
    let others: Vec<PathBuf> = others
        .into_iter()
        .filter(|p| !inputs.contains(&named(p)))
        .collect();
    let known: Vec<PathBuf> = others.iter().map(named).collect();
    if let Some(left_out) = catalog.siblings.iter().find(|p| !known.contains(&named(p))) {
        return Err(Error::refused(format!(
            "--overlapping is to name everything that the table has besides the inputs, but {} lies \
             beside them and is not named",
            left_out.display()
        ))
        .into());
    }
    Ok(Scope::Overlapping(others))
}

fn gc_before_s(args: &Args, catalog: &Catalog, now_s: i64, notes: &mut Vec<String>) -> Option<i64> {
    if args.no_purge {
        return None;
    }
    if let Some(gc_before) = args.gc_before {
        return Some(gc_before);
    }
    let from_schema = catalog
        .schema
        .as_ref()
        .and_then(|(_, table)| table.options.gc_grace_seconds);
    let grace = match (args.gc_grace_seconds, from_schema) {
        (Some(seconds), _) | (None, Some(seconds)) => i64::from(seconds),
        (None, None) => {
            if args.complete || !args.overlapping.is_empty() {
                notes.push(format!(
                    "no schema.cql beside the inputs: gc_grace_seconds taken as Cassandra's default \
                     {DEFAULT_GC_GRACE_SECONDS}; --gc-grace-seconds sets another"
                ));
            }
            DEFAULT_GC_GRACE_SECONDS
        }
    };
    Some(now_s - grace)
}

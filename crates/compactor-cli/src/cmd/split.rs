//! `compactor split`: each large SSTable alone into several.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use compactor::catalog::{self, Catalog};
use compactor::io::raise_open_files_limit;
use compactor::output_directory::{self, ExistingOutput, OutputClaim};
use compactor::report::{SstableReport, lossy};
use compactor::{Error, MergeRequest};
use serde::Serialize;

use crate::each_alone::{self, Rewrite, Rewritten, Totals};
use crate::flags::{ByteSize, Format};
use crate::interrupt;
use crate::io_args::IoArgs;
use crate::numbers::{SSTABLE_SIZE, within};
use crate::output::{print, print_of, say};
use crate::output_form::OutputForm;
use crate::progress::ProgressMode;
use crate::text_table::counted;

/// Split each SSTable larger than a size into several.
///
/// What `sstablesplit` does, outside the node: an SSTable whose Data.db is larger than --size becomes
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
    /// A table or snapshot directory, or Data.db files.
    #[arg(required = true, value_name = "TABLE_DIR|SNAPSHOT_DIR|Data.db")]
    inputs: Vec<PathBuf>,

    /// Directory of the outputs; made if missing. Not one that holds SSTables.
    #[arg(long, value_name = "DIR")]
    output: PathBuf,

    /// Bytes of Data.db on disk after which the next partition begins another SSTable.
    #[arg(long, value_name = "SIZE", default_value = "50MiB", value_parser = within(SSTABLE_SIZE),
        allow_hyphen_values = true)]
    size: ByteSize,

    #[command(flatten)]
    output_form: OutputForm,

    #[command(flatten)]
    io: IoArgs,

    /// Verify each output before it is published, as `compactor verify` does.
    #[arg(long, help_heading = "Checking")]
    verify: bool,

    /// Open the inputs, say what would be done, and write nothing.
    #[arg(long)]
    dry_run: bool,

    /// How progress is shown on stderr.
    #[arg(long, value_enum, default_value = "auto")]
    progress: ProgressMode,

    /// How the summary is printed on stdout.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let _ = raise_open_files_limit();
    let interrupted = interrupt::flag().context("install signal handlers")?;
    args.io.check()?;
    let catalog = catalog::find(&args.inputs)?;
    for note in &catalog.notes {
        say(format_args!("note: {note}"));
    }
    output_directory::check(&args.output, &catalog)?;
    let (large, skipped) = by_size(&catalog, args.size.0)?;
    let requests = requests(&args, &catalog, &large)?;
    if args.dry_run {
        OutputClaim::check(&args.output, ExistingOutput::Refuse).map_err(Error::from)?;
        return print(&plan(&args, &requests, &skipped)?);
    }
    let rewrite = Rewrite {
        io: &args.io,
        // One after the other: the ids of an SSTable's outputs follow one another, and are known to be
        // free once those of the one before are published.
        concurrent: 1,
        verify: args.verify,
        progress: args.progress,
        interrupted,
        done: "split",
    };
    let split = rewrite.run(requests)?;
    let summary = Summary::new(&catalog, &skipped, &split);
    print_of(&summary.show(&args)?, &split.outputs())?;
    Ok(split.exit_code())
}

/// SSTables whose `Data.db` is larger than `size`, and the others (`isSSTableLargerEnough`).
fn by_size(catalog: &Catalog, size: u64) -> anyhow::Result<(Vec<&Path>, Vec<Skipped<'_>>)> {
    let (mut large, mut skipped) = (Vec::new(), Vec::new());
    for path in &catalog.sstables {
        let metadata = std::fs::metadata(path);
        let len = metadata
            .map_err(|e| Error::invalid(format!("{}: {e}", path.display())))?
            .len();
        match len > size {
            true => large.push(path.as_path()),
            false => skipped.push(Skipped {
                data_path: path,
                bytes: len,
            }),
        }
    }
    Ok((large, skipped))
}

fn requests(args: &Args, catalog: &Catalog, large: &[&Path]) -> anyhow::Result<Vec<MergeRequest>> {
    let compression = args.output_form.compression(catalog)?;
    let request = |path: &&Path| {
        let mut request = each_alone::request(
            path,
            &args.output,
            catalog,
            &args.output_form,
            compression.clone(),
            &args.io,
            1,
        );
        request.max_sstable_size = Some(args.size.0);
        request
    };
    Ok(large.iter().map(request).collect())
}

/// An SSTable that is small enough.
#[derive(Debug, Serialize)]
struct Skipped<'a> {
    #[serde(serialize_with = "lossy")]
    data_path: &'a Path,
    /// Of its `Data.db`.
    bytes: u64,
}

impl Skipped<'_> {
    fn show(&self, size: ByteSize) -> String {
        format!(
            "skipped {}: {} is not more than {size}; it stays where it is",
            self.data_path.display(),
            ByteSize(self.bytes)
        )
    }
}

/// What would be done.
#[derive(Debug, Serialize)]
struct Plan<'a> {
    dry_run: bool,
    size: u64,
    split: Vec<Planned>,
    skipped: &'a [Skipped<'a>],
}

/// What would become of an SSTable.
#[derive(Debug, Serialize)]
struct Planned {
    #[serde(serialize_with = "lossy")]
    data_path: PathBuf,
    bytes: u64,
    /// If the outputs are compressed as well as the input is.
    expected_outputs: u64,
    output_version: String,
}

fn plan(args: &Args, requests: &[MergeRequest], skipped: &[Skipped<'_>]) -> anyhow::Result<String> {
    let mut split = Vec::with_capacity(requests.len());
    for request in requests {
        let job = compactor::open_merge(args.io.options(), request.clone())?;
        for input in job.inputs() {
            let bytes = input.data.len();
            split.push(Planned {
                data_path: input.data_path(),
                bytes,
                expected_outputs: bytes.div_ceil(args.size.0),
                output_version: job.settings().descriptor.version.to_string(),
            });
        }
    }
    let plan = Plan {
        dry_run: true,
        size: args.size.0,
        split,
        skipped,
    };
    if args.format == Format::Json {
        return Ok(serde_json::to_string_pretty(&plan)?);
    }
    let mut text = String::new();
    for planned in &plan.split {
        writeln!(
            text,
            "would split {}: {} into about {}, version {}",
            planned.data_path.display(),
            ByteSize(planned.bytes),
            counted(planned.expected_outputs, "SSTable"),
            planned.output_version
        )?;
    }
    for skipped in skipped {
        writeln!(text, "{}", skipped.show(args.size))?;
    }
    if plan.split.is_empty() {
        writeln!(text, "no SSTable is larger than {}", args.size)?;
    }
    Ok(text)
}

/// What was split.
#[derive(Debug, Serialize)]
struct Summary<'a> {
    split: Vec<Split<'a>>,
    skipped: &'a [Skipped<'a>],
    #[serde(flatten)]
    totals: Totals<'a>,
}

/// One SSTable, and what it became.
#[derive(Debug, Serialize)]
struct Split<'a> {
    input: &'a SstableReport,
    outputs: &'a [SstableReport],
}

impl<'a> Summary<'a> {
    fn new(catalog: &Catalog, skipped: &'a [Skipped<'a>], split: &'a Rewritten) -> Summary<'a> {
        let reports = &split.reports;
        Summary {
            split: reports
                .iter()
                .filter_map(|r| {
                    let (input, outputs) = (r.inputs.first()?, &r.outputs[..]);
                    Some(Split { input, outputs })
                })
                .collect(),
            skipped,
            totals: split.totals(catalog.sstables.len()),
        }
    }

    fn show(&self, args: &Args) -> anyhow::Result<String> {
        if args.format == Format::Json {
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
            writeln!(text, "{}", skipped.show(args.size))?;
        }
        if self.split.is_empty() && self.totals.is_sound() {
            writeln!(text, "no SSTable is larger than {}", args.size)?;
            return Ok(text);
        }
        let done = format!("split {}", self.split.len());
        self.totals
            .show(&mut text, &done, &format!(" into {written}"))?;
        Ok(text)
    }
}

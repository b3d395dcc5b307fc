//! `compactor upgrade`: each SSTable rewritten alone, in another form.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use compactor::catalog::{self, Catalog};
use compactor::concurrent::{files_of_each, free_files, merges_at_once};
use compactor::io::raise_open_files_limit;
use compactor::output_directory;
use compactor::report::SstableReport;
use compactor::sstable::descriptor::Descriptor;
use compactor::{Error, MergeRequest};
use serde::Serialize;

use crate::each_alone::{self, Rewrite, Rewritten, Totals};
use crate::flags::{ByteSize, Format};
use crate::interrupt;
use crate::io_args::IoArgs;
use crate::numbers::{CONCURRENT, within};
use crate::output::{print_of, say};
use crate::output_form::OutputForm;
use crate::progress::ProgressMode;

/// Rewrite each SSTable alone to another version, compressor or chunk length.
///
/// What `nodetool upgradesstables -a` and `sstableupgrade` do, outside the node: rows, tombstones,
/// repair state, level and id stay as they are; nothing is purged, and what has expired becomes a
/// tombstone. Inputs are only read. Each output appears whole or not at all, in a directory that must
/// not hold SSTables yet.
///
/// An SSTable that is damaged is named and left out; the others are written, and the exit code is 3.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  Everything in a snapshot for Cassandra 5:
    compactor upgrade /data/ks/t-1c6a.../snapshots/before --output out --sstable-version oa

  Chunks of 4KiB for a table that is read at random, one SSTable at a time:
    compactor upgrade snapshot --output out --compression lz4 --chunk-length 4KiB --concurrent 1")]
pub struct Args {
    /// A table or snapshot directory, or Data.db files.
    #[arg(required = true, value_name = "TABLE_DIR|SNAPSHOT_DIR|Data.db")]
    inputs: Vec<PathBuf>,

    /// Directory of the outputs; made if missing. Not one that holds SSTables.
    #[arg(long, value_name = "DIR")]
    output: PathBuf,

    /// SSTables rewritten at a time, 1 to 256, but no more than --threads; they share those and --memory,
    /// which allows one for each 8MiB beyond 16MiB. Default: one per thread.
    #[arg(long, value_name = "N", value_parser = within(CONCURRENT), allow_negative_numbers = true)]
    concurrent: Option<usize>,

    #[command(flatten)]
    output_form: OutputForm,

    #[command(flatten)]
    io: IoArgs,

    /// Verify each output before it is published, as `compactor verify` does.
    #[arg(long, help_heading = "Checking")]
    verify: bool,

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
    if args.output_form.is_as_input() {
        return Err(Error::invalid(
            "say what is to change: --sstable-version, --sstable-format, --compression or \
             --chunk-length",
        )
        .into());
    }
    let catalog = catalog::find(&args.inputs)?;
    for note in &catalog.notes {
        say(format_args!("note: {note}"));
    }
    output_directory::check(&args.output, &catalog)?;
    let free_files = free_files();
    let threads = args.io.threads();
    let concurrent = merges_at_once(
        args.concurrent.unwrap_or(threads),
        threads,
        args.io.memory_bytes(),
        free_files,
        catalog.sstables.len(),
    );
    let open_files = files_of_each(free_files, concurrent);
    let requests = requests(&args, &catalog, concurrent, open_files)?;
    let rewrite = Rewrite {
        io: &args.io,
        concurrent,
        verify: args.verify,
        progress: args.progress,
        interrupted,
        done: "upgraded",
    };
    let upgraded = rewrite.run(requests)?;
    let summary = Summary::new(&catalog, &upgraded);
    print_of(&summary.show(args.format)?, &upgraded.outputs())?;
    Ok(upgraded.exit_code())
}

/// A request per SSTable, each with its share of threads and memory and the id that it has.
fn requests(
    args: &Args,
    catalog: &Catalog,
    concurrent: usize,
    open_files: u64,
) -> anyhow::Result<Vec<MergeRequest>> {
    let compression = args.output_form.compression(catalog)?;
    let mut ids = BTreeSet::new();
    let mut requests = Vec::with_capacity(catalog.sstables.len());
    for path in &catalog.sstables {
        let id = Descriptor::parse(path)
            .map_err(|e| Error::invalid(format!("{}: {e}", path.display())))?
            .descriptor
            .id;
        if !ids.insert(id.to_string()) {
            return Err(Error::invalid(format!(
                "two SSTables have the id {id}; upgrade one directory at a time",
            ))
            .into());
        }
        let mut request = each_alone::request(
            path,
            &args.output,
            catalog,
            &args.output_form,
            compression.clone(),
            &args.io,
            concurrent,
        );
        request.id = Some(id);
        request.open_files = Some(open_files);
        requests.push(request);
    }
    Ok(requests)
}

/// What was rewritten.
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
    fn new(catalog: &Catalog, upgraded: &'a Rewritten) -> Summary<'a> {
        let reports = &upgraded.reports;
        Summary {
            upgraded: reports
                .iter()
                .filter_map(|r| {
                    let (input, output) = (r.inputs.first()?, r.outputs.first()?);
                    Some(Upgraded { input, output })
                })
                .collect(),
            totals: upgraded.totals(catalog.sstables.len()),
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

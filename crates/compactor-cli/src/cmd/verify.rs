//! `compactor verify`: checks the integrity and consistency of SSTables.

use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use compactor::table::{find_sstables, roughly_uncompressed_bytes};
use compactor::verify::{VerifyOptions, VerifyReport, verify_all};
use compactor::{ErrorKind, Resources};
use compactor_io::{BackendKind, Io, IoOptions, ReadMode, raise_open_files_limit};
use serde::Serialize;

use super::dump::is_directory;
use crate::exit_code;
use crate::flags::{ByteSize, Format, refuse_uring_with_dontcache};
use crate::interrupt;
use crate::numbers::{THREADS, within};
use crate::output::{print, say};
use crate::progress::{Progress, ProgressMode};
use crate::text_table::{count, counted};

/// Check every byte of SSTables, and every component against the others.
///
/// Checksums of chunks and of whole files; order of tokens, keys and clusterings; every row and value;
/// index, promoted index, summary and filter against the data; statistics against the content. Values
/// are validated against their types, which neither a merge nor `sstableverify -e` does. After damage,
/// checking continues where possible. Files are only read.
///
/// Exit code 3 if anything is damaged, 0 if not; notes are deviations that lose no data. `merge` and the
/// like refuse damage, except in what they write anew, such as filters and summaries. An SSTable that
/// cannot be read at all does not keep the others from being checked: the exit code is then 3 if any
/// is damaged, otherwise that of the worst failure.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  Everything in a snapshot, bypassing the page cache:
    compactor verify --read-io direct /data/ks/t-1c6a.../snapshots/before

  Only metadata, digest and chunk checksums, for a program:
    compactor verify --quick --format json nb-7-big-Data.db

  What damage looks like:
    $ compactor verify nb-1-big-Data.db
    damage: nb-1-big-Data.db: chunk.crc at offset 6248: expected 04ffdf4d, the CRC32 of the 3491
    bytes before its checksum, found dbec3f6a (chunk 5 of 15)
    damage: nb-1-big-Digest.crc32: digest: expected 3931432675, the CRC32 of Data.db as it is,
    found 2267444013
    nb-1-big-Data.db: DAMAGED: 2 places damaged, 0 notes; 17 partitions, 17 rows, ...")]
pub struct Args {
    /// Data.db files, or directories that hold some.
    #[arg(required = true, value_name = "TABLE_DIR|SNAPSHOT_DIR|Data.db")]
    inputs: Vec<PathBuf>,

    /// Check only metadata, digest and chunk checksums, without parsing rows.
    #[arg(long)]
    quick: bool,

    /// Findings listed per SSTable; all are counted.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = within(0..=usize::MAX))]
    max_findings: usize,

    /// How files are read: auto, direct, buffered, dontneed, dontcache.
    #[arg(long, value_name = "MODE", default_value = "auto")]
    read_io: ReadMode,

    /// I/O backend: auto, uring, tokio-uring, threads.
    #[arg(long, value_name = "BACKEND", default_value = "auto")]
    backend: BackendKind,

    /// SSTables verified at once, 1 to 1024. Each takes some 12MiB, and the size of its filter, summary and tries.
    /// Default: one per processor.
    #[arg(long, value_name = "N", value_parser = within(THREADS))]
    threads: Option<usize>,

    /// How progress is shown on stderr.
    #[arg(long, value_enum, default_value = "auto")]
    progress: ProgressMode,

    /// How findings are printed on stdout.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// JSON output.
#[derive(Serialize)]
struct Document<'a> {
    damaged: usize,
    sstables: &'a [VerifyReport],
    unreadable: &'a [Unreadable],
}

/// An SSTable that could not be verified.
#[derive(Serialize)]
struct Unreadable {
    data_path: String,
    error: String,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let reads_dontcache = args.read_io == ReadMode::DontCache;
    refuse_uring_with_dontcache(args.backend, &[("--read-io", reads_dontcache)])?;
    let paths = paths(&args.inputs)?;
    let io = Io::new(IoOptions {
        backend: args.backend,
        ..IoOptions::default()
    })
    .map_err(compactor::Error::from)?;
    let mut options = VerifyOptions::default();
    options.read_mode = args.read_io;
    options.quick = args.quick;
    options.max_findings = args.max_findings;
    let total = paths.iter().map(|path| roughly_uncompressed_bytes(path));
    let total = total.sum();
    // Until now, a signal ends the process at once: there may be very many inputs.
    let interrupted = interrupt::flag().context("install signal handlers")?;
    let mut progress = Progress::new(args.progress, total, interrupted);
    let lines = progress.lines();
    let threads = args.threads.unwrap_or(Resources::default().threads);
    let _ = raise_open_files_limit();
    let mut reports = Vec::new();
    let mut unreadable = Vec::new();
    let mut damaged = 0;
    let mut code = 0;
    let verified = verify_all(
        &io,
        &paths,
        &options,
        threads,
        &mut progress,
        |path, result| {
            match result {
                Ok(report) => {
                    damaged += usize::from(report.is_damaged());
                    match args.format {
                        Format::Text => {
                            if let Err(error) = lines.print(|| print(&text(&report))) {
                                return ControlFlow::Break(error);
                            }
                        }
                        Format::Json => reports.push(report),
                    }
                }
                // The others may be read all the same.
                Err(error) if paths.len() > 1 && error.kind() != ErrorKind::Cancelled => {
                    lines.print(|| say(format_args!("compactor: {error}")));
                    code = code.max(exit_code::of(&error));
                    unreadable.push(Unreadable {
                        data_path: path.display().to_string(),
                        error: error.to_string(),
                    });
                }
                Err(error) => return ControlFlow::Break(error.into()),
            }
            ControlFlow::Continue(())
        },
    );
    drop(progress);
    if let ControlFlow::Break(error) = verified {
        return Err(error);
    }
    if args.format == Format::Json {
        let document = Document {
            damaged,
            sstables: &reports,
            unreadable: &unreadable,
        };
        print(&serde_json::to_string_pretty(&document)?)?;
    }
    for note in io.notes() {
        say(format_args!("note: {note}"));
    }
    Ok(ExitCode::from(match damaged {
        0 => code,
        _ => exit_code::CORRUPT,
    }))
}

/// Returns the given SSTables. They are verified independently of other SSTables in their directory.
fn paths(inputs: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    for input in inputs {
        is_directory(input)?;
    }
    Ok(find_sstables(inputs)?)
}

fn text(report: &VerifyReport) -> String {
    let mut out = String::new();
    for finding in &report.findings {
        let _ = writeln!(out, "{finding}");
    }
    if report.unlisted() > 0 {
        let more = counted(report.unlisted(), "more finding");
        let _ = writeln!(out, "{more}, not listed");
    }
    let outcome = match (report.is_damaged(), report.quick) {
        (true, _) if report.stops_merge => "DAMAGED",
        (true, _) => "DAMAGED, but a merge can read it",
        (false, false) => "OK",
        (false, true) => "OK (quick)",
    };
    let _ = write!(
        out,
        "{}: {outcome}: {} damaged, {}; ",
        report.data_path.display(),
        counted(report.damages, "place"),
        counted(report.notes, "note")
    );
    if !report.quick {
        let _ = write!(
            out,
            "{}, {}, {}, {}, ",
            counted(report.partitions, "partition"),
            counted(report.rows, "row"),
            counted(report.range_tombstone_markers, "range tombstone marker"),
            counted(report.cells, "cell")
        );
        if report.partitions_skipped > 0 {
            let skipped = counted(report.partitions_skipped, "partition");
            let _ = write!(out, "{skipped} skipped, ");
        }
    }
    let _ = writeln!(
        out,
        "{} ({} damaged), {} in {:.2} s, read {}",
        counted(report.chunks, "chunk"),
        count(report.chunks_damaged),
        ByteSize(report.bytes),
        report.elapsed_s,
        report.read_mode
    );
    out
}

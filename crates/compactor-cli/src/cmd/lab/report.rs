//! `compactor lab report`: a saved experiment, shown again.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use compactor::Error;
use compactor_lab::chunk_length::{self, ChunkLengthOutcome, Experiment};
use compactor_lab::fio::FioOutcome;
use compactor_lab::outcome::{FORMAT_VERSION, Outcome};
use compactor_lab::report::chunk_length::ChunkLengthReport;
use compactor_lab::report::{Document, Report};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::output::{print, say};
use crate::result_file::ResultFile;

/// Print the report of a saved experiment: figures, intervals, caveats, charts.
///
/// Nothing is measured. Figures are medians over the runs that count, comparisons are made within each
/// repeat, and intervals are 95% bootstrap intervals over repeats. Several files, of several machines
/// for example, begin with a table of them side by side.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  With pictures, as one HTML file that needs nothing else:
    compactor lab report outcome.json --html report.html

  Two machines side by side, to be put into a README:
    compactor lab report laptop.json server.json --format markdown")]
pub struct Args {
    /// Files that `compactor lab interference --json` or `compactor lab chunk-length --json` wrote: one
    /// kind at a time.
    #[arg(required = true, value_name = "RESULT.json")]
    results: Vec<PathBuf>,

    /// Adds the output of `compactor lab fio --json` on the same machine to the result, of which there may be only
    /// one then.
    #[arg(long, value_name = "FIO.json")]
    ceilings: Option<PathBuf>,

    /// Also writes the report with pictures to a file, for any browser and for print.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Form of the output on stdout.
    #[arg(long, value_enum, default_value = "text")]
    format: ReportFormat,
}

impl Args {
    /// Whether stdout gets one JSON document.
    pub fn prints_json(&self) -> bool {
        self.format == ReportFormat::Json
    }
}

/// Form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ReportFormat {
    /// Tables for terminals.
    Text,
    /// Tables of GitHub's Markdown.
    Markdown,
    /// Figures, ratios, intervals and caveats: an array with an object per result.
    Json,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let kinds: Vec<Option<Experiment>> = args
        .results
        .iter()
        .map(|path| any_version(path).map(|(_, any)| any.experiment))
        .collect::<Result<_, Error>>()?;
    match kinds.iter().flatten().count() {
        0 => of_interference(&args),
        found if found == kinds.len() => of_chunk_length(&args),
        _ => Err(Error::invalid(
            "results of two experiments cannot be compared; show each kind by itself",
        )
        .into()),
    }
}

fn of_chunk_length(args: &Args) -> anyhow::Result<ExitCode> {
    if args.ceilings.is_some() {
        let reason = "--ceilings are for results of `compactor lab interference` only";
        return Err(Error::invalid(reason).into());
    }
    let outcomes: Vec<(String, ChunkLengthOutcome)> = named(args, chunk_length::FORMAT_VERSION)?;
    let reports = outcomes.iter();
    let reports: Vec<_> = reports
        .map(|(name, of)| ChunkLengthReport::new(name, of))
        .collect();
    show(args, &ChunkLengthReport::document(&reports), &reports)
}

fn of_interference(args: &Args) -> anyhow::Result<ExitCode> {
    let outcomes: Vec<(String, Outcome)> = named(args, FORMAT_VERSION)?;
    let fio = args.ceilings.as_deref().map(read_fio).transpose()?;
    let reports = outcomes.iter();
    let mut reports: Vec<_> = reports.map(|(name, of)| Report::new(name, of)).collect();
    if let Some(fio) = &fio {
        if reports.len() > 1 {
            let reason = "--ceilings are those of one machine: name one result with it";
            return Err(Error::invalid(reason).into());
        }
        reports = reports
            .into_iter()
            .map(|report| report.with_fio(fio))
            .collect();
    }
    show(args, &Report::document(&reports), &reports)
}

/// The results with the names of their files.
fn named<T: DeserializeOwned>(args: &Args, known: u32) -> Result<Vec<(String, T)>, Error> {
    let results = args.results.iter();
    results
        .map(|path| Ok((path.display().to_string(), parsed(path, known)?)))
        .collect()
}

fn show<R: Serialize>(args: &Args, document: &Document, reports: &[R]) -> anyhow::Result<ExitCode> {
    if let Some(path) = &args.html {
        ResultFile::create(path)?.write(&document.to_html())?;
        say(format_args!("with pictures: {}", path.display()));
    }
    print(&match args.format {
        ReportFormat::Text => document.to_text(),
        ReportFormat::Markdown => document.to_markdown(),
        ReportFormat::Json => serde_json::to_string_pretty(reports)?,
    })
}

/// Content of a file that was named.
fn read_file(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::invalid(format!("{}: no such file", path.display())),
        _ => Error::file("read", path)(error),
    })
}

/// Reads what fio measured.
///
/// # Errors
/// A file that cannot be read, or is something else.
pub fn read_fio(path: &Path) -> Result<FioOutcome, Error> {
    let bytes = read_file(path)?;
    serde_json::from_slice(&bytes).map_err(|e| {
        Error::invalid(format!(
            "{}: not what `compactor lab fio --json` writes: {e}",
            path.display()
        ))
    })
}

/// A result of any version, to distinguish it from other files.
#[derive(Deserialize)]
struct AnyVersion {
    format_version: u32,
    /// The kind; that of interference has none.
    #[serde(default)]
    experiment: Option<Experiment>,
}

/// Reads an outcome of `compactor lab interference`.
///
/// # Errors
/// A file that cannot be read, that is no outcome, or that is of a version of another compactor's.
pub fn read(path: &Path) -> Result<Outcome, Error> {
    parsed(path, FORMAT_VERSION)
}

fn strange(path: &Path) -> impl Fn(serde_json::Error) -> Error + '_ {
    move |e| {
        Error::invalid(format!(
            "{}: not what `compactor lab interference --json` writes, nor `chunk-length`: {e}",
            path.display()
        ))
    }
}

fn any_version(path: &Path) -> Result<(Vec<u8>, AnyVersion), Error> {
    let bytes = read_file(path)?;
    let any = serde_json::from_slice(&bytes).map_err(strange(path))?;
    Ok((bytes, any))
}

fn parsed<T: DeserializeOwned>(path: &Path, known: u32) -> Result<T, Error> {
    let (bytes, any) = any_version(path)?;
    if any.format_version != known {
        return Err(Error::invalid(format!(
            "{}: of format {}, and this compactor knows format {known}; use the release that wrote it",
            path.display(),
            any.format_version
        )));
    }
    serde_json::from_slice(&bytes).map_err(strange(path))
}

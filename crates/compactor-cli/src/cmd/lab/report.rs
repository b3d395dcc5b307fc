//! `compactor lab report`: a saved experiment, shown again.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use compactor::Error;
use compactor_lab::fio::FioOutcome;
use compactor_lab::outcome::{Experiment, FORMAT_VERSION, Outcome};
use compactor_lab::report::{self, Report};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::common::ReportFormat;
use crate::output::print;
use crate::result_file::ResultFile;

/// Print the report of a saved experiment: figures, intervals, caveats, charts.
///
/// Nothing is measured. Figures are medians over the runs that count, ratios are computed within each repeat,
/// and intervals are 95% bootstrap intervals over repeats. With several files, such as those of several
/// machines, the report begins with a table that compares them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  With charts, as a single HTML file:
    compactor lab report outcome.json --html report.html

  A picture of p99 over time, for a README:
    compactor lab report outcome.json --svg p99.svg

  Two machines side by side, as Markdown:
    compactor lab report laptop.json server.json --format markdown")]
pub struct Args {
    /// Output of `compactor lab interference --json`, `chunk-length --json` or `fan-out --json`; all of one
    /// kind.
    #[arg(required = true, value_name = "RESULT.json")]
    results: Vec<PathBuf>,

    /// Adds the output of `compactor lab fio --json` on the same machine; only with a single result.
    #[arg(long, value_name = "FIO.json")]
    ceilings: Option<PathBuf>,

    /// Also writes the report with charts to a file, for any browser and for print.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Also writes p99 over time of each arm as an SVG picture; only with a single result of `interference` of one size of
    /// the hot set.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Form of the output on stdout.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ReportFormat,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let fio = args.ceilings.as_deref().map(read_fio).transpose()?;
    if fio.is_some() && args.results.len() > 1 {
        let reason = "--ceilings are those of one machine: name one result with it";
        return Err(Error::invalid(reason).into());
    }
    let paths = args.results.iter();
    let reports = paths.map(|path| report_of(path, fio.as_ref()));
    let reports: Vec<Report> = reports.collect::<Result<_, Error>>()?;
    let is_other = |report: &Report| report.title() != reports[0].title();
    if reports.iter().any(is_other) {
        let reason = "results of two experiments cannot be compared; show each kind by itself";
        return Err(Error::invalid(reason).into());
    }
    for path in args.svg.iter().chain(&args.html) {
        let named = path.canonicalize().ok();
        let mut results = args
            .results
            .iter()
            .filter_map(|path| path.canonicalize().ok());
        if named.is_some_and(|named| results.any(|result| result == named)) {
            let path = path.display();
            let reason = format!("{path} is the result that is shown; name another file");
            return Err(Error::refused(reason).into());
        }
    }
    let document = Report::document(&reports);
    let picture = match &reports[..] {
        [only] => only.picture.as_ref(),
        _ => None,
    };
    if args.svg.is_some() && picture.is_none() {
        let reason = "--svg needs a single result of `compactor lab interference` with one size of the hot set, and runs that \
             were sampled";
        return Err(Error::invalid(reason).into());
    }
    let paths = [args.svg.as_deref(), args.html.as_deref()];
    let [svg, html] = ResultFile::create_two(paths)?;
    if let (Some(file), Some(picture)) = (svg, picture) {
        file.write("picture", picture)?;
    }
    if let Some(file) = html {
        file.write("report with charts", &document.to_html())?;
    }
    let json = || serde_json::to_string_pretty(&reports);
    print(&args.format.text(&document, json)?)
}

/// The report of a saved outcome, whose name is that of its file.
fn report_of(path: &Path, fio: Option<&FioOutcome>) -> Result<Report, Error> {
    let name = path.display().to_string();
    let (bytes, experiment) = read_result(path)?;
    Ok(match experiment {
        None => report::interference::report(name, &parsed(path, &bytes)?, fio),
        Some(_) if fio.is_some() => {
            let reason = "--ceilings are for results of `compactor lab interference` only";
            return Err(Error::invalid(reason));
        }
        Some(Experiment::ChunkLength) => report::chunk_length::report(name, &parsed(path, &bytes)?),
        Some(Experiment::FanOut) => report::fan_out::report(name, &parsed(path, &bytes)?),
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
    let (bytes, _) = read_result(path)?;
    parsed(path, &bytes)
}

/// Content of a file that has a result of this version, and the kind of the result.
fn read_result(path: &Path) -> Result<(Vec<u8>, Option<Experiment>), Error> {
    let bytes = read_file(path)?;
    let any: AnyVersion = parsed(path, &bytes)?;
    let version = any.format_version;
    if version != FORMAT_VERSION {
        return Err(Error::invalid(format!(
            "{}: of format {version}, and this compactor knows format {FORMAT_VERSION}; use the release that wrote it",
            path.display(),
        )));
    }
    Ok((bytes, any.experiment))
}

fn parsed<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|e| {
        Error::invalid(format!(
            "{}: not what `compactor lab interference --json` writes, nor `chunk-length` or `fan-out`: {e}",
            path.display()
        ))
    })
}

//! `compactor doctor`: I/O modes that work in a directory, and the defaults chosen there.

mod advice;
mod findings;
mod render;

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;

use compactor::Error;
use compactor_io::probe;

use crate::flags::Format;
use crate::output::print;
use findings::Findings;

/// Report which I/O modes work in a directory, and which of them `auto` chooses.
///
/// Tries direct I/O, RWF_DONTCACHE, io_uring and cachestat on a file without a name, which leaves
/// nothing behind; where the directory is not writable, on a file that is there, without writing to
/// it. Looks up the file system, its device and the limits of this process. Run it as the user who
/// will merge: limits and sandboxes differ.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  The disk that SSTables are read from, and the one that the output goes to:
    compactor doctor /var/lib/cassandra/data
    compactor doctor /scratch

  For a program:
    compactor doctor --format json /scratch | jq .auto.read.mode")]
pub struct Args {
    /// The directory.
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,

    /// How findings are printed on stdout.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    // Of a file, such as a Data.db, its directory is meant.
    if let Err(e) = std::fs::metadata(&args.directory)
        && e.kind() == ErrorKind::NotFound
    {
        let directory = args.directory.display();
        return Err(Error::invalid(format!("{directory}: no such file or directory")).into());
    }
    let directory = match args.directory.parent() {
        Some(parent) if args.directory.is_file() && parent.as_os_str().is_empty() => ".".into(),
        Some(parent) if args.directory.is_file() => parent.to_owned(),
        _ => args.directory,
    };
    let directory = directory.canonicalize().unwrap_or(directory);
    let mut findings = Findings::of(probe(&directory).map_err(Error::from)?);
    findings.advice = advice::advice(&findings);
    print(&match args.format {
        Format::Json => serde_json::to_string_pretty(&findings)?,
        Format::Text => render::text(&findings),
    })
}

//! `compactor dump`: an SSTable as JSON lines.

use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use compactor::Table;
use compactor::dump::{DumpOptions, dump, dump_keys};
use compactor_io::{Io, IoOptions, ReadMode};

use crate::interrupt::{self, Interrupted};
use crate::numbers::moment;
use crate::output::{say, say_notes};

/// Print an SSTable's partitions as JSON, one per line.
///
/// The lines are those of `sstabledump -l`: rows, range tombstones, cells with their timestamps, TTLs
/// and deletion times, as stored in the file, with nothing merged, purged or hidden. A position is
/// an offset in the uncompressed Data.db. Partitions of any size need little memory.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  The first partition of an SSTable, laid out by jq:
    compactor dump nb-7-big-Data.db | head -n 1 | jq .

  One partition, wherever a table's SSTables hold it; parts of a composite key joined by ':':
    compactor dump /data/ks/t-1c6a... -k 2024-11-05:sensor7

  What was deleted or has expired by the end of 2024:
    compactor dump nb-7-big-Data.db --tombstones-only --now 1735689600")]
pub struct Args {
    /// Data.db files, or a table or snapshot directory.
    #[arg(required = true, value_name = "Data.db|TABLE_DIR")]
    inputs: Vec<PathBuf>,

    /// Print only the partition with this key, written as sstabledump and `compactor scrub` print it, or
    /// its bytes as 0x and hexadecimal digits. A ':' within a part of a composite key is written '\:'. May be
    /// repeated. The exit code is 1 if no SSTable has one of the keys.
    #[arg(short = 'k', long = "key", value_name = "KEY")]
    keys: Vec<String>,

    /// Leave the partition with this key out. May be repeated.
    #[arg(short = 'x', long = "exclude-key", value_name = "KEY")]
    exclude: Vec<String>,

    /// Print partition keys only, an array of their parts per line.
    #[arg(short = 'e', long, conflicts_with = "tombstones_only")]
    enumerate_keys: bool,

    /// Print only deletions: deleted partitions, range tombstones, and rows that hold something
    /// deleted or expired.
    #[arg(short = 'o', long)]
    tombstones_only: bool,

    /// Print timestamps as the numbers that the file holds, not as dates.
    #[arg(short = 't', long)]
    raw_timestamps: bool,

    /// Accepted for the sake of sstabledump's users; lines are all there is.
    #[arg(short = 'l', hide = true)]
    lines: bool,

    /// Time at which expiry is evaluated, in seconds since 1970. Default: the clock.
    #[arg(
        long,
        value_name = "EPOCH",
        value_parser = moment
    )]
    now: Option<i64>,

    /// How files are read: auto, direct, buffered, dontneed, dontcache.
    #[arg(long, value_name = "MODE", default_value = "auto")]
    read_io: ReadMode,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let sstables = sstables_of(&args.inputs)?;
    // Until now, a signal ends the process at once: there may be very many inputs.
    let observer = Interrupted(interrupt::flag().context("install signal handlers")?);
    let options = DumpOptions {
        keys: args.keys,
        exclude: args.exclude,
        raw_timestamps: args.raw_timestamps,
        tombstones_only: args.tombstones_only,
        read_mode: args.read_io,
        ..DumpOptions::new(args.now.unwrap_or_else(now_s))
    };
    let io = Io::new(IoOptions::default()).map_err(compactor::Error::from)?;
    let mut out = Stdout {
        stdout: io::stdout().lock(),
        reader_is_gone: false,
    };
    let mut missing: Option<Vec<String>> = None;
    for data in &sstables {
        let print = if args.enumerate_keys { dump_keys } else { dump };
        match print(&io, data, &options, &observer, &mut out) {
            Ok(summary) => {
                let of_this = summary.missing_keys;
                missing = Some(match missing {
                    None => of_this,
                    Some(before) => before.into_iter().filter(|k| of_this.contains(k)).collect(),
                });
            }
            Err(_) if out.reader_is_gone => return Ok(ExitCode::SUCCESS),
            Err(error) => return Err(error.into()),
        }
    }
    let missing = missing.unwrap_or_default();
    for key in &missing {
        say(format_args!(
            "compactor: no partition with key {key:?}; --enumerate-keys lists the parts of each key, which ':' joins \
             (write '\\:' for one within a part)"
        ));
    }
    Ok(if missing.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Returns the SSTables given by `paths`. A `Data.db` is accepted whatever other files are in its directory, since it
/// is only read.
pub(super) fn sstables_of(paths: &[PathBuf]) -> Result<Vec<PathBuf>, compactor::Error> {
    let mut sstables = Vec::new();
    for path in paths {
        if is_directory(path)? {
            let table = Table::open_without_schema(std::slice::from_ref(path))?;
            say_notes(table.notes());
            sstables.extend_from_slice(table.sstables());
        } else {
            sstables.push(path.clone());
        }
    }
    Ok(sstables)
}

/// Whether a path names a directory of SSTables, and not one of them.
///
/// # Errors
/// The path does not exist or is not accessible.
pub(super) fn is_directory(path: &Path) -> Result<bool, compactor::Error> {
    match std::fs::metadata(path) {
        Ok(found) => Ok(found.is_dir()),
        Err(e) if e.kind() == ErrorKind::NotFound => Err(compactor::Error::invalid(format!(
            "{}: no such file or directory; name Data.db files, or directories of them",
            path.display()
        ))),
        Err(e) => Err(compactor::Error::file("open", path)(e)),
    }
}

/// Now, in seconds since 1970.
pub(super) fn now_s() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs() as i64)
}

/// Stdout that remembers whether its reader, such as `head`, has gone.
struct Stdout {
    stdout: io::StdoutLock<'static>,
    reader_is_gone: bool,
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.stdout.write(bytes);
        self.remember(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.stdout.flush();
        self.remember(flushed)
    }
}

impl Stdout {
    fn remember<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result {
            self.reader_is_gone |= error.kind() == ErrorKind::BrokenPipe;
        }
        result
    }
}

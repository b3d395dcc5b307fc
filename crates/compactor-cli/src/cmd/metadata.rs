//! `compactor metadata`: prints the metadata of SSTables.

use std::path::PathBuf;
use std::process::ExitCode;

use compactor::metadata::{self, MetadataOptions, text};
use compactor_io::{Io, IoOptions, ReadMode};

use super::dump::{now_s, sstables_of};
use crate::error_report::{Writes, say_each};
use crate::exit_code;
use crate::flags::Format;
use crate::numbers::{GC_GRACE_SECONDS, moment, within};
use crate::output::print;

/// Print SSTable metadata without reading Data.db.
///
/// The information of `sstablemetadata`: timestamps, TTLs and deletion times from the smallest to the greatest,
/// tokens, clusterings, repair, commit log, histograms, columns and types. Besides, what an SSTable takes: bytes of
/// each component, memory of Bloom filter, index summary and chunk offsets, and the compression ratio as `nodetool
/// tablestats` defines it (compressed / uncompressed).
///
/// An SSTable whose metadata cannot be read is named on stderr; the others are printed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  One SSTable, for people; times are in UTC:
    compactor metadata nb-7-big-Data.db

  Droppable tombstones of all SSTables of a table with ten days of grace:
    compactor metadata /data/ks/t-1c6a... --gc-grace-seconds 864000 --format json \\
        | jq -r '.[] | [.sstable, .estimated_droppable_tombstones] | @tsv'")]
pub struct Args {
    /// Data.db files, or a table or snapshot directory.
    #[arg(required = true, value_name = "Data.db|TABLE_DIR")]
    inputs: Vec<PathBuf>,

    /// Seconds that a tombstone must be old before it counts as droppable.
    #[arg(
        short,
        long,
        alias = "gc_grace_seconds",
        value_name = "N",
        default_value_t = 0,
        value_parser = within(GC_GRACE_SECONDS)
    )]
    gc_grace_seconds: u32,

    /// Current time for --gc-grace-seconds, in seconds since 1970. Default: the clock.
    #[arg(
        long,
        value_name = "EPOCH",
        value_parser = moment
    )]
    now: Option<i64>,

    /// text, or json: an array with an object per SSTable.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let options = MetadataOptions {
        gc_grace_s: args.gc_grace_seconds.into(),
        // A few small files that a node has in its memory anyway: past the cache is not worth it.
        read_mode: ReadMode::Buffered,
        ..MetadataOptions::new(args.now.unwrap_or_else(now_s))
    };
    let io = Io::new(IoOptions::default()).map_err(compactor::Error::from)?;
    let sstables = sstables_of(&args.inputs)?;
    let (mut all, mut failed) = (Vec::with_capacity(sstables.len()), Vec::new());
    for path in &sstables {
        match metadata::read(&io, path, &options) {
            Ok(metadata) => all.push(metadata),
            Err(error) => failed.push(error),
        }
    }
    // Without any result the first error is that of the command.
    let of_command = (all.is_empty() && !failed.is_empty()).then(|| failed.remove(0));
    say_each(&failed, of_command.as_ref(), Writes::Nothing);
    if let Some(error) = of_command {
        return Err(error.into());
    }
    print(&match args.format {
        Format::Text => text::render_all(&all),
        Format::Json => serde_json::to_string_pretty(&all)?,
    })?;
    Ok(ExitCode::from(failed.first().map_or(0, exit_code::of)))
}

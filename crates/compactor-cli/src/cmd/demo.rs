//! `compactor demo`: the same merge twice, bypassing the page cache and through it.

mod arm;
mod summary;

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use compactor::generate::{Amount, GenerateOptions, GenerateReport, Shape, generate};
use compactor::verify::{VerifyOptions, VerifyReport, verify};
use compactor::{Error, MergeReport};
use compactor_io::{Io, IoOptions, ReadMode, WriteMode};
use compactor_lab::scratch::Scratch;
use serde::Serialize;

use crate::flags::{ByteSize, Format};
use crate::interrupt::{self, Interrupted};
use crate::numbers::within;
use crate::output::{print, say};
use crate::work_directory::{self, WorkDirectory};

/// SSTables that are merged.
const SSTABLES: u32 = 3;
/// Sizes that are accepted: a smaller merge is done before anything can be measured.
const SIZE: RangeInclusive<ByteSize> = ByteSize(1 << 20)..=ByteSize(1 << 40);

/// Merge generated SSTables twice, bypassing the page cache and through it, and show the difference.
///
/// Generates three SSTables that share half of their partitions, merges them with direct I/O, verifies
/// the result, merges them again with buffered I/O, and shows both side by side. Before each merge the
/// inputs are dropped from the page cache. Everything happens in a temporary directory, which is
/// removed at the end, also on Ctrl-C, or by the next demonstration there if this one is killed; it
/// takes some seconds.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  In the first of the current directory, $TMPDIR and /var/tmp where direct I/O works:
    compactor demo

  On the disk that is of interest, with more data:
    compactor demo --directory /var/lib/cassandra --size 4GiB")]
pub struct Args {
    /// Where the temporary directory is made. Default: the current directory, $TMPDIR or /var/tmp,
    /// whichever is the first to support direct I/O.
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,

    /// Uncompressed bytes of the three SSTables together.
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "256MiB",
        value_parser = within(SIZE)
    )]
    size: ByteSize,

    /// How the comparison is printed on stdout.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Results of the demonstration.
#[derive(Debug, Serialize)]
struct Demo {
    place: WorkDirectory,
    generated: GenerateReport,
    /// Bypassing the page cache; by other means than direct I/O where that does not work.
    direct: MergeReport,
    verified: VerifyReport,
    buffered: MergeReport,
    /// Both outputs are the same, byte for byte, in every component.
    outputs_are_identical: bool,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let interrupted = interrupt::flag_of_long_end().context("install signal handlers")?;
    let place = work_directory::choose(args.directory.as_deref())?;
    let scratch = Scratch::create(&place.directory, "demo")?;
    if cfg!(debug_assertions) {
        say(format_args!(
            "note: this is a debug build, many times slower than one with --release"
        ));
    }
    let demo = show(&args, place, scratch.path(), interrupted)?;
    scratch.remove()?;
    let code = print(&summary::report(&demo, args.format)?)?;
    Ok(if demo.keeps_its_word() {
        code
    } else {
        ExitCode::FAILURE
    })
}

impl Demo {
    /// Direct I/O that leaves pages in the cache, damage, or different outputs would be bugs.
    fn keeps_its_word(&self) -> bool {
        self.outputs_are_identical
            && !self.verified.is_damaged()
            && !(self.place.direct && self.pages_left_by_direct().is_some_and(|pages| pages > 0))
    }

    fn pages_left_by_direct(&self) -> Option<u64> {
        self.direct.page_cache.pages_resident()
    }
}

fn show(
    args: &Args,
    place: WorkDirectory,
    directory: &Path,
    interrupted: Arc<AtomicBool>,
) -> anyhow::Result<Demo> {
    let mut observer = Interrupted(interrupted);
    let mut options = GenerateOptions::new(Shape::KeyValue, directory.join("data"));
    options.keyspace = "demo".to_owned();
    options.sstables = SSTABLES;
    options.amount = Amount::Bytes(args.size.0 / u64::from(SSTABLES));
    say(format_args!(
        "generating {SSTABLES} SSTables, {} in all, in {}",
        args.size,
        place.describe()
    ));
    let generated = generate(IoOptions::default(), options, &mut observer)?;
    let inputs: Vec<PathBuf> = generated
        .sstables
        .iter()
        .map(|s| s.data_path.clone())
        .collect();

    let (read, write) = if place.direct {
        (ReadMode::Direct, WriteMode::Direct)
    } else {
        (ReadMode::Auto, WriteMode::Auto)
    };
    say(format_args!(
        "merging them with {} I/O",
        if place.direct { "direct" } else { "dontneed" }
    ));
    let direct = arm::run(
        &inputs,
        &directory.join("direct"),
        read,
        write,
        &mut observer,
    )?;
    let output = output_of(&direct)?;

    say(format_args!("verifying every byte of the result"));
    let io = Io::new(IoOptions::default()).map_err(Error::from)?;
    let verified = verify(&io, output, &VerifyOptions::default(), &mut observer)?;

    say(format_args!("merging them again with buffered I/O"));
    let (read, write) = (ReadMode::Buffered, WriteMode::Buffered);
    let buffered = arm::run(
        &inputs,
        &directory.join("buffered"),
        read,
        write,
        &mut observer,
    )?;
    let outputs_are_identical = arm::same_components(output, output_of(&buffered)?)?;
    Ok(Demo {
        place,
        generated,
        direct,
        verified,
        buffered,
        outputs_are_identical,
    })
}

fn output_of(merge: &MergeReport) -> anyhow::Result<&Path> {
    let output = merge.outputs.first().context("the merge wrote nothing")?;
    Ok(&output.data_path)
}

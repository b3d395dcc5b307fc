//! `compactor lab fan-out`: what leveled compaction writes, by its fan-out and the size of its SSTables.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use compactor::Error;
use compactor_lab::fan_out::{FanOutOptions, compare, directory_in_memory};
use compactor_lab::report;

use super::common::{Results, begin_anywhere, command, set};
use crate::duration::Seconds;
use crate::flags::ByteSize;
use crate::numbers::within;
use crate::work_directory;

const MIB: u64 = 1 << 20;
const SSTABLE: RangeInclusive<ByteSize> = ByteSize(MIB)..=ByteSize(1 << 30);
const FLUSH: RangeInclusive<ByteSize> = ByteSize(64 << 10)..=ByteSize(1 << 30);
const DATASET: RangeInclusive<ByteSize> = ByteSize(MIB)..=ByteSize(1 << 40);
const SPAN: RangeInclusive<Seconds> = Seconds(1)..=Seconds(366 * 86_400);

/// Measure what leveled compaction writes by fan-out and SSTable size: CASSANDRA-7871 at a small scale.
///
/// SSTables of rows with a time to live are flushed at times of a virtual clock, and after each all that the strategy
/// selects is merged, until it selects nothing: leveled compaction with a fan-out of 10 and of 4, with 4 and SSTables
/// 6.4 times as large, in whole MiB, and level count compaction. All have the same flushes. The merges are real, and drop what has
/// expired by the virtual clock; bytes are those of the files. For comparison: `compactor simulate` of the same flushes,
/// the formula of the issue, and the figures that it published. The same options and seed give the same figures on any
/// machine.
///
/// The default takes two minutes of two processors and 600 MiB, with --quick seconds. What is written grows with --dataset
/// and --duration, and with the logarithm of --dataset / --sstable-size.
///
/// All files are in a temporary directory, which is removed at the end, also on Ctrl-C. If a second Ctrl-C or a signal
/// kills the run before that, the next run in the same place removes it.
///
/// Exit codes: 0 done, 1 failed or a final table that is damaged, 2 wrong usage, 130 interrupted.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  The default, as a page with charts:
    compactor lab fan-out --html fan-out.html

  Seconds, to see what it shows:
    compactor lab fan-out --quick

  As many SSTables as in the issue, half an hour:
    compactor lab fan-out --directory /data --dataset 1080MiB --json fan-out.json")]
pub struct Args {
    /// Directory for temporary files. Default: /dev/shm if there is memory to spare, since what is written does not
    /// depend on the disk; else the current directory, $TMPDIR or /var/tmp.
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,

    /// A data set of 32MiB; other options override it.
    #[arg(long)]
    quick: bool,

    /// Size of SSTables, a whole number of MiB. One strategy has 6.4 times as large ones. Default: 1MiB.
    #[arg(long, value_name = "SIZE", value_parser = within(SSTABLE))]
    sstable_size: Option<ByteSize>,

    /// Size of the SSTables that are flushed. Default: 1.25MiB.
    #[arg(long, value_name = "SIZE", value_parser = within(FLUSH))]
    flush_size: Option<ByteSize>,

    /// Stored bytes of the rows that exist at a time, which are inserted in a --ttl. Default: 128MiB.
    #[arg(long, value_name = "SIZE", value_parser = within(DATASET))]
    dataset: Option<ByteSize>,

    /// Time to live of rows by the virtual clock. Default: 2d.
    #[arg(long, value_name = "SPAN", value_parser = within(SPAN))]
    ttl: Option<Seconds>,

    /// Time of inserts by the virtual clock. Default: 88h.
    #[arg(long, value_name = "SPAN", value_parser = within(SPAN))]
    duration: Option<Seconds>,

    /// Random seed of values and of rows that are looked up. Default: 1.
    #[arg(long, value_name = "N", value_parser = within(0..=u64::MAX))]
    seed: Option<u64>,

    #[command(flatten)]
    pub results: Results,
}

impl Args {
    /// The options, without a directory.
    fn options(&self) -> Result<FanOutOptions, Error> {
        let directory = PathBuf::new();
        let mut options = if self.quick {
            FanOutOptions::quick(directory)
        } else {
            FanOutOptions::new(directory)
        };
        let mib = self.sstable_size.map(whole_mib).transpose()?;
        set(&mut options.sstable_mib, mib);
        set(&mut options.flush_bytes, self.flush_size.map(|size| size.0));
        set(&mut options.dataset_bytes, self.dataset.map(|size| size.0));
        let ttl_s = self
            .ttl
            .map(|span| u32::try_from(span.0).unwrap_or(u32::MAX));
        set(&mut options.ttl_s, ttl_s);
        set(&mut options.duration_s, self.duration.map(|span| span.0));
        set(&mut options.seed, self.seed);
        options.command = Some(command());
        Ok(options)
    }
}

/// The directory asked for, else one in memory if there is room, else one on a disk.
fn directory(asked: Option<&Path>, needed_bytes: u64) -> anyhow::Result<PathBuf> {
    match directory_in_memory(needed_bytes).filter(|_| asked.is_none()) {
        Some(directory) => Ok(directory.to_owned()),
        None => Ok(work_directory::choose(asked)?.directory),
    }
}

/// `sstable_size_in_mb` has no fractions.
fn whole_mib(size: ByteSize) -> Result<u32, Error> {
    match u32::try_from(size.0 / MIB) {
        Ok(mib) if size.0.is_multiple_of(MIB) => Ok(mib),
        _ => Err(Error::invalid(format!(
            "--sstable-size {size} is not a whole number of MiB, as sstable_size_in_mb must be"
        ))),
    }
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let interrupted = begin_anywhere()?;
    let mut options = args.options()?;
    options.directory = directory(args.directory.as_deref(), options.needed_bytes())?;
    args.results.of(interrupted, |watcher| {
        let outcome = compare(&options, watcher)?;
        let report = report::fan_out::report("fan-out", &outcome);
        Ok((outcome, report))
    })
}

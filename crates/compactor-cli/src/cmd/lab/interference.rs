//! `compactor lab interference`: the effect of a compaction on p99 of reads.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use compactor::Error;
use compactor_io::{ReadMode, WriteMode, probe};
use compactor_lab::arm::Arm;
use compactor_lab::options::InterferenceOptions;
use compactor_lab::priority::Priority;
use compactor_lab::report;

use super::common::{Common, HOT_SET, RATE, SPAN, begin, set};
use super::report::read_fio;
use crate::duration::Seconds;
use crate::flags::{ByteSize, refuse_uring_with_dontcache};
use crate::numbers::within;
use crate::output::say;

/// Measure p99 read latency during compaction on this disk, in each I/O mode.
///
/// A foreground load reads hot rows of a table as a node does: Bloom filter, summary and index or trie, row
/// index, one chunk by buffered pread, CRC, decompression, row. Reads start on a Poisson schedule (open loop),
/// and latency is measured from the scheduled start, so that a stall shows in every read that it delays.
/// Meanwhile the table is compacted in the modes of the arm, repeatedly until --least-compaction is over; then
/// the last output is read. Each repeat runs all arms in a new random order. Foreground load and compaction
/// share a memory cgroup. A run that did not use the modes of its arm is shown with the reason and not
/// counted.
///
/// All files are in a temporary directory, which is removed at the end, also on Ctrl-C, or by the next run in
/// the same place if this one is killed. The cgroup needs root or a delegated cgroup; without one the
/// experiment runs without a limit and prints a warning.
///
/// Exit codes: 0 done, 1 failed or an arm without a run that counts, 2 wrong usage, 130 interrupted.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  A short run, under five minutes, of generated data:
    compactor lab interference --quick --json outcome.json --html report.html

  All arms, five repeats, some 25 minutes, on the disk to measure:
    compactor lab interference --directory /var/lib/cassandra --json outcome.json

  From which size of the hot set direct I/O matters:
    compactor lab interference --arms idle,buffered/buffered,direct/direct \\
        --memory-limit 2GiB --sweep hot-set=100MiB,500MiB,1GiB,1500MiB

  Your own table, such as a snapshot, without a limit on throughput:
    compactor lab interference /data/ks/t-1c6a.../snapshots/x --directory /data --throughput none")]
pub struct Args {
    #[command(flatten)]
    pub common: Common,

    /// Four arms, three repeats, 512 MiB of data, hot set 96MiB of a limit of 256MiB, 5000 reads/s,
    /// compaction at 32MiB/s; other options override these.
    #[arg(long)]
    quick: bool,

    /// Arms, each `idle` or a read and a write mode: READ/WRITE with READ one of direct, buffered,
    /// dontneed, dontcache, and WRITE of these and trickle. Default: idle, buffered/buffered,
    /// buffered/trickle, dontneed/dontneed, dontcache/dontcache, buffered/direct, direct/buffered,
    /// direct/direct, except those whose mode does not work in the directory.
    #[arg(long, value_name = "ARM,...", value_delimiter = ',')]
    arms: Option<Vec<Arm>>,

    /// Reads per second of all reader threads together. Default: 10000.
    #[arg(long, help_heading = "Foreground load", value_name = "N", value_parser = within(RATE))]
    rate: Option<f64>,

    /// Size of the hot set: pages of the inputs' Data.db that contain the hot rows. Default: 256MiB.
    #[arg(long, help_heading = "Foreground load", value_name = "SIZE", value_parser = within(HOT_SET), conflicts_with = "sweep")]
    hot_set: Option<ByteSize>,

    /// Repeats the experiment for each of several sizes: `hot-set=100MiB,1GiB`.
    #[arg(
        long,
        help_heading = "Foreground load",
        value_name = "hot-set=SIZE,..."
    )]
    sweep: Option<Sweep>,

    /// Priority of the compaction: idle, only processors that are otherwise unused (SCHED_IDLE, as under
    /// `chrt --idle 0`; its I/O class follows), or normal, as the foreground load.
    #[arg(
        long,
        help_heading = "Compaction",
        value_name = "PRIORITY",
        default_value = "idle"
    )]
    compaction_priority: Priority,

    /// Time of reads before each compaction, such as 5s. Default: 5s, with --quick 2s.
    #[arg(long, help_heading = "Time", value_name = "SPAN", value_parser = within(SPAN))]
    before: Option<Seconds>,

    /// Time of reads after it. Default: 5s, with --quick 2s.
    #[arg(long, help_heading = "Time", value_name = "SPAN", value_parser = within(SPAN))]
    after: Option<Seconds>,

    /// Minimum time to keep compacting in each run. Default: 10s, with --quick 4s.
    #[arg(long, help_heading = "Time", value_name = "SPAN", value_parser = within(SPAN))]
    least_compaction: Option<Seconds>,

    /// Adds the output of `compactor lab fio --json` to the report: the device's ceilings.
    #[arg(long, help_heading = "Results", value_name = "FIO.json")]
    pub ceilings: Option<PathBuf>,
}

/// Sizes of the hot set.
#[derive(Clone, Debug)]
struct Sweep(Vec<u64>);

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Sweep, String> {
        let Some(sizes) = text.strip_prefix("hot-set=") else {
            return Err("only the hot set is swept: hot-set=100MiB,1GiB".to_owned());
        };
        let parse = within(HOT_SET);
        let sizes: Result<Vec<u64>, String> =
            sizes.split(',').map(|size| Ok(parse(size)?.0)).collect();
        Ok(Sweep(sizes?))
    }
}

impl Args {
    /// The options of an experiment in `directory`.
    ///
    /// # Errors
    /// SSTables that cannot be found, or are of several tables.
    fn options(&self, directory: &Path) -> anyhow::Result<InterferenceOptions> {
        let mut options = if self.quick {
            InterferenceOptions::quick(directory)
        } else {
            InterferenceOptions::new(directory)
        };
        let common = &self.common;
        common.apply(&mut options.setup)?;
        let seconds = |span: Option<Seconds>| span.map(|span| Duration::from_secs(span.0));
        set(&mut options.arms, self.arms.clone());
        set(&mut options.rate_per_s, self.rate);
        let sizes = self.hot_set.map(|size| vec![size.0]);
        set(&mut options.hot_sets_bytes, sizes);
        let sizes = self.sweep.as_ref().map(|sweep| sweep.0.clone());
        set(&mut options.hot_sets_bytes, sizes);
        set(&mut options.before, seconds(self.before));
        set(&mut options.after, seconds(self.after));
        set(
            &mut options.least_compaction,
            seconds(self.least_compaction),
        );
        options.compaction_priority = self.compaction_priority;
        Ok(options)
    }
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let common = &args.common;
    let (interrupted, directory) = begin(common.directory.as_deref())?;
    let mut options = args.options(&directory)?;
    if args.arms.is_none() {
        options.arms = leave_out_what_fails(options.arms, &directory)?;
    }
    let dontcache = options.arms.iter().any(|arm| arm.is_dontcache());
    refuse_uring_with_dontcache(options.backend, &[("--arms", dontcache)])?;
    let fio = args.ceilings.as_deref().map(read_fio).transpose()?;
    common.results.of(interrupted, |watcher| {
        let outcome = compactor_lab::interference(&options, watcher)?;
        let report = report::interference::report("interference", &outcome, fio.as_ref());
        Ok((outcome, report))
    })
}

/// The default arms that can work in a directory.
fn leave_out_what_fails(arms: Vec<Arm>, directory: &Path) -> Result<Vec<Arm>, Error> {
    let found = probe(directory)?;
    let (direct, dontcache) = (found.direct.works(), found.dontcache.works());
    let (work, fail): (Vec<Arm>, Vec<Arm>) = arms.into_iter().partition(|arm| {
        (direct || !arm.uses(ReadMode::Direct, WriteMode::Direct))
            && (dontcache || !arm.is_dontcache())
    });
    for arm in fail {
        say(format_args!(
            "note: arm {arm} is left out, since its mode does not work in {}; `compactor doctor` says \
             why",
            directory.display()
        ));
    }
    Ok(work)
}

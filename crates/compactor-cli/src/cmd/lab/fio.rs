//! `compactor lab fio`: the device and the kernel by themselves.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use compactor_lab::fio::{self, FioOptions, Profile};
use compactor_lab::report as lab_report;

use super::common::{Results, begin_anywhere};
use super::report;
use crate::flags::{ByteRate, ByteSize};
use crate::numbers::{throughput, within};

/// Run the profiles of fio-profiles: models of foreground load and compaction on the device, without SSTables.
///
/// The mixes model a foreground load during a compaction in each I/O mode; the ceilings are the throughput of
/// one stream and of random readers, the upper limit for `compactor` on this device. Each repeat runs all
/// profiles in a new random order. Needs fio. All files are in a temporary directory, which is removed at the
/// end, also on Ctrl-C. Without memory pressure nothing is evicted and the mixes hardly differ: set a memory
/// limit as in the last example.
///
/// Exit codes: 0 done, 1 failed, no fio, or no profile worked, 2 wrong usage, 130 interrupted.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  All profiles, a minute each:
    compactor lab fio --directory /var/lib/cassandra --json fio.json

  Only the ceilings, compared with a saved experiment:
    compactor lab fio ceiling-sequential-read ceiling-sequential-write --directory /data \\
        --outcome outcome.json

  With a memory limit below hot file and streams:
    systemd-run --scope -p MemoryMax=2G compactor lab fio --directory /data --repeat 5")]
pub struct Args {
    /// Profiles: foreground, mix-buffered, mix-trickle, mix-direct, mix-uncached,
    /// ceiling-sequential-read, ceiling-sequential-write, ceiling-random-read-4k,
    /// ceiling-random-read-16k. Default: all.
    #[arg(value_name = "PROFILE")]
    profiles: Vec<Profile>,

    /// Directory on the device to measure, with room for hot file, input and output.
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,

    /// Repeats of all profiles.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = within(1..=100u32))]
    repeat: u32,

    /// Size of the file that the foreground load reads.
    #[arg(long, value_name = "SIZE", default_value = "1GiB",
        value_parser = within(ByteSize(1 << 20)..=ByteSize(1 << 40)))]
    hot_size: ByteSize,

    /// Bytes per second that the compaction reads, and the same that it writes.
    #[arg(long, value_name = "RATE", default_value = "128MiB/s",
        value_parser = throughput)]
    rate: ByteRate,

    /// Reads per second of each of the foreground load's 8 threads.
    #[arg(long, value_name = "N", default_value_t = 250, value_parser = within(1..=1_000_000u32))]
    reads_per_thread: u32,

    /// Seconds of each profile. Input and output are --rate times this long.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = within(1..=86_400u32))]
    runtime: u32,

    /// Output of `compactor lab interference --json` to compare with.
    #[arg(long, value_name = "RESULT.json")]
    outcome: Option<PathBuf>,

    #[command(flatten)]
    pub results: Results,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let interrupted = begin_anywhere()?;
    let interference = args.outcome.as_deref().map(report::read).transpose()?;
    let options = FioOptions {
        profiles: if args.profiles.is_empty() {
            Profile::ALL.to_vec()
        } else {
            args.profiles
        },
        repeats: args.repeat,
        hot_bytes: args.hot_size.0,
        // fio restarts a file at its end, and pages may be cached.
        input_bytes: args.rate.0.saturating_mul(u64::from(args.runtime)),
        rate_bytes_per_s: args.rate.0,
        reads_per_thread: args.reads_per_thread,
        runtime_s: args.runtime,
    };
    // A missing fio is reported before anything is made.
    fio::version().context(
        "install fio, `apt-get install fio` on Debian and Ubuntu, `dnf install fio` on Fedora and RHEL",
    )?;
    args.results.of(interrupted, |watcher| {
        let outcome = fio::run(&options, &args.directory, watcher)?;
        let report = lab_report::fio::report(&outcome, interference.as_ref());
        Ok((outcome, report))
    })
}

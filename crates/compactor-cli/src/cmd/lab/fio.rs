//! `compactor lab fio`: the device and the kernel by themselves.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use compactor_lab::fio::{self, FioOptions, FioOutcome, Profile};
use compactor_lab::outcome::End;
use compactor_lab::report::{self as lab_report, Report};

use super::report;
use crate::exit_code::INTERRUPTED;
use crate::flags::{ByteRate, ByteSize, Format};
use crate::interrupt;
use crate::numbers::{throughput, within};
use crate::output::{print, say};
use crate::result_file::ResultFile;

/// Run the profiles of fio-profiles: the same mix of reads and writes on the device, without SSTables.
///
/// Models of a foreground load during a compaction, in each I/O mode, and the most that the device gives to
/// one stream or to random readers: the limit of what `compactor` can reach here. Needs fio. Its files are in
/// a temporary directory that is removed at the end, also on Ctrl-C. With memory to spare nothing gets
/// evicted and the mixes hardly differ: give it a memory limit, as in the last example.
///
/// Exit codes: 0 done, 1 failed, no fio, or no profile worked, 2 wrong usage, 130 interrupted.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  All profiles, a minute each:
    compactor lab fio --directory /var/lib/cassandra --json fio.json

  The ceilings only, compared with a saved experiment:
    compactor lab fio ceiling-sequential-read ceiling-sequential-write --directory /data \\
        --outcome outcome.json

  With too little memory for hot file and streams:
    systemd-run --scope -p MemoryMax=2G compactor lab fio --directory /data --repeat 5")]
pub struct Args {
    /// Profiles: bystander, mix-buffered, mix-trickle, mix-direct, mix-uncached,
    /// ceiling-sequential-read, ceiling-sequential-write, ceiling-random-read-4k,
    /// ceiling-random-read-16k. Default: all.
    #[arg(value_name = "PROFILE")]
    profiles: Vec<Profile>,

    /// Directory on the device in question, with room for hot file, input and output.
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,

    /// Repeats of all profiles.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = within(1..=100u32),
        allow_negative_numbers = true)]
    repeat: u32,

    /// Size of the file that the foreground load reads.
    #[arg(long, value_name = "SIZE", default_value = "1GiB",
        value_parser = within(ByteSize(1 << 20)..=ByteSize(1 << 40)), allow_hyphen_values = true)]
    hot_size: ByteSize,

    /// Bytes per second that the compaction reads, and writes.
    #[arg(long, value_name = "RATE", default_value = "128MiB/s",
        value_parser = throughput, allow_hyphen_values = true)]
    rate: ByteRate,

    /// Reads per second of each of the foreground load's 8 threads.
    #[arg(long, value_name = "N", default_value_t = 250, value_parser = within(1..=1_000_000u32),
        allow_negative_numbers = true)]
    reads_per_thread: u32,

    /// Seconds of each profile. Input and output have room for as many seconds of --rate.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = within(1..=86_400u32),
        allow_negative_numbers = true)]
    runtime: u32,

    /// Output of `compactor lab interference --json` to compare with.
    #[arg(long, value_name = "RESULT.json")]
    outcome: Option<PathBuf>,

    /// Writes everything that was measured to a file, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Form of the output on stdout: tables, or the JSON.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let interrupted = interrupt::flag_of_experiment().context("install signal handlers")?;
    let outcome = args.outcome.as_deref().map(report::read).transpose()?;
    let options = FioOptions {
        profiles: match args.profiles.is_empty() {
            true => Profile::ALL.to_vec(),
            false => args.profiles,
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
    let version = fio::version()?;
    say(format_args!("{version} in {}", args.directory.display()));
    let to_json = args.json.as_deref().map(ResultFile::create).transpose()?;
    let mut progress = |line: &str| say(format_args!("{line}"));
    let found = fio::run(&options, &args.directory, &interrupted, &mut progress)?;
    let json = serde_json::to_string_pretty(&found)?;
    if let Some(file) = to_json {
        file.write(&json)?;
    }
    print(&match args.format {
        Format::Json => json,
        Format::Text => {
            let report = outcome.as_ref().map(|outcome| Report::new("", outcome));
            lab_report::fio::document(&found, report.as_ref()).to_text()
        }
    })?;
    Ok(code(&found))
}

fn code(found: &FioOutcome) -> ExitCode {
    if found.end == End::Interrupted {
        return ExitCode::from(INTERRUPTED);
    }
    match found.runs.iter().all(|run| run.failure.is_some()) {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

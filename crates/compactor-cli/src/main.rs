//! The `compactor` command: options in, reports out. The work is the library's.
//!
//! Results go to stdout, progress and messages to stderr. Exit codes: see [`exit_code`].

mod cmd;
mod duration;
mod error_report;
mod exit_code;
mod failure;
mod flags;
mod interrupt;
mod io_args;
mod numbers;
mod output;
mod output_args;
mod output_form;
mod progress;
mod purge_args;
mod result_file;
mod rewrite_args;
mod rewrite_summary;
mod stalled;
mod strategy_args;
mod table_args;
mod ttl_removed;
mod work_directory;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};
use compactor_io::{ExitingAllocator, set_stall_hook, share_arenas};
use compactor_lab::text_table;

/// Merge Apache Cassandra SSTables outside the JVM.
///
/// Reads the SSTables of a node or a snapshot, reconciles rows as Cassandra's compaction does, and writes SSTables
/// that Cassandra opens. Inputs are never modified. Exit codes: 0 done, 1 failed, 2 wrong usage or not supported, 3
/// damaged input, 4 refused for safety, 130 interrupted.
///
/// Sizes are bytes, or have a unit: 16KiB, 64MiB, 1.5GiB are binary, 64KB, 50MB, 1GB decimal (1MB is
/// 1,000,000 bytes). Rates are sizes per second: 64MiB/s, 50MB/s.
#[derive(Debug, Parser)]
#[command(name = "compactor", version = env!("COMPACTOR_VERSION"), max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: cmd::Command,
}

/// A failed allocation ends the process orderly, with exit code 1.
#[global_allocator]
static ALLOCATOR: ExitingAllocator = ExitingAllocator::new(
    "compactor: out of memory. Lower --memory or --threads, or raise the limit (`ulimit -v`, or the memory \
     of the container); what was being written, or is being replaced, may be in a hidden directory (.compactor-*), \
     which the next run removes. After a swap, run the same command again, or start the node\n",
    1,
);

fn main() -> ExitCode {
    share_arenas();
    set_stall_hook(stalled::say_stalled);
    let parsed = numbers::with_minus(Cli::command()).try_get_matches();
    let cli = match parsed.and_then(|mut found| Cli::from_arg_matches_mut(&mut found)) {
        Ok(cli) => cli,
        Err(error) => return error_report::of_usage(&error),
    };
    let (writes, as_json) = (cli.command.writes(), cli.command.prints_json());
    let handlers = interrupt::survive_file_size_limit().and_then(|()| interrupt::end_at_once());
    let result = handlers.map_err(anyhow::Error::from);
    match result.and_then(|()| cli.command.run()) {
        Ok(code) => code,
        Err(error) => error_report::report(&error, writes, as_json),
    }
}

//! Tests with real daemons: our commands read what nodes write, and nodes read what our commands write, for tables of
//! every kind.

use clap::Parser;
use interop::daemon::{Campaign, Kind, Pair, Part, skip};
use std::process::ExitCode;

/// Start real Cassandra daemons, one after the other, and run compactor on what they write.
///
/// Each daemon gets tables of every kind, written by flushes and by its own compaction. Our commands must work on all
/// of them, our merge must equal the node's compaction, and a client must see the same before and after each way of
/// bringing an output back into the node that README.md names. Exit code 1 if anything fails.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  Everything, in some 20 minutes:
    cargo build -p compactor-cli && cargo run -p interop --bin interop-daemons -- --all

  What streaming and repair between two nodes leave:
    cargo run -p interop --bin interop-daemons -- --release 5.0.9 --pair

  Two tables on Cassandra 5.0 with the BTI format:
    cargo run -p interop --bin interop-daemons -- --release 5.0.9-da --tables kv,'s*'")]
struct Arguments {
    /// Daemon to run, such as 5.0.9-da; an unknown name lists all. May be repeated
    #[arg(
        long = "release",
        value_name = "NAME",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    kinds: Vec<Kind>,
    /// Run every daemon
    #[arg(long)]
    all: bool,
    /// Tables to run; a trailing * matches any rest
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tables: Vec<String>,
    /// Run two daemons of each kind instead of one, to test what streaming and repair leave
    #[arg(long, conflicts_with_all = ["tables", "short"])]
    pair: bool,
    /// Compare the client's view only once, after all of the node's maintenance
    #[arg(long)]
    short: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(reason) = skip::missing() {
        eprintln!("no daemons: {reason}");
        return ExitCode::FAILURE;
    }
    let kinds = if arguments.all {
        Kind::ALL.to_vec()
    } else {
        arguments.kinds
    };
    let mut lines = Vec::new();
    let mut failures = 0;
    for kind in kinds {
        if arguments.pair {
            let found = Pair { kind }
                .run()
                .unwrap_or_else(|error| vec![format!("{error:#}")]);
            failures += found.len();
            lines.push(format!(
                "{kind} twice: {} failures {}",
                found.len(),
                found.join("\n")
            ));
            continue;
        }
        let campaign = Campaign {
            kind,
            tables: arguments.tables.clone(),
            part: if arguments.short {
                Part::Short
            } else {
                Part::Whole
            },
        };
        match campaign.run() {
            Ok(outcome) => {
                failures += outcome.failures.len();
                lines.push(format!("{kind}: {outcome}"));
            }
            Err(error) => {
                failures += 1;
                lines.push(format!("{kind}: {error:#}"));
            }
        }
    }
    println!("{}", lines.join("\n"));
    if failures > 0 {
        eprintln!("{failures} failures");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

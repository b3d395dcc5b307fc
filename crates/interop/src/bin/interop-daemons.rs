//! Real daemons: tables of every kind, what our commands make of what nodes write, and nodes of what our commands write.

use clap::Parser;
use interop::daemon::{Campaign, Kind, Pair, Part, skip};
use std::process::ExitCode;

/// Start real Cassandra daemons, one after the other, and run compactor on what they write.
///
/// Each daemon gets tables of every kind, written by flushes and by its own compaction. Our commands must work on all of
/// them, our merge must be the node's compaction, and a client must see the same before and after each way back into the
/// node that README.md names. Exit code 1 if anything fails.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  Everything, in some 20 minutes:
    cargo build -p compactor-cli && cargo run -p interop --bin interop-daemons -- --all

  What streaming and repair between two nodes leave:
    cargo run -p interop --bin interop-daemons -- --release 5.0.9 --pair

  Two tables on Cassandra 5.0 with the BTI format:
    cargo run -p interop --bin interop-daemons -- --release 5.0.9-da --tables kv,'s*'")]
struct Arguments {
    /// A daemon, such as 5.0.9-da; another name lists all. May be repeated
    #[arg(
        long = "release",
        value_name = "NAME",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    kinds: Vec<Kind>,
    /// Every daemon
    #[arg(long)]
    all: bool,
    /// Only these tables; a trailing * matches any rest
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tables: Vec<String>,
    /// Two daemons of each kind, for what streaming and repair leave, instead of one
    #[arg(long, conflicts_with_all = ["tables", "short"])]
    pair: bool,
    /// A client looks only once after all of the node's maintenance
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

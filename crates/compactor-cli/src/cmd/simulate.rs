//! `compactor simulate`: compactions of a table over time.

mod options;
mod strategies;
mod strategy_flags;
mod sweep;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args as _, CommandFactory, FromArgMatches};
use compactor::table::plan::UnreadableSstable;
use compactor::{Error, Table};
use compactor_io::raise_open_files_limit;
use compactor_lab::report::simulation::{Run, document};
use compactor_simulate::{Setup, SetupError, simulate};
use compactor_strategy::sstable::Sstable;
use serde::Serialize;

use super::lab::common::ReportFormat;
use crate::exit_code;
use crate::numbers::with_minus;
use crate::output::{print, say};
use crate::result_file::ResultFile;
use crate::text_table::counted;
use options::TableFlags;
use strategies::{Choice, Choices};
use strategy_flags::StrategyFlags;
use sweep::Sweep;

/// Simulate the compactions of a table over time: writes, SSTables per read, and room.
///
/// Flushes arrive as --ingest and --flush-size specify, the strategy selects as a node of Cassandra does, and
/// compactions share --compaction-throughput. SSTables have no rows: a merge computes the expected number of rows that
/// remain after updates, deletions, expiry and purging. A month takes seconds, a year a minute or more, and nothing
/// is written.
///
/// The node is assumed to own the whole ring with one data directory, and partitions are spread over all tokens.
/// Results are for one node: --ingest is the rate at which it stores data, replicas included.
///
/// `compactor guide strategies` explains the figures, and how to choose a strategy with them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  The experiment of CASSANDRA-7871:
    compactor simulate leveled --ingest 1MiB/s --ttl 2d --gc-grace-seconds 60 \\
        --sstable-size 160MiB --fanout-size 10 --duration 88h --format json

  Three strategies for the same workload, as a page with charts:
    compactor simulate --compare size-tiered,leveled,unified --ingest 2MiB/s --updates 0.3 \\
        --html compare.html

  The fan-out that writes least:
    compactor simulate leveled --sweep fanout-size=2..16 --duration 60d

  What unified compaction would make of a table of a node:
    compactor simulate unified --scaling-parameters L10 --from /data/ks/t-1c6a... --ingest 1MiB/s")]
pub struct Args {
    /// Strategy: size-tiered, leveled, time-window, unified, level-count, or a class of Cassandra; with options after
    /// colons, such as leveled:fanout_size=4.
    #[arg(value_name = "STRATEGY", value_parser = strategies::choice, required_unless_present = "compare")]
    strategy: Option<Choice>,

    /// More strategies for the same workload, with commas between them. Options for strategies apply to those that
    /// have them.
    #[arg(long, value_name = "STRATEGY,...", value_parser = strategies::choices)]
    compare: Vec<Choices>,

    /// Several values of an option: --sweep fanout-size=2..16, --sweep flush-size=64MiB,256MiB. Any option of the
    /// strategy, of the table, its writes or its node.
    #[arg(
        long,
        value_name = "NAME=FROM..TO[/STEP]|A,B,C",
        conflicts_with = "compare"
    )]
    sweep: Option<Sweep>,

    #[command(flatten)]
    table: TableFlags,

    /// A table whose SSTables are there at the start, with their sizes, levels, ranges and times: its directory, a
    /// snapshot, or Data.db files. Their rows are estimated. It is only read.
    #[arg(long, value_name = "TABLE_DIR|SNAPSHOT_DIR|Data.db")]
    from: Vec<PathBuf>,

    /// Writes a report with charts to a file, for any browser.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Form of the output on stdout.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ReportFormat,

    // Last: its heading of the help would go on to the options after it.
    #[command(flatten)]
    flags: StrategyFlags,
}

/// Several simulations.
#[derive(Serialize)]
struct Runs<'a> {
    runs: &'a [Run],
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let page = args.html.as_deref().map(ResultFile::create).transpose()?;
    let (initial, left_out) = initial(&args)?;
    let plans = match &args.sweep {
        None => compared(&args)?,
        Some(sweep) => swept(sweep)?,
    };
    let is_one = plans.len() == 1;
    let refused = |name: &str, error: SetupError| {
        if is_one {
            Error::invalid(error.to_string())
        } else {
            Error::invalid(format!("{name}: {error}"))
        }
    };
    // All of them before the first, which may take a minute.
    for plan in &plans {
        (plan.setup.validate()).map_err(|error| refused(&plan.name, error))?;
    }
    let mut runs = Vec::new();
    for plan in plans {
        let setup = Setup {
            initial: initial.clone(),
            ..plan.setup
        };
        let mut outcome = simulate(&setup).map_err(|error| refused(&plan.name, error))?;
        if !left_out.is_empty() {
            let caveat = format!(
                "left out of --from, since unreadable: {}",
                counted(left_out.len() as u64, "SSTable")
            );
            outcome.caveats.push(caveat);
        }
        runs.push(Run {
            name: plan.name,
            value: plan.value,
            outcome,
        });
    }
    let varied = args.sweep.as_ref().map(|sweep| sweep.name.as_str());
    let document = document(&runs, varied, args.table.facts(varied));
    if let Some(file) = page {
        file.write("report with charts", &document.to_html())?;
    }
    let json = || match &runs[..] {
        [only] => serde_json::to_string_pretty(only),
        runs => serde_json::to_string_pretty(&Runs { runs }),
    };
    print(&args.format.text(&document, json)?)?;
    Ok(exit_code::of_left_out(&left_out))
}

/// A simulation to run.
struct Plan {
    name: String,
    value: Option<f64>,
    setup: Setup,
}

/// Each strategy with the options that it has.
fn compared(args: &Args) -> Result<Vec<Plan>, Error> {
    let compared = args.compare.iter().flat_map(|choices| &choices.0);
    let mut choices: Vec<Choice> = args.strategy.iter().chain(compared).cloned().collect();
    args.flags.apply(&mut choices)?;
    let plans = choices.iter().map(|choice| {
        let strategy = strategies::params(choice, args.flags.release())?;
        Ok(Plan {
            name: strategies::name(choice),
            value: None,
            setup: args.table.setup(strategy)?,
        })
    });
    plans.collect()
}

/// The options of this command, for parsing them once more.
#[derive(clap::Parser)]
#[command(no_binary_name = true)]
struct Again {
    #[command(flatten)]
    args: Args,
}

/// A strategy with each value of an option: the command as it was given, with that option in addition.
fn swept(sweep: &Sweep) -> Result<Vec<Plan>, Error> {
    let Sweep { name, values } = sweep;
    let options = StrategyFlags::augment_args(TableFlags::augment_args(clap::Command::new("")));
    let mut options = options.get_arguments();
    let is_option = options.any(|option| option.get_long() == Some(name));
    let plan = |value: &String| -> Result<Plan, Error> {
        let invalid = |reason: &str| Error::invalid(format!("{name} {value}: {reason}"));
        let option = if is_option {
            format!("--{name}={value}")
        } else {
            format!("--strategy-option={}={value}", name.replace('-', "_"))
        };
        let again = [option.into()]
            .into_iter()
            .chain(std::env::args_os().skip(2));
        let matches = with_minus(Again::command()).try_get_matches_from(again);
        let again = matches.and_then(|matches| Again::from_arg_matches(&matches));
        let again = again.map_err(|error| {
            let text = error.to_string();
            // Without the usage, which comes after an empty line.
            let lines = text
                .lines()
                .map(str::trim)
                .take_while(|line| !line.is_empty());
            let reason = lines.collect::<Vec<_>>().join(" ");
            match error.kind() {
                clap::error::ErrorKind::ArgumentConflict => {
                    Error::invalid(format!("--{name} and --sweep {name}: name one of them"))
                }
                _ => invalid(reason.trim_start_matches("error: ")),
            }
        })?;
        let plans = compared(&again.args).map_err(|error| invalid(&error.to_string()))?;
        let [plan] = <[Plan; 1]>::try_from(plans)
            .map_err(|_| Error::invalid("--sweep needs one strategy"))?;
        Ok(Plan {
            name: format!("{name} {value}"),
            value: value.parse().ok(),
            ..plan
        })
    };
    values.iter().map(plan).collect()
}

/// SSTables of --from, and those that cannot be read.
fn initial(args: &Args) -> anyhow::Result<(Vec<Sstable>, Vec<UnreadableSstable>)> {
    if args.from.is_empty() {
        return Ok(Default::default());
    }
    let _ = raise_open_files_limit();
    let table = Table::open_all(&args.from, None)?;
    let (sstables, unreadable) = table.plan().sstables()?;
    for sstable in &unreadable {
        say(format_args!("warning: left out: {}", sstable.error));
    }
    Ok((sstables, unreadable))
}

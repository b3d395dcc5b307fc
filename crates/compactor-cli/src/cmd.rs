//! One file per command.

mod bench;
mod bench_arm;
mod compact;
mod demo;
mod doctor;
mod dump;
mod generate;
mod guide;
mod lab;
mod merge;
mod metadata;
mod plan;
mod scrub;
mod simulate;
mod split;
mod swap;
mod upgrade;
mod verify;

use std::process::ExitCode;

use clap::Subcommand;

use crate::error_report::Writes;
use crate::flags::Format;
use lab::common::ReportFormat;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    Merge(merge::Args),
    Compact(Box<compact::Args>),
    Plan(plan::Args),
    Simulate(Box<simulate::Args>),
    Upgrade(upgrade::Args),
    Split(split::Args),
    Swap(swap::Args),
    Dump(dump::Args),
    Metadata(metadata::Args),
    Verify(verify::Args),
    Scrub(scrub::Args),
    Generate(generate::Args),
    Demo(demo::Args),
    Bench(bench::Args),
    #[command(hide = true)]
    BenchArm(bench_arm::Args),
    Lab(lab::Args),
    Doctor(doctor::Args),
    Guide(guide::Args),
}

impl Command {
    /// Returns the kind of output of the command.
    pub fn writes(&self) -> Writes {
        match self {
            Command::Merge(_)
            | Command::Compact(_)
            | Command::Upgrade(_)
            | Command::Split(_)
            | Command::Scrub(_) => Writes::Rewritten,
            Command::Generate(_)
            | Command::Demo(_)
            | Command::Bench(_)
            | Command::BenchArm(_)
            | Command::Lab(_) => Writes::Generated,
            Command::Dump(_)
            | Command::Metadata(_)
            | Command::Plan(_)
            | Command::Simulate(_)
            | Command::Verify(_)
            | Command::Doctor(_)
            | Command::Guide(_)
            | Command::Swap(_) => Writes::Nothing,
        }
    }

    /// Whether stdout gets one JSON document.
    pub fn prints_json(&self) -> bool {
        let format = match self {
            Command::Merge(args) => args.format,
            Command::Compact(args) => args.format,
            Command::Upgrade(args) => args.rewrite.format,
            Command::Split(args) => args.rewrite.format,
            Command::Swap(args) => args.format,
            Command::Metadata(args) => args.format,
            Command::Plan(args) => args.format,
            Command::Verify(args) => args.format,
            Command::Scrub(args) => args.format,
            Command::Generate(args) => args.format,
            Command::Demo(args) => args.format,
            Command::Doctor(args) => args.format,
            Command::Lab(args) => return args.prints_json(),
            Command::Simulate(args) => return args.format == ReportFormat::Json,
            Command::Bench(args) => return args.results.format == ReportFormat::Json,
            // A line for each partition or none, and another process of this program that reads it.
            Command::Dump(_) | Command::Guide(_) | Command::BenchArm(_) => return false,
        };
        format == Format::Json
    }

    /// Runs the command.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Command::Merge(args) => merge::run(args),
            Command::Compact(args) => compact::run(*args),
            Command::Plan(args) => plan::run(args),
            Command::Simulate(args) => simulate::run(*args),
            Command::Upgrade(args) => upgrade::run(args),
            Command::Split(args) => split::run(args),
            Command::Swap(args) => swap::run(args),
            Command::Dump(args) => dump::run(args),
            Command::Metadata(args) => metadata::run(args),
            Command::Verify(args) => verify::run(args),
            Command::Scrub(args) => scrub::run(args),
            Command::Generate(args) => generate::run(args),
            Command::Demo(args) => demo::run(args),
            Command::Bench(args) => bench::run(args),
            Command::BenchArm(args) => bench_arm::run(&args),
            Command::Lab(args) => lab::run(args),
            Command::Doctor(args) => doctor::run(args),
            Command::Guide(args) => guide::run(&args),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory, Parser};

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(subcommand)]
        _command: super::Command,
    }

    /// Tables are laid out by hand: clap breaks lines that are wider than the terminal, which may have 80 columns.
    #[test]
    fn tables_of_the_help_are_narrow() {
        let mut cli = Cli::command();
        cli.build();
        let mut commands: Vec<&Command> = cli.get_subcommands().collect();
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands());
            let after = command.get_after_help().map(ToString::to_string);
            let after = after.unwrap_or_default();
            let (table, _) = after.split_once("Examples:").unwrap_or((&after, ""));
            for line in table.lines() {
                assert!(line.len() <= 80, "{}: {line}", command.get_name());
            }
        }
    }
}

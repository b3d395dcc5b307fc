//! `compactor lab`: experiments on the effect of a compaction on reads, and on how data is stored.

mod chunk_length;
pub(in crate::cmd) mod common;
mod fio;
mod interference;
mod progress;
mod report;

use std::process::ExitCode;

use clap::Subcommand;

/// Measure the effect of a compaction on concurrent reads, and the cost of reads by chunk length.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    experiment: Experiment,
}

/// The experiments.
#[derive(Debug, Subcommand)]
enum Experiment {
    Interference(Box<interference::Args>),
    ChunkLength(Box<chunk_length::Args>),
    Report(report::Args),
    Fio(fio::Args),
}

impl Args {
    /// Whether stdout gets one JSON document.
    pub fn prints_json(&self) -> bool {
        match &self.experiment {
            Experiment::Interference(args) => args.common.results.prints_json(),
            Experiment::ChunkLength(args) => args.common.results.prints_json(),
            Experiment::Report(args) => args.prints_json(),
            Experiment::Fio(args) => args.results.prints_json(),
        }
    }
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.experiment {
        Experiment::Interference(args) => interference::run(*args),
        Experiment::ChunkLength(args) => chunk_length::run(*args),
        Experiment::Report(args) => report::run(args),
        Experiment::Fio(args) => fio::run(args),
    }
}

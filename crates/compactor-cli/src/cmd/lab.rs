//! `compactor lab`: experiments on the effect of a compaction on reads, on how data is stored, and on what is written.

mod chunk_length;
pub(in crate::cmd) mod common;
mod fan_out;
mod fio;
mod interference;
mod progress;
mod report;

use std::process::ExitCode;

use clap::Subcommand;

use common::ReportFormat;

/// Measure the effect of a compaction on concurrent reads, the cost of reads by chunk length, and writes by fan-out.
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
    FanOut(fan_out::Args),
    Report(report::Args),
    Fio(fio::Args),
}

impl Args {
    /// Whether stdout gets one JSON document.
    pub fn prints_json(&self) -> bool {
        let format = match &self.experiment {
            Experiment::Interference(args) => args.common.results.format,
            Experiment::ChunkLength(args) => args.common.results.format,
            Experiment::FanOut(args) => args.results.format,
            Experiment::Report(args) => args.format,
            Experiment::Fio(args) => args.results.format,
        };
        format == ReportFormat::Json
    }
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.experiment {
        Experiment::Interference(args) => interference::run(*args),
        Experiment::ChunkLength(args) => chunk_length::run(*args),
        Experiment::FanOut(args) => fan_out::run(args),
        Experiment::Report(args) => report::run(args),
        Experiment::Fio(args) => fio::run(args),
    }
}

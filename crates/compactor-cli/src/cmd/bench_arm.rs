//! `compactor bench-arm`: the child in which `compactor bench` runs one of its arms once.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Context;
use compactor_io::raise_open_files_limit;
use compactor_lab::bench::serve;

use crate::exit_code::INTERRUPTED;
use crate::interrupt;
use crate::progress::{Progress, ProgressMode};

/// Run one arm of `compactor bench` once: a request on stdin, a reply on stdout.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
pub fn run(_args: &Args) -> anyhow::Result<ExitCode> {
    let _ = raise_open_files_limit();
    let interrupted = interrupt::flag_of_long_end().context("install signal handlers")?;
    let mut observer = Progress::new(ProgressMode::None, 0, Arc::clone(&interrupted));
    serve(
        &mut std::io::stdin().lock(),
        &mut std::io::stdout().lock(),
        &mut observer,
    )?;
    Ok(if interrupted.load(Ordering::Relaxed) {
        ExitCode::from(INTERRUPTED)
    } else {
        ExitCode::SUCCESS
    })
}

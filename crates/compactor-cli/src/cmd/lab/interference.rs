//! `compactor lab interference`: the effect of a compaction on p99 of reads.

use std::path::Path;
use std::process::ExitCode;

use compactor::Error;
use compactor::io::{ReadMode, WriteMode, probe};
use compactor_lab::arm::Arm;
use compactor_lab::report;

use super::arguments::Args;
use super::common::begin;
use super::report::read_fio;
use crate::flags::refuse_uring_with_dontcache;
use crate::output::say;

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let common = &args.common;
    let (interrupted, directory) = begin(common.directory.as_deref())?;
    let mut options = args.options(&directory)?;
    if !args.names_arms() {
        options.arms = leave_out_what_fails(options.arms, &directory)?;
    }
    let dontcache = options.arms.iter().any(is_dontcache);
    refuse_uring_with_dontcache(options.backend, &[("--arms", dontcache)])?;
    let fio = args.ceilings.as_deref().map(read_fio).transpose()?;
    let files = common.results.create()?;
    let watcher = common.results.progress(interrupted);
    let outcome = compactor_lab::interference(&options, &watcher)?;
    let report = report::interference::report("interference", &outcome, fio.as_ref());
    let is_sound = report.every_arm_counts();
    files.write(&outcome, report, is_sound)
}

pub(super) fn is_dontcache(arm: &Arm) -> bool {
    uses(arm, ReadMode::DontCache, WriteMode::DontCache)
}

/// Whether an arm reads or writes in a mode.
fn uses(arm: &Arm, reads: ReadMode, writes: WriteMode) -> bool {
    matches!(arm, Arm::Compaction { read, write } if *read == reads || *write == writes)
}

/// The default arms that can work in a directory.
fn leave_out_what_fails(arms: Vec<Arm>, directory: &Path) -> Result<Vec<Arm>, Error> {
    let found = probe(directory)?;
    let (direct, dontcache) = (found.direct.works(), found.dontcache.works());
    let (work, fail): (Vec<Arm>, Vec<Arm>) = arms.into_iter().partition(|arm| {
        (direct || !uses(arm, ReadMode::Direct, WriteMode::Direct))
            && (dontcache || !is_dontcache(arm))
    });
    for arm in fail {
        say(format_args!(
            "note: arm {arm} is left out, since its mode does not work in {}; `compactor doctor` says \
             why",
            directory.display()
        ));
    }
    Ok(work)
}

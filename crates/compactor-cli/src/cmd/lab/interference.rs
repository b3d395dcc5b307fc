//! `compactor lab interference`: what a compaction does to p99 reads.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use compactor::Error;
use compactor::io::{ReadMode, WriteMode, probe, raise_open_files_limit};
use compactor_lab::arm::Arm;
use compactor_lab::outcome::{End, Outcome};
use compactor_lab::report::Report;

use super::arguments::Args;
use super::progress::LabProgress;
use super::report::read_fio;
use crate::exit_code::INTERRUPTED;
use crate::flags::{Format, refuse_uring_with_dontcache};
use crate::interrupt;
use crate::output::{print, say};
use crate::place;
use crate::result_file::ResultFile;

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let _ = raise_open_files_limit();
    let interrupted = interrupt::flag_of_experiment().context("install signal handlers")?;
    let place = place::choose(args.common.directory.as_deref())?;
    for note in &place.notes {
        say(format_args!("note: {note}"));
    }
    let mut options = args.options(&place.directory)?;
    if !args.names_arms() {
        options.arms = leave_out_what_fails(options.arms, &place.directory)?;
    }
    let dontcache = options.arms.iter().any(is_dontcache);
    refuse_uring_with_dontcache(options.backend, &[("--arms", dontcache)])?;
    let fio = args.ceilings.as_deref().map(read_fio).transpose()?;
    let to_json = args
        .common
        .json
        .as_deref()
        .map(ResultFile::create)
        .transpose()?;
    let to_html = args
        .common
        .html
        .as_deref()
        .map(ResultFile::create)
        .transpose()?;
    let watcher = LabProgress::new(args.common.progress, interrupted);
    let outcome = compactor_lab::interference(&options, &watcher)?;
    let json = serde_json::to_string(&outcome)?;
    if let (Some(file), Some(path)) = (to_json, &args.common.json) {
        file.write(&json)?;
        say(format_args!(
            "everything that was measured: {}",
            path.display()
        ));
    }
    let report = Report::new("interference", &outcome);
    let report = [match &fio {
        Some(fio) => report.with_fio(fio),
        None => report,
    }];
    let document = Report::document(&report);
    if let (Some(file), Some(path)) = (to_html, &args.common.html) {
        file.write(&document.to_html())?;
        say(format_args!("with pictures: {}", path.display()));
    }
    let code = print(&match args.common.format {
        Format::Json => json,
        Format::Text => document.to_text(),
    })?;
    Ok(match outcome.end {
        End::Interrupted => ExitCode::from(INTERRUPTED),
        End::Complete if every_arm_counts(&outcome) => code,
        End::Complete => ExitCode::FAILURE,
    })
}

fn every_arm_counts(outcome: &Outcome) -> bool {
    let arms = &outcome.options.arms;
    let counts = |point, arm: &Arm| Outcome::counted(point, *arm).next().is_some();
    (outcome.points.iter()).all(|point| arms.iter().all(|arm| counts(point, arm)))
}

pub(super) fn is_dontcache(arm: &Arm) -> bool {
    matches!(
        arm,
        Arm::Compaction {
            read: ReadMode::DontCache,
            ..
        } | Arm::Compaction {
            write: WriteMode::DontCache,
            ..
        }
    )
}

fn is_direct(arm: &Arm) -> bool {
    matches!(
        arm,
        Arm::Compaction {
            read: ReadMode::Direct,
            ..
        } | Arm::Compaction {
            write: WriteMode::Direct,
            ..
        }
    )
}

/// The default arms that can work in a directory.
fn leave_out_what_fails(arms: Vec<Arm>, directory: &Path) -> Result<Vec<Arm>, Error> {
    let found = probe(directory)?;
    let (direct, dontcache) = (found.direct.works(), found.dontcache.works());
    let (work, fail): (Vec<Arm>, Vec<Arm>) = arms
        .into_iter()
        .partition(|arm| (direct || !is_direct(arm)) && (dontcache || !is_dontcache(arm)));
    for arm in fail {
        say(format_args!(
            "note: arm {arm} is left out, since its mode does not work in {}; `compactor doctor` says \
             why",
            directory.display()
        ));
    }
    Ok(work)
}

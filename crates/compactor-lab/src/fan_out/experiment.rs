//! Fan-out experiment: the flushes, and all strategies one after the other.

use std::path::Path;
use std::time::Instant;

use compactor::Result;

use super::arm::FanOutArm;
use super::flushes::Flushes;
use super::options::FanOutOptions;
use super::outcome::{ArmRun, FORMAT_VERSION, FanOutOutcome};
use super::predicted::predict;
use super::run::Run;
use crate::clocks::unix_ms;
use crate::outcome::{Attempt, End, Experiment, Warning};
use crate::report::fan_out::sentence;
use crate::scratch::OutputDirectory;
use crate::session::{Session, end_of};
use crate::table::require_room;
use crate::watcher::{Watcher, note};

/// Measures what each strategy writes.
///
/// Everything it makes on the disk is below `options.directory` and removed at the end. If the watcher stops it,
/// the strategies that were complete are returned, with [`End::Interrupted`].
///
/// # Errors
/// Options that make no sense, no room, a failed read or write, or cancellation before the first strategy's end.
pub fn compare(options: &FanOutOptions, watcher: &dyn Watcher) -> Result<FanOutOutcome> {
    options.check()?;
    let session = Session::begin(&options.directory, "lab", None)?;
    let directory = session.scratch.path();
    require_room(directory, options.needed_bytes())?;
    let made = OutputDirectory::create(directory.join("flushed"))?;
    let flushes = Flushes::write(options, &made.path, watcher)?;
    let mut outcome = FanOutOutcome {
        experiment: Experiment::FanOut,
        format_version: FORMAT_VERSION,
        started_at_ms: session.started_at_ms,
        elapsed_s: 0.0,
        end: End::Complete,
        options: options.clone(),
        environment: session.environment.clone(),
        flushes: flushes.record.clone(),
        runs: Vec::new(),
        warnings: options.caveats(),
    };
    let mut run_all = || -> Result<()> {
        for (order, &arm) in (0..).zip(&options.arms) {
            let mut run = run_arm(arm, options, &flushes, directory, watcher)?;
            run.attempt.order = order;
            note(watcher, &sentence(&run));
            outcome.runs.push(run);
        }
        Ok(())
    };
    let runs = run_all();
    outcome.end = end_of(runs, !outcome.runs.is_empty())?;
    drop(made);
    outcome.elapsed_s = session.finish()?;
    Ok(outcome)
}

fn run_arm(
    arm: FanOutArm,
    options: &FanOutOptions,
    flushes: &Flushes,
    directory: &Path,
    watcher: &dyn Watcher,
) -> Result<ArmRun> {
    let (started, started_at_ms) = (Instant::now(), unix_ms());
    let (name, strategy) = (arm.name(options), arm.strategy(options)?);
    let output = OutputDirectory::create(directory.join("compacted"))?;
    let run = Run {
        name: &name,
        strategy: &strategy,
        options,
        flushes,
    };
    let ran = run.run(&output.path, watcher)?;
    output.remove()?;
    let predicted = predict(strategy, options, &flushes.record)?;
    let mut attempt = Attempt {
        started_at_ms,
        elapsed_s: started.elapsed().as_secs_f64(),
        ..Attempt::default()
    };
    if ran.damaged_sstables > 0 {
        let text = format!(
            "{} SSTables of the final table are damaged",
            ran.damaged_sstables
        );
        attempt.invalid.push(Warning::new("damaged", text));
    }
    Ok(ArmRun {
        arm,
        name,
        attempt,
        measured: ran.figures,
        simulated: predicted.simulated,
        simulated_range_bytes: predicted.range_bytes,
        formula: predicted.formula,
        all_components_bytes: ran.report.bytes_written,
        purged: ran.report.purged,
        verified_sstables: ran.verified_sstables,
        damaged_sstables: ran.damaged_sstables,
    })
}

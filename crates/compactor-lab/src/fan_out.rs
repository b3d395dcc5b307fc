//! Fan-out experiment: bytes that leveled compaction really writes, by its fan-out and the size of its SSTables.
//!
//! CASSANDRA-7871 measured it on a cluster for 88 hours. Here the same workload, rows that are inserted once and
//! expire after two days, is scaled down in bytes and not in time: SSTables are flushed at times of a virtual
//! clock, and after each flush the engine merges all that the strategy selects, as if it took no time. So the
//! figures depend on the options and the seed alone, and the simulator is given the same: size, interval and
//! lifetime of what is flushed, and nothing that was measured later. It is run with several seeds, of which the middle
//! counts.

mod flushes;
mod options;
pub(crate) mod outcome;
mod predicted;
mod reads;
mod run;

use std::path::Path;
use std::time::Instant;

use compactor::Result;

use crate::caveats::Warnings;
use crate::clocks::unix_ms;
use crate::outcome::{Attempt, Experiment};
use crate::report::fan_out::sentence;
use crate::scratch::OutputDirectory;
use crate::session::Session;
use crate::table::require_room;
use crate::watcher::Watcher;
use flushes::Flushes;
use predicted::predict;
use run::{Run, verified};

pub use options::{FanOutArm, FanOutOptions, Published, directory_in_memory};
pub use outcome::{ArmRun, FanOutOutcome, Figures, FlushRecord, Formula, LevelFigures};

/// Measures what each strategy writes.
///
/// Everything it makes on the disk is below `options.directory` and removed at the end. If the watcher stops it,
/// the strategies that were complete are returned, with [`End::Interrupted`](crate::outcome::End::Interrupted).
///
/// # Errors
/// Invalid options, no disk space, a failed read or write, or cancellation before the first strategy's end.
pub fn compare(options: &FanOutOptions, watcher: &dyn Watcher) -> Result<FanOutOutcome> {
    options.check()?;
    let session = Session::begin(&options.directory, "lab", None, watcher)?;
    let directory = session.directory();
    require_room(directory, options.needed_bytes())?;
    let made = OutputDirectory::create(directory.join("flushed"))?;
    let flushes = Flushes::write(options, &made.path, watcher)?;
    let mut runs: Vec<ArmRun> = Vec::new();
    let result = (0..).zip(&options.arms).try_for_each(|(order, &arm)| {
        let mut run = run_arm(arm, options, &flushes, directory, watcher)?;
        run.attempt.order = order;
        session.note(&sentence(&run));
        runs.push(run);
        Ok(())
    });
    drop(made);
    let (header, environment) = session.finish(result, !runs.is_empty())?;
    Ok(FanOutOutcome {
        experiment: Experiment::FanOut,
        header,
        options: options.clone(),
        environment,
        flushes: flushes.record,
        runs,
        warnings: options.caveats(),
    })
}

fn run_arm(
    arm: FanOutArm,
    options: &FanOutOptions,
    flushes: &Flushes,
    directory: &Path,
    watcher: &dyn Watcher,
) -> Result<ArmRun> {
    let (started, started_at_ms) = (Instant::now(), unix_ms());
    let output = OutputDirectory::create(directory.join("compacted"))?;
    let run = Run {
        name: arm.name(options),
        strategy: arm.strategy(options)?,
        options,
        flushes,
    };
    let (measured, report) = run.run(&output.path, watcher)?;
    let (verified_sstables, damaged_sstables) = verified(&report)?;
    output.remove()?;
    let (simulated, simulated_range_bytes, formula) =
        predict(run.strategy, options, &flushes.record)?;
    let mut found = Warnings::default();
    found.when(damaged_sstables > 0, "damaged", || {
        format!("{damaged_sstables} SSTables of the final table are damaged")
    });
    Ok(ArmRun {
        arm,
        name: run.name,
        attempt: Attempt {
            started_at_ms,
            elapsed_s: started.elapsed().as_secs_f64(),
            invalid: found.0,
            ..Attempt::default()
        },
        measured,
        simulated,
        simulated_range_bytes,
        formula,
        all_components_bytes: report.bytes_written,
        purged: report.purged,
        verified_sstables,
        damaged_sstables,
    })
}

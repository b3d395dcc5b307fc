//! Many plans, on one or more servers at once.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use super::plan::Plan;
use super::run::Runner;
use crate::cassandra::Mode;
use crate::scratch::scratch;

/// How plans are run.
#[derive(Debug, Clone)]
pub struct Campaign {
    /// Servers at once.
    pub jobs: usize,
    /// Where the plans and files of failures go.
    pub keep: Option<PathBuf>,
    /// Failing plans are made smaller first.
    pub minimise: bool,
}

/// Result of all plans.
#[derive(Debug)]
pub struct Report {
    /// Plans that were run.
    pub done: usize,
    /// Those of which the merge left something.
    pub outputs: usize,
    /// Those of which it left several, when there was a greatest size.
    pub divided: usize,
    /// Inputs of all of them.
    pub inputs: usize,
    /// Seeds that differ.
    pub failed: Vec<u64>,
    /// Time for all of them.
    pub elapsed: Duration,
}

#[derive(Debug)]
struct Work {
    waiting: Vec<Plan>,
    /// Modes that the jobs are at.
    running: Vec<Mode>,
    total: usize,
    started: Instant,
    report: Report,
}

impl Campaign {
    /// Runs the plans; progress and differences go to stderr.
    ///
    /// # Errors
    /// A server that does not start, or a directory that cannot be written.
    pub fn run(&self, plans: Vec<Plan>) -> Result<Report> {
        let started = Instant::now();
        let work = Mutex::new(Work {
            total: plans.len(),
            waiting: plans,
            running: Vec::new(),
            started,
            report: Report {
                done: 0,
                outputs: 0,
                divided: 0,
                inputs: 0,
                failed: Vec::new(),
                elapsed: Duration::ZERO,
            },
        });
        std::thread::scope(|scope| {
            let jobs: Vec<_> = (0..self.jobs)
                .map(|_| scope.spawn(|| self.job(&work)))
                .collect();
            jobs.into_iter().try_for_each(|job| match job.join() {
                Ok(result) => result,
                Err(_) => bail!("a job panicked"),
            })
        })?;
        let work = work
            .into_inner()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        ensure!(work.waiting.is_empty(), "plans were left out");
        let mut report = work.report;
        report.elapsed = started.elapsed();
        report.failed.sort_unstable();
        Ok(report)
    }

    /// A server can only write one version.
    fn job(&self, work: &Mutex<Work>) -> Result<()> {
        let place = tempfile::Builder::new()
            .prefix("interop-random-")
            .tempdir_in(scratch())?;
        let mut runner: Option<Runner> = None;
        let mut last = None;
        while let Some(plan) = next(work, last)? {
            let mode = plan.mode()?;
            last = Some(mode);
            drop(runner.take_if(|server| server.mode() != mode || server.is_worn()));
            let server = match &mut runner {
                Some(server) => server,
                none => none.insert(Runner::start(mode)?),
            };
            let attempt = Attempt::of(server, &plan, &place.path().join("case"));
            if !attempt.differences.is_empty()
                && let Some(mut server) = runner.take()
            {
                let explained =
                    self.explain(&mut server, &plan, &attempt.differences, place.path());
                // What failed may have damaged it.
                server.end();
                explained?;
            }
            record(work, &plan, &attempt);
        }
        Ok(())
    }

    fn explain(
        &self,
        server: &mut Runner,
        plan: &Plan,
        differences: &[String],
        place: &Path,
    ) -> Result<()> {
        show(plan, differences);
        let mut smallest = plan.clone();
        if self.minimise {
            let scratch = place.join("smaller");
            smallest = super::minimise(smallest, |plan| {
                !Attempt::of(server, plan, &scratch).differences.is_empty()
            });
            let attempt = Attempt::of(server, &smallest, &scratch);
            eprintln!("minimised to {} mutations:", smallest.mutations());
            show(&smallest, &attempt.differences);
            eprintln!("{}", serde_json::to_string(&smallest)?);
        }
        if let Some(keep) = &self.keep {
            let keep = keep.join(plan.seed.to_string());
            fs::create_dir_all(&keep)?;
            let text = serde_json::to_string_pretty(&smallest)?;
            fs::write(keep.join("plan.json"), text)?;
            Attempt::of(server, &smallest, &keep.join("files"));
        }
        Ok(())
    }
}

/// A plan that was run; a failure to run it counts as a difference.
struct Attempt {
    output: bool,
    divided: bool,
    inputs: usize,
    differences: Vec<String>,
}

impl Attempt {
    fn of(server: &mut Runner, plan: &Plan, place: &Path) -> Attempt {
        let _ = fs::remove_dir_all(place);
        match server.run(plan, place) {
            Ok(outcome) => Attempt {
                output: outcome.output,
                divided: outcome.divided,
                inputs: outcome.inputs,
                differences: outcome.differences,
            },
            Err(error) => Attempt {
                output: false,
                divided: false,
                inputs: 0,
                differences: vec![format!("{error:#}")],
            },
        }
    }
}

/// A server that starts takes as long as some plans: the next one is of the mode of the job's last one, then of a mode that
/// no other job is at, and a few of another job's are left to it.
fn next(work: &Mutex<Work>, mode: Option<Mode>) -> Result<Option<Plan>> {
    const FEW: usize = 12;
    let mut work = lock(work);
    let modes: Vec<Mode> = work.waiting.iter().map(Plan::mode).collect::<Result<_>>()?;
    if let Some(at) = modes.iter().position(|&of| Some(of) == mode) {
        return Ok(Some(work.waiting.remove(at)));
    }
    if let Some(at) = work.running.iter().position(|&of| Some(of) == mode) {
        work.running.remove(at);
    }
    let is_free = |of: &Mode| !work.running.contains(of);
    let is_much = |of: &Mode| modes.iter().filter(|&other| other == of).count() > FEW;
    let free = modes.iter().position(is_free);
    let Some(at) = free.or_else(|| modes.iter().position(is_much)) else {
        return Ok(None);
    };
    work.running.push(modes[at]);
    Ok(Some(work.waiting.remove(at)))
}

fn record(work: &Mutex<Work>, plan: &Plan, attempt: &Attempt) {
    let mut work = lock(work);
    let (total, seconds) = (work.total, work.started.elapsed().as_secs_f64());
    let report = &mut work.report;
    report.done += 1;
    report.outputs += usize::from(attempt.output);
    report.divided += usize::from(attempt.divided);
    report.inputs += attempt.inputs;
    if !attempt.differences.is_empty() {
        report.failed.push(plan.seed);
    }
    if report.done.is_multiple_of(100) {
        let (done, failed) = (report.done, report.failed.len());
        let rate = done as f64 / seconds;
        eprintln!("{done} of {total} seeds, {failed} failed, {rate:.1} a second");
    }
}

fn lock(work: &Mutex<Work>) -> MutexGuard<'_, Work> {
    work.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn show(plan: &Plan, differences: &[String]) {
    eprintln!(
        "seed {} ({} from {} inputs) differs; to repeat: cargo run -p interop --bin interop-random -- --seeds {}..{}",
        plan.seed,
        plan.output,
        plan.inputs.len(),
        plan.seed,
        plan.seed + 1
    );
    for difference in differences.iter().take(12) {
        eprintln!("  {difference}");
    }
}

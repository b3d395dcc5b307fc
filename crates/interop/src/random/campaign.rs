//! A campaign of many plans, on one or more servers at once.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use compactor_io::lock;

use anyhow::{Context, Result, ensure};

use super::minimise::minimise;
use super::plan::Plan;
use super::run::{Outcome, run};
use crate::cassandra::{Cassandra, Mode};
use crate::jobs;
use crate::pool::Shared;
use crate::scratch::scratch;

/// Options for running plans.
#[derive(Debug, Clone)]
pub struct Campaign {
    /// Number of concurrent servers.
    pub jobs: usize,
    /// Directory for the plans and files of failures.
    pub keep: Option<PathBuf>,
    /// Whether failing plans are minimised first.
    pub minimise: bool,
}

/// Result of all plans.
#[derive(Debug, Default)]
pub struct Report {
    /// Plans that were run.
    pub done: usize,
    /// Plans whose merge left something.
    pub outputs: usize,
    /// Plans with a maximum size whose merge left several outputs.
    pub divided: usize,
    /// Number of inputs of all plans.
    pub inputs: usize,
    /// Seeds that differ.
    pub failed: Vec<u64>,
    /// Time for all plans.
    pub elapsed: Duration,
}

#[derive(Debug)]
struct Work {
    waiting: Vec<Plan>,
    /// Modes of the running jobs.
    running: Vec<Mode>,
    total: usize,
    started: Instant,
    report: Report,
}

impl Campaign {
    /// A campaign with this number of jobs that neither keeps nor minimises failing plans.
    #[must_use]
    pub fn of(jobs: usize) -> Campaign {
        Campaign {
            jobs,
            keep: None,
            minimise: false,
        }
    }

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
            report: Report::default(),
        });
        jobs::run(self.jobs, || self.job(&work))?;
        let work = work
            .into_inner()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        ensure!(work.waiting.is_empty(), "plans were left out");
        let mut report = work.report;
        report.elapsed = started.elapsed();
        report.failed.sort_unstable();
        Ok(report)
    }

    /// Runs plans until none is left; a server can only write one version.
    fn job(&self, work: &Mutex<Work>) -> Result<()> {
        let place = tempfile::Builder::new()
            .prefix("interop-random-")
            .tempdir_in(scratch())?;
        let mut server: Option<Shared> = None;
        let mut last = None;
        while let Some(plan) = next(work, last)? {
            let mode = plan.mode()?;
            last = Some(mode);
            drop(server.take_if(|server| server.mode() != mode || server.is_worn()));
            let running = match &mut server {
                Some(server) => server,
                none => none.insert(Shared::take(mode, mode.release())?),
            };
            let outcome = attempt(running, &plan, &place.path().join("case"));
            if !outcome.differences.is_empty() {
                // The failed plan may have damaged the server.
                let server = server.take().map(Shared::for_the_last_time);
                let mut server = server.context("the running server")?;
                self.explain(&mut server, &plan, &outcome.differences, place.path())?;
            }
            record(work, &plan, &outcome);
        }
        Ok(())
    }

    fn explain(
        &self,
        server: &mut Cassandra,
        plan: &Plan,
        differences: &[String],
        place: &Path,
    ) -> Result<()> {
        show(plan, differences);
        let mut smallest = plan.clone();
        if self.minimise {
            let scratch = place.join("smaller");
            smallest = minimise(smallest, |plan| {
                !attempt(server, plan, &scratch).differences.is_empty()
            });
            let outcome = attempt(server, &smallest, &scratch);
            eprintln!("minimised to {} mutations:", smallest.mutations());
            show(&smallest, &outcome.differences);
            eprintln!("{}", serde_json::to_string(&smallest)?);
        }
        if let Some(keep) = &self.keep {
            let keep = keep.join(plan.seed.to_string());
            fs::create_dir_all(&keep)?;
            let text = serde_json::to_string_pretty(&smallest)?;
            fs::write(keep.join("plan.json"), text)?;
            attempt(server, &smallest, &keep.join("files"));
        }
        Ok(())
    }
}

/// Runs a plan; a failure to run it counts as a difference.
fn attempt(server: &mut Cassandra, plan: &Plan, place: &Path) -> Outcome {
    let _ = fs::remove_dir_all(place);
    run(server, plan, place).unwrap_or_else(|error| Outcome {
        differences: vec![format!("{error:#}")],
        ..Outcome::default()
    })
}

/// Returns the next plan for a job. Starting a server takes as long as some plans, so a plan of the job's last mode
/// comes first, then one of a mode that no other job has; the last few plans of another job's mode are left to that
/// job.
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
    let is_many = |of: &Mode| modes.iter().filter(|&other| other == of).count() > FEW;
    let free = modes.iter().position(is_free);
    let Some(at) = free.or_else(|| modes.iter().position(is_many)) else {
        return Ok(None);
    };
    work.running.push(modes[at]);
    Ok(Some(work.waiting.remove(at)))
}

fn record(work: &Mutex<Work>, plan: &Plan, outcome: &Outcome) {
    let mut work = lock(work);
    let (total, seconds) = (work.total, work.started.elapsed().as_secs_f64());
    let report = &mut work.report;
    report.done += 1;
    report.outputs += usize::from(outcome.output);
    report.divided += usize::from(outcome.divided);
    report.inputs += outcome.inputs;
    if !outcome.differences.is_empty() {
        report.failed.push(plan.seed);
    }
    if report.done.is_multiple_of(100) {
        let (done, failed) = (report.done, report.failed.len());
        let rate = done as f64 / seconds;
        eprintln!("{done} of {total} seeds, {failed} failed, {rate:.1} a second");
    }
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

/// Seeds `A..B`, without B, of a command line.
///
/// # Errors
/// Another form, or no seed.
pub fn parse_seeds(text: &str) -> Result<Range<u64>> {
    let (from, to) = text.split_once("..").context("not of the form A..B")?;
    let seeds = from.parse()?..to.parse()?;
    ensure!(
        !seeds.is_empty(),
        "A has to be less than B, the first seed that is not run"
    );
    Ok(seeds)
}

//! A campaign over many changed SSTables, on one or more servers at once.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use compactor_io::lock;

use anyhow::Result;
use compactor_sstable::Component;

use super::case::{Ours, Theirs, contradictions, rows_differ};
use super::change::{Change, Kind};
use super::sstable_files::SstableFiles;
use crate::cassandra::{Cassandra, Mode, Options, Release, Table};
use crate::files;
use crate::jobs;
use crate::random::{self, Plan};
use crate::scratch::scratch;
use compactor_testkit::Random;

/// Servers that write and judge: each takes every nth seed.
const SERVERS: [(Mode, Release); 7] = [
    (Mode::Pa, Release::Six),
    (Mode::Da, Release::Five),
    (Mode::Oa, Release::Five),
    (Mode::Ea, Release::Six),
    (Mode::Nb, Release::Six),
    (Mode::Nb, Release::Five),
    (Mode::Oa, Release::Six),
];
/// Number of changes to each SSTable.
const CHANGES: usize = 12;
/// Longest time of a request: reading a damaged SSTable may never end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Options for judging changed SSTables.
#[derive(Debug, Clone)]
pub struct Campaign {
    /// Number of concurrent servers.
    pub jobs: usize,
    /// Directory for the files of contradictions.
    pub keep: Option<PathBuf>,
}

/// Result of all cases.
#[derive(Debug, Default)]
pub struct Report {
    /// SSTables that were changed and judged.
    pub files: usize,
    /// SSTables that Cassandra opens, reads to the end and calls sound.
    pub sound: usize,
    /// SSTables that neither its reader nor its verifier accepts.
    pub refused: usize,
    /// SSTables that Cassandra's reader and verifier judge differently, or on which Cassandra fails.
    pub undecided: usize,
    /// Sound SSTables that ours refuse on purpose, and those that only our verification reports as damaged, by kind.
    pub stricter: BTreeMap<String, usize>,
    /// Sound SSTables that ours merge with a warning.
    pub warned: usize,
    /// SSTables whose merge was compared with the rows that Cassandra reads.
    pub compared: usize,
    /// Contradictions.
    pub failures: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} files: {} sound to Cassandra, {} refused by its reader and its verifier, {} in between; \
             {} merged with a warning, {} merges compared by their rows, {} contradictions",
            self.files,
            self.sound,
            self.refused,
            self.undecided,
            self.warned,
            self.compared,
            self.failures.len()
        )?;
        for (kind, count) in &self.stricter {
            writeln!(f, "  stricter on purpose: {kind}: {count}")?;
        }
        Ok(())
    }
}

impl Campaign {
    /// Runs these seeds; contradictions are printed to stderr as they occur.
    ///
    /// # Errors
    /// A server that does not start, or a directory that cannot be written.
    pub fn run(&self, seeds: &[u64]) -> Result<Report> {
        let waiting = Mutex::new((0..SERVERS.len()).collect::<Vec<_>>());
        let report = Mutex::new(Report::default());
        jobs::run(self.jobs, || {
            loop {
                let next = lock(&waiting).pop();
                let Some(number) = next else { return Ok(()) };
                let is_own = |seed: &u64| *seed % SERVERS.len() as u64 == number as u64;
                let own: Vec<u64> = seeds.iter().copied().filter(is_own).collect();
                if !own.is_empty() {
                    let (mode, release) = SERVERS[number];
                    Job::run(self, mode, release, &own, &report)?;
                }
            }
        })?;
        Ok(report.into_inner().unwrap_or_else(|e| e.into_inner()))
    }
}

/// The seeds of one server.
struct Job<'a> {
    campaign: &'a Campaign,
    mode: Mode,
    release: Release,
    report: &'a Mutex<Report>,
    cassandra: Option<Cassandra>,
    place: tempfile::TempDir,
}

impl Job<'_> {
    fn run(
        campaign: &Campaign,
        mode: Mode,
        release: Release,
        seeds: &[u64],
        report: &Mutex<Report>,
    ) -> Result<()> {
        let mut job = Job {
            campaign,
            mode,
            release,
            report,
            cassandra: None,
            place: tempfile::Builder::new()
                .prefix("interop-lenience-")
                .tempdir_in(scratch())?,
        };
        let started = Instant::now();
        for seed in seeds {
            job.seed(*seed)?;
        }
        let seconds = started.elapsed().as_secs_f64();
        eprintln!(
            "{mode} by {}: {} seeds in {seconds:.0} s",
            release.version(),
            seeds.len()
        );
        Ok(())
    }

    fn server(&mut self) -> Result<&mut Cassandra> {
        match &mut self.cassandra {
            Some(server) => Ok(server),
            none => {
                let options = Options {
                    release: Some(self.release),
                    timeout: PATIENCE,
                    ..Options::default()
                };
                Ok(none.insert(Cassandra::start(self.mode, &options)?))
            }
        }
    }

    fn seed(&mut self, seed: u64) -> Result<()> {
        let plan = random::plan_for(seed, Some(self.mode));
        let place = self.place.path().join("case");
        let _ = fs::remove_dir_all(&place);
        let server = self.server()?;
        server.set_now(plan.now_s)?;
        let table = random::make_table(server, &plan)?;
        let mut inputs = Vec::new();
        for n in 0..plan.inputs.len().min(3) {
            inputs.extend(random::write_input(server, &plan, &table, n, &place)?);
        }
        if let Some((first, others)) = inputs.split_first() {
            self.changes(seed, &plan, &table, first, others, &place)?;
        }
        if let Some(server) = &mut self.cassandra {
            // A server that a damaged file has stopped is discarded.
            if random::drop_table(server, &table).is_err() {
                self.cassandra = None;
            }
        }
        Ok(())
    }

    fn changes(
        &mut self,
        seed: u64,
        plan: &Plan,
        table: &Table,
        first: &Path,
        others: &[PathBuf],
        place: &Path,
    ) -> Result<()> {
        let version = files::version(first)?;
        let others: Vec<&Path> = (others.iter().map(PathBuf::as_path))
            .filter(|other| files::version(other).is_ok_and(|of| of == version))
            .collect();
        let mut rng = Random::new(seed);
        for number in 0..=CHANGES {
            let files = SstableFiles::copy(first, &place.join("changed"))?;
            let change = match number {
                0 => Change {
                    kind: Kind::Nothing,
                    component: Component::Data,
                    detail: String::new(),
                },
                _ => Change::make(&mut rng, &files, &others)?,
            };
            let is_sound = self.judge(seed, plan, table, &files, &change, place)?;
            if number == 0 && !is_sound {
                // Cassandra writes some headers that it cannot read.
                return Ok(());
            }
            if self.cassandra.is_none() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Judges one changed SSTable with Cassandra and with ours; returns whether Cassandra calls it sound.
    fn judge(
        &mut self,
        seed: u64,
        plan: &Plan,
        table: &Table,
        files: &SstableFiles,
        change: &Change,
        place: &Path,
    ) -> Result<bool> {
        let data = files.data();
        let ours = Ours::of(&data, &place.join("merged"))?;
        let server = self.server()?;
        let theirs = match Theirs::of(server, table, &data) {
            Ok(theirs) => theirs,
            Err(error) => {
                // The server hangs, or has ended.
                eprintln!("seed {seed}, {change}: Cassandra fails: {error:#}");
                self.cassandra = None;
                let mut report = lock(self.report);
                report.files += 1;
                report.undecided += 1;
                return Ok(false);
            }
        };
        let mut found = contradictions(change.component, &theirs, &ours);
        let is_merged = theirs.is_good() && !ours.refusals.iter().any(|r| r.by == "merge");
        if is_merged && found.is_empty() {
            let merged = ours.merged.as_deref();
            let rewritten = place.join("rewritten");
            found.extend(rows_differ(
                server, table, &data, &theirs, merged, &rewritten,
            )?);
        }
        let label = format!(
            "seed {seed} ({} by {}, {} inputs), {change}",
            files.descriptor().version,
            self.release.version(),
            plan.inputs.len()
        );
        for line in &found {
            eprintln!("{label}: {line}");
        }
        if let (Some(keep), false) = (&self.campaign.keep, found.is_empty()) {
            let number = lock(self.report).failures.len();
            SstableFiles::copy(&data, &keep.join(format!("{seed}-{number}")))?;
        }
        let mut report = lock(self.report);
        report.files += 1;
        report.sound += usize::from(theirs.is_good());
        report.refused += usize::from(theirs.is_refused());
        report.undecided += usize::from(!theirs.is_good() && !theirs.is_refused());
        report.compared += usize::from(is_merged);
        if theirs.is_good() {
            report.warned += usize::from(ours.has_warnings);
            let mut kinds: Vec<String> = (ours.refusals.iter().chain(&ours.damage))
                .map(|refusal| format!("{} {}", refusal.by, refusal.kind))
                .collect();
            kinds.sort();
            kinds.dedup();
            for kind in kinds {
                *report.stricter.entry(kind).or_default() += 1;
            }
        }
        report
            .failures
            .extend(found.into_iter().map(|line| format!("{label}: {line}")));
        Ok(theirs.is_good())
    }
}

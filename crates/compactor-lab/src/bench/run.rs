//! Runs of a bench: every repeat has each arm once, in an order of its own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use compactor::{Error, Observer, Result};

use super::options::GC_GRACE_S;
use super::process::{External, INTRODUCTION, run_ours};
use super::{
    ArmKind, ArmOutcome, BenchOptions, BenchOutcome, BenchRun, Done, OutputFacts, Reply, Request,
    Work, output, work,
};
use crate::caveats::Warnings;
use crate::outcome::{Attempt, Environment, Warning};
use crate::random::Random;
use crate::report::units::bytes;
use crate::schedule::Schedule;
use crate::scratch::OutputDirectory;
use crate::session::Session;
use crate::table::{GENERATING, Table, components, len_of, require_room};
use crate::watcher::{Event, Following, Plan, Watcher, note, watched};
use crate::{report, warnings};

/// Stream of random numbers of the seed, for the order of runs.
const STREAM: u64 = 0x6265_6e63;

/// Measures all arms. `program bench-arm` has to [`serve`](super::serve) a request. Whatever is
/// made on the disk is below `options.directory` and removed at the end, and so are processes. If the
/// watcher stops it, what was measured until then is returned, with
/// [`End::Interrupted`](crate::outcome::End::Interrupted).
///
/// # Errors
/// Invalid options, no disk space, a merge that fails, a command that does not introduce itself,
/// or cancellation before the first run that counts.
pub fn run(options: &BenchOptions, program: &Path, watcher: &dyn Watcher) -> Result<BenchOutcome> {
    options.check()?;
    let directory =
        std::path::absolute(&options.directory).map_err(Error::file("find", &options.directory))?;
    let needed = needed_bytes(options);
    let text = format!(
        "up to {} will be in {} at a time",
        bytes(needed as f64),
        options.directory.display()
    );
    note(watcher, &text);
    require_room(&directory, needed)?;
    let session = Session::begin(&directory, "bench", None, watcher)?;
    let warnings = session.warn(warnings_of(&session.environment));
    // Ended before the directory is removed, which is dropped later.
    let externals = options.external.iter();
    let externals = externals.map(|command| External::start(command, INTRODUCTION, watcher));
    let externals = externals.collect::<Result<_>>()?;
    let mut observer = watched(watcher, GENERATING, (0, options.generated_bytes()));
    let inputs = inputs(options, session.directory(), &mut observer)?;
    session.note("merging once, to know the output");
    let expected = reference(options, &inputs, &session)?;
    let mut bench = Bench {
        options,
        program,
        session: &session,
        inputs: &inputs,
        expected: &expected,
        compacted: None,
        externals,
    };
    let mut arms = bench.arms();
    let runs = bench.rounds(&mut arms);
    drop(bench);
    let mut all_runs = arms.iter().flat_map(|arm| &arm.runs);
    let has_runs = all_runs.any(|run| run.attempt.counts());
    let data_file_bytes = inputs.data_file_bytes();
    let (header, environment) = session.finish(runs, has_runs)?;
    Ok(BenchOutcome {
        header,
        options: options.clone(),
        environment,
        data_file_bytes,
        data: inputs.record,
        output: expected,
        arms,
        warnings,
    })
}

/// Context of all runs.
struct Bench<'a> {
    options: &'a BenchOptions,
    program: &'a Path,
    session: &'a Session<'a>,
    inputs: &'a Table,
    expected: &'a OutputFacts,
    /// Output of the first compaction.
    compacted: Option<OutputFacts>,
    externals: Vec<External>,
}

impl Bench<'_> {
    fn arms(&self) -> Vec<ArmOutcome> {
        let arm = |name: String, kind, io| ArmOutcome {
            name,
            kind,
            io,
            compactors: None,
            notes: Vec::new(),
            runs: Vec::new(),
            failure: None,
        };
        let options = self.options;
        let wants = |work| options.works.contains(&work);
        let of_pairs = |name: &'static str, work| {
            let pairs = options.pairs.iter().filter(move |_| wants(work));
            let kind = ArmKind::Ours(work);
            pairs.map(move |pair| arm(format!("{name} {pair}"), kind, Some(*pair)))
        };
        let compacts = of_pairs("compact", Work::Compact).flat_map(|arm| {
            options
                .compactors
                .iter()
                .map(move |&compactors| ArmOutcome {
                    name: format!("{}, {compactors} at a time", arm.name),
                    compactors: Some(compactors),
                    ..arm.clone()
                })
        });
        let merges = of_pairs("merge", Work::Merge);
        let copies = of_pairs("copy", Work::Copy);
        let mut arms: Vec<ArmOutcome> = merges.chain(compacts).chain(copies).collect();
        let is_compressed =
            self.inputs.record.compressor.is_some() || self.expected.compression.is_some();
        if wants(Work::Codec) && is_compressed {
            let kind = ArmKind::Ours(Work::Codec);
            arms.push(arm("codec".to_owned(), kind, None));
        } else if wants(Work::Codec) {
            let text = "neither inputs nor output are compressed: no arm codec";
            self.session.note(text);
        }
        for External { introduction, .. } in &self.externals {
            let name = free_name(&introduction.name, &arms);
            arms.push(ArmOutcome {
                notes: introduction.notes.clone(),
                ..arm(name, ArmKind::External, None)
            });
        }
        arms
    }

    fn rounds(&mut self, arms: &mut [ArmOutcome]) -> Result<()> {
        let repeats = (self.options.warm_ups, self.options.repeats);
        let mut random = Random::new(self.options.seed, STREAM);
        let names = arms.iter().map(|arm| arm.name.clone()).collect();
        let mut schedule = Schedule::new(names, 1, repeats);
        let one = |index: usize, plan: Plan| {
            let is_external = |arm: &&ArmOutcome| arm.kind == ArmKind::External;
            let external = arms[..index].iter().filter(is_external).count();
            let arm = &mut arms[index];
            if arm.failure.is_some() {
                return Ok(());
            }
            self.session.watcher.event(&Event::RunStarted(&plan));
            match self.one(arm, external, plan.repeat)? {
                Ok(done) => {
                    let run = self.run_of(done, &plan);
                    let bytes = self.inputs.record.uncompressed_bytes;
                    let measured = report::bench::measured(arm, &run, bytes);
                    self.session.watcher.event(&Event::RunEnded(&measured));
                    arm.runs.push(run);
                }
                Err(reason) => {
                    self.session.note(&format!("{} failed: {reason}", arm.name));
                    arm.failure = Some(reason);
                }
            }
            Ok(())
        };
        schedule.run(&mut random, |_| Duration::ZERO, None, one)
    }

    /// Runs an arm once, and examines its output.
    fn one(
        &mut self,
        arm: &ArmOutcome,
        external: usize,
        repeat: u32,
    ) -> Result<std::result::Result<Done, String>> {
        let (scratch, watcher) = (self.session.directory(), self.session.watcher);
        let is_cancelled = || watcher.is_cancelled();
        let output = OutputDirectory::create(scratch.join("output"))?;
        make_ready(self.inputs, self.options.warm)?;
        let mut request = request(self.options, self.inputs, scratch, &output.path);
        request.compression.clone_from(&self.expected.compression);
        let is_ours = arm.kind != ArmKind::External;
        // Others may have to copy it: once is enough.
        request.keep_output = is_ours || repeat == 0;
        if let ArmKind::Ours(work) = arm.kind {
            request.work = work;
        }
        if let Some(compactors) = arm.compactors {
            request.compactors = compactors;
        }
        if let Some(pair) = arm.io {
            request.io = pair;
        }
        // What was removed or written before is not to be written while something else is measured.
        if let Ok(directory) = File::open(scratch) {
            let _ = rustix::fs::syncfs(directory);
        }
        let reply = match (arm.kind, self.externals.get_mut(external)) {
            (ArmKind::External, Some(external)) => external.process.ask(&request, watcher)?,
            _ => run_ours(self.program, &request, watcher)?,
        };
        let mut done = match reply {
            Reply::Done(done) => done,
            Reply::Failed(reason) => return Ok(Err(reason)),
        };
        let bytes = self.inputs.data_file_bytes();
        if request.work == Work::Compact && self.compacted.is_none() {
            self.compacted = output::examine(&request.output, &is_cancelled)?;
        }
        let expected = match (&self.compacted, request.work) {
            (Some(compacted), Work::Compact) => compacted,
            _ => self.expected,
        };
        let wrong = output::wrong(&request, is_ours, expected, bytes, &is_cancelled)?;
        done.otherwise.extend(wrong);
        output.remove()?;
        Ok(Ok(done))
    }

    fn run_of(&self, done: Done, plan: &Plan) -> BenchRun {
        let (wall_s, cpu_s) = match &done.codec {
            None => (done.wall_s, done.cpu_s),
            Some(times) => times.at_scale(
                self.inputs.record.uncompressed_bytes,
                self.expected.uncompressed_bytes,
            ),
        };
        BenchRun {
            attempt: Attempt {
                warnings: (done.otherwise.into_iter())
                    .map(|text| Warning::new("deviation", text))
                    .collect(),
                ..plan.attempt()
            },
            wall_s,
            cpu_s,
            peak_rss_bytes: done.codec.is_none().then_some(done.peak_rss_bytes),
            io: done.io,
            codec: done.codec,
        }
    }
}

/// The name of an arm, with a number if another has it: runs belong to arms by name.
fn free_name(name: &str, arms: &[ArmOutcome]) -> String {
    let numbered = (2u32..).map(|number| format!("{name} ({number})"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    let is_free = |name: &String| arms.iter().all(|arm| arm.name != *name);
    names.find(is_free).unwrap_or_default()
}

fn request(options: &BenchOptions, inputs: &Table, scratch: &Path, output: &Path) -> Request {
    Request {
        work: Work::Merge,
        inputs: inputs.data_paths.clone(),
        output: output.to_owned(),
        keep_output: true,
        scratch: scratch.to_owned(),
        io: options.pairs[0],
        threads: options.threads,
        compactors: 1,
        memory_bytes: options.memory_bytes,
        now_s: options.generated.now_s,
        gc_before_s: options.generated.now_s.saturating_sub(GC_GRACE_S),
        compression: None,
        sample_bytes: options.sample_bytes,
    }
}

/// Merges in this process, where an error has its full text.
fn reference(options: &BenchOptions, inputs: &Table, session: &Session<'_>) -> Result<OutputFacts> {
    let (scratch, is_cancelled) = (session.directory(), || session.watcher.is_cancelled());
    let mut observer = Following {
        is_cancelled,
        progress: |_| (),
    };
    let output = OutputDirectory::create(scratch.join("output"))?;
    work::merge(
        &request(options, inputs, scratch, &output.path),
        &mut observer,
    )?;
    let facts = output::examine(&output.path, &is_cancelled)?;
    output.remove()?;
    facts.ok_or_else(|| {
        Error::invalid(
            "nothing is left of these SSTables when they are merged: all has expired or is deleted; \
             there is nothing to compare",
        )
    })
}

/// The most bytes below the directory at a time: generated inputs, the output of one run, and a second one
/// where an external command copies its own, or a compaction merges outputs again.
fn needed_bytes(options: &BenchOptions) -> u64 {
    let merges_again = options.works.contains(&Work::Compact);
    let outputs = 1 + u64::from(merges_again || !options.external.is_empty());
    if options.given.is_empty() {
        options.generated_bytes().saturating_mul(1 + outputs)
    } else {
        let files = components(&options.given);
        let bytes: u64 = files.iter().map(|path| len_of(path)).sum();
        bytes.saturating_mul(outputs)
    }
}

/// Generates the inputs below `directory`, or returns the given ones.
///
/// # Errors
/// A failed write, damage in what was given, or cancellation.
fn inputs(options: &BenchOptions, directory: &Path, observer: &mut dyn Observer) -> Result<Table> {
    if !options.given.is_empty() {
        // Arms run elsewhere than this process.
        let absolute =
            |path: &PathBuf| std::path::absolute(path).map_err(Error::file("find", path));
        let paths = options.given.iter().map(absolute);
        return Table::open("given".to_owned(), paths.collect::<Result<_, _>>()?);
    }
    let mut generated = options.generated.clone();
    generated.output_directory = directory.join("inputs");
    generated.keyspace = "bench".to_owned();
    generated.seed = options.seed;
    Table::generate(generated, observer)
}

/// Drops the inputs from the page cache, or reads them into it.
///
/// # Errors
/// The system's.
fn make_ready(table: &Table, warm: bool) -> Result<()> {
    if !warm {
        return table.drop_pages();
    }
    for path in table.files() {
        let mut file = File::open(&path).map_err(Error::file("open", &path))?;
        let read = std::io::copy(&mut file, &mut std::io::sink());
        read.map_err(Error::file("read", &path))?;
    }
    Ok(())
}

fn warnings_of(environment: &Environment) -> Vec<Warning> {
    let mut found = Warnings(warnings::of_machine(environment, false));
    let in_memory = environment.file_system.as_deref() == Some("tmpfs");
    found.when(in_memory, "in_memory", || {
        "the directory is in memory: there is no disk".to_owned()
    });
    found.0
}

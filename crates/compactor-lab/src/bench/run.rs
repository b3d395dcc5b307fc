//! Runs of a bench: every repeat has each arm once, in an order of its own.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use compactor::{Error, ErrorKind, Observer, Result};

use super::inputs::{self, make_ready, needed_bytes};
use super::options::GC_GRACE_S;
use super::outcome::FORMAT_VERSION;
use super::process::{External, run_ours};
use super::{
    ArmKind, ArmOutcome, BenchOptions, BenchOutcome, BenchRun, Done, OutputFacts, Reply, Request,
    Work, at_scale, output, work,
};
use crate::clocks::unix_ms;
use crate::environment::capture;
use crate::observer::Following;
use crate::outcome::{End, Environment, Warning};
use crate::random::Random;
use crate::report::units::bytes;
use crate::schedule::{Repeats, Schedule, Turn};
use crate::scratch::{OutputDirectory, Scratch};
use crate::stats::{ENOUGH_REPEATS, outliers};
use crate::table::{Table, require_room};
use crate::warnings::{self, Caveats};

/// Stream of random numbers of the seed, for the order of runs.
const STREAM: u64 = 0x6265_6e63;

/// Measures all arms. `program bench-arm` has to [`serve`](super::serve) a request. Whatever is
/// made on the disk is below `options.directory` and removed at the end, and so are processes. `say`
/// receives a line about every step. Once `stop` is set, what was measured until then comes back, with
/// [`End::Interrupted`].
///
/// # Errors
/// Options that make no sense, no room, a merge that fails, a command that does not introduce itself,
/// or cancellation before the first run that counts.
pub fn run(
    options: &BenchOptions,
    program: &Path,
    stop: &AtomicBool,
    say: &mut dyn FnMut(&str),
) -> Result<BenchOutcome> {
    options.check()?;
    let started = Instant::now();
    let started_at_ms = unix_ms();
    let directory =
        std::path::absolute(&options.directory).map_err(Error::file("find", &options.directory))?;
    let needed = needed_bytes(options);
    say(&format!(
        "up to {} will be in {} at a time",
        bytes(needed as f64),
        options.directory.display()
    ));
    require_room(&directory, needed)?;
    let scratch = Scratch::create(&directory, "bench")?;
    let environment = capture(scratch.path(), "none".to_owned())?;
    // Ended before the directory is removed, which is dropped later.
    let mut externals = Vec::new();
    for command in &options.external {
        externals.push(External::start(command, stop)?);
    }
    let mut observer = Following {
        is_cancelled: || stop.load(Ordering::Relaxed),
        progress: |_| (),
    };
    if options.given.is_empty() {
        say(&format!(
            "generating {}",
            bytes(options.generated.bytes as f64)
        ));
    }
    let inputs = inputs::prepare(options, scratch.path(), &mut observer)?;
    say("merging once, to know the output");
    let mut bench = Bench {
        options,
        program,
        stop,
        scratch: scratch.path(),
        expected: reference(options, &inputs, scratch.path(), &mut observer)?,
        inputs,
        externals,
    };
    let mut outcome = BenchOutcome {
        format_version: FORMAT_VERSION,
        started_at_ms,
        elapsed_s: 0.0,
        end: End::Complete,
        options: options.clone(),
        warnings: warnings_of(&environment, options),
        environment,
        data: bench.inputs.record.clone(),
        data_file_bytes: bench.inputs.data_file_bytes(),
        output: bench.expected.clone(),
        arms: bench.arms(say),
    };
    match bench.rounds(&mut outcome.arms, say) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::Cancelled => {
            if outcome
                .arms
                .iter()
                .all(|arm| arm.counted().next().is_none())
            {
                return Err(error);
            }
            outcome.end = End::Interrupted;
        }
        Err(error) => return Err(error),
    }
    drop(bench);
    outcome.warnings.extend(outlying(&outcome.arms));
    outcome.elapsed_s = started.elapsed().as_secs_f64();
    scratch.remove()?;
    Ok(outcome)
}

/// Context of all runs.
struct Bench<'a> {
    options: &'a BenchOptions,
    program: &'a Path,
    stop: &'a AtomicBool,
    scratch: &'a Path,
    inputs: Table,
    expected: OutputFacts,
    externals: Vec<External>,
}

impl Bench<'_> {
    fn arms(&self, say: &mut dyn FnMut(&str)) -> Vec<ArmOutcome> {
        let arm = |name: String, kind, io, notes: Vec<String>| ArmOutcome {
            name,
            kind,
            io,
            notes,
            runs: Vec::new(),
            failure: None,
        };
        let wants = |kind| self.options.kinds.contains(&kind);
        let mut arms = Vec::new();
        for (kind, verb) in [(ArmKind::Merge, "merge"), (ArmKind::Copy, "copy")] {
            for pair in self.options.pairs.iter().filter(|_| wants(kind)) {
                arms.push(arm(format!("{verb} {pair}"), kind, Some(*pair), Vec::new()));
            }
        }
        let has_codec =
            self.inputs.record.compressor.is_some() || self.expected.compression.is_some();
        match (wants(ArmKind::Codec), has_codec) {
            (true, true) => arms.push(arm("codec".to_owned(), ArmKind::Codec, None, Vec::new())),
            (true, false) => say("neither inputs nor output are compressed: no arm codec"),
            (false, _) => {}
        }
        for external in &self.externals {
            let hello = &external.introduction;
            arms.push(arm(
                hello.name.clone(),
                ArmKind::External,
                None,
                hello.notes.clone(),
            ));
        }
        arms
    }

    fn rounds(&mut self, arms: &mut [ArmOutcome], say: &mut dyn FnMut(&str)) -> Result<()> {
        let repeats = Repeats {
            warm_ups: self.options.warm_ups,
            counted: self.options.repeats,
        };
        let mut order: Vec<usize> = (0..arms.len()).collect();
        let mut random = Random::new(self.options.seed, STREAM);
        let one = |index: usize, turn: Turn| {
            let is_external = |arm: &&ArmOutcome| arm.kind == ArmKind::External;
            let external = arms[..index].iter().filter(is_external).count();
            let Some(arm) = arms.get_mut(index).filter(|arm| arm.failure.is_none()) else {
                return Ok(());
            };
            let done = match self.one(arm, external, turn.repeat)? {
                Ok(done) => done,
                Err(reason) => {
                    say(&format!("{} failed: {reason}", arm.name));
                    arm.failure = Some(reason);
                    return Ok(());
                }
            };
            let run = self.run_of(arm.kind, done, turn);
            say(&format!(
                "run {} of {}{}: {}: {:.2} s",
                turn.order + 1,
                turn.runs,
                if turn.warm_up { ", warm-up" } else { "" },
                arm.name,
                run.wall_s
            ));
            arm.runs.push(run);
            Ok(())
        };
        let mut schedule = Schedule::new(order.len(), repeats);
        schedule.run(&mut order, &mut random, |_| Duration::ZERO, |_| (), one)
    }

    /// Runs an arm once, and examines its output.
    fn one(
        &mut self,
        arm: &ArmOutcome,
        external: usize,
        repeat: u32,
    ) -> Result<std::result::Result<Done, String>> {
        let is_cancelled = || self.stop.load(Ordering::Relaxed);
        let output = OutputDirectory::create(self.scratch.join("output"))?;
        make_ready(&self.inputs, self.options.warm)?;
        let mut request = request(self.options, &self.inputs, self.scratch, &output.path);
        request.compression.clone_from(&self.expected.compression);
        // Others may have to copy it: once is enough.
        request.keep_output = arm.kind != ArmKind::External || repeat == 0;
        request.work = match arm.kind {
            ArmKind::Merge | ArmKind::External => Work::Merge,
            ArmKind::Copy => Work::Copy,
            ArmKind::Codec => Work::Codec,
        };
        if let Some(pair) = arm.io {
            request.io = pair;
        }
        // What was removed or written before is not to be written while something else is measured.
        if let Ok(directory) = File::open(self.scratch) {
            let _ = rustix::fs::syncfs(directory);
        }
        let reply = match (arm.kind, self.externals.get_mut(external)) {
            (ArmKind::External, Some(external)) => external.run(&request, self.stop)?,
            _ => run_ours(self.program, &request, self.stop)?,
        };
        let mut done = match reply {
            Reply::Done(done) => done,
            Reply::Failed(reason) => return Ok(Err(reason)),
        };
        let is_ours = arm.kind != ArmKind::External;
        let bytes = self.inputs.data_file_bytes();
        let wrong = output::wrong(&request, is_ours, &self.expected, bytes, &is_cancelled)?;
        done.otherwise.extend(wrong);
        output.remove()?;
        Ok(Ok(done))
    }

    fn run_of(&self, kind: ArmKind, done: Done, turn: Turn) -> BenchRun {
        let (wall_s, cpu_s) = match &done.codec {
            None => (done.wall_s, done.cpu_s),
            Some(times) => at_scale(
                times,
                self.inputs.record.uncompressed_bytes,
                self.expected.uncompressed_bytes,
            ),
        };
        BenchRun {
            repeat: turn.repeat,
            warm_up: turn.warm_up,
            order: turn.order,
            wall_s,
            cpu_s,
            peak_rss_bytes: (kind != ArmKind::Codec).then_some(done.peak_rss_bytes),
            io: done.io,
            codec: done.codec,
            otherwise: done.otherwise,
        }
    }
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
        memory_bytes: options.memory_bytes,
        now_s: options.now_s,
        gc_before_s: options.now_s.saturating_sub(GC_GRACE_S),
        compression: None,
        sample_bytes: options.sample_bytes,
    }
}

/// Merges in this process, where an error has its full text.
fn reference(
    options: &BenchOptions,
    inputs: &Table,
    scratch: &Path,
    observer: &mut dyn Observer,
) -> Result<OutputFacts> {
    let output = OutputDirectory::create(scratch.join("output"))?;
    work::merge(&request(options, inputs, scratch, &output.path), observer)?;
    let facts = output::examine(&output.path, &|| observer.is_cancelled())?;
    output.remove()?;
    facts.ok_or_else(|| {
        Error::invalid(
            "nothing is left of these SSTables when they are merged: all has expired or is deleted; \
             there is nothing to compare",
        )
    })
}

fn warnings_of(environment: &Environment, options: &BenchOptions) -> Vec<Warning> {
    let mut found = Caveats(warnings::of_machine(environment, false));
    let in_memory = environment.file_system.as_deref() == Some("tmpfs");
    found.when(in_memory, "in_memory", || {
        "the directory is in memory: there is no disk".to_owned()
    });
    let is_few = (options.repeats as usize) < ENOUGH_REPEATS;
    found.when(is_few, "few_repeats", || {
        "with so few repeats an interval says little: --repeat 5 or more".to_owned()
    });
    found.0
}

fn outlying(arms: &[ArmOutcome]) -> Vec<Warning> {
    let of_arm = |arm: &ArmOutcome| {
        let runs: Vec<&BenchRun> = arm.counted().collect();
        let times: Vec<f64> = runs.iter().map(|run| run.wall_s).collect();
        let warning = |at: usize| {
            Warning::new(
                "outlier",
                format!(
                    "{}: {:.2} s of repeat {} is far off its others",
                    arm.name, times[at], runs[at].repeat
                ),
            )
        };
        outliers(&times)
            .into_iter()
            .map(warning)
            .collect::<Vec<_>>()
    };
    arms.iter().flat_map(of_arm).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_far_off_is_reported() {
        let mut outcome = super::super::report::tests::outcome();
        let arm = &mut outcome.arms[0];
        let run = arm.runs[1].clone();
        arm.runs = [1.0, 1.01, 0.99, 1.0, 5.0]
            .into_iter()
            .enumerate()
            .map(|(repeat, wall_s)| BenchRun {
                repeat: repeat as u32,
                wall_s,
                ..run.clone()
            })
            .collect();
        let found = outlying(&outcome.arms);
        assert_eq!(found.len(), 1);
        assert!(found[0].text.contains("5.00 s of repeat 4"), "{found:?}");
    }
}

//! Running fio.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use compactor::{Error, Result};

use super::{FioJob, FioOptions, FioOutcome, FioRun, Profile, document, profile};
use crate::outcome::End;
use crate::random::Random;
use crate::report;
use crate::schedule::Schedule;
use crate::scratch::Scratch;
use crate::session::end_of;
use crate::table::require_room;
use crate::watcher::{Event, Plan, Watcher, note};

/// Stream of random numbers, for the order of runs.
const STREAM: u64 = 0x6669_6f20;
/// Interval at which fio is checked for its end.
const LOOK: Duration = Duration::from_millis(50);

/// The version of the fio that is installed.
///
/// # Errors
/// If there is none.
pub fn version() -> Result<String> {
    let output = Command::new("fio")
        .arg("--version")
        .output()
        .map_err(Error::file("run", "fio"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs the profiles in `directory`, in each repeat in an order drawn anew. Files are in a directory of their own
/// in it, which is removed at the end in any case. If the watcher stops it, fio is ended, and what was measured
/// before is returned.
///
/// A profile that fails, for example because the kernel does not support it, is not an error: its run has the reason.
///
/// # Errors
/// If there is no fio, or no files can be made; cancellation before anything was measured.
pub fn run(options: &FioOptions, directory: &Path, watcher: &dyn Watcher) -> Result<FioOutcome> {
    let fio_version = version()?;
    // fio runs inside it, where a relative path would be another.
    let directory = fs::canonicalize(directory)
        .map_err(|e| Error::invalid(format!("{}: {e}", directory.display())))?;
    note(
        watcher,
        &format!("{fio_version} in {}", directory.display()),
    );
    require_room(
        &directory,
        options
            .input_bytes
            .saturating_mul(2)
            .saturating_add(options.hot_bytes),
    )?;
    let scratch = Scratch::create(&directory, "fio")?;
    for (name, text) in profile::FILES {
        let path = scratch.path().join(name);
        fs::write(&path, text).map_err(Error::file("write", &path))?;
    }
    let mut outcome = FioOutcome {
        fio_version,
        directory: directory.display().to_string(),
        options: options.clone(),
        end: End::Complete,
        runs: Vec::new(),
    };
    let names = options.profiles.iter().map(Profile::to_string).collect();
    let runtime = Duration::from_secs(options.runtime_s.into());
    let one = |profile: usize, plan: Plan| {
        watcher.event(&Event::RunStarted(&plan));
        let profile = options.profiles[profile];
        let (jobs, failure) = match measure(options, profile, scratch.path(), watcher)? {
            Ok(jobs) => (jobs, None),
            Err(reason) => (Vec::new(), Some(reason)),
        };
        let run = FioRun {
            profile,
            repeat: plan.repeat,
            jobs,
            failure,
        };
        watcher.event(&Event::RunEnded(&report::fio::measured(&run)));
        outcome.runs.push(run);
        Ok(())
    };
    let mut random = Random::new(1, STREAM);
    let runs =
        Schedule::new(names, 1, (0, options.repeats)).run(&mut random, |_| runtime, None, one);
    outcome.end = end_of(runs, !outcome.runs.is_empty())?;
    scratch.remove_or_note(watcher);
    Ok(outcome)
}

/// Lays out the files of a profile, lets the disk come to rest, and measures.
///
/// The outer error is cancellation, the inner one the reason of a failure.
fn measure(
    options: &FioOptions,
    profile: Profile,
    scratch: &Path,
    watcher: &dyn Watcher,
) -> Result<std::result::Result<Vec<FioJob>, String>> {
    let run = |argument| {
        let command = command(options, profile, scratch, argument);
        wait(command, scratch, watcher)
    };
    if let Err(reason) = run("--create_only=1")? {
        return Ok(Err(reason));
    }
    if let Ok(directory) = File::open(scratch) {
        // What was laid out is not to be written while something else is measured.
        let _ = rustix::fs::syncfs(directory);
    }
    let printed = run("--eta=never")?;
    Ok(printed.and_then(|printed| document::jobs(&printed)))
}

fn command(options: &FioOptions, profile: Profile, scratch: &Path, argument: &str) -> Command {
    let mut command = Command::new("fio");
    command
        .args(["--output-format=json", argument])
        .arg(format!("{profile}.fio"))
        .current_dir(scratch)
        // Not its path, in which a colon would separate two directories.
        .env("DIR", ".")
        .env("HOT_SIZE", options.hot_bytes.to_string())
        .env("INPUT_SIZE", options.input_bytes.to_string())
        .env("RATE", options.rate_bytes_per_s.to_string())
        .env("READS_PER_THREAD", options.reads_per_thread.to_string())
        .env("RUNTIME", options.runtime_s.to_string());
    command
}

/// Output of a command.
///
/// The outer error is cancellation, the inner one the reason of a failure.
fn wait(
    mut command: Command,
    scratch: &Path,
    watcher: &dyn Watcher,
) -> Result<std::result::Result<String, String>> {
    // Into files: a pipe would not be read meanwhile.
    let (out, err) = (scratch.join("printed"), scratch.join("complaints"));
    let files = File::create(&out).and_then(|out| Ok((out, File::create(&err)?)));
    let spawned = files.and_then(|(out, err)| {
        let command = command.stdin(Stdio::null()).stdout(out).stderr(err);
        command.spawn()
    });
    let mut child = match spawned {
        Ok(child) => Reaped(child),
        Err(e) => return Ok(Err(format!("start fio: {e}"))),
    };
    let status = loop {
        match child.0.try_wait() {
            // A signal to all of the terminal's foreground ends fio, too, maybe first.
            _ if watcher.is_cancelled() => return Err(Error::Cancelled),
            Ok(Some(status)) => break status,
            Ok(None) => std::thread::sleep(LOOK),
            Err(e) => return Ok(Err(format!("wait for fio: {e}"))),
        }
    };
    let printed = text(&out);
    if status.success() {
        return Ok(Ok(printed));
    }
    let complaints = text(&err) + &printed;
    let line = complaints.lines().find(|line| line.starts_with("fio:"));
    let line = line.or_else(|| complaints.lines().find(|line| !line.trim().is_empty()));
    Ok(Err(match line {
        Some(line) => format!("fio failed ({status}): {}", line.trim()),
        None => format!("fio failed ({status})"),
    }))
}

/// Content of a file; empty if it cannot be read.
fn text(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A process that does not outlive its owner.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use compactor_testkit::machine::has_fio;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn small() -> FioOptions {
        FioOptions {
            profiles: vec![
                Profile::Foreground,
                Profile::MixBuffered,
                Profile::CeilingSequentialWrite,
            ],
            repeats: 1,
            hot_bytes: 4 << 20,
            input_bytes: 8 << 20,
            rate_bytes_per_s: 4 << 20,
            reads_per_thread: 50,
            runtime_s: 1,
        }
    }

    fn is_empty(directory: &Path) -> bool {
        fs::read_dir(directory).unwrap().next().is_none()
    }

    #[test]
    fn profiles_are_run_and_leave_nothing() {
        if !has_fio() {
            return;
        }
        let temp = tempfile::TempDir::new().unwrap();
        let outcome = run(&small(), temp.path(), &AtomicBool::new(false)).unwrap();
        assert_eq!(outcome.end, End::Complete);
        assert!(is_empty(temp.path()));
        let of = |profile| {
            outcome
                .runs
                .iter()
                .find(|run| run.profile == profile)
                .unwrap()
        };
        let [alone, mix, write] = small().profiles[..]
            .try_into()
            .map(|all: [_; 3]| all.map(of))
            .unwrap();
        assert_eq!((&alone.failure, &mix.failure), (&None, &None));
        let job = |run: &FioRun, name: &str| {
            let mut jobs = run.jobs.iter();
            jobs.find(|job| job.name == name).unwrap().clone()
        };
        let reads = job(alone, "foreground");
        // 8 threads of 50 reads per second.
        assert!((100.0..800.0).contains(&reads.requests_per_s), "{reads:?}");
        assert!(reads.p50_ns > 0.0 && reads.p50_ns <= reads.p99_ns);
        for name in ["foreground", "compaction-input", "compaction-output"] {
            assert!(job(mix, name).bytes_per_s > 0.0, "{name}: {mix:?}");
        }
        // Without direct I/O or io_uring, its run has the reason.
        assert!(write.failure.is_some() || job(write, "sequential-write").bytes_per_s > 0.0);
    }

    /// fio has several directories separated by colons, and writes a path without escapes into its JSON.
    #[test]
    fn the_directory_may_have_any_name() {
        if !has_fio() {
            return;
        }
        let temp = tempfile::TempDir::new().unwrap();
        let odd = temp.path().join("a:b\n$c");
        fs::create_dir(&odd).unwrap();
        let options = FioOptions {
            profiles: vec![Profile::Foreground],
            ..small()
        };
        let outcome = run(&options, &odd, &AtomicBool::new(false)).unwrap();
        assert_eq!(outcome.runs[0].failure, None);
    }

    #[test]
    fn a_stopped_run_leaves_nothing() {
        if !has_fio() {
            return;
        }
        let temp = tempfile::TempDir::new().unwrap();
        let stop = AtomicBool::new(false);
        let options = FioOptions {
            runtime_s: 600,
            ..small()
        };
        let outcome = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_secs(2));
                stop.store(true, Ordering::Relaxed);
            });
            run(&options, temp.path(), &stop)
        });
        assert!(matches!(outcome, Err(Error::Cancelled)));
        assert!(is_empty(temp.path()));
    }

    #[test]
    fn a_failed_profile_reports_the_reason_and_leaves_nothing() {
        if !has_fio() {
            return;
        }
        let temp = tempfile::TempDir::new().unwrap();
        let options = FioOptions {
            profiles: vec![Profile::Foreground],
            // Less than one read.
            hot_bytes: 1,
            ..small()
        };
        let outcome = run(&options, temp.path(), &AtomicBool::new(false)).unwrap();
        let failure = outcome.runs[0].failure.as_ref().unwrap();
        assert!(failure.contains("fio"), "{failure}");
        assert!(is_empty(temp.path()));
    }

    #[test]
    fn a_run_that_would_fill_the_disk_is_refused() {
        if !has_fio() {
            return;
        }
        let temp = tempfile::TempDir::new().unwrap();
        let options = FioOptions {
            hot_bytes: 1 << 60,
            ..small()
        };
        let result = run(&options, temp.path(), &AtomicBool::new(false));
        let message = result.unwrap_err().to_string();
        assert!(message.contains("free space"), "{message}");
        assert!(is_empty(temp.path()));
    }
}

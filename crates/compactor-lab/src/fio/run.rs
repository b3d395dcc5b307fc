//! Running fio.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use compactor::Error;

use super::{FioError, FioOptions, FioOutcome, FioRun, Profile, document, profile};
use crate::outcome::End;
use crate::report::units::bytes;
use crate::scratch::Scratch;

/// Interval at which fio is checked for its end.
const LOOK: Duration = Duration::from_millis(50);

/// The version of the fio that is installed.
///
/// # Errors
/// If there is none.
pub fn version() -> Result<String, FioError> {
    let output = Command::new("fio")
        .arg("--version")
        .output()
        .map_err(FioError::Missing)?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs the profiles in `directory`, and calls `say` before each. Files are in a directory of their own in it,
/// which is removed at the end in any case. Once `stop` is set fio is ended, and what was measured before is
/// returned.
///
/// A profile that fails, for example as the kernel does not support it, is no error: its run says so.
///
/// # Errors
/// If there is no fio, or no files can be made.
pub fn run(
    options: &FioOptions,
    directory: &Path,
    stop: &AtomicBool,
    say: &mut dyn FnMut(&str),
) -> Result<FioOutcome, FioError> {
    let fio_version = version()?;
    let failed = |what: String, e: std::io::Error| FioError::Failed(format!("{what}: {e}"));
    let of_files = |e: Error| FioError::Failed(e.to_string());
    // fio runs inside it, where a relative path would be another.
    let directory = fs::canonicalize(directory)
        .map_err(|e| failed(format!("find {}", directory.display()), e))?;
    has_room(options, &directory)?;
    let scratch = Scratch::create(&directory, "fio").map_err(of_files)?;
    for (name, text) in profile::FILES {
        fs::write(scratch.path().join(name), text)
            .map_err(|e| failed(format!("write {name}"), e))?;
    }
    let mut outcome = FioOutcome {
        fio_version,
        directory: directory.display().to_string(),
        options: options.clone(),
        end: End::Complete,
        runs: Vec::new(),
    };
    let total = options.profiles.len() * options.repeats as usize;
    'all: for repeat in 0..options.repeats {
        for &profile in &options.profiles {
            let number = outcome.runs.len() + 1;
            say(&format!("{number} of {total}: {profile}"));
            match one(options, profile, scratch.path(), stop) {
                Ended::Stopped => {
                    outcome.end = End::Interrupted;
                    break 'all;
                }
                Ended::Done(result) => {
                    let (jobs, failure) = match result {
                        Ok(jobs) => (jobs, None),
                        Err(reason) => (Vec::new(), Some(reason)),
                    };
                    outcome.runs.push(FioRun {
                        profile,
                        repeat,
                        jobs,
                        failure,
                    });
                }
            }
        }
    }
    scratch.remove().map_err(of_files)?;
    Ok(outcome)
}

/// Files that do not fit would fill the disk before fio failed.
fn has_room(options: &FioOptions, directory: &Path) -> Result<(), FioError> {
    let failed = |e| FioError::Failed(format!("ask for room in {}: {e}", directory.display()));
    let found = rustix::fs::statvfs(directory).map_err(failed)?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    // Input and output besides the hot file, and a little for other processes that write there.
    let files = options.input_bytes.saturating_mul(2);
    let needed = files.saturating_add(options.hot_bytes);
    if needed > free - free / 20 {
        return Err(FioError::Failed(format!(
            "{}: files of {} are needed and {} are free; choose another directory, or a lower rate, a \
             shorter time, a smaller hot file",
            directory.display(),
            bytes(needed as f64),
            bytes(free as f64)
        )));
    }
    Ok(())
}

enum Ended {
    Stopped,
    Done(Result<Vec<super::FioJob>, String>),
}

/// Lays out the files of a profile, lets the disk come to rest, and measures.
fn one(options: &FioOptions, profile: Profile, scratch: &Path, stop: &AtomicBool) -> Ended {
    let lay_out = wait(
        command(options, profile, scratch, "--create_only=1"),
        scratch,
        stop,
    );
    match lay_out {
        None => return Ended::Stopped,
        Some(Err(reason)) => return Ended::Done(Err(reason)),
        Some(Ok(_)) => {}
    }
    if let Ok(directory) = File::open(scratch) {
        // What was laid out is not to be written while something else is measured.
        let _ = rustix::fs::syncfs(directory);
    }
    match wait(
        command(options, profile, scratch, "--eta=never"),
        scratch,
        stop,
    ) {
        None => Ended::Stopped,
        Some(printed) => Ended::Done(printed.and_then(|printed| document::jobs(&printed))),
    }
}

fn command(options: &FioOptions, profile: Profile, scratch: &Path, argument: &str) -> Command {
    let mut command = Command::new("fio");
    command
        .args(["--output-format=json", argument])
        .arg(format!("{profile}.fio"))
        .current_dir(scratch)
        .env("DIR", scratch)
        .env("HOT_SIZE", options.hot_bytes.to_string())
        .env("INPUT_SIZE", options.input_bytes.to_string())
        .env("RATE", options.rate_bytes_per_s.to_string())
        .env("READS_PER_THREAD", options.reads_per_thread.to_string())
        .env("RUNTIME", options.runtime_s.to_string());
    command
}

/// Output of a command, or why it failed; `None` if it was to stop.
fn wait(mut command: Command, scratch: &Path, stop: &AtomicBool) -> Option<Result<String, String>> {
    // Into files: a pipe would not be read meanwhile.
    let (out, err) = (scratch.join("printed"), scratch.join("complaints"));
    let files = File::create(&out).and_then(|out| Ok((out, File::create(&err)?)));
    let spawned = files.and_then(|(out, err)| {
        let command = command.stdin(Stdio::null()).stdout(out).stderr(err);
        command.spawn()
    });
    let mut child = match spawned {
        Ok(child) => Reaped(child),
        Err(e) => return Some(Err(format!("start fio: {e}"))),
    };
    let status = loop {
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        match child.0.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => std::thread::sleep(LOOK),
            Err(e) => return Some(Err(format!("wait for fio: {e}"))),
        }
    };
    // A signal to all of the terminal's foreground ends fio, too, maybe first.
    if stop.load(Ordering::Relaxed) {
        return None;
    }
    let printed = text(&out);
    if status.success() {
        return Some(Ok(printed));
    }
    let complaints = text(&err) + &printed;
    let line = complaints.lines().find(|line| line.starts_with("fio:"));
    let line = line.or_else(|| complaints.lines().find(|line| !line.trim().is_empty()));
    Some(Err(match line {
        Some(line) => format!("fio failed ({status}): {}", line.trim()),
        None => format!("fio failed ({status})"),
    }))
}

fn text(path: &Path) -> String {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|mut file| file.read_to_end(&mut bytes));
    if read.is_err() {
        return String::new();
    }
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

    use super::*;

    fn small() -> FioOptions {
        FioOptions {
            profiles: vec![
                Profile::Foreground,
                Profile::MixBuffered,
                Profile::CeilingSequentialWrite,
            ],
            hot_bytes: 4 << 20,
            input_bytes: 8 << 20,
            rate_bytes_per_s: 4 << 20,
            reads_per_thread: 50,
            runtime_s: 1,
            ..FioOptions::default()
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
        let mut said = Vec::new();
        let mut say = |line: &str| said.push(line.to_owned());
        let outcome = run(&small(), temp.path(), &AtomicBool::new(false), &mut say).unwrap();
        assert_eq!(outcome.end, End::Complete);
        assert_eq!(
            said,
            [
                "1 of 3: bystander",
                "2 of 3: mix-buffered",
                "3 of 3: ceiling-sequential-write"
            ]
        );
        assert!(is_empty(temp.path()));
        let [alone, mix, write] = &outcome.runs[..] else {
            panic!("{outcome:?}");
        };
        assert_eq!((&alone.failure, &mix.failure), (&None, &None));
        let reads = alone.job("bystander").unwrap();
        // 8 threads of 50 reads per second.
        assert!((100.0..800.0).contains(&reads.requests_per_s), "{reads:?}");
        assert!(reads.p50_ns > 0.0 && reads.p50_ns <= reads.p99_ns);
        for name in ["bystander", "compaction-input", "compaction-output"] {
            assert!(mix.job(name).unwrap().bytes_per_s > 0.0, "{name}: {mix:?}");
        }
        // Where there is no direct I/O or io_uring, it says so.
        assert!(
            write.failure.is_some() || write.job("sequential-write").unwrap().bytes_per_s > 0.0
        );
    }

    #[test]
    fn what_is_stopped_leaves_nothing() {
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
            run(&options, temp.path(), &stop, &mut |_| {}).unwrap()
        });
        assert_eq!((outcome.end, outcome.runs.len()), (End::Interrupted, 0));
        assert!(is_empty(temp.path()));
    }

    #[test]
    fn a_profile_that_fails_says_why_and_leaves_nothing() {
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
        let outcome = run(&options, temp.path(), &AtomicBool::new(false), &mut |_| {}).unwrap();
        let failure = outcome.runs[0].failure.as_ref().unwrap();
        assert!(failure.contains("fio"), "{failure}");
        assert!(is_empty(temp.path()));
    }

    #[test]
    fn what_would_fill_the_disk_is_refused() {
        if !has_fio() {
            return;
        }
        let temp = tempfile::TempDir::new().unwrap();
        let options = FioOptions {
            hot_bytes: 1 << 60,
            ..small()
        };
        let result = run(&options, temp.path(), &AtomicBool::new(false), &mut |_| {});
        let message = result.unwrap_err().to_string();
        assert!(message.contains("are needed and"), "{message}");
        assert!(is_empty(temp.path()));
    }
}

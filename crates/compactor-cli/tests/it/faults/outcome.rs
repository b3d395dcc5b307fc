//! Outcome of a run, and whether it is acceptable.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use crate::faults::setting::{Files, INPUTS, Known, Tried, compactor, files_below};

/// Without faults every command takes less than a second.
const TIMEOUT: Duration = Duration::from_secs(60);

pub struct Outcome {
    /// `None` if it did not end.
    pub status: Option<ExitStatus>,
    pub stdout: Vec<u8>,
    pub stderr: String,
    /// All writes fail, including those of messages.
    is_mute: bool,
    /// Calls fail with `ENOENT`, so missing files may be reported as damage.
    pub hides_files: bool,
}

impl Outcome {
    /// Runs a command line to its end, or until it is killed for taking too long.
    pub fn of(line: &[String]) -> Outcome {
        // Output is sent to files, since pipes would have to be read concurrently.
        let (stdout, stderr) = (NamedTempFile::new().unwrap(), NamedTempFile::new().unwrap());
        let open = |file: &NamedTempFile| Stdio::from(File::create(file.path()).unwrap());
        let mut child = Command::new(&line[0])
            .args(&line[1..])
            .stdin(Stdio::null())
            .stdout(open(&stdout))
            .stderr(open(&stderr))
            .process_group(0)
            .spawn()
            .unwrap();
        let started = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if started.elapsed() > TIMEOUT {
                let group = format!("-{}", child.id());
                let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
                child.wait().unwrap();
                break None;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let injects = |text| {
            let faults = line.iter().filter(|word| word.starts_with("--inject="));
            faults.into_iter().any(|fault| fault.contains(text))
        };
        Outcome {
            is_mute: injects("=write:"),
            hides_files: injects(":error=ENOENT:"),
            status,
            stdout: fs::read(stdout.path()).unwrap(),
            stderr: String::from_utf8_lossy(&fs::read(stderr.path()).unwrap()).into_owned(),
        }
    }

    pub fn text(&self) -> String {
        let lines = self.stderr.lines().take(12);
        lines.map(|line| format!("  | {line}\n")).collect()
    }

    /// Returns a description of the defect as an error.
    pub fn check(&self, known: &Known, tried: &Tried, out: &Path) -> Result<(), String> {
        let code = match self.status {
            None => return Err("it does not end".to_owned()),
            // The dynamic loader failed, before the program started.
            Some(status) if status.code() == Some(127) => return Ok(()),
            Some(status) => match (status.code(), status.signal()) {
                (Some(code), _) => code,
                // Before main the standard library can only abort.
                (None, Some(_)) if self.is_start_of_runtime() => return Ok(()),
                // Killed by the kernel for lack of memory.
                (None, Some(9)) => return check_left_over(known, tried, out),
                (None, signal) => return Err(format!("it ended with signal {signal:?}")),
            },
        };
        if ["a bug in compactor", "panicked at", "internal error"]
            .iter()
            .any(|word| self.stderr.contains(word))
        {
            return Err("it reports an internal error".to_owned());
        }
        match code {
            0 => self.check_success(known, tried, out),
            1 | 2 | 4 if self.stderr.trim().is_empty() && !self.is_mute => {
                Err(format!("exit code {code} without a word"))
            }
            1 | 2 | 4 => check_left_over(known, tried, out),
            3 if self.hides_files && tried.name == "compact" => check_left_over(known, tried, out)
                .or_else(|wrong| check_rest(out).map_err(|of_rest| format!("{wrong}; {of_rest}"))),
            3 if self.hides_files => check_left_over(known, tried, out),
            code => Err(format!("exit code {code}")),
        }
    }

    fn is_start_of_runtime(&self) -> bool {
        self.stderr.contains("alternative stack") || self.stderr.contains("fatal runtime error")
    }

    fn check_success(&self, known: &Known, tried: &Tried, out: &Path) -> Result<(), String> {
        if let Some(good) = &known.printed
            && *good != self.stdout
        {
            return Err("exit code 0, but it did not print what it does".to_owned());
        }
        let found = files_below(out);
        let (hidden, found): (Files, Files) =
            found.into_iter().partition(|(path, _)| is_hidden(path));
        // Reported if the outputs could not be removed from the run's directory.
        let says = String::from_utf8_lossy(&self.stdout).contains("still holds the outputs");
        let stays = |path: &PathBuf| says && tried.is_swap && path.starts_with("merged");
        let found: Files = found.into_iter().filter(|(path, _)| !stays(path)).collect();
        if found != known.good {
            let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
            return Err(format!(
                "exit code 0, but not the output it makes: {:?} for {:?}",
                names(&found),
                names(&known.good)
            ));
        }
        if hidden.is_empty() {
            return Ok(());
        }
        check_left_over(known, tried, out)
    }
}

fn is_hidden(path: &Path) -> bool {
    path.components()
        .any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."))
        // A committed transaction log, which the next run removes.
        || path.to_string_lossy().contains("_txn_compaction_")
}

/// Checks the files that a run left: complete, wanted SSTables, and others that the next run removes.
fn check_left_over(known: &Known, tried: &Tried, out: &Path) -> Result<(), String> {
    if tried.is_swap {
        return check_second_run(known, tried, out);
    }
    let left = files_below(out);
    let sstables = |files: &Files| -> Vec<PathBuf> {
        let is_data = |path: &&PathBuf| path.to_string_lossy().ends_with("-Data.db");
        let data = files.keys().filter(is_data).filter(|path| !is_hidden(path));
        data.cloned().collect()
    };
    let files_of = |files: &Files, data: &Path| -> Vec<(PathBuf, Vec<u8>)> {
        let name = data.to_string_lossy();
        let base = name.strip_suffix("Data.db").unwrap_or_default();
        let own = files
            .iter()
            .filter(|(path, _)| path.to_string_lossy().starts_with(base));
        own.map(|(path, bytes)| (path.clone(), bytes.clone()))
            .collect()
    };
    // After an SSTable that could not be read, the next has its id.
    let bytes_of = |files: &Files, data: &Path| -> Vec<Vec<u8>> {
        files_of(files, data)
            .into_iter()
            .map(|(_, bytes)| bytes)
            .collect()
    };
    let wanted: Vec<_> = sstables(&known.good)
        .iter()
        .map(|data| bytes_of(&known.good, data))
        .collect();
    let mut whole: Vec<PathBuf> = Vec::new();
    for data in sstables(&left) {
        if !wanted.contains(&bytes_of(&left, &data)) {
            let name = data.display();
            return Err(format!("{name} was left, which is not what was wanted"));
        }
        whole.extend(files_of(&left, &data).into_iter().map(|(path, _)| path));
    }
    if left.len() == whole.len() && fs::read_dir(out).is_ok_and(|mut l| l.next().is_none()) {
        return Ok(());
    }
    for path in &whole {
        fs::remove_file(out.join(path)).map_err(|error| error.to_string())?;
    }
    if !out.exists() {
        return Ok(());
    }
    check_second_run(known, tried, out)
}

/// Checks the output of `compact` that skipped an SSTable without a component: intact, with no hidden files next to it.
fn check_rest(out: &Path) -> Result<(), String> {
    let left = files_below(out);
    if let Some(hidden) = left.keys().find(|path| is_hidden(path)) {
        return Err(format!("{} was left next to it", hidden.display()));
    }
    let data = left
        .keys()
        .filter(|path| path.to_string_lossy().ends_with("-Data.db"));
    let verify = Command::new(compactor())
        .arg("verify")
        .args(data.map(|path| out.join(path)))
        .output();
    let verify = verify.map_err(|error| error.to_string())?;
    if verify.status.success() {
        return Ok(());
    }
    let printed = String::from_utf8_lossy(&verify.stdout).into_owned();
    Err(format!(
        "nor is the output that skips an SSTable intact: {printed}"
    ))
}

/// Runs the same command again, which must complete the interrupted run, or remove its files and start anew.
fn check_second_run(known: &Known, tried: &Tried, out: &Path) -> Result<(), String> {
    let is_done = (tried.is_swap || tried.name == "generate") && files_below(out) == known.good;
    let next = {
        let _runs = INPUTS.read();
        Command::new(compactor())
            .args(tried.arguments(out))
            .output()
    };
    let next = next.map_err(|error| error.to_string())?;
    // After a completed swap there is nothing left to swap, and a generated table is not replaced.
    if !next.status.success() && !is_done {
        let stderr = String::from_utf8_lossy(&next.stderr).into_owned();
        return Err(format!("the next run fails: {stderr}"));
    }
    let found = files_below(out);
    if found != known.good {
        let names: Vec<_> = found.keys().collect();
        return Err(format!(
            "after the next run there is still something: {names:?}"
        ));
    }
    Ok(())
}

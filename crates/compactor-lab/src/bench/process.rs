//! Processes that arms run in: ours, one for each run, and commands that answer one request after the other,
//! such as a JVM that stays warm.

use std::io::BufReader;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use compactor::{Error, Result};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process, kill_process_group, waitid,
};
use serde_json::Value;

use crate::watcher::{Watcher, check_cancelled};

use super::{Introduction, Reply, Request, read_line, write_line};

/// Time between two looks at a process.
const LOOK: Duration = Duration::from_millis(20);

/// Time that a process may take to end by itself once it is asked to: it may be working on a request that
/// is obsolete, or removing its files.
const PATIENCE: Duration = Duration::from_secs(3);
const PATIENCE_WITH_OURS: Duration = Duration::from_secs(10);

/// Time that a command may take to introduce itself: it may have to fetch what it runs.
pub(super) const INTRODUCTION: Duration = Duration::from_secs(600);

/// An external command, and its introduction.
#[derive(Debug)]
pub(super) struct External {
    pub(super) introduction: Introduction,
    pub(super) process: Process,
}

/// A process that answers requests. It is ended, with its children, when this is dropped.
#[derive(Debug)]
pub(super) struct Process {
    name: String,
    child: Child,
    requests: Option<ChildStdin>,
    replies: Receiver<std::io::Result<Value>>,
    /// Whether SIGTERM stops it; the end of its stdin does in any case, after the current request.
    is_ours: bool,
}

/// Runs `program bench-arm` for one request.
///
/// # Errors
/// Cancellation, or a process that cannot be started. A failure in it is a [`Reply::Failed`].
pub(super) fn run_ours(program: &Path, request: &Request, watcher: &dyn Watcher) -> Result<Reply> {
    let mut command = Command::new(program);
    command.arg("bench-arm");
    let name = format!("{} bench-arm", program.display());
    let failed = |e| Error::Internal(format!("run {name}: {e}"));
    let mut process = Process::start(name.clone(), command, true).map_err(failed)?;
    process.ask(request, watcher)
}

impl External {
    /// Starts the command with a shell, and waits at most this long for its introduction.
    ///
    /// # Errors
    /// A command that does not introduce itself, or cancellation.
    pub(super) fn start(
        command: &str,
        introduction: Duration,
        watcher: &dyn Watcher,
    ) -> Result<External> {
        let failed = |e: String| Error::invalid(format!("--cassandra {command:?}: {e}"));
        let mut shell = Command::new("sh");
        shell.args(["-c", command]);
        let process = Process::start(command.to_owned(), shell, false);
        let mut process = process.map_err(|e| failed(e.to_string()))?;
        let deadline = Instant::now() + introduction;
        let introduction = process.line(watcher, Some(deadline))?.map_err(failed)?;
        let introduction = serde_json::from_value(introduction)
            .map_err(|e| failed(format!("its first line is not an introduction: {e}")))?;
        Ok(External {
            introduction,
            process,
        })
    }
}

impl Process {
    fn start(name: String, mut command: Command, is_ours: bool) -> std::io::Result<Process> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A group of its own: Ctrl-C is for this process, which then ends all of it.
            .process_group(0)
            .spawn()?;
        let requests = child.stdin.take();
        let stdout = child.stdout.take();
        let (sender, replies) = mpsc::channel();
        // From here on it is ended if anything fails.
        let process = Process {
            name,
            child,
            requests,
            replies,
            is_ours,
        };
        let read = move || {
            let Some(stdout) = stdout else { return };
            let mut from = BufReader::new(stdout);
            while let Some(line) = read_line(&mut from).transpose() {
                let is_last = line.is_err();
                if sender.send(line).is_err() || is_last {
                    return;
                }
            }
        };
        std::thread::Builder::new().spawn(read)?;
        Ok(process)
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// Cancellation. A failure there is a [`Reply::Failed`].
    pub(super) fn ask(&mut self, request: &Request, watcher: &dyn Watcher) -> Result<Reply> {
        if let Some(requests) = &mut self.requests
            && let Err(e) = write_line(requests, request)
        {
            let ended = self.how_it_ended();
            return Ok(Reply::Failed(format!(
                "cannot send it a request: {e}; {ended}"
            )));
        }
        Ok(match self.line(watcher, None)? {
            Err(reason) => Reply::Failed(reason),
            Ok(line) => serde_json::from_value(line)
                .unwrap_or_else(|e| Reply::Failed(format!("unexpected reply: {e}"))),
        })
    }

    /// Waits for a line; the error is the reason why there is none.
    ///
    /// # Errors
    /// Cancellation.
    fn line(
        &mut self,
        watcher: &dyn Watcher,
        deadline: Option<Instant>,
    ) -> Result<Result<Value, String>> {
        let mut gone_since = None;
        loop {
            check_cancelled(watcher.is_cancelled())?;
            match self.replies.recv_timeout(LOOK) {
                Ok(Ok(line)) => return Ok(Ok(line)),
                Ok(Err(e)) => return Ok(Err(format!("it printed something other than JSON: {e}"))),
                Err(RecvTimeoutError::Timeout) => {
                    if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                        let wait = INTRODUCTION.as_secs() / 60;
                        return Ok(Err(format!(
                            "it did not introduce itself within {wait} minutes"
                        )));
                    }
                    // Something that it has started may hold its stdout.
                    if matches!(self.status(), Ok(Some(_))) {
                        let since = *gone_since.get_or_insert_with(Instant::now);
                        if since.elapsed() > PATIENCE {
                            return Ok(Err(self.how_it_ended()));
                        }
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(Err(self.how_it_ended())),
            }
        }
    }

    /// Describes the end of a process that prints nothing more.
    fn how_it_ended(&self) -> String {
        let command = &self.name;
        let asked = Instant::now();
        while asked.elapsed() < PATIENCE {
            if let Ok(Some(status)) = self.status() {
                return match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => format!("`{command}` ended with exit code {code}"),
                    (_, Some(signal)) => format!("`{command}` ended by signal {signal}"),
                    _ => format!("`{command}` ended"),
                };
            }
            std::thread::sleep(LOOK);
        }
        format!("`{command}` closed its stdout")
    }

    /// Status once it has ended. It is not waited for, so that its number stays its own.
    fn status(&self) -> rustix::io::Result<Option<WaitIdStatus>> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(&self.child)), options)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.requests.take());
        let pid = Pid::from_child(&self.child);
        let patience = if self.is_ours {
            PATIENCE_WITH_OURS
        } else {
            PATIENCE
        };
        if self.is_ours {
            let _ = kill_process(pid, Signal::TERM);
        }
        let asked = Instant::now();
        while asked.elapsed() < patience && matches!(self.status(), Ok(None)) {
            std::thread::sleep(LOOK);
        }
        // And its child processes.
        let _ = kill_process_group(pid, Signal::KILL);
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::super::Work;
    use super::super::work::tests::request;
    use super::*;

    const HELLO: &str = r#"echo '{"name":"other","notes":[]}'"#;

    #[test]
    fn a_command_introduces_itself_and_answers() {
        let temp = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(false);
        let answer = r#"while read -r line; do echo '{"failed":"not today"}'; done"#;
        let mut external =
            External::start(&format!("{HELLO}; {answer}"), INTRODUCTION, &stop).unwrap();
        assert_eq!(external.introduction.name, "other");
        for _ in 0..2 {
            let reply = external
                .process
                .ask(&request(temp.path(), Work::Merge), &stop);
            assert_eq!(reply.unwrap(), Reply::Failed("not today".to_owned()));
        }
    }

    #[test]
    fn a_process_that_ends_or_violates_the_protocol_is_reported() {
        let temp = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(false);
        for (command, reason) in [
            ("exit 3", "ended with exit code 3"),
            ("kill -9 $$", "ended by signal 9"),
            ("sleep 1000 & exit 3", "ended with exit code 3"),
            ("echo hello", "something other than JSON"),
            ("echo '[1]'", "is not an introduction"),
        ] {
            let error = External::start(command, INTRODUCTION, &stop)
                .unwrap_err()
                .to_string();
            assert!(error.contains(reason), "{error}");
        }
        let soon = Duration::from_millis(1);
        let error = External::start("cat", soon, &stop).unwrap_err();
        assert!(
            error.to_string().contains("did not introduce itself"),
            "{error}"
        );
        let mut external =
            External::start(&format!("{HELLO}; read -r line"), INTRODUCTION, &stop).unwrap();
        match external
            .process
            .ask(&request(temp.path(), Work::Merge), &stop)
            .unwrap()
        {
            Reply::Failed(reason) => assert!(reason.contains("ended"), "{reason}"),
            Reply::Done(_) => panic!("it did nothing"),
        }
    }

    #[test]
    fn child_processes_end_with_it_and_cancellation_is_noticed() {
        let temp = tempfile::tempdir().unwrap();
        let number = temp.path().join("pid");
        // The child of the shell outlives the shell.
        let command = format!(
            "{HELLO}; sleep 1000 & echo $! > {}; read -r line",
            number.display()
        );
        let stop = AtomicBool::new(false);
        let external = External::start(&command, INTRODUCTION, &stop).unwrap();
        while !std::fs::read_to_string(&number).is_ok_and(|text| text.ends_with('\n')) {
            std::thread::sleep(LOOK);
        }
        let pid = std::fs::read_to_string(&number).unwrap();
        drop(external);
        let is_running = || {
            let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
            state.is_ok_and(|state| !state.contains(") Z"))
        };
        // The kernel takes its time to end what was killed.
        let asked = Instant::now();
        while is_running() && asked.elapsed() < PATIENCE {
            std::thread::sleep(LOOK);
        }
        assert!(!is_running());
        stop.store(true, Ordering::Relaxed);
        let error = External::start("read -r line", INTRODUCTION, &stop).unwrap_err();
        assert_eq!(error.kind(), compactor::ErrorKind::Cancelled);
    }
}

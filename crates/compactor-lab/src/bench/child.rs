//! An arm of ours, run by a child that ends with it.

use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use compactor::{EngineError, Result};
use rustix::process::{Pid, Signal, kill_process};

use super::{Reply, Request, read_line, write_line};

/// How often it is looked whether to stop.
pub(super) const LOOK: Duration = Duration::from_millis(20);
/// How long a child that was asked to stop may take to clean up.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Runs `program bench-arm` for a request and waits for its end.
///
/// # Errors
/// Cancellation once `stop` is set, or a child that cannot be started. What goes wrong in it is a
/// [`Reply::Failed`].
pub(super) fn run(program: &Path, request: &Request, stop: &AtomicBool) -> Result<Reply> {
    let failed = |e| EngineError::Internal(format!("run {}: {e}", program.display()));
    let mut child = Command::new(program)
        .arg("bench-arm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // A child that is gone by now says why in its status.
    let sent = child
        .stdin
        .take()
        .map(|mut to| write_line(&mut to, request));
    let answer = answer(&mut child, stop);
    let status = child.wait().map_err(failed)?;
    if stop.load(Ordering::Relaxed) {
        return Err(EngineError::Cancelled.into());
    }
    Ok(match (answer, sent) {
        (Ok(Some(reply)), _) => reply,
        (Err(e), _) => Reply::Failed(format!("{e} ({status})")),
        (Ok(None), Some(Err(e))) if e.kind() != ErrorKind::BrokenPipe => {
            Reply::Failed(e.to_string())
        }
        (Ok(None), _) => Reply::Failed(format!("it ended without a result ({status})")),
    })
}

/// Reads what the child prints, to its end. Meanwhile a thread passes the wish to stop on.
fn answer(child: &mut Child, stop: &AtomicBool) -> std::io::Result<Option<Reply>> {
    let Some(stdout) = child.stdout.take() else {
        return Ok(None);
    };
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let pass_on = || {
            let mut asked: Option<Instant> = None;
            while !is_over.load(Ordering::Relaxed) {
                // It is waited for only after this thread's end, so that its number is still its own.
                if let (true, Some(pid)) = (stop.load(Ordering::Relaxed), pid) {
                    match asked {
                        None => drop(kill_process(pid, Signal::TERM)),
                        Some(then) if then.elapsed() > PATIENCE => {
                            let _ = kill_process(pid, Signal::KILL);
                        }
                        Some(_) => {}
                    }
                    asked.get_or_insert_with(Instant::now);
                }
                std::thread::sleep(LOOK);
            }
        };
        if let Err(error) = std::thread::Builder::new().spawn_scoped(scope, pass_on) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(error);
        }
        let mut from = BufReader::new(stdout);
        let reply = read_line(&mut from);
        // To the end of the process.
        let _ = from.read_to_end(&mut Vec::new());
        is_over.store(true, Ordering::Relaxed);
        reply
    })
}

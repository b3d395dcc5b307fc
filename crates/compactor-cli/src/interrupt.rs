//! Signals. The first Ctrl-C asks the job to stop and clean up, the second ends the process at once. A closed
//! terminal sends SIGHUP, often twice: it only asks the job to stop.
//!
//! Until a command asks for the flag by which it stops a job, there is nothing to clean up, and a signal ends the
//! process at once.
//!
//! If a job does not stop in time, because it waits for something that never happens, this module ends the
//! process. The next run removes or completes what is unfinished.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, sleep};
use std::time::Duration;

use compactor::Observer;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::{flag, low_level};

use crate::exit_code::INTERRUPTED;
use crate::output::say;

/// Polling interval for signals.
const LOOK: Duration = Duration::from_millis(50);
/// Time that a job may take to stop, as a number of [`LOOK`]s: on a busy machine, where each takes longer, it
/// has more time.
const LOOKS: u32 = 16;
/// The same for jobs that take longer to stop: experiments, demonstrations and benchmarks end processes and remove
/// files, a compaction of a table publishes the outputs that are complete, and a swap is completed after its COMMIT.
const LOOKS_OF_LONG_END: u32 = 600;

/// What is left of a run that does not end.
const HIDDEN: &str = "what was being written, or is being replaced, may be in a hidden directory \
     (.compactor-*), which the next run removes";
/// The same of a swap.
const SWAP: &str = "the swap may be unfinished: run the same command again, or start the node";

/// Makes SIGINT and SIGTERM, and SIGHUP unless `nohup` made the process ignore it, end the process at once, until a
/// [`flag`] is asked for. Their default action has another exit code, and none in process 1 of a container.
///
/// # Errors
/// If the system refuses the handler.
pub fn end_at_once() -> std::io::Result<()> {
    for signal in signals() {
        flag::register_conditional_shutdown(signal, INTERRUPTED.into(), Arc::clone(at_once()))?;
    }
    Ok(())
}

/// Whether a signal ends the process at once.
fn at_once() -> &'static Arc<AtomicBool> {
    static AT_ONCE: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    AT_ONCE.get_or_init(|| Arc::new(AtomicBool::new(true)))
}

/// The signals that interrupt.
fn signals() -> impl Iterator<Item = c_int> {
    let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    hangup.into_iter().chain([SIGINT, SIGTERM])
}

/// Returns a flag that is set by SIGINT and SIGTERM, and by SIGHUP unless `nohup` made the process ignore it.
/// If the process has not ended about a second later, it is ended.
///
/// # Errors
/// If the system refuses the handler.
pub fn flag() -> std::io::Result<Arc<AtomicBool>> {
    flag_with(LOOKS, HIDDEN)
}

/// As [`flag`], with half a minute to publish or clean up.
///
/// # Errors
/// If the system refuses the handler.
pub fn flag_of_long_end() -> std::io::Result<Arc<AtomicBool>> {
    flag_with(LOOKS_OF_LONG_END, HIDDEN)
}

/// As [`flag_of_long_end`], for a swap.
///
/// # Errors
/// If the system refuses the handler.
pub fn flag_of_swap() -> std::io::Result<Arc<AtomicBool>> {
    flag_with(LOOKS_OF_LONG_END, SWAP)
}

fn flag_with(looks: u32, left: &'static str) -> std::io::Result<Arc<AtomicBool>> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    if let Some(interrupted) = FLAG.get() {
        return Ok(Arc::clone(interrupted));
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in signals() {
        if signal != SIGHUP {
            // Before the next: the shutdown sees the flag that an earlier signal has set.
            let seen = Arc::clone(&interrupted);
            flag::register_conditional_shutdown(signal, INTERRUPTED.into(), seen)?;
        }
        flag::register(signal, Arc::clone(&interrupted))?;
    }
    at_once().store(false, Ordering::Relaxed);
    let seen = Arc::clone(&interrupted);
    // Where there is no thread left, a second signal ends what hangs.
    let _ = Builder::new()
        .name("interrupt".to_owned())
        .spawn(move || end_what_hangs(&seen, looks, left));
    let _ = FLAG.set(Arc::clone(&interrupted));
    Ok(interrupted)
}

fn end_what_hangs(interrupted: &AtomicBool, looks: u32, left: &'static str) {
    while !interrupted.load(Ordering::Relaxed) {
        sleep(LOOK);
    }
    for _ in 0..looks {
        sleep(LOOK);
    }
    // Not on this thread: the reader of stderr may be blocked.
    let _ = Builder::new().spawn(move || {
        say(format_args!(
            "compactor: interrupted, while a file operation or a thread did not end; {left}"
        ));
    });
    sleep(LOOK);
    low_level::exit(INTERRUPTED.into());
}

/// Stops a job once the flag is set, and shows nothing.
#[derive(Debug)]
pub struct Interrupted(pub Arc<AtomicBool>);

impl Observer for Interrupted {
    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn progress(&mut self, _read_bytes: u64, _rows: u64, _partitions: u64) {}
}

/// Makes a write beyond the limit of file sizes (`ulimit -f`) fail with `EFBIG`, as any other write
/// fails, and not end the process.
///
/// # Errors
/// If the system refuses the handler.
pub fn survive_file_size_limit() -> std::io::Result<()> {
    flag::register(SIGXFSZ, Arc::default())?;
    Ok(())
}

/// Whether the process was started to ignore `signal`.
fn is_ignored(signal: c_int) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

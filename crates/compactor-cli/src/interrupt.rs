//! Signals. Ctrl-C: the first asks the job to stop and clean up, the second ends the process at once.
//! A terminal that is closed sends SIGHUP, often twice: it asks, and no more.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

/// A flag that SIGINT and SIGTERM set, and SIGHUP unless `nohup` has it ignored.
///
/// # Errors
/// If the system refuses the handler.
pub fn flag() -> std::io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    if !is_ignored(SIGHUP) {
        flag::register(SIGHUP, Arc::clone(&interrupted))?;
    }
    for signal in [SIGINT, SIGTERM] {
        // In this order: the shutdown sees the flag that an earlier signal has set.
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupted))?;
        flag::register(signal, Arc::clone(&interrupted))?;
    }
    Ok(interrupted)
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

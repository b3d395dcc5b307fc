//! Signals. Ctrl-C: the first asks the job to stop and clean up, the second ends the process at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

/// A flag that SIGINT and SIGTERM set.
///
/// # Errors
/// If the system refuses the handler.
pub fn flag() -> std::io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
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

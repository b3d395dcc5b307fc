//! CPU time and peak memory of processes, from /proc.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use procfs::process::Process;

fn process(id: u32) -> Result<Process> {
    Ok(Process::new(i32::try_from(id)?)?)
}

/// User and system time that a running process has used.
pub fn cpu(process_id: u32) -> Result<Duration> {
    let stat = process(process_id)?.stat()?;
    let ticks = stat.utime + stat.stime;
    Ok(Duration::from_millis(
        ticks * 1000 / procfs::ticks_per_second(),
    ))
}

/// The largest resident set of a process so far, in bytes.
pub fn peak_memory(process_id: u32) -> Result<u64> {
    let kib = process(process_id)?.status()?.vmhwm;
    Ok(kib.context("no VmHWM: the process has ended")? * 1024)
}

/// Restarts the measurement of [`peak_memory`].
pub fn reset_peak_memory(process_id: u32) -> Result<()> {
    Ok(fs::write(format!("/proc/{process_id}/clear_refs"), "5")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_usage() {
        let own = std::process::id();
        reset_peak_memory(own).expect("it is ours");
        assert!(peak_memory(own).expect("it runs") > 1 << 20);
        let before = cpu(own).expect("it runs");
        let begin = std::time::Instant::now();
        while cpu(own).expect("it runs") == before {
            assert!(begin.elapsed() < Duration::from_secs(60));
        }
    }
}

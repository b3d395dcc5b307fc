//! CPU time and peak memory of processes, from /proc.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// Linux reports CPU times in these, whatever the kernel's own tick is.
const TICKS_PER_SECOND: u64 = 100;

/// User and system time that a running process has used.
pub fn cpu(process_id: u32) -> Result<Duration> {
    let path = format!("/proc/{process_id}/stat");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    // The command name may hold spaces, so count from its closing parenthesis.
    let rest = text.rsplit(')').next().context("no command name")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let mut ticks = 0;
    for index in [11, 12] {
        let field = fields
            .get(index)
            .with_context(|| format!("{path} has no field {index}"))?;
        ticks += field.parse::<u64>()?;
    }
    Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

/// The largest resident set of a process so far, in bytes.
pub fn peak_memory(process_id: u32) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{process_id}/status"))?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .context("no VmHWM: the process has ended")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib * 1024)
}

/// Starts the measurement of [`peak_memory`] anew.
pub fn reset_peak_memory(process_id: u32) -> Result<()> {
    Ok(fs::write(format!("/proc/{process_id}/clear_refs"), "5")?)
}

//! Programs that are run to their end.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Maximum length of a failed program's output that is shown.
const MOST_SHOWN: usize = 20_000;

/// Runs a program, which must succeed, and returns its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().display().to_string();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    let status = output.status;
    if !status.success() {
        let [printed, errors] =
            [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        let shown: String = printed.chars().take(MOST_SHOWN).collect();
        bail!("{program} ended with {status}:\n{errors}{shown}");
    }
    String::from_utf8(output.stdout).with_context(|| format!("what {program} printed"))
}

/// Reason why a program cannot be run on this machine, if any.
pub(crate) fn missing(program: impl AsRef<OsStr>, flag: &str) -> Option<String> {
    let program = program.as_ref();
    let mut command = Command::new(program);
    let ran = command
        .arg(flag)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match ran {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("{} {flag} ended with {status}", program.display())),
        Err(error) => Some(format!("{} does not run: {error}", program.display())),
    }
}

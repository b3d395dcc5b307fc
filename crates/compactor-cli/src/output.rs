//! Results on stdout, messages on stderr.

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

/// Prints a result. A reader that has gone away, such as `head`, is no error.
///
/// # Errors
/// If stdout cannot be written for another reason.
pub fn print(text: &str) -> anyhow::Result<ExitCode> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| {
        if !text.ends_with('\n') {
            stdout.write_all(b"\n")?;
        }
        stdout.flush()
    });
    match written {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(e) => Err(anyhow::Error::new(e).context("write to stdout")),
    }
}

/// As [`print`], of a report on outputs that are published by now.
///
/// # Errors
/// As [`print`]; if that fails, the error adds that the outputs exist nevertheless.
pub fn print_of(text: &str, outputs: &[&Path]) -> anyhow::Result<ExitCode> {
    print(text).map_err(|error| match outputs {
        [] => error,
        [only] => error.context(format!("the output is in place: {}", only.display())),
        [first, ..] => error.context(format!(
            "the {} outputs are in place: {} and so on",
            outputs.len(),
            first.display()
        )),
    })
}

/// Prints a line on stderr. Errors are ignored: no work fails because stderr is closed.
pub fn say(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints notes on decisions on stderr.
pub fn say_notes(notes: &[String]) {
    for note in notes {
        say(format_args!("note: {note}"));
    }
}

/// Prints warnings on stderr.
pub fn say_warnings(warnings: &[String]) {
    for warning in warnings {
        say(format_args!("warning: {warning}"));
    }
}

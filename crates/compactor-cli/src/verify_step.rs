//! `--verify` of a merge: inputs before, output after, every byte of them.

use std::path::{Path, PathBuf};

use compactor::io::{Io, ReadMode};
use compactor::sstable::Error as FormatError;
use compactor::verify::{Finding, Severity, VerifyOptions, verify};
use compactor::{EngineError, EngineResult, NoObserver, Observer};

use crate::output::say;
use crate::progress::Progress;

/// Checks every component of the inputs; all damage goes to stderr.
///
/// # Errors
/// The first damage, a failed read, or cancellation.
pub fn inputs(
    io: &Io,
    inputs: &[PathBuf],
    mode: ReadMode,
    progress: &Progress,
) -> anyhow::Result<()> {
    let mut observer = Unseen(progress);
    let mut first = None;
    for path in inputs {
        let report = verify(io, path, &options(mode), &mut observer)?;
        for finding in report
            .findings
            .iter()
            .filter(|f| f.severity == Severity::Damage)
        {
            say(format_args!("{finding}"));
            first.get_or_insert_with(|| error(finding));
        }
    }
    match first {
        None => Ok(()),
        Some(error) => Err(compactor::Error::from(error).into()),
    }
}

/// Checks a complete output before it is published.
///
/// # Errors
/// If it is not as it should be, which is a bug, or a failed read.
pub fn output(io: &Io, data_path: &Path, mode: ReadMode) -> EngineResult<()> {
    let report = verify(io, data_path, &options(mode), &mut NoObserver)
        .map_err(|e| EngineError::Internal(format!("verify the output: {e}")))?;
    match report
        .findings
        .iter()
        .find(|f| f.severity == Severity::Damage)
    {
        None => Ok(()),
        Some(finding) => Err(EngineError::Internal(format!(
            "the output is damaged: {finding}"
        ))),
    }
}

fn options(mode: ReadMode) -> VerifyOptions {
    let mut options = VerifyOptions::default();
    options.read_mode = mode;
    options
}

fn error(finding: &Finding) -> FormatError {
    FormatError::corrupt(
        "component",
        finding.position.or(finding.offset).unwrap_or(0),
        format!("{}: {}", finding.structure, finding.expected),
        finding.found.clone(),
    )
    .with_file(&finding.path, finding.component)
}

/// Passes interruptions on; the bar is for the merge.
struct Unseen<'a>(&'a Progress);

impl Observer for Unseen<'_> {
    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    fn progress(&mut self, _read_bytes: u64, _rows: u64, _partitions: u64) {}
}

//! Verification of inputs before a run, and of each output before it is published.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use compactor_engine::merge::Observer;

use compactor_io::{Io, ReadMode, release_free_memory};

use super::Resources;
use crate::verify::{Finding, MEMORY_OF_ONE, Severity, VerifyOptions, verify, verify_all};
use crate::{Error, ErrorKind, Result};

/// Reads every byte of the inputs, of several at once as far as threads and memory suffice. The observer is notified of
/// all damage.
///
/// # Errors
/// The first damage, a failed read, or cancellation.
pub(super) fn verify_inputs(
    io: &Io,
    inputs: &[PathBuf],
    resources: &Resources,
    observer: &mut dyn Observer,
) -> Result<()> {
    let by_memory = resources.memory_bytes / MEMORY_OF_ONE;
    let at_once = resources.threads().min(by_memory);
    let mut damage = Vec::new();
    let mut silent = Silent(&mut *observer);
    let verified = verify_all(
        io,
        inputs,
        &options(resources.read_mode),
        at_once,
        &mut silent,
        |_, result| {
            match result {
                Ok(report) => damage.extend(report.findings.into_iter().filter(is_damage)),
                Err(error) => return ControlFlow::Break(error),
            }
            ControlFlow::Continue(())
        },
    );
    for finding in &damage {
        observer.message(&finding.to_string());
    }
    match (verified, damage.first()) {
        (ControlFlow::Break(error), _) => Err(error),
        (_, Some(finding)) => Err(finding.to_error().into()),
        (_, None) => Ok(()),
    }
}

/// Verifies outputs before they are published, if it is asked to.
#[derive(Debug)]
pub(crate) struct OutputCheck(Option<(Io, ReadMode)>);

impl OutputCheck {
    pub(crate) fn new(is_asked: bool, io: &Io, mode: ReadMode) -> OutputCheck {
        OutputCheck(is_asked.then(|| (io.clone(), mode)))
    }

    /// Reads a complete output.
    ///
    /// # Errors
    /// If it is not as it should be, which is a bug, a failed read, or cancellation.
    fn check<O: Observer + ?Sized>(&self, data_path: &Path, observer: &mut O) -> Result<()> {
        let Some((io, mode)) = &self.0 else {
            return Ok(());
        };
        // Memory of the merge, which has ended.
        release_free_memory();
        let report = verify(io, data_path, &options(*mode), &mut Silent(observer));
        let report = report.map_err(|error| match error.kind() {
            ErrorKind::Corrupt | ErrorKind::Unsupported => {
                Error::Internal(format!("verify the output: {error}"))
            }
            _ => error,
        })?;
        match report.findings.iter().find(|f| is_damage(f)) {
            None => Ok(()),
            Some(finding) => Err(Error::Internal(format!("the output is damaged: {finding}"))),
        }
    }
}

fn options(mode: ReadMode) -> VerifyOptions {
    let mut options = VerifyOptions::default();
    options.read_mode = mode;
    options
}

fn is_damage(finding: &Finding) -> bool {
    finding.severity == Severity::Damage
}

/// Forwards cancellation, but no progress: that of the merge is shown.
struct Silent<'a, O: ?Sized>(&'a mut O);

impl<O: Observer + ?Sized> Observer for Silent<'_, O> {
    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    fn progress(&mut self, _read_bytes: u64, _rows: u64, _partitions: u64) {}
}

/// An observer, and the check of outputs.
pub(crate) struct Verified<'a, O: ?Sized> {
    pub(crate) inner: &'a mut O,
    pub(crate) check: &'a OutputCheck,
}

impl<O: Observer + ?Sized> Observer for Verified<'_, O> {
    fn is_cancelled(&self) -> bool {
        self.inner.is_cancelled()
    }

    fn progress(&mut self, read_bytes: u64, rows: u64, partitions: u64) {
        self.inner.progress(read_bytes, rows, partitions);
    }

    fn message(&mut self, text: &str) {
        self.inner.message(text);
    }

    fn before_publish(&mut self, data_path: &Path) -> Result<()> {
        self.check.check(data_path, &mut *self.inner)?;
        self.inner.before_publish(data_path)
    }
}

#[cfg(test)]
mod tests {
    use compactor_engine::merge::NoObserver;
    use compactor_io::IoOptions;

    use super::*;

    struct Cancelled;

    impl Observer for Cancelled {
        fn is_cancelled(&self) -> bool {
            true
        }

        fn progress(&mut self, _read_bytes: u64, _rows: u64, _partitions: u64) {}
    }

    #[test]
    fn only_damage_of_an_output_is_a_bug() {
        let io = Io::new(IoOptions::default()).unwrap();
        let check = OutputCheck::new(true, &io, ReadMode::Buffered);
        let sstables = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compactor-sstable/testdata");
        let data = sstables.join("oa-ttl_ties/inputs/1/oa-1-big-Data.db");
        check.check(&data, &mut NoObserver).unwrap();
        let interrupted = check.check(&data, &mut Cancelled).unwrap_err();
        assert_eq!(interrupted.kind(), ErrorKind::Cancelled);
        let missing = sstables.join("oa-1-big-Data.db");
        let unreadable = check.check(&missing, &mut NoObserver).unwrap_err();
        assert_ne!(unreadable.kind(), ErrorKind::Internal, "{unreadable}");

        let temp = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(data.parent().unwrap()).unwrap() {
            let path = entry.unwrap().path();
            std::fs::copy(&path, temp.path().join(path.file_name().unwrap())).unwrap();
        }
        std::fs::write(temp.path().join("oa-1-big-Digest.crc32"), "1").unwrap();
        let damaged = check.check(&temp.path().join("oa-1-big-Data.db"), &mut NoObserver);
        assert_eq!(damaged.unwrap_err().kind(), ErrorKind::Internal);
    }
}

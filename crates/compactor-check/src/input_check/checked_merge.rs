//! The observer of a merge whose inputs are checked, which compares the results before anything is published.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use compactor_engine::merge::{InputRead, Observer};
use compactor_engine::read::InputTrace;
use compactor_engine::{Error, Result};
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::{Component, Error as FormatError};

use super::inputs::{Checked, CheckedInput, is_cancelled};
use crate::verify::bti_sidecar_components::TrieFeed;
use crate::verify::indexed_partitions::IndexedFeed;
use crate::verify::{Finding, Severity};

/// Polling interval of a merge that waits for the check.
const POLL: Duration = Duration::from_millis(1);

/// Listeners that the merge sends the partitions it reads.
#[derive(Debug, Default)]
pub(super) struct Feeds {
    pub(super) tries: Option<TrieFeed>,
    pub(super) indexed: Option<IndexedFeed>,
}

/// Forwards events to the caller's observer, and validates the inputs' components against the data read before
/// anything is published.
pub(super) struct CheckedMerge<'a, 'scope> {
    pub(super) inner: &'a mut dyn Observer,
    pub(super) threads: Vec<ScopedJoinHandle<'scope, Checked>>,
    pub(super) feeds: Feeds,
    pub(super) stop: &'a AtomicBool,
    pub(super) failed: &'a AtomicBool,
    pub(super) error: Option<Error>,
    /// Damage that does not stop the merge.
    pub(super) ignored: Vec<Finding>,
}

impl CheckedMerge<'_, '_> {
    /// Waits for the check; what went wrong stays in `error`.
    pub(super) fn join(&mut self) -> Option<Vec<CheckedInput>> {
        // Closing the channel ends the listeners.
        self.feeds = Feeds::default();
        let mut all = Vec::new();
        for thread in std::mem::take(&mut self.threads) {
            // It may take long, and only this loop checks for cancellation now.
            while !thread.is_finished() {
                if self.inner.is_cancelled() {
                    self.stop.store(true, Ordering::Relaxed);
                }
                std::thread::sleep(POLL);
            }
            let checked = match thread.join() {
                Ok(checked) => checked,
                Err(_) => {
                    self.failed.store(true, Ordering::Relaxed);
                    Err(Error::internal("the check of components panicked"))
                }
            };
            match checked {
                Ok((checked, ignored)) => {
                    all.extend(checked);
                    self.ignored.extend(ignored);
                }
                Err(error) => {
                    // Damage found by one thread stops the other.
                    if self.error.as_ref().is_none_or(is_cancelled) {
                        self.error = Some(error);
                    }
                }
            }
        }
        self.error.is_none().then_some(all)
    }
}

impl Observer for CheckedMerge<'_, '_> {
    fn is_cancelled(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.inner.is_cancelled()
    }

    fn progress(&mut self, read_bytes: u64, rows: u64, partitions: u64) {
        self.inner.progress(read_bytes, rows, partitions);
    }

    fn message(&mut self, text: &str) {
        self.inner.message(text);
    }

    fn before_publish(&mut self, data_path: &Path) -> Result<()> {
        self.inner.before_publish(data_path)
    }

    fn trace(&mut self, data_path: &Path) -> Option<Box<dyn InputTrace>> {
        let Feeds { tries, indexed } = &mut self.feeds;
        let of_tries = tries.as_ref().and_then(|feed| feed.trace(data_path));
        of_tries.or_else(|| indexed.as_mut()?.trace(data_path))
    }

    fn inputs_read(&mut self, inputs: &[InputRead]) -> Result<()> {
        let Some(checked) = self.join() else {
            return Err(Error::Cancelled);
        };
        let reads: HashMap<&Path, &InputRead> = inputs
            .iter()
            .map(|read| (read.data_path.as_path(), read))
            .collect();
        for input in checked {
            let Some(read) = reads.get(input.data_path.as_path()) else {
                continue;
            };
            if let Err(error) = agree(&input, read) {
                self.failed.store(true, Ordering::Relaxed);
                self.error = Some(error.into());
                return Err(Error::Cancelled);
            }
        }
        Ok(())
    }
}

/// Compares the facts that the other components state about `Data.db` with the data read.
fn agree(input: &CheckedInput, read: &InputRead) -> Result<(), FormatError> {
    let CheckedInput {
        data_path: path,
        totals,
        sidecars,
    } = input;
    let sidecar = |component: Component| match Descriptor::parse(path) {
        Ok(file) => file.descriptor.path(component),
        Err(_) => path.to_owned(),
    };
    if let Some(digest) = sidecars.digest.filter(|d| *d != read.digest) {
        return Err(FormatError::corrupt(
            "digest",
            0,
            format!("{}, the CRC32 of Data.db", read.digest),
            digest.to_string(),
        )
        .with_file(&sidecar(Component::Digest), Component::Digest));
    }
    if sidecars.places.is_some_and(|places| places != read.places) {
        return Err(FormatError::corrupt(
            "index",
            0,
            "the keys and positions of the partitions in Data.db",
            "others; `compactor verify` shows which",
        )
        .with_file(&sidecar(Component::Index), Component::Index));
    }
    let mismatches = totals.check(read.rows);
    match mismatches
        .into_iter()
        .find(|m| m.severity == Severity::Damage)
    {
        None => Ok(()),
        Some(m) => Err(FormatError::corrupt(
            "stats",
            0,
            format!("{}: {}, as of the data", m.field, m.expected),
            m.found,
        )
        .with_file(&sidecar(Component::Statistics), Component::Statistics)),
    }
}

//! Verification of SSTables: one with [`verify`], several at once with [`verify_all`].

use std::cell::Cell;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use compactor_engine::job::free_files;
use compactor_engine::merge::Observer;
use compactor_engine::read::parallel_for;
use compactor_io::Io;

pub use compactor_check::verify::{
    Finding, Severity, VerifyOptions, VerifyReport, data_digest, verify,
};

use crate::Result;
use crate::concurrent::{OneMerge, SharedObserver};

/// Descriptors that the verification of one SSTable takes. Estimated, and more than was seen.
const OPEN_FILES: u64 = 8;
/// Bytes that the verification of one SSTable takes, without filter, summary and the tries of the BTI format. Measured.
pub(crate) const MEMORY_OF_ONE: usize = 12 << 20;
/// One in this many calls of the observer is passed on: there are some per partition, and all threads share a lock.
const CALLS: u32 = 32;

/// Verifies SSTables, up to `threads` at once, fewer if the limit of open files does not suffice. Each takes some 12 MiB,
/// and the size of its filter, summary and tries. `each` gets the
/// results in the order of the paths, each as soon as it and all before it are there; after `Break`, no other
/// verification is begun. The observer gets the sum of their progress, in uncompressed bytes.
pub fn verify_all<B: Send>(
    io: &Io,
    data_paths: &[PathBuf],
    options: &VerifyOptions,
    threads: usize,
    observer: &mut dyn Observer,
    mut each: impl FnMut(&Path, Result<VerifyReport>) -> ControlFlow<B> + Send,
) -> ControlFlow<B> {
    let by_files = usize::try_from(free_files() / OPEN_FILES).unwrap_or(usize::MAX);
    let observer = SharedObserver::new(observer);
    let stopped = AtomicBool::new(false);
    let work = |number: usize| {
        let path = data_paths.get(number)?;
        if stopped.load(Ordering::Relaxed) {
            return None;
        }
        let mut seldom = Seldom {
            inner: OneMerge {
                observer: &observer,
                number,
            },
            looks: Cell::new(0),
            steps: Cell::new(0),
        };
        let result = verify(io, path, options, &mut seldom);
        if let Ok(report) = &result {
            let (bytes, rows, partitions) =
                (report.uncompressed_bytes, report.rows, report.partitions);
            seldom.inner.progress(bytes, rows, partitions);
        }
        Some((path, result))
    };
    let mut end = ControlFlow::Continue(());
    parallel_for(data_paths.len(), threads.min(by_files), work, |verified| {
        if let Some((path, result)) = verified
            && end.is_continue()
        {
            end = each(path, result);
            stopped.store(end.is_break(), Ordering::Relaxed);
        }
    });
    end
}

/// The observer of one verification, which is called less often.
struct Seldom<'a, 'o> {
    inner: OneMerge<'a, 'o>,
    /// Calls of `is_cancelled`.
    looks: Cell<u32>,
    /// Calls of `progress`.
    steps: Cell<u32>,
}

impl Observer for Seldom<'_, '_> {
    fn is_cancelled(&self) -> bool {
        is_turn(&self.looks) && self.inner.is_cancelled()
    }

    fn progress(&mut self, read_bytes: u64, rows: u64, partitions: u64) {
        if is_turn(&self.steps) {
            self.inner.progress(read_bytes, rows, partitions);
        }
    }
}

/// True the first time, and then for every [`CALLS`]th call.
fn is_turn(calls: &Cell<u32>) -> bool {
    let call = calls.get();
    calls.set((call + 1) % CALLS);
    call == 0
}

#[cfg(test)]
mod tests {
    use compactor_io::IoOptions;

    use super::*;
    use crate::{ErrorKind, NoObserver};

    /// Four SSTables, the second of which does not exist.
    fn paths() -> Vec<PathBuf> {
        let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compactor-sstable/testdata");
        let places = ["1/oa-1", "1/oa-9", "2/oa-2", "3/oa-3"];
        let path = |place| testdata.join(format!("oa-range_nested/inputs/{place}-big-Data.db"));
        places.map(path).to_vec()
    }

    /// Verifies on four threads until a result for which `is_last` is true. Returns the results.
    fn verified(
        observer: &mut dyn Observer,
        is_last: fn(&Result<VerifyReport>) -> bool,
    ) -> Vec<(PathBuf, Result<VerifyReport>)> {
        let io = Io::new(IoOptions::default()).unwrap();
        let mut results = Vec::new();
        let end = verify_all(
            &io,
            &paths(),
            &VerifyOptions::default(),
            4,
            observer,
            |path, result| {
                let is_last = is_last(&result);
                results.push((path.to_owned(), result));
                if is_last {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            },
        );
        assert_eq!(
            end.is_break(),
            results.last().is_some_and(|(_, result)| is_last(result))
        );
        results
    }

    #[derive(Default)]
    struct Recorder {
        is_cancelled: bool,
        /// Bytes, rows and partitions.
        progress: [u64; 3],
    }

    impl Observer for Recorder {
        fn is_cancelled(&self) -> bool {
            self.is_cancelled
        }

        fn progress(&mut self, read_bytes: u64, rows: u64, partitions: u64) {
            self.progress = [read_bytes, rows, partitions];
        }
    }

    #[test]
    fn results_are_in_the_order_of_the_paths_and_progress_is_their_sum() {
        let mut recorder = Recorder::default();
        let results = verified(&mut recorder, |_| false);
        let order: Vec<_> = results.iter().map(|(path, _)| path.clone()).collect();
        assert_eq!(order, paths());
        assert!(results[1].1.is_err());
        let mut expected = [0; 3];
        for report in results
            .iter()
            .filter_map(|(_, result)| result.as_ref().ok())
        {
            assert!(!report.is_damaged());
            let of_one = [report.uncompressed_bytes, report.rows, report.partitions];
            expected = [0, 1, 2].map(|n| expected[n] + of_one[n]);
        }
        assert_eq!(recorder.progress, expected);
    }

    #[test]
    fn nothing_is_delivered_after_a_break() {
        assert_eq!(verified(&mut NoObserver, Result::is_err).len(), 2);
    }

    #[test]
    fn cancellation_reaches_all() {
        let mut recorder = Recorder {
            is_cancelled: true,
            ..Recorder::default()
        };
        let results = verified(&mut recorder, |_| false);
        let errors = results
            .iter()
            .filter_map(|(_, result)| result.as_ref().err());
        let cancelled = errors.filter(|error| error.kind() == ErrorKind::Cancelled);
        assert_eq!(cancelled.count(), 3);
    }
}

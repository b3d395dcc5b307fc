//! Concurrent merges, each with its own inputs and output, like Cassandra's `concurrent_compactors`.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use compactor_engine::Result as EngineResult;
use compactor_engine::job::MergeJob;
pub use compactor_engine::job::free_files;
use compactor_engine::merge::Observer;
use compactor_io::Io;

use crate::error::{Error, ErrorKind, Result};
use crate::merge::{InputCheck, MergeRequest, run_merge};
use crate::report::MergeReport;

/// Bytes that a merge of a few small SSTables takes, buffers and all: with a smaller share it takes hardly
/// less. Measured.
const MIN_MEMORY: usize = 8 << 20;
/// Descriptors that a merge takes beside its inputs: components of the output and of an input being
/// checked, directories, locks. Estimated, and more than was seen.
const FILES_BESIDE_INPUTS: u64 = 24;
/// Minimum descriptors for the inputs of each of several concurrent merges.
const LEAST_FILES_OF_INPUTS: u64 = 16;

/// Watches several merges at once. Called from their threads.
pub trait SharedObserver: Sync {
    /// Returns true to stop all merges.
    fn is_cancelled(&self) -> bool;
    /// As [`Observer::progress`], with the merge's place in the list of requests.
    fn progress(&self, merge: usize, read_bytes: u64, rows: u64, partitions: u64);
    /// As [`Observer::before_publish`].
    ///
    /// # Errors
    /// An error stops this merge; nothing of it is published then.
    fn before_publish(&self, data_path: &Path) -> EngineResult<()> {
        let _ = data_path;
        Ok(())
    }
}

/// How many of `jobs` merges run at once if up to `asked` may: at least one, and no more than there are
/// threads, since more would share processors and all be slower for it, or than these bytes of memory and
/// [descriptors](free_files) are enough for.
pub fn merges_at_once(
    asked: usize,
    threads: usize,
    memory_bytes: usize,
    open_files: u64,
    jobs: usize,
) -> usize {
    let by_files = open_files / (FILES_BESIDE_INPUTS + LEAST_FILES_OF_INPUTS);
    asked
        .min(threads)
        .min(memory_bytes / MIN_MEMORY)
        .min(usize::try_from(by_files).unwrap_or(usize::MAX))
        .clamp(1, jobs.max(1))
}

/// Descriptors for the inputs of each of `concurrent` merges, of `open_files` that all may have. The other
/// descriptors of a single merge are already subtracted.
pub fn files_of_each(open_files: u64, concurrent: usize) -> u64 {
    let of_each = open_files / concurrent.max(1) as u64;
    match concurrent {
        0 | 1 => of_each,
        _ => of_each.saturating_sub(FILES_BESIDE_INPUTS),
    }
}

/// Runs `merges` merges, `concurrent` at a time, over one I/O layer. Returns the result of each, in order; `None` if
/// it was not begun. `request_of` is asked for each when it begins: a request may name the whole table.
///
/// Each request's `threads` and `memory_bytes` are its own: together they are `concurrent` times as
/// much. A damaged or unsupported input ends its own merge only; after any other error none is begun.
pub fn run_merges(
    io: &Io,
    merges: usize,
    request_of: &(dyn Fn(usize) -> MergeRequest + Sync),
    concurrent: usize,
    check: InputCheck,
    observer: &dyn SharedObserver,
) -> Vec<Option<Result<MergeReport>>> {
    let results: Vec<_> = (0..merges).map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let stopped = AtomicBool::new(false);
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(slot) = results.get(number) else {
                break;
            };
            if stopped.load(Ordering::Relaxed) || observer.is_cancelled() {
                break;
            }
            let mut one = One { observer, number };
            let result = MergeJob::open(io.clone(), request_of(number))
                .map_err(Error::from)
                .and_then(|job| run_merge(job, check, &mut one));
            if let Err(error) = &result
                && !matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported)
            {
                stopped.store(true, Ordering::Relaxed);
            }
            if let Ok(mut slot) = slot.lock() {
                *slot = Some(result);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..concurrent.clamp(1, merges.max(1)) {
            // With fewer threads it takes longer, no more.
            if std::thread::Builder::new()
                .spawn_scoped(scope, work)
                .is_err()
            {
                break;
            }
        }
        work();
    });
    results
        .into_iter()
        .map(|slot| slot.into_inner().unwrap_or_default())
        .collect()
}

/// One merge's view of the shared observer.
struct One<'a> {
    observer: &'a dyn SharedObserver,
    number: usize,
}

impl Observer for One<'_> {
    fn is_cancelled(&self) -> bool {
        self.observer.is_cancelled()
    }

    fn progress(&mut self, read_bytes: u64, rows: u64, partitions: u64) {
        self.observer
            .progress(self.number, read_bytes, rows, partitions);
    }

    fn before_publish(&mut self, data_path: &Path) -> EngineResult<()> {
        self.observer.before_publish(data_path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_merges_than_threads_memory_and_jobs_allow() {
        assert_eq!(merges_at_once(3, 8, 64 << 20, 9999, 100), 3);
        assert_eq!(merges_at_once(16, 2, 64 << 20, 9999, 100), 2);
        assert_eq!(merges_at_once(16, 8, 41 << 20, 9999, 100), 5);
        assert_eq!(merges_at_once(16, 8, 64 << 20, 9999, 4), 4);
        assert_eq!(merges_at_once(16, 0, 1, 9999, 4), 1);
        assert_eq!(merges_at_once(0, 2, 64 << 20, 0, 0), 1);
        assert_eq!(merges_at_once(16, 16, 128 << 20, u64::MAX, 16), 16);
    }

    #[test]
    fn merges_share_what_may_be_open() {
        assert_eq!(files_of_each(80, 0), 80);
        for open_files in [0, 22, 79, 80, 918, 100_000] {
            let concurrent = merges_at_once(64, 64, 1 << 30, open_files, 1000);
            let of_each = files_of_each(open_files, concurrent);
            if concurrent > 1 {
                assert!(of_each >= LEAST_FILES_OF_INPUTS, "{open_files}");
                let all = (of_each + FILES_BESIDE_INPUTS) * concurrent as u64;
                assert!(all <= open_files, "{open_files}");
            } else {
                assert_eq!(of_each, open_files);
            }
        }
    }
}

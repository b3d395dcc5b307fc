//! Concurrent merges, each with its own inputs and output, like Cassandra's `concurrent_compactors`.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use compactor_check::input_check::InputCheck;
use compactor_engine::job::MergeJob;
use compactor_engine::merge::Observer;
use compactor_engine::read::parallel_for;
use compactor_io::Io;

use crate::MergeRequest;
use crate::merge::run_one_merge;
use crate::report::{MergeReport, PageCache};
use crate::table::{OutputCheck, Verified};
use crate::{Error, Result};

/// Bytes that a merge of a few small SSTables takes, buffers and all: with a smaller share it takes hardly
/// less. Measured.
pub(crate) const MIN_MEMORY: usize = 8 << 20;
/// Descriptors that a merge takes in addition to those of its inputs: components of the output and of an input being
/// checked, directories, locks. Estimated, and more than was seen.
const OTHER_FILES: u64 = 24;
/// Minimum descriptors for the inputs of each of several concurrent merges.
const LEAST_FILES_OF_INPUTS: u64 = 16;

/// The observer of several merges, scrubs or verifications, at once or one after the other: it sees them as one, with
/// the sum of their progress.
pub(crate) struct SharedObserver<'a>(Mutex<Shared<'a>>);

struct Shared<'a> {
    inner: &'a mut dyn Observer,
    /// Bytes read, rows and partitions written by each merge.
    done: Vec<[u64; 3]>,
    /// Their sums.
    sums: [u64; 3],
}

impl<'a> SharedObserver<'a> {
    pub(crate) fn new(inner: &'a mut dyn Observer) -> SharedObserver<'a> {
        SharedObserver(Mutex::new(Shared {
            inner,
            done: Vec::new(),
            sums: [0; 3],
        }))
    }

    /// Whether all merges should stop.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.lock().inner.is_cancelled()
    }

    fn lock(&self) -> MutexGuard<'_, Shared<'a>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Number of `jobs` that run concurrently if up to `asked` may: at least one, and at most the number of threads (more
/// would only share processors) and the number that memory and descriptors suffice for. Each takes `memory_of_one`.
pub(crate) fn jobs_at_once(
    asked: usize,
    threads: usize,
    (memory_bytes, memory_of_one): (usize, usize),
    open_files: u64,
    jobs: usize,
) -> usize {
    let by_files = open_files / (OTHER_FILES + LEAST_FILES_OF_INPUTS);
    asked
        .min(threads)
        .min(memory_bytes / memory_of_one)
        .min(usize::try_from(by_files).unwrap_or(usize::MAX))
        .clamp(1, jobs.max(1))
}

/// Descriptors for the inputs of each of `concurrent` merges, of `open_files` that all may have. The other
/// descriptors of a single merge are already subtracted.
pub(crate) fn files_of_each(open_files: u64, concurrent: usize) -> u64 {
    let of_each = open_files / concurrent.max(1) as u64;
    match concurrent {
        0 | 1 => of_each,
        _ => of_each.saturating_sub(OTHER_FILES),
    }
}

/// Merges that run at once over one I/O layer.
pub(crate) struct ConcurrentMerges<'a, 'o> {
    pub(crate) io: &'a Io,
    /// Maximum number of concurrent merges.
    pub(crate) concurrent: usize,
    pub(crate) input_check: InputCheck,
    pub(crate) output_check: &'a OutputCheck,
    pub(crate) page_cache: PageCache,
    pub(crate) observer: &'a SharedObserver<'o>,
    /// Merges that the observer has already seen.
    pub(crate) previous_merges: usize,
    /// Whether none is begun after an error.
    pub(crate) ends_all: fn(&Error) -> bool,
}

impl ConcurrentMerges<'_, '_> {
    /// Runs `merges` merges. Returns the result of each, in order; `None` if it was not begun. `request_of` is asked
    /// for each when it begins: a request may name the whole table.
    ///
    /// Each request's `threads` and `memory_bytes` are its own: together they are `concurrent` times as
    /// much.
    pub(crate) fn run(
        &self,
        merges: usize,
        request_of: &(dyn Fn(usize) -> MergeRequest + Sync),
    ) -> Vec<Option<Result<MergeReport>>> {
        let of_one = |number, one: &mut OneMerge<'_, '_>| self.run_one(request_of(number), one);
        let (observer, previous) = (self.observer, self.previous_merges);
        run_each(
            merges,
            self.concurrent,
            observer,
            previous,
            self.ends_all,
            of_one,
        )
    }

    fn run_one(&self, request: MergeRequest, one: &mut OneMerge<'_, '_>) -> Result<MergeReport> {
        let job = MergeJob::open(self.io.clone(), request)?;
        let mut verified = Verified {
            inner: one,
            check: self.output_check,
        };
        run_one_merge(job, self.input_check, self.page_cache, &mut verified)
    }
}

/// Calls `run` with each number below `count`, up to `concurrent` at once. Returns the result of each, in order; `None`
/// if it was not begun, since the observer cancelled, or an error before it `ends_all`. `previous` runs have already been
/// reported to the observer.
pub(crate) fn run_each<R: Send>(
    count: usize,
    concurrent: usize,
    observer: &SharedObserver<'_>,
    previous: usize,
    ends_all: fn(&Error) -> bool,
    run: impl Fn(usize, &mut OneMerge<'_, '_>) -> Result<R> + Sync,
) -> Vec<Option<Result<R>>> {
    let mut results = Vec::with_capacity(count);
    let stopped = AtomicBool::new(false);
    let work = |number| {
        if stopped.load(Ordering::Relaxed) || observer.is_cancelled() {
            return None;
        }
        let mut one = OneMerge {
            observer,
            number: previous + number,
        };
        let result = run(number, &mut one);
        if result.as_ref().is_err_and(ends_all) {
            stopped.store(true, Ordering::Relaxed);
        }
        Some(result)
    };
    parallel_for(count, concurrent, work, |result| results.push(result));
    results
}

/// One merge's view of the shared observer.
pub(crate) struct OneMerge<'a, 'o> {
    pub(crate) observer: &'a SharedObserver<'o>,
    pub(crate) number: usize,
}

impl Observer for OneMerge<'_, '_> {
    fn is_cancelled(&self) -> bool {
        self.observer.is_cancelled()
    }

    fn progress(&mut self, read_bytes: u64, rows: u64, partitions: u64) {
        let shared = &mut *self.observer.lock();
        if shared.done.len() <= self.number {
            shared.done.resize(self.number + 1, [0; 3]);
        }
        let now = [read_bytes, rows, partitions];
        let before = std::mem::replace(&mut shared.done[self.number], now);
        for (sum, (before, now)) in shared.sums.iter_mut().zip(before.iter().zip(now)) {
            *sum = *sum - before + now;
        }
        let [read_bytes, rows, partitions] = shared.sums;
        shared.inner.progress(read_bytes, rows, partitions);
    }

    fn message(&mut self, text: &str) {
        self.observer.lock().inner.message(text);
    }

    fn before_publish(&mut self, data_path: &Path) -> Result<()> {
        self.observer.lock().inner.before_publish(data_path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of merges.
    fn at_once(asked: usize, threads: usize, memory: usize, files: u64, jobs: usize) -> usize {
        jobs_at_once(asked, threads, (memory, MIN_MEMORY), files, jobs)
    }

    #[test]
    fn no_more_merges_than_threads_memory_and_jobs_allow() {
        assert_eq!(at_once(3, 8, 64 << 20, 9999, 100), 3);
        assert_eq!(at_once(16, 2, 64 << 20, 9999, 100), 2);
        assert_eq!(at_once(16, 8, 41 << 20, 9999, 100), 5);
        assert_eq!(at_once(16, 8, 64 << 20, 9999, 4), 4);
        assert_eq!(at_once(16, 0, 1, 9999, 4), 1);
        assert_eq!(at_once(0, 2, 64 << 20, 0, 0), 1);
        assert_eq!(at_once(16, 16, 128 << 20, u64::MAX, 16), 16);
    }

    #[test]
    fn merges_share_the_descriptor_limit() {
        assert_eq!(files_of_each(80, 0), 80);
        for open_files in [0, 22, 79, 80, 918, 100_000] {
            let concurrent = at_once(64, 64, 1 << 30, open_files, 1000);
            let of_each = files_of_each(open_files, concurrent);
            if concurrent > 1 {
                assert!(of_each >= LEAST_FILES_OF_INPUTS, "{open_files}");
                let all = (of_each + OTHER_FILES) * concurrent as u64;
                assert!(all <= open_files, "{open_files}");
            } else {
                assert_eq!(of_each, open_files);
            }
        }
    }
}

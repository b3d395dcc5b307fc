//! Several merges at once, each of its own inputs into its own output: what Cassandra's
//! `concurrent_compactors` is to a node.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use compactor_engine::Result as EngineResult;
use compactor_engine::merge_job::MergeJob;
use compactor_engine::observer::Observer;
use compactor_io::Io;

use crate::error::{Error, ErrorKind, Result};
use crate::merge::{InputCheck, MergeRequest, run_merge};
use crate::report::MergeReport;

/// Watches several merges at once. Called from their threads.
pub trait SharedObserver: Sync {
    /// True asks all merges to stop.
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

/// Runs so many merges, `concurrent` at a time, over one I/O layer. Returns what became of each, in their
/// order; `None` if it was not begun. `request_of` is asked for each when it begins: a request may
/// name the whole table.
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
            scope.spawn(work);
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

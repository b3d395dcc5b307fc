//! The same work on several threads.

use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Result, bail};

/// Runs a job on so many threads at once, and returns the first error.
pub(crate) fn run(count: usize, job: impl Fn() -> Result<()> + Sync) -> Result<()> {
    std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..count).map(|_| scope.spawn(&job)).collect();
        jobs.into_iter().try_for_each(|job| match job.join() {
            Ok(result) => result,
            Err(_) => bail!("a job panicked"),
        })
    })
}

/// What the jobs share, even after one of them has panicked.
pub(crate) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

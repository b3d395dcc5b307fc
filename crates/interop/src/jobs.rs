//! Runs the same job on several threads.

use anyhow::{Result, bail};

/// Runs a job on `count` threads at once, and returns the first error.
pub(crate) fn run(count: usize, job: impl Fn() -> Result<()> + Sync) -> Result<()> {
    std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..count).map(|_| scope.spawn(&job)).collect();
        jobs.into_iter().try_for_each(|job| match job.join() {
            Ok(result) => result,
            Err(_) => bail!("a job panicked"),
        })
    })
}

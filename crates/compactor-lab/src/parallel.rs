//! Equal work of several threads.

use compactor::{Error, Result};

/// Runs `work` with each number below `threads`, each in a thread of its own, and returns the first error.
///
/// # Errors
/// Those of `work`, or a thread that cannot be started. `name` is what the threads do.
pub(crate) fn parallel(
    threads: usize,
    name: &'static str,
    work: impl Fn(usize) -> Result<()> + Sync,
) -> Result<()> {
    let work = &work;
    std::thread::scope(|scope| {
        let start = |number| {
            std::thread::Builder::new()
                .spawn_scoped(scope, move || work(number))
                .map_err(Error::thread(name))
        };
        let started: Vec<_> = (0..threads.max(1)).map(start).collect();
        started.into_iter().try_for_each(|thread| {
            let panicked = |_| Error::Internal(format!("{name} panicked"));
            thread?.join().map_err(panicked)?
        })
    })
}

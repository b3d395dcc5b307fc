//! Parallel map over small items whose processing mostly waits for the disk.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

use compactor_io::lock;

/// Number of items for which another thread pays off.
const PER_THREAD: usize = 16;

/// Applies `work` to each item and returns the results in order. Few items are processed by the caller's
/// thread alone; of many, up to `threads` are processed concurrently. Each is processed once, even if others
/// fail.
pub fn parallel_map<T: Sync, R: Send>(
    things: &[T],
    threads: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let threads = threads.min(things.len() / PER_THREAD);
    if threads <= 1 {
        return things.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(things.len()));
    let run = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(thing) = things.get(number) else {
                break;
            };
            let result = work(thing);
            lock(&done).push((number, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // Fewer threads only take longer.
            if Builder::new().spawn_scoped(scope, run).is_err() {
                break;
            }
        }
        run();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn results_are_in_item_order() {
        for count in [0, 1, PER_THREAD, 100 * PER_THREAD + 1] {
            let numbers: Vec<usize> = (0..count).collect();
            let doubled = parallel_map(&numbers, 7, |n| 2 * n);
            assert_eq!(doubled, numbers.iter().map(|n| 2 * n).collect::<Vec<_>>());
        }
    }

    /// The barrier deadlocks unless two items are processed concurrently.
    #[test]
    fn many_items_are_processed_concurrently() {
        let barrier = Barrier::new(2);
        let numbers: Vec<usize> = (0..2 * PER_THREAD).collect();
        let done = parallel_map(&numbers, 2, |n| {
            barrier.wait();
            *n
        });
        assert_eq!(done, numbers);
    }
}

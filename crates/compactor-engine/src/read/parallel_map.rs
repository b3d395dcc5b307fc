//! Work on several items concurrently, with results in their order.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

use compactor_io::lock;

/// Number of small items for which another thread pays off.
const PER_THREAD: usize = 16;

/// Applies `work` to each item and returns the results in order. The items are small, and processing them mostly waits
/// for the disk: few are processed by the caller's thread alone; of many, up to `threads` are processed concurrently.
/// Each is processed once, even if others fail.
pub fn parallel_map<T: Sync, R: Send>(
    things: &[T],
    threads: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let mut results = Vec::with_capacity(things.len());
    let threads = threads.min(things.len() / PER_THREAD);
    let work = |number: usize| things.get(number).map(&work);
    parallel_for(things.len(), threads, work, |result| results.extend(result));
    results
}

/// Calls `work` with each number below `count`, on up to `threads` threads, the caller's among them. Each result is
/// passed to `deliver` as soon as it and all before it are there, in order, by the thread that has the last of them.
pub fn parallel_for<R: Send>(
    count: usize,
    threads: usize,
    work: impl Fn(usize) -> R + Sync,
    deliver: impl FnMut(R) + Send,
) {
    let next = AtomicUsize::new(0);
    let delivery = Mutex::new((0, BTreeMap::new(), deliver));
    let run = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            let result = work(number);
            let (delivered, waiting, deliver) = &mut *lock(&delivery);
            waiting.insert(number, result);
            while let Some(result) = waiting.remove(delivered) {
                *delivered += 1;
                deliver(result);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(count) {
            // Fewer threads only take longer.
            if Builder::new().spawn_scoped(scope, run).is_err() {
                break;
            }
        }
        run();
    });
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

    /// The barriers deadlock unless the second number is processed beside the first, and the first result is delivered
    /// while the third is processed. By a third thread: the second may wait for that delivery.
    #[test]
    fn results_are_delivered_in_order_as_soon_as_possible() {
        let (both, delivered) = (Barrier::new(2), Barrier::new(2));
        let mut results = Vec::new();
        let work = |number| {
            match number {
                0 | 1 => both.wait(),
                _ => delivered.wait(),
            };
            number
        };
        parallel_for(3, 3, work, |number| {
            results.push(number);
            if number == 0 {
                delivered.wait();
            }
        });
        assert_eq!(results, [0, 1, 2]);
    }
}

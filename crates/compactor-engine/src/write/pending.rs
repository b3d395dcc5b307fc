//! Number of submitted blocks or tasks that are not finished yet.

use std::sync::Mutex;
use std::thread::Thread;

use compactor_io::lock;

use crate::read::workers::WorkerQueue;

/// Counter of pending items that wakes threads which wait for it to fall.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    count: usize,
    /// Waiting threads, each with the count that it waits to fall below.
    waiters: Vec<(usize, Thread)>,
}

impl Pending {
    pub(crate) fn begin(&self) {
        lock(&self.state).count += 1;
    }

    pub(crate) fn end(&self) {
        let mut state = lock(&self.state);
        state.count -= 1;
        // Only threads that can continue are woken: with many threads, futile wake-ups cost a third of the
        // CPU time.
        let count = state.count;
        let can_go_on = |waiter: &mut (usize, Thread)| count < waiter.0;
        let woken: Vec<_> = state.waiters.extract_if(.., can_go_on).collect();
        drop(state);
        for (_, thread) in woken {
            thread.unpark();
        }
    }

    /// Processes the queue until fewer than `limit` items are pending.
    pub(crate) fn wait_for_less(&self, limit: usize, queue: &WorkerQueue) {
        let me = std::thread::current();
        queue.wait_for(|| {
            let mut state = lock(&self.state);
            let is_me = |(_, other): &(usize, Thread)| other.id() == me.id();
            let place = state.waiters.iter().position(is_me);
            if state.count < limit {
                place.map(|place| state.waiters.swap_remove(place));
                return Some(());
            }
            if place.is_none() {
                state.waiters.push((limit, me.clone()));
            }
            None
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Each thread has a limit of its own, and continues only when the count falls below it.
    #[test]
    fn waiters_pass_below_their_limits() {
        let pending = Arc::new(Pending::default());
        (0..3).for_each(|_| pending.begin());
        let passed = Arc::new(AtomicUsize::new(0));
        let wait = |limit| {
            let (pending, passed) = (Arc::clone(&pending), Arc::clone(&passed));
            std::thread::spawn(move || {
                pending.wait_for_less(limit, &WorkerQueue::default());
                passed.fetch_or(1 << limit, Ordering::SeqCst);
            })
        };
        let threads = [wait(3), wait(2), wait(1)];
        while lock(&pending.state).waiters.len() < threads.len() {
            std::thread::yield_now();
        }
        for (limit, thread) in [3, 2, 1].into_iter().zip(threads) {
            assert_eq!(passed.load(Ordering::SeqCst) & (1 << limit), 0);
            pending.end();
            // Woken, instead of noticing it after the maximum sleep.
            assert!(
                lock(&pending.state)
                    .waiters
                    .iter()
                    .all(|(own, _)| *own < limit)
            );
            thread.join().unwrap();
        }
        assert!(lock(&pending.state).waiters.is_empty());
    }
}

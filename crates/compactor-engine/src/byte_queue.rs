//! What one thread hands to another, up to so many bytes.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A queue that is full when what is in it comes to a number of bytes.
#[derive(Debug)]
pub(crate) struct ByteQueue<T> {
    state: Mutex<State<T>>,
    /// Something came or went, or the queue was closed.
    changed: Condvar,
    limit: usize,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<(T, usize)>,
    bytes: usize,
    is_closed: bool,
}

impl<T> ByteQueue<T> {
    pub(crate) fn new(limit: usize) -> ByteQueue<T> {
        ByteQueue {
            state: Mutex::new(State {
                items: VecDeque::new(),
                bytes: 0,
                is_closed: false,
            }),
            changed: Condvar::new(),
            limit,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an item, once there is room: beside others, or alone, however long it is. False if nobody
    /// wants it any more.
    pub(crate) fn push(&self, item: T, bytes: usize) -> bool {
        let mut state = self.lock();
        while !state.is_closed && state.bytes > 0 && state.bytes + bytes > self.limit {
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        self.add(state, item, bytes)
    }

    /// Adds an item that takes no room.
    pub(crate) fn push_at_once(&self, item: T) {
        self.add(self.lock(), item, 0);
    }

    fn add(&self, mut state: MutexGuard<'_, State<T>>, item: T, bytes: usize) -> bool {
        if state.is_closed {
            return false;
        }
        state.bytes += bytes;
        state.items.push_back((item, bytes));
        drop(state);
        self.changed.notify_all();
        true
    }

    /// The next item; waits for it, but not much longer than `patience`.
    pub(crate) fn pop(&self, patience: Duration) -> Option<T> {
        let mut state = self.lock();
        if state.items.is_empty() {
            let waited = self.changed.wait_timeout(state, patience);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let (item, bytes) = state.items.pop_front()?;
        state.bytes -= bytes;
        drop(state);
        self.changed.notify_all();
        Some(item)
    }

    /// Nobody wants anything any more.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.items.clear();
        state.bytes = 0;
        drop(state);
        self.changed.notify_all();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn who_pushes_more_than_the_limit_waits() {
        let queue = ByteQueue::new(10);
        let pushed = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let (queue, pushed) = (&queue, &pushed);
            // One that is too long passes alone.
            scope.spawn(move || {
                for (item, bytes) in [(1, 100), (2, 4), (3, 6), (4, 1)] {
                    assert!(queue.push(item, bytes));
                    pushed.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                }
            });
            // Two and three fill it to the limit, and four waits for two to be taken.
            for (item, most) in (1..=4).zip([3, 4, 4, 4]) {
                assert_eq!(queue.pop(PATIENCE), Some(item));
                let seen = pushed.load(std::sync::atomic::Ordering::SeqCst);
                if seen > most {
                    // Who waits would wait for ever.
                    queue.close();
                    panic!("{seen} after {item}");
                }
            }
            assert_eq!(queue.pop(Duration::ZERO), None);
        });
        assert_eq!(queue.lock().bytes, 0);
    }

    #[test]
    fn nobody_waits_for_a_closed_queue() {
        let queue = ByteQueue::new(1);
        assert!(queue.push(1, 1));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| queue.push(2, 1));
            queue.close();
            assert!(!waiting.join().unwrap());
        });
        queue.push_at_once(3);
        assert_eq!(queue.pop(Duration::ZERO), None);
        assert!(queue.is_closed());
    }
}

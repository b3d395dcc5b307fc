//! Memory of the blocks of an output that are under way: being compressed, or waiting to be written.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

use crate::read::workers::WorkerQueue;

/// Counts the blocks under way, and keeps memory for the next.
#[derive(Debug)]
pub struct OutputBlocks {
    /// Who fills blocks goes on while fewer are under way.
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    under_way: usize,
    /// Who waits until fewer than so many are under way.
    waiters: Vec<(usize, Thread)>,
    spare: Vec<Vec<u8>>,
}

impl OutputBlocks {
    /// At most so many blocks are under way, but for those that waited for their turn before.
    pub fn new(most: usize) -> OutputBlocks {
        OutputBlocks {
            most: most.max(1),
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does other work until another block may be filled.
    pub(crate) fn wait(&self, queue: &WorkerQueue) {
        self.wait_for_less(self.most, queue);
    }

    /// Does other work until fewer than `count` are under way.
    pub(crate) fn wait_for_less(&self, count: usize, queue: &WorkerQueue) {
        let me = std::thread::current();
        queue.wait_for(|| {
            let mut state = self.lock();
            let is_me = |(_, other): &(usize, Thread)| other.id() == me.id();
            let place = state.waiters.iter().position(is_me);
            if state.under_way < count {
                place.map(|place| state.waiters.swap_remove(place));
                return Some(());
            }
            if place.is_none() {
                state.waiters.push((count, me.clone()));
            }
            None
        });
    }

    pub(crate) fn begin(&self) {
        self.lock().under_way += 1;
    }

    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.under_way -= 1;
        // Who would still have to wait is not woken: with many threads that would be most of what they do.
        let under_way = state.under_way;
        let is_done = |waiter: &mut (usize, Thread)| under_way < waiter.0;
        let woken: Vec<_> = state.waiters.extract_if(.., is_done).collect();
        drop(state);
        for (_, thread) in woken {
            thread.unpark();
        }
    }

    /// Memory for a block of this length, and some more for the row that exceeds it.
    pub(crate) fn take(&self, len: usize) -> Vec<u8> {
        let mut block = self.lock().spare.pop().unwrap_or_default();
        // A row longer than a block made it grow: that memory is not kept.
        block.shrink_to(len + len / 4);
        block.reserve(len + len / 8);
        block
    }

    /// Memory that is not needed any more.
    pub(crate) fn put(&self, mut block: Vec<u8>) {
        block.clear();
        if block.capacity() > 0 {
            // No more are kept than were in use at a time.
            self.lock().spare.push(block);
        }
    }
}

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
    waiters: Vec<Thread>,
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
        queue.wait_for(|| {
            let mut state = self.lock();
            if state.under_way < count {
                return Some(());
            }
            state.waiters.push(std::thread::current());
            None
        });
    }

    pub(crate) fn begin(&self) {
        self.lock().under_way += 1;
    }

    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.under_way -= 1;
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        for thread in waiters {
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

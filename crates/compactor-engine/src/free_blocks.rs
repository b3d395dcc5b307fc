//! Memory of blocks that goes round between one thread that fills them and those that empty them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Blocks that nobody uses now.
///
/// One thread takes. Where the others are slower, it would be woken for each block: some 15 µs of processor
/// time, measured, where compressing one takes 200. So it sleeps until half of the blocks are free; the other
/// half keeps the others at work meanwhile.
#[derive(Debug)]
pub(crate) struct FreeBlocks {
    state: Mutex<State>,
    /// As many are free as are awaited.
    enough: Condvar,
    /// All blocks there are.
    count: usize,
}

#[derive(Debug)]
struct State {
    free: Vec<Vec<u8>>,
    /// How many the taker sleeps for; 0 if it does not.
    awaited: usize,
}

impl FreeBlocks {
    /// `count` blocks, all of them free and without memory yet.
    pub(crate) fn new(count: usize) -> FreeBlocks {
        FreeBlocks {
            state: Mutex::new(State {
                free: vec![Vec::new(); count],
                awaited: 0,
            }),
            enough: Condvar::new(),
            count,
        }
    }

    /// A block; waits if there is none. The caller has at most one other.
    pub(crate) fn take(&self) -> Vec<u8> {
        let mut state = self.lock();
        loop {
            if let Some(block) = state.free.pop() {
                return block;
            }
            // Those who empty blocks have all but one at least: what is waited for comes.
            state = self.sleep(state, (self.count / 2).max(1));
        }
    }

    /// Waits until all blocks are free but for `taken` that the caller has.
    pub(crate) fn wait_for_all_but(&self, taken: usize) {
        let awaited = self.count - taken.min(self.count);
        drop(self.sleep(self.lock(), awaited));
    }

    /// Gives a block back.
    pub(crate) fn put(&self, block: Vec<u8>) {
        let mut state = self.lock();
        state.free.push(block);
        let is_awaited = state.awaited > 0 && state.free.len() >= state.awaited;
        if is_awaited {
            // To wake once is enough.
            state.awaited = 0;
        }
        drop(state);
        if is_awaited {
            self.enough.notify_one();
        }
    }

    fn sleep<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        awaited: usize,
    ) -> MutexGuard<'a, State> {
        while state.free.len() < awaited {
            state.awaited = awaited;
            let woken = self.enough.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No one panics while it holds this.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Whatever there is goes round, and nobody waits for what does not come.
    #[test]
    fn blocks_go_round() {
        for count in [1, 2, 3, 6, 7] {
            let blocks = FreeBlocks::new(count);
            let (sender, receiver) = mpsc::channel();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for block in receiver {
                        blocks.put(block);
                    }
                });
                let mut held = Vec::new();
                for number in 0..1000 {
                    // One is kept while the next is taken, where there are two.
                    let next = blocks.take();
                    assert!(blocks.lock().free.len() < count);
                    held.push(next);
                    if held.len() == 2 || count == 1 {
                        sender.send(held.remove(0)).unwrap();
                    }
                    if number % 100 == 99 {
                        blocks.wait_for_all_but(held.len());
                        assert_eq!(blocks.lock().free.len(), count - held.len());
                    }
                }
                for block in held {
                    sender.send(block).unwrap();
                }
                blocks.wait_for_all_but(0);
                drop(sender);
            });
            assert_eq!(blocks.lock().free.len(), count);
        }
    }
}

//! Memory of blocks that goes round between one thread that fills them and those that empty them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Blocks that nobody uses now.
///
/// One thread takes. Where the others are slower, it would be woken for each block: some 15 µs of processor
/// time, measured, where compressing one takes 200. So it sleeps until several are free; the rest keeps the
/// others at work meanwhile.
#[derive(Debug)]
pub(crate) struct FreeBlocks {
    state: Mutex<State>,
    /// As many are free as are awaited.
    enough: Condvar,
    /// All blocks there are.
    count: usize,
    /// How many whoever takes sleeps for.
    batch: usize,
}

#[derive(Debug)]
struct State {
    free: Vec<Vec<u8>>,
    /// How many the taker sleeps for; 0 if it does not.
    awaited: usize,
}

impl FreeBlocks {
    /// `count` blocks, two at least, all of them free and without memory yet, that so many threads empty. Where
    /// there are enough blocks each of them has one yet when the taker, who has another, is woken.
    pub(crate) fn new(count: usize, threads: usize) -> FreeBlocks {
        let spare = count.saturating_sub(threads + 1);
        FreeBlocks {
            state: Mutex::new(State {
                free: vec![Vec::new(); count],
                awaited: 0,
            }),
            enough: Condvar::new(),
            count,
            batch: (count / 2).min(spare).max(1),
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
            state = self.sleep(state, self.batch);
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
    use std::sync::{Arc, mpsc};
    use std::time::Duration;

    use super::*;

    #[test]
    fn who_sleeps_is_woken_once_for_several() {
        for (count, threads, batch) in [
            (8, 2, 4),
            (6, 1, 3),
            (8, 4, 3),
            (4, 3, 1),
            (2, 1, 1),
            (2, 9, 1),
        ] {
            let blocks = Arc::new(FreeBlocks::new(count, threads));
            let in_use: Vec<_> = (0..count).map(|_| blocks.take()).collect();
            let (sender, taken) = mpsc::channel();
            let taker = Arc::clone(&blocks);
            std::thread::spawn(move || sender.send(taker.take()));
            while blocks.lock().awaited == 0 {
                std::thread::yield_now();
            }
            for (freed, block) in (1..=batch).zip(in_use) {
                assert_eq!(blocks.lock().awaited, batch, "{count} and {threads}");
                assert!(
                    taken.try_recv().is_err(),
                    "woken for {} of {batch}",
                    freed - 1
                );
                blocks.put(block);
            }
            taken.recv_timeout(Duration::from_secs(60)).expect("woken");
            let state = blocks.lock();
            assert_eq!((state.awaited, state.free.len()), (0, batch - 1));
        }
    }

    /// Whatever there is goes round, and nobody waits for what does not come.
    #[test]
    fn blocks_go_round() {
        for count in [2, 3, 6, 7] {
            let blocks = FreeBlocks::new(count, 1);
            let (sender, receiver) = mpsc::channel();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for block in receiver {
                        blocks.put(block);
                    }
                });
                let mut held = Vec::new();
                for number in 0..1000 {
                    // One is kept while the next is taken.
                    held.push(blocks.take());
                    if held.len() == 2 {
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

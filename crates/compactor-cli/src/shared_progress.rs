//! One progress over several merges that run at once.

use std::sync::Mutex;

use compactor::Observer;
use compactor::concurrent::SharedObserver;

use crate::progress::Progress;

/// Shows the total progress of all merges.
pub struct SharedProgress {
    state: Mutex<State>,
}

struct State {
    progress: Progress,
    /// Bytes read, rows and partitions written by each merge.
    done: Vec<[u64; 3]>,
}

impl SharedProgress {
    /// Shows the sum of all merges.
    pub fn new(progress: Progress) -> SharedProgress {
        let done = Vec::new();
        SharedProgress {
            state: Mutex::new(State { progress, done }),
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Ok(state) = self.state.lock() {
            state.progress.finish();
        }
    }
}

impl SharedObserver for SharedProgress {
    fn is_cancelled(&self) -> bool {
        self.state
            .lock()
            .is_ok_and(|state| state.progress.is_cancelled())
    }

    fn progress(&self, merge: usize, read_bytes: u64, rows: u64, partitions: u64) {
        let Ok(mut state) = self.state.lock() else {
            return;
        };
        if state.done.len() <= merge {
            state.done.resize(merge + 1, [0; 3]);
        }
        state.done[merge] = [read_bytes, rows, partitions];
        let sum = |field: usize| state.done.iter().map(|done| done[field]).sum();
        let [read_bytes, rows, partitions] = [sum(0), sum(1), sum(2)];
        state.progress.progress(read_bytes, rows, partitions);
    }
}

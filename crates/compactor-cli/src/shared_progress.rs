//! One progress over several merges that run at once.

use std::path::Path;
use std::sync::Mutex;

use compactor::concurrent::SharedObserver;
use compactor::io::{Io, ReadMode};
use compactor::{EngineResult, Observer};

use crate::progress::Progress;
use crate::verify_step;

/// Adds up what each merge has done, and shows that.
pub struct SharedProgress {
    state: Mutex<State>,
    verify: Option<(Io, ReadMode)>,
}

struct State {
    progress: Progress,
    /// Bytes read, rows and partitions written by each merge.
    done: Vec<[u64; 3]>,
}

impl SharedProgress {
    /// For so many merges, and those that come later; with `verify`, outputs are verified before they are published.
    pub fn new(
        progress: Progress,
        merges: usize,
        verify: Option<(Io, ReadMode)>,
    ) -> SharedProgress {
        let done = vec![[0; 3]; merges];
        SharedProgress {
            state: Mutex::new(State { progress, done }),
            verify,
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

    fn before_publish(&self, data_path: &Path) -> EngineResult<()> {
        match &self.verify {
            None => Ok(()),
            Some((io, mode)) => verify_step::output(io, data_path, *mode),
        }
    }
}

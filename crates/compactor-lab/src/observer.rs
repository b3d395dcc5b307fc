//! Observers of merges, made of closures.

use compactor::Observer;

use crate::watcher::{Event, Watcher};

/// Observer that can be cancelled and notes uncompressed bytes read.
pub(crate) struct Following<C, P> {
    pub(crate) is_cancelled: C,
    pub(crate) progress: P,
}

impl<C: Fn() -> bool, P: FnMut(u64)> Observer for Following<C, P> {
    fn is_cancelled(&self) -> bool {
        (self.is_cancelled)()
    }

    fn progress(&mut self, read_bytes: u64, _rows: u64, _partitions: u64) {
        (self.progress)(read_bytes);
    }
}

/// Observer that reports the progress of work on a number of uncompressed bytes.
pub(crate) fn watched<'a>(
    watcher: &'a dyn Watcher,
    work: &'a str,
    total_bytes: u64,
) -> impl Observer + 'a {
    Following {
        is_cancelled: || watcher.is_cancelled(),
        progress: move |done_bytes| {
            watcher.event(&Event::Progress {
                work,
                done_bytes,
                total_bytes,
            });
        },
    }
}

//! Observers of merges, made of closures.

use compactor::Observer;

use crate::watcher::{Event, Watcher};

/// Observer that asks a closure whether to stop, and passes the uncompressed bytes that were read to another.
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

/// Observer that notifies a watcher of an event made of the bytes so far.
pub(crate) fn watched<'a>(
    watcher: &'a dyn Watcher,
    event: impl Fn(u64) -> Event<'a> + 'a,
) -> impl Observer + 'a {
    Following {
        is_cancelled: || watcher.is_cancelled(),
        progress: move |done_bytes| watcher.event(&event(done_bytes)),
    }
}

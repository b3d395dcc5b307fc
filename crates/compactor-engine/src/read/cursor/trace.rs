//! Notification of a listener that validates an index against the rows the cursor reads.

use std::ops::Range;

use compactor_sstable::data::clustering::Kind;

use super::{Cursor, CursorState};
use crate::read::window::BlockSource;

impl<S: BlockSource> Cursor<S> {
    /// Notifies the trace of the current unfiltered, of `len` bytes, if it listens to this partition.
    #[inline(always)]
    pub(super) fn notify_trace(&mut self, len: usize) {
        if self.is_traced {
            let start = self.window.position() - self.partition_position;
            let at = start..start + len as u64;
            if at.end >= self.traced_from {
                self.notify_trace_of(at);
            }
        }
    }

    fn notify_trace_of(&mut self, at: Range<u64>) {
        let row = self.row_head();
        let row = row.map(|head| head.clustering_start..head.clustering_end);
        let Some(trace) = &mut self.trace else {
            return;
        };
        let bytes = self.window.bytes();
        let (kind, name) = match (row, &self.state) {
            (Some(name), _) => (Kind::Clustering, name),
            (None, CursorState::Marker(head)) => (head.kind, head.bound_start..head.bound_end),
            _ => return,
        };
        let name = bytes.get(name).unwrap_or_default();
        self.traced_from = trace.unfiltered(at, kind, name, self.open);
    }
}

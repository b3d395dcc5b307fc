//! The clustering before the current one, which outlives the window.

use compactor_sstable::data::clustering::{Kind, Prefix, ValueSpan};

use super::Cursor;
use crate::read::window::BlockSource;

/// The clustering before the current one, to check that they ascend.
#[derive(Debug, Default)]
pub(super) struct PreviousClustering {
    pub(super) kind: Option<Kind>,
    pub(super) order_prefix: Option<u64>,
    /// From the unfiltered's first byte on, to the end of its clustering or beyond.
    bytes: Vec<u8>,
    spans: Vec<ValueSpan>,
}

/// Bytes that are copied at once: all of most clusterings.
const SHORT_CLUSTERING: usize = 32;

impl PreviousClustering {
    pub(super) fn prefix(&self, kind: Kind) -> Prefix<'_> {
        Prefix {
            kind,
            base: &self.bytes,
            spans: &self.spans,
        }
    }
}

impl<S: BlockSource> Cursor<S> {
    /// Keeps the clustering of the current unfiltered, which ends there, before the cursor moves on.
    #[inline(always)]
    pub(super) fn remember(&mut self, kind: Kind, end: usize) {
        let previous = &mut self.previous;
        previous.kind = Some(kind);
        previous.order_prefix = self.order_prefix;
        std::mem::swap(&mut previous.spans, &mut self.spans);
        // Spans are relative to the unfiltered, so the few bytes before its clustering are kept too.
        previous.bytes.clear();
        let bytes = self.window.bytes();
        match bytes.first_chunk::<SHORT_CLUSTERING>() {
            // A copy of constant length is a few instructions.
            Some(first) if end <= SHORT_CLUSTERING => previous.bytes.extend_from_slice(first),
            _ => previous.bytes.extend_from_slice(&bytes[..end]),
        }
    }
}

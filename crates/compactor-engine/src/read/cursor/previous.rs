//! The clustering before the current one, which outlives the window.

use compactor_sstable::data::clustering::{Kind, Prefix, ValueSpan};

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

    /// Keeps the clustering of an unfiltered, whose `bytes` it ends in there. Gives its own spans in exchange.
    #[inline(always)]
    pub(super) fn keep(
        &mut self,
        kind: Kind,
        order_prefix: Option<u64>,
        spans: &mut Vec<ValueSpan>,
        bytes: &[u8],
        end: usize,
    ) {
        self.kind = Some(kind);
        self.order_prefix = order_prefix;
        std::mem::swap(&mut self.spans, spans);
        // Spans are relative to the unfiltered, so the few bytes before its clustering are kept too.
        self.bytes.clear();
        match bytes.first_chunk::<SHORT_CLUSTERING>() {
            // A copy of constant length is a few instructions.
            Some(first) if end <= SHORT_CLUSTERING => self.bytes.extend_from_slice(first),
            _ => self.bytes.extend_from_slice(&bytes[..end]),
        }
    }
}

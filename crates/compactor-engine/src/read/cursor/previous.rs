//! Previous clustering, which outlives the window.

use compactor_sstable::data::clustering::{Kind, Prefix, ValueSpan};

/// Previous clustering, to check that clusterings ascend.
#[derive(Debug, Default)]
pub(super) struct PreviousClustering {
    pub(super) kind: Option<Kind>,
    pub(super) memcomparable_prefix: Option<u64>,
    /// Bytes from the start of the unfiltered, at least to the end of its clustering.
    bytes: Vec<u8>,
    spans: Vec<ValueSpan>,
}

/// Bytes copied unconditionally: most clusterings entirely.
const SHORT_CLUSTERING: usize = 32;

impl PreviousClustering {
    pub(super) fn prefix(&self, kind: Kind) -> Prefix<'_> {
        Prefix {
            kind,
            base: &self.bytes,
            spans: &self.spans,
        }
    }

    /// Whether it is of a bound that only closes, and `kind` that of one that only opens: at equal clusterings, Cassandra
    /// writes the two as one boundary, some writers do not.
    pub(super) fn continues_with(&self, kind: Kind) -> bool {
        self.kind
            .is_some_and(|previous| previous.is_close() && !previous.is_open())
            && kind.is_open()
            && !kind.is_close()
    }

    /// Copies the clustering of an unfiltered, which ends at `end` in `bytes`. Swaps `spans` with its own.
    #[inline(always)]
    pub(super) fn keep(
        &mut self,
        kind: Kind,
        memcomparable_prefix: Option<u64>,
        spans: &mut Vec<ValueSpan>,
        bytes: &[u8],
        end: usize,
    ) {
        self.kind = Some(kind);
        self.memcomparable_prefix = memcomparable_prefix;
        std::mem::swap(&mut self.spans, spans);
        // Spans are relative to the unfiltered, so the few bytes before its clustering are copied too.
        self.bytes.clear();
        match bytes.first_chunk::<SHORT_CLUSTERING>() {
            // A copy of constant length compiles to a few instructions.
            Some(first) if end <= SHORT_CLUSTERING => self.bytes.extend_from_slice(first),
            _ => self.bytes.extend_from_slice(&bytes[..end]),
        }
    }
}

//! Rows after the cursor's position, located several at a time.
//!
//! Locating the parts of a row is one short chain of dependent loads. In a loop over many rows the processor
//! overlaps several chains, which it cannot do between two rows of a merge.

use compactor_io::prefetch;
use compactor_sstable::data::cell::Liveness;
use compactor_sstable::data::clustering::{Kind, Prefix, ValueSpan};
use compactor_sstable::data::layout::Layout;
use compactor_sstable::data::plain_row::PlainRow;
use compactor_sstable::data::unfiltered::{RowHead, whole_row};

/// Maximum number of rows located at a time.
const MOST: usize = 16;
/// Bytes after which no further row is located: for long rows, locating each separately costs little.
const MOST_BYTES: usize = 2 << 10;

/// A row whose clustering sorts after that of the previous found row, if there is one.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundRow {
    pub(super) head: RowHead,
    /// Memcomparable prefix of its clustering, if it has one.
    pub(super) memcomparable_prefix: Option<u64>,
    plain: Option<PlainParts>,
}

/// Parts of a [`PlainRow`] other than the head of the row.
#[derive(Clone, Copy, Debug)]
struct PlainParts {
    liveness: Liveness,
    columns_start: u32,
    live_cells: u32,
    expiring_cells: u32,
}

impl PlainParts {
    /// Parts of `row`, if they fit.
    #[inline(always)]
    fn of(row: &PlainRow<'_>) -> Option<PlainParts> {
        Some(PlainParts {
            liveness: row.liveness,
            columns_start: u32::try_from(row.columns_start).ok()?,
            live_cells: row.live_cells,
            expiring_cells: row.expiring_cells,
        })
    }
}

impl FoundRow {
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        self.plain.is_some()
    }

    /// The row as a plain one, if it is; `bytes` begins with the row.
    #[inline(always)]
    pub(super) fn plain<'a>(&self, bytes: &'a [u8]) -> Option<PlainRow<'a>> {
        let parts = self.plain.as_ref()?;
        Some(PlainRow {
            bytes,
            len: self.head.len,
            clustering_end: self.head.clustering_end,
            columns_start: parts.columns_start as usize,
            liveness: parts.liveness,
            live_cells: parts.live_cells,
            expiring_cells: parts.expiring_cells,
        })
    }
}

/// Located rows and the index of the current one.
#[derive(Debug, Default)]
pub(super) struct FoundRows {
    rows: Vec<FoundRow>,
    /// Clustering values of all rows, consecutively: one span per row and clustering column.
    spans: Vec<ValueSpan>,
    at: usize,
}

/// Properties of rows that are determined while they are located.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Memcomparable prefixes, where the clustering has them.
    pub(super) memcomparable_prefixes: bool,
    /// Whether rows are plain.
    pub(super) plain: bool,
}

impl FoundRows {
    /// Locates consecutive rows at the start of `bytes`. Returns the first, which becomes the current one.
    pub(super) fn find(
        &mut self,
        bytes: &[u8],
        layout: &Layout,
        wanted: Wanted,
    ) -> Option<&FoundRow> {
        self.rows.clear();
        self.spans.clear();
        self.at = 0;
        let clustering = &layout.clustering;
        let mut rest = bytes;
        while self.rows.len() < MOST && bytes.len() - rest.len() < MOST_BYTES {
            let spans_before = self.spans.len();
            let Some(head) = whole_row(rest, layout, &mut self.spans) else {
                break;
            };
            let (previous_spans, spans) = self.spans.split_at(spans_before);
            let current = Prefix {
                kind: Kind::Clustering,
                base: rest,
                spans,
            };
            let memcomparable_prefix = if wanted.memcomparable_prefixes {
                clustering.memcomparable_prefix(current)
            } else {
                None
            };
            if let Some(previous) = self.rows.last() {
                let ascends = match (previous.memcomparable_prefix, memcomparable_prefix) {
                    (Some(previous), Some(current)) => previous < current,
                    _ => false,
                };
                if !ascends {
                    let len = previous.head.len;
                    let previous = Prefix {
                        kind: Kind::Clustering,
                        base: &bytes[bytes.len() - rest.len() - len..],
                        spans: &previous_spans[spans_before - spans.len()..],
                    };
                    // The cursor reports the violation when it reaches the row.
                    if clustering.compare(previous, current).is_ge() {
                        break;
                    }
                }
            }
            let plain = if wanted.plain {
                PlainRow::read(rest, &head, layout)
            } else {
                None
            };
            self.rows.push(FoundRow {
                head,
                memcomparable_prefix,
                plain: plain.as_ref().and_then(PlainParts::of),
            });
            rest = &rest[head.len..];
        }
        // The following bytes are read only after these rows have been processed, and are probably as many.
        let found_len = bytes.len() - rest.len();
        prefetch(bytes, found_len, found_len);
        self.rows.first()
    }

    /// Moves to the next located row, if there is one, and returns the length of the previous.
    #[inline(always)]
    pub(super) fn advance(&mut self) -> Option<(usize, &FoundRow)> {
        let next = self.rows.get(self.at + 1)?;
        let len = self.rows[self.at].head.len;
        self.at += 1;
        Some((len, next))
    }

    /// The current row.
    #[inline(always)]
    pub(super) fn current(&self) -> Option<&FoundRow> {
        self.rows.get(self.at)
    }

    /// Spans of the clustering values of the current row.
    #[inline]
    pub(super) fn spans(&self, columns: usize) -> &[ValueSpan] {
        let start = self.at * columns;
        self.spans.get(start..start + columns).unwrap_or_default()
    }
}

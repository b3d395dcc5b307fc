//! Rows from the cursor on, found several at a time.
//!
//! Finding out where a row's parts lie is one short chain of loads after the other. For many rows in one
//! loop the processor works on several of them at once; between two rows of a merge it has
//! forgotten everything.

use compactor_io::prefetch;
use compactor_sstable::data::cell::Liveness;
use compactor_sstable::data::clustering::{Kind, Prefix, ValueSpan};
use compactor_sstable::data::layout::Layout;
use compactor_sstable::data::plain_row::PlainRow;
use compactor_sstable::data::unfiltered::{RowHead, whole_row};

/// Rows that are looked for at once.
const MOST: usize = 16;
/// No further row is looked for behind so many bytes: of long rows it costs little to find each alone.
const MOST_BYTES: usize = 2 << 10;

/// A row whose clustering sorts behind that of the one before it, where there is one here.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundRow {
    pub(super) head: RowHead,
    /// That of its clustering, if it has one.
    pub(super) order_prefix: Option<u64>,
    plain: Option<PlainParts>,
}

/// What a [`PlainRow`] has beside the head of the row.
#[derive(Clone, Copy, Debug)]
struct PlainParts {
    liveness: Liveness,
    columns_start: u32,
    live_cells: u32,
    expiring_cells: u32,
}

impl PlainParts {
    /// Those of `row`, which was found in a window.
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

    /// The row, which begins where `bytes` does, if it is a plain one.
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

/// Rows that were found, and on which of them the cursor stands.
#[derive(Debug, Default)]
pub(super) struct FoundRows {
    rows: Vec<FoundRow>,
    /// Of all rows, one after the other, as many of each as there are clustering columns.
    spans: Vec<ValueSpan>,
    at: usize,
}

/// What is of interest in rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Order prefixes, where the clustering has some.
    pub(super) order_prefixes: bool,
    /// Whether rows are plain.
    pub(super) plain: bool,
}

impl FoundRows {
    /// Looks for rows one behind the other at the start of `bytes`. Returns the first, on which the
    /// cursor is to stand.
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
            let order_prefix = match wanted.order_prefixes {
                true => clustering.order_prefix(current),
                false => None,
            };
            if let Some(previous) = self.rows.last() {
                let ascends = match (previous.order_prefix, order_prefix) {
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
                    // The cursor says what is wrong when it comes there.
                    if clustering.compare(previous, current).is_ge() {
                        break;
                    }
                }
            }
            let plain = match wanted.plain {
                true => PlainRow::read(rest, &head, layout),
                false => None,
            };
            self.rows.push(FoundRow {
                head,
                order_prefix,
                plain: plain.as_ref().and_then(PlainParts::of),
            });
            rest = &rest[head.len..];
        }
        // What comes next is looked at only when these rows have been dealt with, and is likely to be as
        // long.
        let found_len = bytes.len() - rest.len();
        prefetch(bytes, found_len, found_len);
        self.rows.first()
    }

    /// Moves to the next row, if there is one here, and returns the length of the one before.
    #[inline(always)]
    pub(super) fn advance(&mut self) -> Option<(usize, &FoundRow)> {
        let next = self.rows.get(self.at + 1)?;
        let len = self.rows[self.at].head.len;
        self.at += 1;
        Some((len, next))
    }

    /// The row on which the cursor stands.
    #[inline(always)]
    pub(super) fn current(&self) -> Option<&FoundRow> {
        self.rows.get(self.at)
    }

    /// Where the values of its clustering lie.
    #[inline]
    pub(super) fn spans(&self, columns: usize) -> &[ValueSpan] {
        let start = self.at * columns;
        self.spans.get(start..start + columns).unwrap_or_default()
    }
}

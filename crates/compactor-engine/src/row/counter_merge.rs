//! Merging of counter cells: their contexts are added up instead of one being chosen.
//!
//! Merged contexts are new bytes, stored next to the merged row, each after the path of its cell if the column is
//! complex. A cell with such a value has [`MERGED_VALUE`] as its version.
//!
//! Source: `Cells.resolveCounter`, `DeserializationHelper.maybeClearCounterValue`.

use compactor_sstable::data::cell::{Cell, Span};
use compactor_sstable::data::counter::{Context, Merged, merge};
use compactor_sstable::data::deletion_time::NO_DELETION_TIME;
use compactor_sstable::{Error, Result};

use crate::row::reconcile::{CellInRow, first_wins};

/// Version of a cell whose value was merged from several counter contexts.
pub const MERGED_VALUE: u32 = u32::MAX;

/// Merged counter contexts of one row.
#[derive(Clone, Debug, Default)]
pub struct Contexts {
    bytes: Vec<u8>,
    scratch: Vec<u8>,
}

impl Contexts {
    /// Removes all contexts.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// All contexts, consecutively: the row bytes of cells of version [`MERGED_VALUE`].
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Makes the last context the value of `cell`. It begins at `start`, after the path, if the cell has one.
    ///
    /// # Errors
    /// The contexts of a row are longer than a span can address.
    fn take_last(&self, start: usize, path_len: usize, cell: &mut Cell) -> Result<()> {
        let Ok(end) = u32::try_from(self.bytes.len()) else {
            let reason = "more than 4 GiB of counter contexts in one row";
            return Err(Error::unsupported(reason));
        };
        let value = (start + path_len) as u32;
        cell.path = Span::new(start as u32, path_len as u32);
        cell.value = Span::new(value, end - value);
        cell.version = MERGED_VALUE;
        Ok(())
    }

    /// Makes the local shards of a simple counter that was read from `row` remote, if its context asks for it. In
    /// complex columns Cassandra leaves them as they are (`Cell.Serializer.deserialize`).
    ///
    /// # Errors
    /// Corruption if a live cell's value is not a context.
    pub fn clear_local(&mut self, cell: &mut Cell, row: &[u8]) -> Result<()> {
        // Tombstones have no context, and values may be empty.
        if cell.local_deletion_time == NO_DELETION_TIME && !cell.value.is_empty() {
            let context = Context::parse(cell.value.of(row))?;
            let start = self.bytes.len();
            if context.should_clear_local() && context.clear_local(&mut self.bytes) {
                return self.take_last(start, 0, cell);
            }
        }
        Ok(())
    }

    /// Bytes that contain a cell's path and value: `row`, or the merged contexts.
    pub(super) fn row_of<'r>(&'r self, cell: &Cell, row: &'r [u8]) -> &'r [u8] {
        match cell.version {
            MERGED_VALUE => &self.bytes,
            _ => row,
        }
    }

    /// Reconciles two versions of a live cell, or a live cell and a tombstone, and replaces the left one by the
    /// result. Either value may be a merged context. Two tombstones are reconciled as regular cells, of which the left
    /// one stays if they differ only in the bytes of their paths.
    ///
    /// # Errors
    /// Corruption if a value is not a context.
    pub fn add(
        &mut self,
        (left, left_row): (&mut Cell, &[u8]),
        (right, right_row): CellInRow<'_>,
    ) -> Result<()> {
        if let Some(is_left) = left_survives((left, left_row), (right, right_row)) {
            if !is_left {
                *left = *right;
            }
            return Ok(());
        }
        let mut made = std::mem::take(&mut self.scratch);
        made.clear();
        let bytes = self.row_of(left, left_row);
        let (path, a) = (left.path.of(bytes), left.value.of(bytes));
        let b = right.value.of(self.row_of(right, right_row));
        made.extend_from_slice(path);
        let path_len = path.len();
        let mut merged = merge(&Context::parse(a)?, &Context::parse(b)?, &mut made);
        if merged == Merged::Right && right.timestamp < left.timestamp {
            // The path is that of the left cell.
            made.extend_from_slice(b);
            merged = Merged::New;
        }
        // Other times are those of the left cell.
        left.timestamp = left.timestamp.max(right.timestamp);
        match merged {
            Merged::Left => {}
            Merged::Right => {
                (left.path, left.value, left.version) = (right.path, right.value, right.version);
            }
            Merged::New => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(&made);
                self.take_last(start, path_len, left)?;
            }
        }
        self.scratch = made;
        Ok(())
    }

    /// Whether reconciling `left` with `right` returns `right` unchanged, which then includes all counts of
    /// `left`.
    ///
    /// # Errors
    /// Corruption if a value is not a context.
    pub fn gives_right(&self, left: CellInRow<'_>, right: CellInRow<'_>) -> Result<bool> {
        let ((left, left_row), (right, right_row)) = (left, right);
        if let Some(is_left) = left_survives((left, left_row), (right, right_row)) {
            return Ok(!is_left);
        }
        let a = left.value.of(self.row_of(left, left_row));
        let b = right.value.of(self.row_of(right, right_row));
        let merged = merge(&Context::parse(a)?, &Context::parse(b)?, &mut Vec::new());
        Ok(matches!(merged, Merged::Right) && right.timestamp >= left.timestamp)
    }
}

/// Whether the left of two counters survives unchanged, or the right one; `None` if they are added up. The rows are
/// those of tombstones, which have no merged values.
fn left_survives(left: CellInRow<'_>, right: CellInRow<'_>) -> Option<bool> {
    let (a, b) = (left.0, right.0);
    // A deleted counter stays deleted, whatever the timestamps (CASSANDRA-7346).
    match (a.is_tombstone(), b.is_tombstone()) {
        (true, true) => return Some(first_wins(left, right)),
        (true, false) => return Some(true),
        (false, true) => return Some(false),
        (false, false) => {}
    }
    match (a.value.is_empty(), b.value.is_empty()) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        (true, true) => Some(a.timestamp > b.timestamp),
        (false, false) => None,
    }
}

//! Counter cells: their contexts are added up, not chosen between.
//!
//! Merged contexts are new bytes, which are kept beside the row that is merged; a cell whose value is among them
//! has [`MERGED_VALUE`] as its version.
//!
//! Source: `Cells.resolveCounter`, `DeserializationHelper.maybeClearCounterValue`.

use compactor_sstable::Result;
use compactor_sstable::data::cell::{Cell, Span};
use compactor_sstable::data::counter::{Context, Merged, merge};
use compactor_sstable::data::deletion_time::NO_DELETION_TIME;

use crate::row::reconcile::{CellInRow, left_wins};

/// Version of a cell whose value a merge of counters made.
pub const MERGED_VALUE: u32 = u32::MAX;

/// Contexts that merges of one row made.
#[derive(Clone, Debug, Default)]
pub struct Contexts {
    bytes: Vec<u8>,
    scratch: Vec<u8>,
}

impl Contexts {
    /// Forgets all of them.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// All of them, one after the other: the row of cells of version [`MERGED_VALUE`].
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The cell with what was made last, from `start` on, as its value.
    fn made(&self, start: usize, cell: Cell) -> Cell {
        Cell {
            value: Span::new(start as u32, (self.bytes.len() - start) as u32),
            version: MERGED_VALUE,
            ..cell
        }
    }

    /// Takes a cell as it was read, clearing local shards that are marked for it.
    ///
    /// # Errors
    /// Corruption if a live cell's value is no context.
    pub fn read(&mut self, (cell, row): CellInRow<'_>) -> Result<Cell> {
        // Tombstones have no context, and values may be empty.
        if cell.local_deletion_time == NO_DELETION_TIME && !cell.value.is_empty() {
            let context = Context::parse(cell.value.of(row))?;
            let start = self.bytes.len();
            if context.should_clear_local() && context.clear_local(&mut self.bytes) {
                return Ok(self.made(start, *cell));
            }
        }
        Ok(*cell)
    }

    /// The bytes that a cell's value is in, if its row is `row` unless a merge made it.
    fn row_of<'r>(&'r self, cell: &Cell, row: &'r [u8]) -> &'r [u8] {
        match cell.version {
            MERGED_VALUE => &self.bytes,
            _ => row,
        }
    }

    /// Reconciles two versions of a live cell, or a live one and a tombstone, either of which may have been made
    /// here. Two tombstones are not counter cells: they are reconciled as any others.
    ///
    /// # Errors
    /// Corruption if a value is no context.
    pub fn reconcile(&mut self, left: CellInRow<'_>, right: CellInRow<'_>) -> Result<Cell> {
        let ((left, left_row), (right, right_row)) = (left, right);
        match (left.is_tombstone(), right.is_tombstone()) {
            (true, true) => {
                let is_left = left_wins((left, left_row), (right, right_row));
                return Ok(if is_left { *left } else { *right });
            }
            // A deleted counter stays deleted, whatever the timestamps (CASSANDRA-7346).
            (true, false) => return Ok(*left),
            (false, true) => return Ok(*right),
            (false, false) => {}
        }
        match (left.value.is_empty(), right.value.is_empty()) {
            (true, false) => return Ok(*left),
            (false, true) => return Ok(*right),
            (true, true) => {
                let is_left = left.timestamp > right.timestamp;
                return Ok(if is_left { *left } else { *right });
            }
            (false, false) => {}
        }
        let mut made = std::mem::take(&mut self.scratch);
        made.clear();
        let a = left.value.of(self.row_of(left, left_row));
        let b = right.value.of(self.row_of(right, right_row));
        let merged = merge(&Context::parse(a)?, &Context::parse(b)?, &mut made);
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&made);
        self.scratch = made;
        let timestamp = left.timestamp.max(right.timestamp);
        Ok(match merged {
            Merged::Left => Cell { timestamp, ..*left },
            // Its other times are those of the left one.
            Merged::Right => Cell {
                timestamp,
                value: right.value,
                version: right.version,
                ..*left
            },
            Merged::New => self.made(start, Cell { timestamp, ..*left }),
        })
    }

    /// Whether reconciling `left` with `right` gives `right` as it is: what it counted is all in there.
    ///
    /// # Errors
    /// Corruption if a value is no context.
    pub fn gives_right(&self, left: CellInRow<'_>, right: CellInRow<'_>) -> Result<bool> {
        let ((left, left_row), (right, right_row)) = (left, right);
        let (left_row, right_row) = (self.row_of(left, left_row), self.row_of(right, right_row));
        match (left.is_tombstone(), right.is_tombstone()) {
            (true, true) => return Ok(!left_wins((left, left_row), (right, right_row))),
            (true, false) => return Ok(false),
            (false, true) => return Ok(true),
            (false, false) => {}
        }
        Ok(match (left.value.is_empty(), right.value.is_empty()) {
            (true, false) => false,
            (false, true) => true,
            (true, true) => left.timestamp <= right.timestamp,
            (false, false) => {
                let (a, b) = (left.value.of(left_row), right.value.of(right_row));
                let merged = merge(&Context::parse(a)?, &Context::parse(b)?, &mut Vec::new());
                matches!(merged, Merged::Right) && right.timestamp >= left.timestamp
            }
        })
    }
}

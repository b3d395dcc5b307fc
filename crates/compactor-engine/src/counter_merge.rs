//! Counter cells: their contexts are added up, not chosen between.
//!
//! Merged contexts are new bytes, so a row owns them; everything else of a row is a view.
//!
//! Source: `Cells.resolveCounter`, `DeserializationHelper.maybeClearCounterValue`.

use std::ops::Range;

use compactor_sstable::Result;
use compactor_sstable::data::cell::CellView;
use compactor_sstable::data::counter::{Context, Merged, merge};
use compactor_sstable::data::deletion_time::NO_DELETION_TIME;

/// The value of a counter cell: as it was read, or made by a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value<'a> {
    Read(&'a [u8]),
    Made(Range<usize>),
}

/// A counter cell being merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterCell<'a> {
    cell: CellView<'a>,
    value: Value<'a>,
}

/// Contexts that merges of one row made.
#[derive(Clone, Debug, Default)]
pub struct Contexts {
    bytes: Vec<u8>,
    scratch: Vec<u8>,
}

impl Contexts {
    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// The bytes of a context.
    pub fn get(&self, range: &Range<usize>) -> &[u8] {
        self.bytes.get(range.clone()).unwrap_or_default()
    }

    /// Takes a cell as it was read, clearing local shards that are marked for it.
    ///
    /// # Errors
    /// Corruption if a live cell's value is no context.
    pub fn read<'a>(&mut self, cell: CellView<'a>) -> Result<CounterCell<'a>> {
        let mut value = Value::Read(cell.value);
        // Tombstones have no context, and values may be empty.
        if cell.local_deletion_time == NO_DELETION_TIME && !cell.value.is_empty() {
            let context = Context::parse(cell.value)?;
            let start = self.bytes.len();
            if context.should_clear_local() && context.clear_local(&mut self.bytes) {
                value = Value::Made(start..self.bytes.len());
            }
        }
        Ok(CounterCell { cell, value })
    }

    fn bytes_of<'s>(&'s self, value: &Value<'s>) -> &'s [u8] {
        match value {
            Value::Read(bytes) => bytes,
            Value::Made(range) => self.get(range),
        }
    }

    /// Reconciles two versions of a live cell, or a live one and a tombstone. Two tombstones are not
    /// counter cells: they are reconciled as any others.
    ///
    /// # Errors
    /// Corruption if a value is no context.
    pub fn reconcile<'a>(
        &mut self,
        left: CounterCell<'a>,
        right: CounterCell<'a>,
    ) -> Result<CounterCell<'a>> {
        match (left.cell.is_tombstone(), right.cell.is_tombstone()) {
            (true, true) => {
                let winner = crate::reconcile::reconcile(left.cell, right.cell);
                return Ok(if winner == left.cell { left } else { right });
            }
            // A deleted counter stays deleted, whatever the timestamps (CASSANDRA-7346).
            (true, false) => return Ok(left),
            (false, true) => return Ok(right),
            (false, false) => {}
        }
        let mut made = std::mem::take(&mut self.scratch);
        made.clear();
        let (a, b) = (self.bytes_of(&left.value), self.bytes_of(&right.value));
        match (a.is_empty(), b.is_empty()) {
            (true, false) => return Ok(left),
            (false, true) => return Ok(right),
            (true, true) => {
                let newer = left.cell.timestamp > right.cell.timestamp;
                return Ok(if newer { left } else { right });
            }
            (false, false) => {}
        }
        let merged = merge(&Context::parse(a)?, &Context::parse(b)?, &mut made);
        let timestamp = left.cell.timestamp.max(right.cell.timestamp);
        let value = match merged {
            Merged::Left => left.value,
            Merged::Right => right.value,
            Merged::New => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(&made);
                Value::Made(start..self.bytes.len())
            }
        };
        self.scratch = made;
        Ok(CounterCell {
            cell: CellView {
                timestamp,
                ..left.cell
            },
            value,
        })
    }
}

impl Contexts {
    /// Whether reconciling `left` with `right` gives `right` as it is: what it counted is all in there.
    ///
    /// # Errors
    /// Corruption if a value is no context.
    pub fn gives_right(&mut self, left: &CounterCell<'_>, right: &CounterCell<'_>) -> Result<bool> {
        match (left.cell.is_tombstone(), right.cell.is_tombstone()) {
            (true, true) => {
                return Ok(crate::reconcile::reconcile(left.cell, right.cell) != left.cell);
            }
            (true, false) => return Ok(false),
            (false, true) => return Ok(true),
            (false, false) => {}
        }
        let (a, b) = (self.bytes_of(&left.value), self.bytes_of(&right.value));
        Ok(match (a.is_empty(), b.is_empty()) {
            (true, false) => false,
            (false, true) => true,
            (true, true) => left.cell.timestamp <= right.cell.timestamp,
            (false, false) => {
                let merged = merge(&Context::parse(a)?, &Context::parse(b)?, &mut Vec::new());
                matches!(merged, Merged::Right) && right.cell.timestamp >= left.cell.timestamp
            }
        })
    }
}

impl<'a> CounterCell<'a> {
    /// When it was written.
    pub fn timestamp(&self) -> i64 {
        self.cell.timestamp
    }

    /// The cell; its value too unless a merge made it, in which case the range tells which context.
    pub fn into_parts(self) -> (CellView<'a>, Option<Range<usize>>) {
        match self.value {
            Value::Read(value) => (CellView { value, ..self.cell }, None),
            Value::Made(range) => (
                CellView {
                    value: &[],
                    ..self.cell
                },
                Some(range),
            ),
        }
    }
}

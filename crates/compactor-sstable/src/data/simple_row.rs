//! Rows of simple columns, read in one go: what INSERT, UPDATE and DELETE leave in tables without
//! collections and counters.
//!
//! [`RowBody`](crate::data::row::RowBody) reads any row step by step, and each step can say what is wrong
//! and where. Here a row that is not read to its end without a doubt is simply none: whoever wants to know
//! why opens it as `RowBody`. A property test holds the two to the same answers.
//!
//! Source: `UnfilteredSerializer.deserializeRowBody`, `Cell.Serializer.deserialize`,
//! `BTreeRow.Builder`.

use crate::data::cell::{CellView, Liveness, NO_TIMESTAMP, NO_TTL, decode_local_deletion_time};
use crate::data::columns::LIST_FORM_FROM;
use crate::data::deletion_time::{DeletionTime, NO_DELETION_TIME};
use crate::data::deltas;
use crate::data::flags;
use crate::data::layout::{Layout, PlainValue};
use crate::data::parse::MAX_VALUE_LEN;
use crate::data::unfiltered::RowHead;
use crate::vint;

/// A cell of a simple column; its value lies in the bytes of its row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimpleCell {
    /// As in [`CellView`].
    pub timestamp: i64,
    /// As in [`CellView`], seconds.
    pub local_deletion_time: i64,
    /// As in [`CellView`], seconds.
    pub ttl: i32,
    /// Where the value begins, from the row's first byte on.
    pub value_start: u32,
    /// Its length; 0 where there is none.
    pub value_len: u32,
}

impl SimpleCell {
    /// The cell, of a row whose bytes these are.
    ///
    /// # Panics
    /// If the row is another one, and ends earlier.
    #[inline]
    pub fn view<'a>(&self, row: &'a [u8]) -> CellView<'a> {
        let start = self.value_start as usize;
        CellView {
            timestamp: self.timestamp,
            local_deletion_time: self.local_deletion_time,
            ttl: self.ttl,
            path: &[],
            value: &row[start..start + self.value_len as usize],
        }
    }
}

/// A row, not the static one, that has cells of simple columns alone, none of them counters or of a type
/// whose values have no bytes, in a table of less than 64 regular columns.
#[derive(Clone, Copy, Debug)]
pub struct SimpleRow<'a> {
    /// From the row's first byte on; may be longer than the row.
    pub bytes: &'a [u8],
    /// Columns that are present, a bit each.
    pub present: u64,
    /// Primary-key liveness, empty where the row's own deletion covers it.
    pub liveness: Liveness,
    /// Row deletion.
    pub deletion: DeletionTime,
    /// Length of the row; all places are counted from its first byte.
    len: usize,
    clustering_start: usize,
    clustering_end: usize,
    body_start: usize,
    cells_start: usize,
    /// Liveness as written, which cells may refer to.
    written_liveness: Liveness,
    /// Cells up to this timestamp are covered by the row's own deletion.
    deleted_up_to: i64,
}

impl<'a> SimpleRow<'a> {
    /// Reads the row at the start of `from_row` up to its cells. `None` if it is another sort of row or
    /// damaged.
    #[inline(always)]
    pub fn read(from_row: &'a [u8], head: &RowHead, layout: &Layout) -> Option<SimpleRow<'a>> {
        const OTHERS: u8 = flags::HAS_COMPLEX_DELETION | flags::EXTENSION_FLAG;
        let columns = layout.regular_columns.len();
        if head.flags & OTHERS != 0 || head.extended_flags != 0 || columns >= LIST_FORM_FROM {
            return None;
        }
        let bytes = from_row.get(..head.len)?;
        let mut pos = head.body_start;
        let mut written_liveness = Liveness::EMPTY;
        if head.flags & flags::HAS_TIMESTAMP != 0 {
            let timestamp = deltas::timestamp(bytes, &mut pos, layout)?;
            // That of no liveness.
            if timestamp == NO_TIMESTAMP {
                return None;
            }
            written_liveness.timestamp = timestamp;
            if head.flags & flags::HAS_TTL != 0 {
                let ttl = deltas::ttl(bytes, &mut pos, layout)?;
                let seconds = deltas::seconds(bytes, &mut pos, layout)?;
                let seconds = decode_local_deletion_time(seconds, ttl, layout.version);
                written_liveness = Liveness::new(timestamp, ttl, seconds);
            } else if !layout.stated.may_live() {
                return None;
            }
        }
        let mut liveness = written_liveness;
        let mut deletion = DeletionTime::LIVE;
        if head.flags & flags::HAS_DELETION != 0 {
            let marked_for_delete_at = deltas::timestamp(bytes, &mut pos, layout)?;
            // That of no deletion.
            if marked_for_delete_at == DeletionTime::LIVE.marked_for_delete_at {
                return None;
            }
            let seconds = deltas::seconds(bytes, &mut pos, layout)?;
            deletion = DeletionTime::build(marked_for_delete_at, seconds);
            if deletion.deletes(liveness.timestamp) {
                liveness = Liveness::EMPTY;
            }
        }
        let mut present = (1u64 << columns) - 1;
        if !head.has_all_columns() {
            let missing = vint::read_unsigned(bytes, &mut pos)?;
            if missing & !present != 0 {
                return None;
            }
            present &= !missing;
        }
        // Complex columns stand behind all others in headers: the last tells, before a cell is read.
        let last = present.checked_ilog2().map(|last| last as usize);
        if last.is_some_and(|last| layout.regular_columns[last].is_complex) {
            return None;
        }
        Some(SimpleRow {
            bytes: from_row,
            present,
            liveness,
            deletion,
            len: head.len,
            clustering_start: head.clustering_start,
            clustering_end: head.clustering_end,
            body_start: head.body_start,
            cells_start: pos,
            written_liveness,
            deleted_up_to: deletion.marked_for_delete_at,
        })
    }

    /// The serialized clustering, without kind or count.
    #[inline(always)]
    pub fn clustering(&self) -> &'a [u8] {
        let clustering = self.bytes.get(self.clustering_start..self.clustering_end);
        clustering.unwrap_or_default()
    }

    /// Length of the body without sizes, an estimate of what it will take when written.
    #[inline(always)]
    pub fn body_len(&self) -> usize {
        self.len - self.body_start
    }

    /// Its cells, none of which is read yet.
    #[inline(always)]
    pub fn cells(&self) -> SimpleCells<'a> {
        SimpleCells {
            bytes: self.bytes.get(..self.len).unwrap_or_default(),
            pos: self.cells_start,
            present: self.present,
            written_liveness: self.written_liveness,
            deleted_up_to: self.deleted_up_to,
        }
    }
}

/// The cells of a [`SimpleRow`], in the order of their columns.
#[derive(Clone, Copy, Debug)]
pub struct SimpleCells<'a> {
    /// The row.
    bytes: &'a [u8],
    pos: usize,
    /// Columns whose cells are still to come, a bit each.
    present: u64,
    /// Liveness as written, which cells may refer to.
    written_liveness: Liveness,
    /// Cells up to this timestamp are covered by the row's own deletion.
    deleted_up_to: i64,
}

impl SimpleCells<'_> {
    /// The next cell that the row's own deletion does not cover, and the index of its column; `layout` is
    /// that of [`SimpleRow::read`]. The outer `None` means that the row is damaged: what was returned
    /// until then means nothing.
    #[inline(always)]
    pub fn next(&mut self, layout: &Layout) -> Option<Option<(usize, SimpleCell)>> {
        while self.present != 0 {
            let index = self.present.trailing_zeros() as usize;
            self.present &= self.present - 1;
            let column = layout.regular_columns.get(index)?;
            let cell = self.cell(column.plain_value, layout)?;
            if cell.timestamp > self.deleted_up_to {
                return Some(Some((index, cell)));
            }
        }
        (self.pos == self.bytes.len()).then_some(None)
    }

    #[inline(always)]
    fn cell(&mut self, value: PlainValue, layout: &Layout) -> Option<SimpleCell> {
        let (bytes, pos) = (self.bytes, &mut self.pos);
        let flag_byte = *bytes.get(*pos)?;
        *pos += 1;
        let timestamp = match flag_byte & flags::CELL_USE_ROW_TIMESTAMP {
            0 => deltas::timestamp(bytes, pos, layout)?,
            _ => self.written_liveness.timestamp,
        };
        const DIES: u8 = flags::CELL_IS_DELETED | flags::CELL_IS_EXPIRING | flags::CELL_USE_ROW_TTL;
        let (mut local_deletion_time, mut cell_ttl) = (NO_DELETION_TIME, NO_TTL);
        if flag_byte & DIES != 0 {
            if flag_byte & flags::CELL_USE_ROW_TTL != 0 {
                local_deletion_time = self.written_liveness.local_expiration_time;
                cell_ttl = self.written_liveness.ttl;
            } else {
                local_deletion_time = deltas::seconds(bytes, pos, layout)?;
                if flag_byte & flags::CELL_IS_EXPIRING != 0 {
                    cell_ttl = deltas::ttl(bytes, pos, layout)?;
                }
            }
            local_deletion_time =
                decode_local_deletion_time(local_deletion_time, cell_ttl, layout.version);
        } else if !layout.stated.may_live() {
            return None;
        }
        let is_empty = flag_byte & flags::CELL_HAS_EMPTY_VALUE != 0;
        let value_len = match value {
            PlainValue::None => return None,
            _ if is_empty => 0,
            PlainValue::Fixed(len) => u64::from(len),
            PlainValue::WithLength => vint::read_unsigned(bytes, pos)?,
        };
        let value_start = *pos;
        if value_len > ((bytes.len() - value_start) as u64).min(MAX_VALUE_LEN as u64) {
            return None;
        }
        *pos += value_len as usize;
        Some(SimpleCell {
            timestamp,
            local_deletion_time,
            ttl: cell_ttl,
            value_start: u32::try_from(value_start).ok()?,
            value_len: u32::try_from(value_len).ok()?,
        })
    }
}

#[cfg(test)]
mod tests;

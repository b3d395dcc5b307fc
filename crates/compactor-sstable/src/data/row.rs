//! The body of a row, read column by column.
//!
//! ```text
//! body    := [timestamp] [ttl, local deletion time] [deletion] [columns subset] column data*
//! cell    := flags | [timestamp] | [local deletion time] | [ttl] | [path] | [value]
//! complex := [deletion] | uvint count | cell*
//! ```
//!
//! All times are deltas to the header's encoding stats. In the liveness the TTL comes first, in a
//! cell the local deletion time.
//!
//! Source: `UnfilteredSerializer.deserializeRowBody`, `Cell.Serializer.deserialize`.

use crate::data::cell::{CellView, Liveness, NO_TTL, decode_local_deletion_time};
use crate::data::columns::PresentColumns;
use crate::data::deletion_time::{DeletionTime, NO_DELETION_TIME};
use crate::data::flags;
use crate::data::layout::{ColumnLayout, Layout};
use crate::data::parse::MAX_VALUE_LEN;
use crate::data::unfiltered::{RowHead, delta_seconds};
use crate::error::{Error, Result};
use crate::vint;

/// A row's body, being read.
///
/// After [`RowBody::open`], call [`RowBody::next_column`] and for each column read its data:
/// [`RowBody::simple_cell`], or [`RowBody::complex_header`] and as many
/// [`RowBody::complex_cell`]s as it counts. Offsets in errors are relative to the row's first byte.
///
/// What Cassandra's reader drops is dropped here too (`BTreeRow.Builder`): liveness and cells that
/// the row's own deletion covers, cells older than their column's own deletion, and a shadowable
/// deletion older than the liveness.
#[derive(Clone, Debug)]
pub struct RowBody<'a> {
    layout: &'a Layout,
    columns: &'a [ColumnLayout],
    bytes: &'a [u8],
    pos: usize,
    present: PresentColumns<'a>,
    has_complex_deletion: bool,
    /// Liveness as written, which cells may refer to.
    written_liveness: Liveness,
    /// Cells up to this timestamp are covered by the row's own deletion as written.
    deleted_up_to: i64,
    /// Cells of the current complex column before this timestamp are covered by its deletion.
    complex_floor: i64,
    /// Primary-key liveness, empty where the row's own deletion covers it.
    pub liveness: Liveness,
    /// Row deletion.
    pub deletion: DeletionTime,
    /// The row deletion goes when newer liveness comes (materialized views before 4.0).
    pub is_shadowable: bool,
}

impl<'a> RowBody<'a> {
    /// Reads liveness, deletion and columns subset of the row at the start of `bytes`.
    ///
    /// # Errors
    /// Corruption if the body ends early or a value is out of range.
    #[inline]
    pub fn open(bytes: &'a [u8], head: &RowHead, layout: &'a Layout) -> Result<RowBody<'a>> {
        let mut body = RowBody::unread(bytes, head, layout);
        body.read_start(head)?;
        Ok(body)
    }

    /// The same without anything read, for [`RowBody::read_start`] to do so where the body is to stay: it is
    /// large, and a result that holds one is copied on its way.
    #[inline]
    pub fn unread(bytes: &'a [u8], head: &RowHead, layout: &'a Layout) -> RowBody<'a> {
        let columns = layout.columns(head.is_static());
        RowBody {
            layout,
            columns,
            bytes: bytes.get(..head.len).unwrap_or(bytes),
            pos: head.body_start,
            present: PresentColumns::all(columns.len()),
            has_complex_deletion: head.flags & flags::HAS_COMPLEX_DELETION != 0,
            written_liveness: Liveness::EMPTY,
            deleted_up_to: i64::MIN,
            complex_floor: i64::MIN,
            liveness: Liveness::EMPTY,
            deletion: DeletionTime::LIVE,
            is_shadowable: false,
        }
    }

    /// Reads liveness, deletion and columns subset of a body of which nothing was read; `head` is its own.
    ///
    /// # Errors
    /// As [`RowBody::open`].
    #[inline]
    pub fn read_start(&mut self, head: &RowHead) -> Result<()> {
        if head.flags & flags::HAS_TIMESTAMP != 0 {
            let timestamp = self.timestamp("row.timestamp")?;
            self.written_liveness.timestamp = timestamp;
            if head.flags & flags::HAS_TTL != 0 {
                let ttl = self.ttl("row.ttl")?;
                let seconds = self.seconds("row.local_deletion_time")?;
                let seconds = decode_local_deletion_time(seconds, ttl, self.layout.version);
                self.written_liveness = Liveness::new(timestamp, ttl, seconds);
            } else if !self.layout.stated.may_live() && !self.written_liveness.is_empty() {
                return Err(live_beyond("row.timestamp", self.pos));
            }
            // Even no deletion deletes the timestamp that means none (`DeletionTime.deletes`).
            if !self.written_liveness.is_empty() {
                self.liveness = self.written_liveness;
            }
        }
        if head.flags & flags::HAS_DELETION != 0 {
            self.deletion = self.deletion_time("row.deletion")?;
            self.is_shadowable = head.extended_flags & flags::HAS_SHADOWABLE_DELETION != 0;
            self.deleted_up_to = self.deletion.marked_for_delete_at;
            if self.deletion.deletes(self.liveness.timestamp) {
                self.liveness = Liveness::EMPTY;
            }
            if self.is_shadowable && self.liveness.timestamp > self.deletion.marked_for_delete_at {
                self.deletion = DeletionTime::LIVE;
                self.is_shadowable = false;
            }
        }
        if head.flags & flags::HAS_ALL_COLUMNS == 0 {
            self.present = PresentColumns::parse(self.bytes, &mut self.pos, self.columns.len())?;
        }
        Ok(())
    }

    /// True, before any column was read, if the row holds nothing: no liveness, deletion or column.
    pub fn is_empty(&self) -> bool {
        self.liveness.is_empty() && self.deletion.is_live() && self.present.remaining() == 0
    }

    /// Columns that have not been returned by [`RowBody::next_column`] yet.
    #[inline]
    pub fn present(&self) -> &PresentColumns<'a> {
        &self.present
    }

    /// Moves to the next column present and returns its index in the header, or checks that the
    /// body ends here.
    ///
    /// # Errors
    /// Corruption if bytes are left behind the last column.
    #[inline]
    pub fn next_column(&mut self) -> Result<Option<usize>> {
        let next = self.present.next();
        if next.is_none() && self.pos != self.bytes.len() {
            return Err(self.corrupt(
                "row.body",
                "the end of the row",
                format!("{} bytes left", self.bytes.len() - self.pos),
            ));
        }
        Ok(next)
    }

    /// The layout of column `index` of this row's kind.
    ///
    /// # Panics
    /// If `index` did not come from [`RowBody::next_column`].
    #[inline]
    pub fn column(&self, index: usize) -> &'a ColumnLayout {
        &self.columns[index]
    }

    /// Reads the cell of a simple column; `None` if the row's own deletion covers it.
    ///
    /// # Errors
    /// Corruption if the body ends early or a value is out of range.
    #[inline]
    pub fn simple_cell(&mut self, column: &ColumnLayout) -> Result<Option<CellView<'a>>> {
        let cell = self.cell(column.fixed_len, false)?;
        Ok((cell.timestamp > self.deleted_up_to).then_some(cell))
    }

    /// Reads the deletion and number of cells of a complex column.
    ///
    /// # Errors
    /// Corruption if the count cannot fit the rest of the row.
    #[inline]
    pub fn complex_header(&mut self) -> Result<(DeletionTime, usize)> {
        let mut deletion = DeletionTime::LIVE;
        if self.has_complex_deletion {
            deletion = self.deletion_time("row.complex_deletion")?;
            // Columns without a deletion write LIVE in rows where another has one, in a form that
            // decodes to other seconds (CASSANDRA-21333); the timestamp tells.
            if deletion.marked_for_delete_at == i64::MIN {
                deletion = DeletionTime::LIVE;
            }
        }
        self.complex_floor = deletion.marked_for_delete_at;
        let at = self.pos;
        let count = self.uvint("row.complex_column.cell_count")?;
        // A cell takes two bytes at least: flags and the length of its path.
        let limit = (self.bytes.len() - self.pos) / 2;
        if count > limit as u64 {
            self.pos = at;
            return Err(self.corrupt(
                "row.complex_column.cell_count",
                &format!("at most {limit}, what the row has room for"),
                count.to_string(),
            ));
        }
        Ok((deletion, count as usize))
    }

    /// Reads one cell of a complex column. Its value is framed by the column's own type, which is of
    /// variable length. `None` if a deletion of the row itself covers it.
    ///
    /// # Errors
    /// Corruption if the body ends early or a value is out of range.
    #[inline]
    pub fn complex_cell(&mut self) -> Result<Option<CellView<'a>>> {
        let cell = self.cell(None, true)?;
        let is_covered =
            cell.timestamp <= self.deleted_up_to || cell.timestamp < self.complex_floor;
        Ok((!is_covered).then_some(cell))
    }

    #[inline(always)]
    fn cell(&mut self, fixed_len: Option<u32>, has_path: bool) -> Result<CellView<'a>> {
        let Some(&flag_byte) = self.bytes.get(self.pos) else {
            return Err(self.short("row.cell.flags"));
        };
        self.pos += 1;
        let timestamp = if flag_byte & flags::CELL_USE_ROW_TIMESTAMP != 0 {
            self.written_liveness.timestamp
        } else {
            self.timestamp("row.cell.timestamp")?
        };
        let (mut local_deletion_time, mut ttl) = (NO_DELETION_TIME, NO_TTL);
        if flag_byte & (flags::CELL_IS_DELETED | flags::CELL_IS_EXPIRING | flags::CELL_USE_ROW_TTL)
            != 0
        {
            if flag_byte & flags::CELL_USE_ROW_TTL != 0 {
                local_deletion_time = self.written_liveness.local_expiration_time;
                ttl = self.written_liveness.ttl;
            } else {
                local_deletion_time = self.seconds("row.cell.local_deletion_time")?;
                if flag_byte & flags::CELL_IS_EXPIRING != 0 {
                    ttl = self.ttl("row.cell.ttl")?;
                }
            }
            local_deletion_time =
                decode_local_deletion_time(local_deletion_time, ttl, self.layout.version);
        } else if !self.layout.stated.may_live() {
            return Err(live_beyond("row.cell.flags", self.pos));
        }
        let path = if has_path {
            self.bytes_v("row.cell.path_length")?
        } else {
            &[]
        };
        let value = if flag_byte & flags::CELL_HAS_EMPTY_VALUE != 0 {
            &[]
        } else if let Some(len) = fixed_len {
            self.take(len as usize, "row.cell.value")?
        } else {
            self.bytes_v("row.cell.value_length")?
        };
        Ok(CellView {
            timestamp,
            local_deletion_time,
            ttl,
            path,
            value,
        })
    }

    #[inline(always)]
    fn uvint(&mut self, structure: &'static str) -> Result<u64> {
        match vint::read_unsigned(self.bytes, &mut self.pos) {
            Some(value) => Ok(value),
            None => Err(self.short(structure)),
        }
    }

    #[inline(always)]
    fn timestamp(&mut self, structure: &'static str) -> Result<i64> {
        let at = self.pos;
        let delta = self.uvint(structure)?;
        let timestamp = self.layout.min_timestamp.wrapping_add(delta as i64);
        if self.layout.timestamp_deltas.contains(delta) {
            Ok(timestamp)
        } else {
            no_deletion_or_beyond(structure, at, timestamp)
        }
    }

    #[inline]
    fn delta32(&mut self, structure: &'static str) -> Result<i64> {
        let at = self.pos;
        let raw = self.uvint(structure)?;
        delta_seconds(raw).ok_or_else(|| {
            Error::corrupt(structure, at as u64, "a delta of 32 bits", raw.to_string())
        })
    }

    #[inline]
    fn seconds(&mut self, structure: &'static str) -> Result<i64> {
        let at = self.pos;
        let seconds = self.delta32(structure)? + self.layout.min_local_deletion_time;
        match self.layout.stated.has_deletion_time(seconds) {
            true => Ok(seconds),
            false => Err(deletion_time_beyond(structure, at, seconds)),
        }
    }

    #[inline]
    fn ttl(&mut self, structure: &'static str) -> Result<i32> {
        let at = self.pos;
        // Java adds with overflow; a negative sum is refused either way.
        let ttl = (self.delta32(structure)? as i32).wrapping_add(self.layout.min_ttl);
        if ttl < 0 {
            return Err(Error::corrupt(
                structure,
                at as u64,
                "0 or more",
                ttl.to_string(),
            ));
        }
        if !self.layout.stated.has_ttl(ttl) {
            return Err(Error::corrupt(
                structure,
                at as u64,
                "a TTL between the least and the greatest in Statistics.db",
                ttl.to_string(),
            ));
        }
        Ok(ttl)
    }

    #[inline]
    fn deletion_time(&mut self, structure: &'static str) -> Result<DeletionTime> {
        let marked_for_delete_at = self.timestamp(structure)?;
        let is_live = marked_for_delete_at == DeletionTime::LIVE.marked_for_delete_at;
        let seconds = match is_live {
            true => self.delta32(structure)? + self.layout.min_local_deletion_time,
            false => self.seconds(structure)?,
        };
        Ok(DeletionTime::build(marked_for_delete_at, seconds))
    }

    #[inline(always)]
    fn take(&mut self, len: usize, structure: &'static str) -> Result<&'a [u8]> {
        match self.bytes.get(self.pos..).and_then(|rest| rest.get(..len)) {
            Some(taken) => {
                self.pos += len;
                Ok(taken)
            }
            None => Err(self.short(structure)),
        }
    }

    #[inline(always)]
    fn bytes_v(&mut self, structure: &'static str) -> Result<&'a [u8]> {
        let at = self.pos;
        let len = self.uvint(structure)?;
        if len > MAX_VALUE_LEN as u64 || len > (self.bytes.len() - self.pos) as u64 {
            return Err(self.bad_len(structure, at, len));
        }
        self.take(len as usize, structure)
    }

    #[cold]
    fn bad_len(&self, structure: &'static str, at: usize, found: u64) -> Error {
        let limit = (self.bytes.len() - self.pos).min(MAX_VALUE_LEN);
        Error::corrupt(
            structure,
            at as u64,
            format!("at most {limit} bytes"),
            found.to_string(),
        )
    }

    #[cold]
    fn corrupt(&self, structure: &'static str, expected: &str, found: String) -> Error {
        Error::corrupt(structure, self.pos as u64, expected, found)
    }

    #[cold]
    fn short(&self, structure: &'static str) -> Error {
        self.corrupt(structure, "more bytes", "the end of the row".to_owned())
    }
}

/// A timestamp that the statistics do not cover: only a complex column without a deletion has one.
#[cold]
fn live_beyond(structure: &'static str, at: usize) -> Error {
    Error::corrupt(
        structure,
        at as u64,
        "only data that expires, by max_local_deletion_time in Statistics.db",
        "data without a TTL",
    )
}

#[cold]
pub(super) fn deletion_time_beyond(structure: &'static str, at: usize, seconds: i64) -> Error {
    Error::corrupt(
        structure,
        at as u64,
        "a local deletion time between the least and the greatest in Statistics.db",
        seconds.to_string(),
    )
}

#[cold]
pub(super) fn no_deletion_or_beyond(
    structure: &'static str,
    at: usize,
    timestamp: i64,
) -> Result<i64> {
    if timestamp == DeletionTime::LIVE.marked_for_delete_at {
        return Ok(timestamp);
    }
    Err(Error::corrupt(
        structure,
        at as u64,
        "a timestamp between the least and the greatest in Statistics.db",
        timestamp.to_string(),
    ))
}

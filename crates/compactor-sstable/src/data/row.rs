//! A row, read: what it has beside its cells first ([`RowStart`]), then its cells one after the other.
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

use std::ops::Range;

use crate::data::cell::{Cell, Liveness, NO_TTL, Span, decode_local_deletion_time};
use crate::data::columns::{LIST_FORM_FROM, PresentColumns};
use crate::data::deletion_time::{DeletionTime, NO_DELETION_TIME};
use crate::data::deltas;
use crate::data::flags;
use crate::data::layout::{ColumnLayout, Layout};
use crate::data::parse::MAX_VALUE_LEN;
use crate::data::row_fault::{Field, MIN_CELL_LEN, Problem, RowFault};
use crate::data::unfiltered::RowHead;
use crate::error::Error;
use crate::vint;

/// A row that was found.
#[derive(Clone, Copy, Debug)]
pub struct RowRef<'a> {
    /// From the row's first byte on; may be longer than the row.
    pub bytes: &'a [u8],
    /// Where its parts lie.
    pub head: &'a RowHead,
    /// Layout of its SSTable.
    pub layout: &'a Layout,
}

impl<'a> RowRef<'a> {
    /// The serialized clustering, without kind or count.
    #[inline(always)]
    pub fn clustering_bytes(&self) -> &'a [u8] {
        let clustering = self.head.clustering_start..self.head.clustering_end;
        self.bytes.get(clustering).unwrap_or_default()
    }

    /// Length of the body without sizes, an estimate of what it will take when written.
    #[inline(always)]
    pub fn body_len(&self) -> usize {
        self.head.len - self.head.body_start
    }

    /// The columns that it may have.
    #[inline(always)]
    fn columns(&self) -> &'a [ColumnLayout] {
        self.layout.columns(self.head.is_static())
    }

    /// Reads what it has beside its cells.
    ///
    /// # Errors
    /// Damage, which [`RowFault::describe`] explains.
    pub fn start(&self) -> Result<RowStart, RowFault> {
        let mut start = RowStart::EMPTY;
        self.read_start(&mut start)?;
        Ok(start)
    }

    /// As [`RowRef::start`], into where it is to stay: a result that holds it would be copied on its way, and
    /// waited for since it is copied in other pieces than it was written in.
    ///
    /// # Errors
    /// As [`RowRef::start`].
    #[inline(always)]
    pub fn read_start(&self, start: &mut RowStart) -> Result<(), RowFault> {
        let bytes = self.bytes.get(..self.head.len).unwrap_or(self.bytes);
        let mut reader = Reader {
            bytes,
            pos: self.head.body_start,
            layout: self.layout,
        };
        reader.start(self.head, self.columns(), start)
    }

    /// Passes its cells to `sink`, in the order of their columns and paths, each as one of `version`.
    ///
    /// What Cassandra's reader drops is dropped here too (`BTreeRow.Builder`): cells that the row's own
    /// deletion covers, and cells older than their column's own deletion.
    ///
    /// # Errors
    /// Damage, which [`RowFault::describe`] explains.
    #[inline(always)]
    pub fn read_cells(
        &self,
        start: &RowStart,
        version: u32,
        sink: &mut impl CellSink,
    ) -> Result<(), RowFault> {
        let bytes = self.bytes.get(..self.head.len).unwrap_or(self.bytes);
        let mut reader = Reader {
            bytes,
            pos: start.cells_start,
            layout: self.layout,
        };
        let columns = self.columns();
        let has_bits = columns.len() < LIST_FORM_FROM;
        let mut left = start.present;
        let mut listed = match has_bits {
            true => PresentColumns::all(0),
            false => reader.listed_columns(start, columns.len())?,
        };
        // All is inlined here, so that what a sink keeps of a row may stay in registers.
        loop {
            let index = match has_bits {
                true if left == 0 => break,
                true => left.trailing_zeros() as usize,
                false => match listed.next() {
                    Some(index) => index,
                    None => break,
                },
            };
            left &= left.wrapping_sub(1);
            let Some(column) = columns.get(index) else {
                break;
            };
            reader.column(start, index, column, version, sink)?;
        }
        match reader.pos == bytes.len() {
            true => Ok(()),
            false => Err(reader.fault(Problem::Left, Field::Body, reader.pos)),
        }
    }

    /// Reads all of it, into memory that is used again.
    ///
    /// # Errors
    /// Damage, relative to the row's first byte.
    pub fn read_into(&self, content: &mut RowContent) -> Result<(), Error> {
        content.columns.clear();
        content.cells.clear();
        let read = self.start().and_then(|start| {
            content.start = start;
            self.read_cells(&start, 0, content)
        });
        read.map_err(|fault| fault.describe(self))
    }

    /// Reads all of it.
    ///
    /// # Errors
    /// Damage, relative to the row's first byte.
    pub fn read(&self) -> Result<RowContent, Error> {
        let mut content = RowContent::default();
        self.read_into(&mut content)?;
        Ok(content)
    }
}

/// What a row has beside its cells.
#[derive(Clone, Copy, Debug)]
pub struct RowStart {
    /// Primary-key liveness, empty where the row's own deletion covers it.
    pub liveness: Liveness,
    /// Row deletion.
    pub deletion: DeletionTime,
    /// The row deletion goes when newer liveness comes (materialized views before 4.0).
    pub is_shadowable: bool,
    has_complex_deletion: bool,
    /// Liveness as written, which cells may refer to.
    written: Liveness,
    /// Cells up to this timestamp are covered by the row's own deletion as written.
    deleted_up_to: i64,
    /// Columns that are present, a bit each, where there are less than [`LIST_FORM_FROM`]; otherwise
    /// whether there is any.
    present: u64,
    /// The subset of columns, if there is one, and then the cells.
    subset: Option<u32>,
    cells_start: usize,
}

impl RowStart {
    /// Nothing at all.
    pub const EMPTY: RowStart = RowStart {
        liveness: Liveness::EMPTY,
        deletion: DeletionTime::LIVE,
        is_shadowable: false,
        has_complex_deletion: false,
        written: Liveness::EMPTY,
        deleted_up_to: i64::MIN,
        present: 0,
        subset: None,
        cells_start: 0,
    };

    /// Some column is present, be it covered by the row's own deletion.
    #[inline]
    pub fn has_columns(&self) -> bool {
        self.present != 0
    }

    /// The row holds nothing: no liveness, deletion or column.
    pub fn is_empty(&self) -> bool {
        self.liveness.is_empty() && self.deletion.is_live() && !self.has_columns()
    }
}

/// Takes the cells of a row.
pub trait CellSink {
    /// The cell of a simple column, by its index in the header.
    fn simple(&mut self, column: usize, cell: Cell);

    /// A complex column begins; its deletion may be live.
    fn complex(&mut self, column: usize, deletion: DeletionTime);

    /// A cell of the complex column that has begun.
    fn element(&mut self, cell: Cell);
}

/// All of a row.
#[derive(Clone, Debug)]
pub struct RowContent {
    /// What it has beside its cells.
    pub start: RowStart,
    columns: Vec<ColumnPart>,
    cells: Vec<Cell>,
}

/// A column of a row, its cells by their index.
#[derive(Clone, Debug)]
struct ColumnPart {
    index: usize,
    deletion: DeletionTime,
    cells: Range<usize>,
}

/// A column of a row.
#[derive(Clone, Copy, Debug)]
pub struct ColumnContent<'a> {
    /// Its index in the header.
    pub index: usize,
    /// Deletion of a complex column.
    pub deletion: DeletionTime,
    /// Its cells: one of a simple column.
    pub cells: &'a [Cell],
}

impl Default for RowContent {
    fn default() -> RowContent {
        RowContent {
            start: RowStart::EMPTY,
            columns: Vec::new(),
            cells: Vec::new(),
        }
    }
}

impl RowContent {
    /// The columns that have something which the row's own deletions leave, and all complex ones.
    pub fn columns(&self) -> impl Iterator<Item = ColumnContent<'_>> {
        self.columns.iter().map(|column| ColumnContent {
            index: column.index,
            deletion: column.deletion,
            cells: self.cells.get(column.cells.clone()).unwrap_or_default(),
        })
    }
}

impl CellSink for RowContent {
    fn simple(&mut self, column: usize, cell: Cell) {
        self.complex(column, DeletionTime::LIVE);
        self.element(cell);
    }

    fn complex(&mut self, column: usize, deletion: DeletionTime) {
        let end = self.cells.len();
        self.columns.push(ColumnPart {
            index: column,
            deletion,
            cells: end..end,
        });
    }

    fn element(&mut self, cell: Cell) {
        self.cells.push(cell);
        if let Some(column) = self.columns.last_mut() {
            column.cells.end += 1;
        }
    }
}

/// Reads the body of a row.
struct Reader<'a> {
    /// The row.
    bytes: &'a [u8],
    pos: usize,
    layout: &'a Layout,
}

impl<'a> Reader<'a> {
    #[inline(always)]
    fn fault(&self, problem: Problem, field: Field, at: usize) -> RowFault {
        RowFault {
            field,
            problem,
            at: at as u32,
        }
    }

    #[inline(always)]
    fn start(
        &mut self,
        head: &RowHead,
        columns: &[ColumnLayout],
        start: &mut RowStart,
    ) -> Result<(), RowFault> {
        start.has_complex_deletion = head.flags & flags::HAS_COMPLEX_DELETION != 0;
        start.liveness = Liveness::EMPTY;
        start.written = Liveness::EMPTY;
        if head.flags & flags::HAS_TIMESTAMP != 0 {
            let timestamp = self.timestamp(Field::Timestamp)?;
            let mut written = Liveness::new(timestamp, NO_TTL, NO_DELETION_TIME);
            if head.flags & flags::HAS_TTL != 0 {
                let ttl = self.ttl(Field::Ttl)?;
                let seconds = self.seconds(Field::LocalDeletionTime)?;
                let seconds = decode_local_deletion_time(seconds, ttl, self.layout.version);
                written = Liveness::new(timestamp, ttl, seconds);
            } else if !self.layout.stated.may_live() && !written.is_empty() {
                return Err(self.fault(Problem::Live, Field::Timestamp, self.pos));
            }
            start.written = written;
            // Even no deletion deletes the timestamp that means none (`DeletionTime.deletes`).
            if !written.is_empty() {
                start.liveness = written;
            }
        }
        start.deletion = DeletionTime::LIVE;
        start.is_shadowable = false;
        start.deleted_up_to = i64::MIN;
        if head.flags & flags::HAS_DELETION != 0 {
            let at = self.pos;
            let deletion = deltas::deletion_time(self.bytes, &mut self.pos, self.layout)
                .map_err(|problem| self.deletion_fault(problem, Field::Deletion, at))?;
            start.deletion = deletion;
            start.is_shadowable = head.extended_flags & flags::HAS_SHADOWABLE_DELETION != 0;
            start.deleted_up_to = deletion.marked_for_delete_at;
            if deletion.deletes(start.liveness.timestamp) {
                start.liveness = Liveness::EMPTY;
            }
            if start.is_shadowable && start.liveness.timestamp > deletion.marked_for_delete_at {
                start.deletion = DeletionTime::LIVE;
                start.is_shadowable = false;
            }
        }
        let has_all = head.flags & flags::HAS_ALL_COLUMNS != 0;
        start.subset = None;
        if columns.len() < LIST_FORM_FROM {
            let mut present = (1u64 << columns.len()) - 1;
            if !has_all {
                let at = self.pos;
                let missing = self.uvint(Field::Columns)?;
                if missing & !present != 0 {
                    return Err(self.fault(Problem::Subset, Field::Columns, at));
                }
                present &= !missing;
            }
            start.present = present;
        } else {
            start.present = 1;
            if !has_all {
                let at = self.pos;
                let subset = PresentColumns::parse(self.bytes, &mut self.pos, columns.len())
                    .map_err(|_| self.fault(Problem::Subset, Field::Columns, at))?;
                start.present = u64::from(subset.remaining() > 0);
                start.subset = Some(at as u32);
            }
        }
        start.cells_start = self.pos;
        Ok(())
    }

    /// The columns present of a header that has too many for a bit each.
    #[cold]
    #[inline(never)]
    fn listed_columns(
        &self,
        start: &RowStart,
        columns: usize,
    ) -> Result<PresentColumns<'a>, RowFault> {
        let Some(at) = start.subset else {
            return Ok(PresentColumns::all(columns));
        };
        let mut pos = at as usize;
        PresentColumns::parse(self.bytes, &mut pos, columns)
            .map_err(|_| self.fault(Problem::Subset, Field::Columns, at as usize))
    }

    #[inline(always)]
    fn column(
        &mut self,
        start: &RowStart,
        index: usize,
        column: &ColumnLayout,
        version: u32,
        sink: &mut impl CellSink,
    ) -> Result<(), RowFault> {
        if column.is_complex {
            return self.complex(start, index, column, version, sink);
        }
        let cell = self.cell(start, column.fixed_len, false, version)?;
        if cell.timestamp > start.deleted_up_to {
            sink.simple(index, cell);
        }
        Ok(())
    }

    #[inline(always)]
    fn complex(
        &mut self,
        start: &RowStart,
        index: usize,
        column: &ColumnLayout,
        version: u32,
        sink: &mut impl CellSink,
    ) -> Result<(), RowFault> {
        let mut deletion = DeletionTime::LIVE;
        if start.has_complex_deletion {
            let at = self.pos;
            deletion = deltas::deletion_time(self.bytes, &mut self.pos, self.layout)
                .map_err(|problem| self.deletion_fault(problem, Field::ComplexDeletion, at))?;
            // Columns without a deletion write LIVE in rows where another has one, in a form that
            // decodes to other seconds (CASSANDRA-21333); the timestamp tells.
            if deletion.marked_for_delete_at == DeletionTime::LIVE.marked_for_delete_at {
                deletion = DeletionTime::LIVE;
            }
        }
        let at = self.pos;
        let count = self.uvint(Field::CellCount)?;
        if count > ((self.bytes.len() - self.pos) / MIN_CELL_LEN) as u64 {
            return Err(self.fault(Problem::Count, Field::CellCount, at));
        }
        sink.complex(index, deletion);
        let mut previous: Option<Span> = None;
        for _ in 0..count {
            let cell = self.cell(start, None, true, version)?;
            if cell.timestamp <= start.deleted_up_to
                || cell.timestamp < deletion.marked_for_delete_at
            {
                continue;
            }
            let (path, bytes) = (cell.path, self.bytes);
            // Before it is looked at, so that whoever explains an error knows it.
            sink.element(cell);
            if previous.is_some_and(|p| {
                let order = column.cql_type.compare_paths(p.of(bytes), path.of(bytes));
                !order.is_lt()
            }) {
                return Err(self.fault(Problem::Order, Field::CellPath, path.start()));
            }
            previous = Some(path);
        }
        Ok(())
    }

    /// Values in complex columns are framed by the column's own type, which is of variable length.
    #[inline(always)]
    fn cell(
        &mut self,
        start: &RowStart,
        fixed_len: Option<u32>,
        has_path: bool,
        version: u32,
    ) -> Result<Cell, RowFault> {
        const DIES: u8 = flags::CELL_IS_DELETED | flags::CELL_IS_EXPIRING | flags::CELL_USE_ROW_TTL;
        let Some(&flag_byte) = self.bytes.get(self.pos) else {
            return Err(self.fault(Problem::Short, Field::CellFlags, self.pos));
        };
        self.pos += 1;
        let timestamp = match flag_byte & flags::CELL_USE_ROW_TIMESTAMP {
            0 => self.timestamp(Field::CellTimestamp)?,
            _ => start.written.timestamp,
        };
        let (mut local_deletion_time, mut ttl) = (NO_DELETION_TIME, NO_TTL);
        if flag_byte & DIES != 0 {
            if flag_byte & flags::CELL_USE_ROW_TTL != 0 {
                local_deletion_time = start.written.local_expiration_time;
                ttl = start.written.ttl;
            } else {
                local_deletion_time = self.seconds(Field::CellLocalDeletionTime)?;
                if flag_byte & flags::CELL_IS_EXPIRING != 0 {
                    ttl = self.ttl(Field::CellTtl)?;
                }
            }
            local_deletion_time =
                decode_local_deletion_time(local_deletion_time, ttl, self.layout.version);
        } else if !self.layout.stated.may_live() {
            return Err(self.fault(Problem::Live, Field::CellFlags, self.pos));
        }
        let path = match has_path {
            true => self.with_length(Field::CellPathLength)?,
            false => Span::EMPTY,
        };
        let value = if flag_byte & flags::CELL_HAS_EMPTY_VALUE != 0 {
            Span::EMPTY
        } else if let Some(len) = fixed_len {
            if len as usize > self.bytes.len() - self.pos {
                return Err(self.fault(Problem::Short, Field::CellValue, self.pos));
            }
            self.take(len)
        } else {
            self.with_length(Field::CellValueLength)?
        };
        Ok(Cell {
            timestamp,
            local_deletion_time,
            ttl,
            path,
            value,
            version,
        })
    }

    #[inline(always)]
    fn take(&mut self, len: u32) -> Span {
        let span = Span::new(self.pos as u32, len);
        self.pos += len as usize;
        span
    }

    #[inline(always)]
    fn with_length(&mut self, field: Field) -> Result<Span, RowFault> {
        let at = self.pos;
        let len = self.uvint(field)?;
        if len > MAX_VALUE_LEN as u64 || len > (self.bytes.len() - self.pos) as u64 {
            return Err(self.fault(Problem::Length, field, at));
        }
        Ok(self.take(len as u32))
    }

    #[inline(always)]
    fn uvint(&mut self, field: Field) -> Result<u64, RowFault> {
        match vint::read_unsigned(self.bytes, &mut self.pos) {
            Some(value) => Ok(value),
            None => Err(self.fault(Problem::Short, field, self.pos)),
        }
    }

    #[inline(always)]
    fn timestamp(&mut self, field: Field) -> Result<i64, RowFault> {
        let at = self.pos;
        let timestamp = deltas::timestamp(self.bytes, &mut self.pos, self.layout);
        timestamp.map_err(|problem| self.fault(problem, field, at))
    }

    #[inline(always)]
    fn seconds(&mut self, field: Field) -> Result<i64, RowFault> {
        let at = self.pos;
        let seconds = deltas::seconds(self.bytes, &mut self.pos, self.layout);
        seconds.map_err(|problem| self.fault(problem, field, at))
    }

    #[inline(always)]
    fn ttl(&mut self, field: Field) -> Result<i32, RowFault> {
        let at = self.pos;
        let ttl = deltas::ttl(self.bytes, &mut self.pos, self.layout);
        ttl.map_err(|problem| self.fault(problem, field, at))
    }

    /// A deletion that began at `at`: its seconds come second.
    #[cold]
    fn deletion_fault(&self, problem: Problem, field: Field, at: usize) -> RowFault {
        let mut at = at;
        match problem {
            // Nothing is taken of what is cut off.
            Problem::Short => at = self.pos,
            Problem::Delta | Problem::DeletionTime => {
                let _ = vint::read_unsigned(self.bytes, &mut at);
            }
            _ => {}
        }
        self.fault(problem, field, at)
    }
}

#[cfg(test)]
mod tests;

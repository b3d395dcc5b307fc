//! Reading a row: first its properties other than cells ([`RowStart`]), then its cells in order.
//!
//! ```text
//! body    := [timestamp] [ttl, local deletion time] [deletion] [columns subset] column data*
//! cell    := flags | [timestamp] | [local deletion time] | [ttl] | [path] | [value]
//! complex := [deletion] | uvint count | cell*
//! ```
//!
//! All times are deltas to the header's encoding stats. In the liveness the TTL comes first, in a cell the
//! local deletion time.
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

/// A located row.
#[derive(Clone, Copy, Debug)]
pub struct RowRef<'a> {
    /// Bytes from the row's first byte on; may be longer than the row.
    pub bytes: &'a [u8],
    /// Positions of its parts.
    pub head: &'a RowHead,
    /// Layout of its SSTable.
    pub layout: &'a Layout,
}

impl<'a> RowRef<'a> {
    /// Serialized clustering, without kind or count.
    #[inline(always)]
    pub fn clustering_bytes(&self) -> &'a [u8] {
        let clustering = self.head.clustering_start..self.head.clustering_end;
        self.bytes.get(clustering).unwrap_or_default()
    }

    /// Length of the body without sizes, an estimate of its length when written.
    #[inline(always)]
    pub fn body_len(&self) -> usize {
        self.head.len - self.head.body_start
    }

    /// Columns that it may have.
    #[inline(always)]
    fn columns(&self) -> &'a [ColumnLayout] {
        self.layout.columns(self.head.is_static())
    }

    /// Reads its properties other than cells.
    ///
    /// # Errors
    /// Damage, which [`RowFault::describe`] explains.
    pub fn start(&self) -> Result<RowStart, RowFault> {
        let mut start = RowStart::EMPTY;
        self.read_start(&mut start)?;
        Ok(start)
    }

    /// As [`RowRef::start`], but writes to the final location: returning it by value would copy it, and the
    /// copy would wait for the stores because it reads in units other than those written.
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
    /// As in Cassandra's reader (`BTreeRow.Builder`), cells that the row's own deletion covers, and cells
    /// older than their column's own deletion, are skipped.
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
        // The next columns: the index of the first, and a bit set from there on.
        let (mut first, mut left) = (0, start.present);
        let mut listed = None;
        if columns.len() >= LIST_FORM_FROM {
            left = 0;
            listed = Some(reader.listed_columns(start, columns.len())?);
        }
        // What has the sink is inlined, so that its state may stay in registers; one loop serves both forms of the
        // subset, so that it stays in the instruction cache.
        loop {
            if left == 0 {
                let Some(listed) = &mut listed else { break };
                let Some(index) = next_listed(listed) else {
                    break;
                };
                (first, left) = (index, 1);
            }
            let index = first + left.trailing_zeros() as usize;
            left &= left - 1;
            let Some(column) = columns.get(index) else {
                break;
            };
            reader.column(start, index, column, version, sink)?;
        }
        if reader.pos == bytes.len() {
            Ok(())
        } else {
            Err(reader.fault(Problem::Left, Field::Body, reader.pos))
        }
    }

    /// Reads the whole row into reused memory.
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

    /// Reads the whole row.
    ///
    /// # Errors
    /// Damage, relative to the row's first byte.
    pub fn read(&self) -> Result<RowContent, Error> {
        let mut content = RowContent::default();
        self.read_into(&mut content)?;
        Ok(content)
    }
}

/// Properties of a row other than its cells.
#[derive(Clone, Copy, Debug)]
pub struct RowStart {
    /// Primary-key liveness, empty if the row's own deletion covers it.
    pub liveness: Liveness,
    /// Row deletion.
    pub deletion: DeletionTime,
    /// Whether a newer liveness removes the row deletion (materialized views before 4.0).
    pub is_shadowable: bool,
    has_complex_deletion: bool,
    /// Liveness as written, to which cells may refer.
    written: Liveness,
    /// Timestamp up to which the row's own deletion as written covers cells.
    deleted_up_to: i64,
    /// Bit set of the present columns, if there are fewer than [`LIST_FORM_FROM`]; otherwise not zero if
    /// there is any.
    present: u64,
    /// Position of the column subset, if there is one, which the cells follow.
    subset: Option<u32>,
    cells_start: usize,
}

impl RowStart {
    /// Start of an empty row.
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

    /// Whether some column is present, even if the row's own deletion covers it.
    #[inline]
    pub fn has_columns(&self) -> bool {
        self.present != 0
    }

    /// Whether the row is empty: no liveness, deletion or column.
    pub fn is_empty(&self) -> bool {
        self.liveness.is_empty() && self.deletion.is_live() && !self.has_columns()
    }
}

/// Receiver of the cells of a row.
pub trait CellSink {
    /// Cell of a simple column, by the column's index in the header.
    fn simple(&mut self, column: usize, cell: Cell);

    /// Start of a complex column; its deletion may be live.
    fn complex(&mut self, column: usize, deletion: DeletionTime);

    /// Cell of the current complex column.
    fn element(&mut self, cell: Cell);
}

/// Content of a row.
#[derive(Clone, Debug)]
pub struct RowContent {
    /// Properties other than cells.
    pub start: RowStart,
    columns: Vec<ColumnPart>,
    cells: Vec<Cell>,
}

/// A column of a row, with the index range of its cells.
#[derive(Clone, Debug)]
struct ColumnPart {
    index: usize,
    deletion: DeletionTime,
    cells: Range<usize>,
}

/// A column of a row.
#[derive(Clone, Copy, Debug)]
pub struct ColumnContent<'a> {
    /// Index in the header.
    pub index: usize,
    /// Deletion of a complex column.
    pub deletion: DeletionTime,
    /// Cells: a single one for a simple column.
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
    /// Columns with content that the row's own deletions do not cover, and all complex columns.
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

#[cold]
#[inline(never)]
fn next_listed(listed: &mut PresentColumns<'_>) -> Option<usize> {
    listed.next()
}

/// Reader of the body of a row.
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
            // Even a live deletion time deletes the timestamp `NO_TIMESTAMP` (`DeletionTime.deletes`).
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

    /// Reads the present columns of a header that has too many for a bit set.
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
            // Columns without a deletion write LIVE in rows in which another column has one, in a form that
            // decodes to other seconds (CASSANDRA-21333); the timestamp identifies it.
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
            // Before the cell is validated, so that a sink that describes an error has it.
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
        let path = if has_path {
            self.with_length(Field::CellPathLength)?
        } else {
            Span::EMPTY
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

    /// Fault of a deletion that begins at `at`: its seconds are the second field.
    #[cold]
    fn deletion_fault(&self, problem: Problem, field: Field, at: usize) -> RowFault {
        let mut at = at;
        match problem {
            // A truncated field is not consumed.
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

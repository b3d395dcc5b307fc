//! Fault in a row, as a small code: an error with its text would be copied through every read of a cell. The
//! text is generated on demand.

use crate::data::cell::{Cell, Span};
use crate::data::columns::PresentColumns;
use crate::data::deletion_time::DeletionTime;
use crate::data::deltas::delta_seconds;
use crate::data::parse::MAX_VALUE_LEN;
use crate::data::row::{CellSink, RowRef};
use crate::error::Error;
use crate::vint;

/// Field of a row, by the structure that errors name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Timestamp,
    Ttl,
    LocalDeletionTime,
    Deletion,
    Columns,
    Body,
    ComplexDeletion,
    CellCount,
    CellFlags,
    CellTimestamp,
    CellLocalDeletionTime,
    CellTtl,
    CellPath,
    CellPathLength,
    CellValue,
    CellValueLength,
}

impl Field {
    fn name(self) -> &'static str {
        match self {
            Field::Timestamp => "row.timestamp",
            Field::Ttl => "row.ttl",
            Field::LocalDeletionTime => "row.local_deletion_time",
            Field::Deletion => "row.deletion",
            Field::Columns => "row.columns_subset",
            Field::Body => "row.body",
            Field::ComplexDeletion => "row.complex_deletion",
            Field::CellCount => "row.complex_column.cell_count",
            Field::CellFlags => "row.cell.flags",
            Field::CellTimestamp => "row.cell.timestamp",
            Field::CellLocalDeletionTime => "row.cell.local_deletion_time",
            Field::CellTtl => "row.cell.ttl",
            Field::CellPath => "row.cell.path",
            Field::CellPathLength => "row.cell.path_length",
            Field::CellValue => "row.cell.value",
            Field::CellValueLength => "row.cell.value_length",
        }
    }
}

/// Violation by a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// The row ends before the field.
    Short,
    /// A timestamp, local deletion time or TTL outside the extremes in the statistics.
    Timestamp,
    DeletionTime,
    Ttl,
    NegativeTtl,
    /// More than 32 bits.
    Delta,
    /// Data that does not expire, although according to the statistics all does.
    Live,
    /// A length beyond the row, or beyond the longest value.
    Length,
    /// More cells than the rest of the row can contain.
    Count,
    /// Bytes after the last cell.
    Left,
    /// A subset with columns that the header does not have.
    Subset,
    /// A path that does not sort after the previous one.
    Order,
}

/// Position and kind of the damage in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowFault {
    pub(super) field: Field,
    pub(super) problem: Problem,
    /// Position of the field, or of the byte after it, relative to the row's first byte.
    pub(super) at: u32,
}

impl RowFault {
    /// Returns the error, with offsets relative to the row's first byte. `row` is the row that was read.
    #[cold]
    pub fn describe(self, row: &RowRef<'_>) -> Error {
        let bytes = row.bytes.get(..row.head.len).unwrap_or(row.bytes);
        let at = self.at as usize;
        let mut end = at;
        let raw = vint::read_unsigned(bytes, &mut end).unwrap_or_default();
        let room = bytes.len().saturating_sub(end);
        let layout = row.layout;
        let seconds = || delta_seconds(raw).unwrap_or_default();
        let stated =
            |what: &str| format!("{what} between the minimum and the maximum in Statistics.db");
        let (expected, found) = match self.problem {
            Problem::Short => ("more bytes".to_owned(), "the end of the row".to_owned()),
            Problem::Timestamp => (
                stated("a timestamp"),
                layout.min_timestamp.wrapping_add(raw as i64).to_string(),
            ),
            Problem::DeletionTime => (
                stated("a local deletion time"),
                (seconds() + layout.min_local_deletion_time).to_string(),
            ),
            Problem::Ttl | Problem::NegativeTtl => {
                let expected = match self.problem {
                    Problem::Ttl => stated("a TTL"),
                    _ => "0 or more".to_owned(),
                };
                let ttl = (seconds() as i32).wrapping_add(layout.min_ttl);
                (expected, ttl.to_string())
            }
            Problem::Delta => ("a delta of 32 bits".to_owned(), raw.to_string()),
            Problem::Live => (
                "only data that expires, by max_local_deletion_time in Statistics.db".to_owned(),
                "data without a TTL".to_owned(),
            ),
            Problem::Length => (
                format!("at most {} bytes", room.min(MAX_VALUE_LEN)),
                raw.to_string(),
            ),
            Problem::Count => (
                format!("at most {}, which fit into the row", room / MIN_CELL_LEN),
                raw.to_string(),
            ),
            Problem::Left => (
                "the end of the row".to_owned(),
                format!("{} bytes left", bytes.len().saturating_sub(at)),
            ),
            Problem::Subset => {
                let columns = layout.columns(row.head.is_static()).len();
                let mut pos = at;
                if let Err(error) = PresentColumns::parse(bytes, &mut pos, columns) {
                    return error;
                }
                ("a subset of the columns".to_owned(), raw.to_string())
            }
            Problem::Order => {
                let mut last = LastPaths::default();
                let _ = row
                    .start()
                    .and_then(|start| row.read_cells(&start, 0, &mut last));
                let columns = layout.columns(row.head.is_static());
                let name = columns.get(last.column).map(|column| &column.name[..]);
                let name = String::from_utf8_lossy(name.unwrap_or_default());
                (
                    format!("a path that sorts after {}", hex(last.previous.of(bytes))),
                    format!("{} in column {name}", hex(last.last.of(bytes))),
                )
            }
        };
        Error::corrupt(self.field.name(), at as u64, expected, found)
    }
}

/// The last paths read from a complex column.
#[derive(Debug, Default)]
struct LastPaths {
    column: usize,
    previous: Span,
    last: Span,
}

impl CellSink for LastPaths {
    fn simple(&mut self, _column: usize, _cell: Cell) {}

    fn complex(&mut self, column: usize, _deletion: DeletionTime) {
        *self = LastPaths {
            column,
            ..LastPaths::default()
        };
    }

    fn element(&mut self, cell: Cell) {
        self.previous = std::mem::replace(&mut self.last, cell.path);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Minimum length of a cell of a complex column, bytes: flags and the length of its path.
pub(super) const MIN_CELL_LEN: usize = 2;

//! Text of a fault in a row.

use super::{MIN_CELL_LEN, Problem, RowFault};
use crate::data::cell::{Cell, Span};
use crate::data::columns::{LIST_FORM_FROM, PresentColumns};
use crate::data::deletion_time::DeletionTime;
use crate::data::deltas;
use crate::data::parse::MAX_VALUE_LEN;
use crate::data::row::{CellSink, RowRef};
use crate::error::Error;
use crate::hex::hex;
use crate::vint;

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
        let (expected, found) = match self.problem {
            Problem::Short => ("more bytes".to_owned(), "the end of the row".to_owned()),
            Problem::Timestamp
            | Problem::DeletionTime
            | Problem::Ttl
            | Problem::NegativeTtl
            | Problem::Delta => deltas::explain(self.problem, raw, layout),
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
                if columns >= LIST_FORM_FROM
                    && let Err(error) = PresentColumns::parse(bytes, &mut { at }, columns)
                {
                    return error;
                }
                (
                    format!("a bitmap of {columns} columns"),
                    format!("{raw:#x}"),
                )
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

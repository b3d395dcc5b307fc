//! Plain rows of which each has some column that the others lack or have older.

use crate::data::flags;
use crate::data::layout::Layout;
use crate::data::plain_row::{CellCounts, PlainRow, canonical_subset};
use crate::vint;

/// The cells of a plain row that does not expire, in the order of the columns.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainCells<'a> {
    bytes: &'a [u8],
    pos: usize,
    /// Columns whose cells are still to come, a bit each.
    present: u64,
    timestamp: i64,
}

impl<'a> PlainCells<'a> {
    /// The cells of `row`, which is one of an SSTable with this layout. `None` if it expires, or if there
    /// are more columns than bits.
    #[inline]
    pub fn of(row: &PlainRow<'a>, layout: &Layout) -> Option<PlainCells<'a>> {
        let columns = layout.regular_columns.len();
        if row.liveness.is_expiring() || columns >= u64::BITS as usize {
            return None;
        }
        let bytes = row.bytes.get(..row.len)?;
        let mut pos = row.columns_start;
        let present = match row.has_all_columns() {
            true => (1 << columns) - 1,
            false => canonical_subset(bytes, &mut pos, columns)?,
        };
        Some(PlainCells {
            bytes,
            pos,
            present,
            timestamp: row.liveness.timestamp,
        })
    }

    /// The timestamp of all of them.
    #[inline]
    pub fn timestamp(&self) -> i64 {
        self.timestamp
    }

    /// Columns whose cells are still to come, a bit each.
    #[inline]
    pub fn present(&self) -> u64 {
        self.present
    }

    /// The cell of this column, which is the first that is still to come, as it is in its SSTable.
    #[inline]
    fn next(&mut self, column: usize, layout: &Layout) -> Option<&'a [u8]> {
        let start = self.pos;
        let value = layout.regular_columns.get(column)?.plain_value;
        CellCounts::default().skip_cell(self.bytes, &mut self.pos, value)?;
        self.present &= self.present - 1;
        self.bytes.get(start..self.pos)
    }
}

impl Layout {
    /// Appends columns, subset and cells, of a row: of each column the cell of the first of `rows` that
    /// has it. They are rows of SSTables with the columns of this one, newest first, each older than the
    /// one before, and the row's liveness is the first one's. `note` is told of the timestamp of each
    /// cell that is not. Returns the number of cells; `None` where a row is not what [`PlainRow::read`]
    /// found.
    #[inline]
    pub fn put_newest_cells(
        &self,
        out: &mut Vec<u8>,
        rows: &mut [PlainCells<'_>],
        mut note: impl FnMut(i64),
    ) -> Option<u32> {
        let mut present = rows.iter().fold(0, |all, row| all | row.present);
        let cells = present.count_ones();
        let columns = self.regular_columns.len();
        if columns >= u64::BITS as usize {
            return None;
        }
        let all = (1 << columns) - 1;
        if present != all {
            vint::write_unsigned(out, all & !present);
        }
        while present != 0 {
            let column = present.trailing_zeros() as usize;
            present &= present - 1;
            let mut is_written = false;
            for (age, row) in rows.iter_mut().enumerate() {
                if row.present & (1 << column) == 0 {
                    continue;
                }
                let cell = row.next(column, self)?;
                if is_written {
                    continue;
                }
                is_written = true;
                if age == 0 {
                    out.extend_from_slice(cell);
                    continue;
                }
                let (flag_byte, value) = cell.split_first()?;
                out.push(flag_byte & !flags::CELL_USE_ROW_TIMESTAMP);
                self.put_timestamp(out, row.timestamp);
                out.extend_from_slice(value);
                note(row.timestamp);
            }
        }
        Some(cells)
    }
}

//! Shapes `wide`, `tombstones` and `maps`: several columns, rows as UPDATE leaves them, tombstones of cells, and a
//! map.

use std::sync::Arc;

use compactor_sstable::types::CqlType;

use super::output::{CellTimes, RowBuffer};
use super::random::Random;
use super::sequence::{self, RowPosition, Rows, Statement};
use super::table::TableColumns;
use super::tags;
use super::values::Values;
use super::{GenerateOptions, Shape};

/// Columns, in header order.
const AMOUNT: u32 = 0;
const NOTE: u32 = 1;
/// Follows `quantity`.
const TAGS: u32 = 3;

pub(super) fn columns(shape: Shape) -> TableColumns {
    let mut regular_columns = vec![
        ("amount", CqlType::Long),
        ("note", CqlType::Utf8),
        ("quantity", CqlType::Int32),
    ];
    if shape == Shape::Maps {
        let text = Arc::new(CqlType::Utf8);
        let tags = CqlType::Map {
            key: Arc::clone(&text),
            value: text,
            multi_cell: true,
        };
        regular_columns.push(("tags", tags));
    }
    sequence::columns(vec![("owner", CqlType::Utf8)], regular_columns)
}

#[derive(Debug)]
pub(super) struct Wide<'o> {
    options: &'o GenerateOptions,
    values: Values,
    /// The map is the last, if there is one.
    columns: u32,
}

impl Wide<'_> {
    pub(super) fn new(options: &GenerateOptions) -> Wide<'_> {
        Wide {
            options,
            values: Values::new(options.compressibility),
            columns: if options.shape == Shape::Maps {
                TAGS + 1
            } else {
                TAGS
            },
        }
    }
}

impl Rows for Wide<'_> {
    fn columns(&self) -> u32 {
        self.columns
    }

    fn put_static(&self, random: &mut Random, _timestamp: i64, row: &mut RowBuffer) -> bool {
        self.values.put_text(random, 12, &mut row.values);
        row.end_cell(0);
        true
    }

    fn put_column(
        &self,
        random: &mut Random,
        column: u32,
        _place: RowPosition,
        statement: Statement,
        row: &mut RowBuffer,
    ) {
        let (tombstones, len) = (self.options.cell_tombstones, self.options.value_len);
        let put_text = |random: &mut Random, out: &mut Vec<u8>| {
            self.values.put_text(random, len as usize, out);
        };
        if column == TAGS {
            return tags::put(random, TAGS, statement, tombstones, row, put_text);
        }
        // A tombstone is what INSERT makes of a null.
        let times = statement.times_or_deleted(random, tombstones);
        if !matches!(times, CellTimes::Deleted(_)) {
            let out = &mut row.values;
            match column {
                // Amounts of up to some thousands, in cents.
                AMOUNT => out.extend_from_slice(&(random.below(1_000_000) as i64).to_be_bytes()),
                NOTE => put_text(random, out),
                _ => out.extend_from_slice(&(random.below(1000) as i32).to_be_bytes()),
            }
        }
        row.end_cell_at(column, times);
    }
}

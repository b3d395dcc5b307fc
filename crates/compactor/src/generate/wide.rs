//! Shapes `wide`, `tombstones` and `maps`: several columns, rows as UPDATE leaves them, tombstones of cells, and a
//! map.

use std::sync::Arc;

use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::types::CqlType;

use super::output::{CellTimes, RowBuffer};
use super::random::Random;
use super::sequence::{self, RowPosition, Rows, WrittenBy, deletion_at};
use super::table::TableColumns;
use super::tags;
use super::values::Values;
use super::{GenerateOptions, SECOND_US, Shape};

/// Columns, in header order.
const AMOUNT: u32 = 0;
const NOTE: u32 = 1;
/// Follows `quantity`.
const TAGS: u32 = 3;
/// Share of the rows that lack a column.
pub(super) const ABSENT: f64 = 0.1;

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
pub(super) struct Wide {
    value_len: usize,
    values: Values,
    updates: f64,
    cell_tombstones: f64,
    /// The map is the last, if there is one.
    columns: u32,
}

impl Wide {
    pub(super) fn new(options: &GenerateOptions) -> Wide {
        Wide {
            value_len: options.value_len as usize,
            values: Values::new(options.compressibility),
            updates: options.updates,
            cell_tombstones: options.cell_tombstones,
            columns: if options.shape == Shape::Maps {
                TAGS + 1
            } else {
                TAGS
            },
        }
    }

    /// Adds a cell of a simple column, or a tombstone: what INSERT makes of a null.
    fn put_cell(
        &self,
        random: &mut Random,
        column: u32,
        times: CellTimes,
        written: i64,
        row: &mut RowBuffer,
    ) {
        if random.happens(self.cell_tombstones) {
            let deleted = CellTimes::Deleted(deletion_at(written));
            return row.end_cell_at(column, deleted);
        }
        let out = &mut row.values;
        match column {
            // Amounts of up to some thousands, in cents.
            AMOUNT => out.extend_from_slice(&(random.below(1_000_000) as i64).to_be_bytes()),
            NOTE => self.values.put_text(random, self.value_len, out),
            _ => out.extend_from_slice(&(random.below(1000) as i32).to_be_bytes()),
        }
        row.end_cell_at(column, times);
    }

    /// A map as INSERT leaves it: what was there before is deleted.
    fn put_whole_map(&self, random: &mut Random, timestamp: i64, row: &mut RowBuffer) {
        row.begin_column(TAGS, deletion_at(timestamp - 1));
        for key in tags::of_whole(random) {
            self.put_element(random, key, CellTimes::OfRow, row);
        }
    }

    /// One or two elements of a map that are set or removed.
    fn put_elements(&self, random: &mut Random, written: i64, row: &mut RowBuffer) {
        row.begin_column(TAGS, DeletionTime::LIVE);
        for key in tags::one_or_two(random) {
            let times = match random.happens(self.cell_tombstones) {
                true => CellTimes::Deleted(deletion_at(written)),
                false => CellTimes::At(written),
            };
            self.put_element(random, key, times, row);
        }
    }

    fn put_element(&self, random: &mut Random, key: u32, times: CellTimes, row: &mut RowBuffer) {
        let path_len = tags::put(key, &mut row.values);
        self.values
            .put_text(random, self.value_len, &mut row.values);
        row.end_element(path_len, times);
    }
}

impl Rows for Wide {
    fn put_static(&mut self, random: &mut Random, _timestamp: i64, row: &mut RowBuffer) -> bool {
        self.values.put_text(random, 12, &mut row.values);
        row.end_cell(0);
        true
    }

    fn put_row(
        &mut self,
        random: &mut Random,
        _place: RowPosition,
        timestamp: i64,
        row: &mut RowBuffer,
    ) -> WrittenBy {
        if random.happens(self.updates) {
            // At least one column: each has a bit.
            let columns = 1 + random.below((1 << self.columns) - 1);
            for column in (0..self.columns).filter(|column| columns & (1 << column) != 0) {
                let written = timestamp + random.below(SECOND_US as u64) as i64;
                match column {
                    TAGS => self.put_elements(random, written, row),
                    _ => self.put_cell(random, column, CellTimes::At(written), written, row),
                }
            }
            return WrittenBy::Update;
        }
        for column in 0..self.columns {
            if random.happens(ABSENT) {
                continue;
            }
            match column {
                TAGS => self.put_whole_map(random, timestamp, row),
                _ => self.put_cell(random, column, CellTimes::OfRow, timestamp, row),
            }
        }
        WrittenBy::Insert
    }
}

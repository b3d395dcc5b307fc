//! Shapes `wide`, `tombstones` and `maps`: many rows per partition, several columns, row deletions and range
//! tombstones; rows as UPDATE leaves them, tombstones of cells, and a map.

use std::sync::Arc;

use compactor_engine::partition_writer::BlockOutput;
use compactor_engine::sstable_index::SstableIndex;
use compactor_sstable::data::cell::{Liveness, NO_TTL};
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::{DeletionTime, NO_DELETION_TIME};
use compactor_sstable::statistics::EncodingStats;
use compactor_sstable::types::CqlType;

use super::output::{CellTimes, Output, RowBuffer};
use super::random::Random;
use super::table::TableColumns;
use super::values::Values;
use super::{
    GenerateOptions, SECOND_US, Shape, has_any_deletion, is_row_shared, sstable_timestamp,
};
use crate::error::Result;

/// Columns, in header order.
const AMOUNT: u32 = 0;
const NOTE: u32 = 1;
/// Behind `quantity`.
const TAGS: u32 = 3;
/// Keys that a map may have.
const KEYS: u32 = 16;
/// Share of the rows that lack a column.
const ABSENT: f64 = 0.1;
/// Rows that a range tombstone covers at most.
const LONGEST_RANGE: u64 = 20;

pub(super) fn columns(shape: Shape) -> TableColumns {
    let mut table = TableColumns {
        partition_key: vec![("id", CqlType::Utf8)],
        clustering: vec![("seq", CqlType::Int32)],
        static_columns: vec![("owner", CqlType::Utf8)],
        regular_columns: vec![
            ("amount", CqlType::Long),
            ("note", CqlType::Utf8),
            ("quantity", CqlType::Int32),
        ],
    };
    if shape == Shape::Maps {
        let text = Arc::new(CqlType::Utf8);
        let tags = CqlType::Map {
            key: Arc::clone(&text),
            value: text,
            multi_cell: true,
        };
        table.regular_columns.push(("tags", tags));
    }
    table
}

#[derive(Debug)]
pub(super) struct Wide {
    seed: u64,
    sstable: u32,
    sstables: u32,
    overlap: f64,
    rows: u32,
    value_len: usize,
    values: Values,
    deletions: f64,
    range_tombstones: f64,
    updates: f64,
    cell_tombstones: f64,
    /// The map is the last, if there is one.
    columns: u32,
    has_deletions: bool,
    first_timestamp: i64,
    row: RowBuffer,
}

/// A range tombstone that is open.
#[derive(Clone, Copy, Debug)]
struct OpenRange {
    last_row: u32,
    deletion: DeletionTime,
}

impl Wide {
    pub(super) fn new(options: &GenerateOptions, sstable: u32) -> Wide {
        Wide {
            seed: options.seed,
            sstable,
            sstables: options.sstables,
            overlap: options.overlap,
            rows: options.rows_per_partition,
            value_len: options.value_len as usize,
            values: Values::new(options.compressibility),
            deletions: options.deletions,
            range_tombstones: options.range_tombstones,
            updates: options.updates,
            cell_tombstones: options.cell_tombstones,
            columns: if options.shape == Shape::Maps {
                TAGS + 1
            } else {
                TAGS
            },
            has_deletions: has_any_deletion(options),
            first_timestamp: sstable_timestamp(options, sstable),
            row: RowBuffer::default(),
        }
    }

    pub(super) fn encoding_stats(&self) -> EncodingStats {
        // A map that is inserted is deleted a microsecond before.
        let first = self.first_timestamp - i64::from(self.columns > TAGS);
        let seconds = match self.has_deletions {
            true => first / SECOND_US,
            false => NO_DELETION_TIME,
        };
        EncodingStats::new(first, seconds, NO_TTL)
    }

    pub(super) fn write_key(number: u64, key: &mut Vec<u8>) {
        key.extend_from_slice(format!("user-{number:010}").as_bytes());
    }

    pub(super) fn write_partition<B: BlockOutput, I: SstableIndex>(
        &mut self,
        number: u64,
        is_shared: bool,
        key: &[u8],
        out: &mut Output<'_, B, I>,
    ) -> Result<()> {
        let mut random = Random::of(self.seed, &[u64::from(self.sstable), number]);
        let timestamp = self.timestamp(&mut random);
        self.row.clear();
        self.values.put_text(&mut random, 12, &mut self.row.values);
        self.row.end_cell(0);
        out.start_partition(key);
        out.add_static_row(&self.row, timestamp)?;
        let mut range: Option<OpenRange> = None;
        for row in 0..self.rows {
            if range.is_none() && random.happens(self.range_tombstones) {
                range = Some(self.open_range(&mut random, row, out)?);
            }
            self.write_row(&mut random, number, is_shared, row, range, out)?;
            if let Some(open) = range
                && open.last_row == row
            {
                // Up to the last place that any SSTable has a row at.
                self.put_clustering(row, self.sstables - 1);
                let bound = std::mem::take(&mut self.row.clustering);
                out.add_bound(Kind::InclEndBound, &bound, open.deletion)?;
                self.row.clustering = bound;
                range = None;
            }
        }
        out.end_partition()
    }

    fn open_range<B: BlockOutput, I: SstableIndex>(
        &mut self,
        random: &mut Random,
        row: u32,
        out: &mut Output<'_, B, I>,
    ) -> Result<OpenRange> {
        let deletion = self.deletion(random);
        let further = random.below(LONGEST_RANGE) as u32;
        self.put_clustering(row, 0);
        out.add_bound(Kind::InclStartBound, &self.row.clustering, deletion)?;
        Ok(OpenRange {
            last_row: row.saturating_add(further).min(self.rows - 1),
            deletion,
        })
    }

    fn write_row<B: BlockOutput, I: SstableIndex>(
        &mut self,
        random: &mut Random,
        number: u64,
        is_shared: bool,
        row: u32,
        range: Option<OpenRange>,
        out: &mut Output<'_, B, I>,
    ) -> Result<()> {
        let timestamp = match range {
            // Half of the rows were written again after the range had been deleted.
            Some(open) if random.happens(0.5) => {
                open.deletion.marked_for_delete_at + 1 + random.below(SECOND_US as u64) as i64
            }
            Some(_) => return Ok(()),
            None => self.timestamp(random),
        };
        self.row.clear();
        let same_place = is_shared && is_row_shared(self.seed, number, row, self.overlap);
        self.put_clustering(row, if same_place { 0 } else { self.sstable });
        if random.happens(self.deletions) {
            return out.add_deleted_row(&self.row, deletion_at(timestamp));
        }
        if random.happens(self.updates) {
            // At least one column: each has a bit.
            let columns = 1 + random.below((1 << self.columns) - 1);
            for column in (0..self.columns).filter(|column| columns & (1 << column) != 0) {
                let written = timestamp + random.below(SECOND_US as u64) as i64;
                match column {
                    TAGS => self.put_elements(random, written),
                    _ => self.put_cell(random, column, CellTimes::At(written), written),
                }
            }
            return out.add_updated_row(&self.row);
        }
        for column in 0..self.columns {
            if random.happens(ABSENT) {
                continue;
            }
            match column {
                TAGS => self.put_whole_map(random, timestamp),
                _ => self.put_cell(random, column, CellTimes::OfRow, timestamp),
            }
        }
        out.add_row(
            &self.row,
            Liveness::new(timestamp, NO_TTL, NO_DELETION_TIME),
        )
    }

    /// Adds a cell of a simple column, or a tombstone: what INSERT makes of a null.
    fn put_cell(&mut self, random: &mut Random, column: u32, times: CellTimes, written: i64) {
        if random.happens(self.cell_tombstones) {
            let deleted = CellTimes::Deleted(deletion_at(written));
            return self.row.end_cell_at(column, deleted);
        }
        let out = &mut self.row.values;
        match column {
            // Amounts of up to some thousands, in cents.
            AMOUNT => out.extend_from_slice(&(random.below(1_000_000) as i64).to_be_bytes()),
            NOTE => self.values.put_text(random, self.value_len, out),
            _ => out.extend_from_slice(&(random.below(1000) as i32).to_be_bytes()),
        }
        self.row.end_cell_at(column, times);
    }

    /// A map as INSERT leaves it: what was there before is deleted.
    fn put_whole_map(&mut self, random: &mut Random, timestamp: i64) {
        self.row.begin_column(TAGS, deletion_at(timestamp - 1));
        let keys = random.next() & random.next();
        for key in (0..KEYS).filter(|key| keys & (1 << key) != 0) {
            self.put_element(random, key, CellTimes::OfRow);
        }
    }

    /// One or two elements of a map that are set or removed.
    fn put_elements(&mut self, random: &mut Random, written: i64) {
        self.row.begin_column(TAGS, DeletionTime::LIVE);
        let keys = 1 << random.below(KEYS.into()) | 1 << random.below(KEYS.into());
        for key in (0..KEYS).filter(|key| keys & (1u64 << key) != 0) {
            let times = match random.happens(self.cell_tombstones) {
                true => CellTimes::Deleted(deletion_at(written)),
                false => CellTimes::At(written),
            };
            self.put_element(random, key, times);
        }
    }

    fn put_element(&mut self, random: &mut Random, key: u32, times: CellTimes) {
        let out = &mut self.row.values;
        let before = out.len();
        out.extend_from_slice(format!("tag-{key:02}").as_bytes());
        let path_len = out.len() - before;
        self.values.put_text(random, self.value_len, out);
        self.row.end_element(path_len, times);
    }

    /// Rows of one number lie side by side: the place that all SSTables share, or their own.
    fn put_clustering(&mut self, row: u32, place: u32) {
        self.row.clustering.clear();
        // The header of the values: one, present.
        self.row.clustering.push(0);
        let value = (row * self.sstables + place) as i32;
        self.row.clustering.extend_from_slice(&value.to_be_bytes());
    }

    fn timestamp(&self, random: &mut Random) -> i64 {
        self.first_timestamp + random.below(3600 * SECOND_US as u64) as i64
    }

    fn deletion(&self, random: &mut Random) -> DeletionTime {
        deletion_at(self.timestamp(random))
    }
}

fn deletion_at(timestamp: i64) -> DeletionTime {
    DeletionTime::build(timestamp, timestamp / SECOND_US)
}

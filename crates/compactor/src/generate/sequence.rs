//! Partitions of the shapes with `PRIMARY KEY (id, seq)`: where rows are, which of them are deleted, and range
//! tombstones. What the other rows hold is each shape's own.

use std::fmt::Debug;

use compactor_engine::write::PartitionSink;
use compactor_sstable::data::cell::{Liveness, NO_TTL};
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::{DeletionTime, NO_DELETION_TIME};
use compactor_sstable::statistics::EncodingStats;
use compactor_sstable::types::CqlType;

use super::output::{CellTimes, Output, RowBuffer};
use super::random::Random;
use super::table::{Column, TableColumns};
use super::{GenerateOptions, SECOND_US, Shape, is_row_shared, sstable_timestamp};
use crate::Result;

/// Rows that a range tombstone covers at most.
const LONGEST_RANGE: u64 = 20;
/// Share of the columns that an INSERT leaves out.
const ABSENT: f64 = 0.1;

/// The table with these columns and its key.
pub(super) fn columns(static_columns: Vec<Column>, regular_columns: Vec<Column>) -> TableColumns {
    TableColumns {
        partition_key: vec![("id", CqlType::Utf8)],
        clustering: vec![("seq", CqlType::Int32)],
        static_columns,
        regular_columns,
    }
}

/// Row content of a shape.
pub(super) trait Rows: Debug {
    /// Number of regular columns.
    fn columns(&self) -> u32;

    /// Adds the cells of a partition's static row. False if the table has none.
    fn put_static(&self, _: &mut Random, _timestamp: i64, _: &mut RowBuffer) -> bool {
        false
    }

    /// Adds the cells of a column as a statement leaves them.
    fn put_column(
        &self,
        random: &mut Random,
        column: u32,
        place: RowPosition,
        statement: Statement,
        row: &mut RowBuffer,
    );
}

/// Position of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowPosition {
    pub(super) partition: u64,
    pub(super) row: u32,
    /// All SSTables have a row there.
    pub(super) is_shared: bool,
}

/// The statement that left a row or a column, and its timestamp.
#[derive(Clone, Copy, Debug)]
pub(super) enum Statement {
    /// The row has liveness.
    Insert(i64),
    /// It has none, and its cells have times of their own.
    Update(i64),
}

impl Statement {
    /// Times of a cell that it leaves: in this share of the cases those of a tombstone.
    pub(super) fn times_or_deleted(self, random: &mut Random, tombstones: f64) -> CellTimes {
        match (random.happens(tombstones), self) {
            (true, Statement::Insert(written) | Statement::Update(written)) => {
                CellTimes::Deleted(deletion_at(written))
            }
            (false, Statement::Insert(_)) => CellTimes::OfRow,
            (false, Statement::Update(written)) => CellTimes::At(written),
        }
    }
}

#[derive(Debug)]
pub(super) struct Sequence<'o> {
    content: Box<dyn Rows + 'o>,
    options: &'o GenerateOptions,
    sstable: u32,
    first_timestamp: i64,
    row: RowBuffer,
}

/// A range tombstone that is open.
#[derive(Clone, Copy, Debug)]
struct OpenRange {
    last_row: u32,
    deletion: DeletionTime,
}

impl<'o> Sequence<'o> {
    pub(super) fn new(
        options: &'o GenerateOptions,
        sstable: u32,
        content: impl Rows + 'o,
    ) -> Sequence<'o> {
        Sequence {
            content: Box::new(content),
            options,
            sstable,
            first_timestamp: sstable_timestamp(options, sstable),
            row: RowBuffer::default(),
        }
    }

    pub(super) fn encoding_stats(&self) -> EncodingStats {
        let options = self.options;
        let has_collections = matches!(options.shape, Shape::Maps | Shape::Collections);
        let has_deletions = has_collections
            || options.deletions > 0.0
            || options.range_tombstones > 0.0
            || options.cell_tombstones > 0.0;
        // A collection that is inserted is deleted a microsecond before.
        let first = self.first_timestamp - i64::from(has_collections);
        let seconds = if has_deletions {
            first / SECOND_US
        } else {
            NO_DELETION_TIME
        };
        EncodingStats::new(first, seconds, NO_TTL)
    }

    pub(super) fn write_partition<O: PartitionSink>(
        &mut self,
        number: u64,
        is_shared: bool,
        key: &[u8],
        out: &mut Output<'_, O>,
    ) -> Result<()> {
        let mut random = Random::of(self.options.seed, &[u64::from(self.sstable), number]);
        let timestamp = self.timestamp(&mut random);
        self.row.begin_static(timestamp);
        out.start_partition(key);
        if self
            .content
            .put_static(&mut random, timestamp, &mut self.row)
        {
            out.add_static_row(&self.row)?;
        }
        let mut range: Option<OpenRange> = None;
        for row in 0..self.options.rows_per_partition {
            if range.is_none() && random.happens(self.options.range_tombstones) {
                range = Some(self.open_range(&mut random, row, out)?);
            }
            let place = RowPosition {
                partition: number,
                row,
                is_shared: is_shared && is_row_shared(self.options, number, row),
            };
            self.write_row(&mut random, place, range, out)?;
            if let Some(open) = range
                && open.last_row == row
            {
                // Up to the last place that any SSTable has a row at.
                self.put_clustering(row, self.options.sstables - 1);
                let bound = std::mem::take(&mut self.row.clustering);
                out.add_bound(Kind::InclEndBound, &bound, open.deletion)?;
                self.row.clustering = bound;
                range = None;
            }
        }
        out.end_partition()
    }

    fn open_range<O: PartitionSink>(
        &mut self,
        random: &mut Random,
        row: u32,
        out: &mut Output<'_, O>,
    ) -> Result<OpenRange> {
        let deletion = deletion_at(self.timestamp(random));
        let further = random.below(LONGEST_RANGE) as u32;
        self.put_clustering(row, 0);
        out.add_bound(Kind::InclStartBound, &self.row.clustering, deletion)?;
        Ok(OpenRange {
            last_row: row
                .saturating_add(further)
                .min(self.options.rows_per_partition - 1),
            deletion,
        })
    }

    fn write_row<O: PartitionSink>(
        &mut self,
        random: &mut Random,
        place: RowPosition,
        range: Option<OpenRange>,
        out: &mut Output<'_, O>,
    ) -> Result<()> {
        let timestamp = match range {
            // Half of the rows were written again after the range had been deleted.
            Some(open) if random.happens(0.5) => {
                open.deletion.marked_for_delete_at + 1 + random.below(SECOND_US as u64) as i64
            }
            Some(_) => return Ok(()),
            None => self.timestamp(random),
        };
        self.row.begin();
        self.put_clustering(place.row, if place.is_shared { 0 } else { self.sstable });
        if random.happens(self.options.deletions) {
            self.row.delete(deletion_at(timestamp));
            return out.add_row(&self.row);
        }
        let columns = self.content.columns();
        // Nothing but UPDATE counts.
        let is_counter = self.options.shape == Shape::Counters;
        if is_counter || random.happens(self.options.updates) {
            // At least one column: each has a bit.
            let updated = 1 + random.below((1 << columns) - 1);
            for column in (0..columns).filter(|column| updated & (1 << column) != 0) {
                let written = timestamp + random.below(SECOND_US as u64) as i64;
                let statement = Statement::Update(written);
                self.content
                    .put_column(random, column, place, statement, &mut self.row);
            }
            return out.add_row(&self.row);
        }
        self.row
            .insert(Liveness::new(timestamp, NO_TTL, NO_DELETION_TIME));
        for column in 0..columns {
            if !random.happens(ABSENT) {
                let statement = Statement::Insert(timestamp);
                self.content
                    .put_column(random, column, place, statement, &mut self.row);
            }
        }
        out.add_row(&self.row)
    }

    /// Rows of one number lie side by side: the place that all SSTables share, or their own.
    fn put_clustering(&mut self, row: u32, place: u32) {
        self.row.clustering.clear();
        // The header of the values: one, present.
        self.row.clustering.push(0);
        let value = (row * self.options.sstables + place) as i32;
        self.row.clustering.extend_from_slice(&value.to_be_bytes());
    }

    fn timestamp(&self, random: &mut Random) -> i64 {
        self.first_timestamp + random.below(3600 * SECOND_US as u64) as i64
    }
}

pub(super) fn write_key(number: u64, key: &mut Vec<u8>) {
    key.extend_from_slice(format!("user-{number:010}").as_bytes());
}

pub(super) fn deletion_at(timestamp: i64) -> DeletionTime {
    DeletionTime::build(timestamp, timestamp / SECOND_US)
}

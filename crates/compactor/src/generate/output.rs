//! Rows on their way into a partition writer.

use compactor_engine::merge::Observer;
use compactor_engine::row::MergedRow;
use compactor_engine::write::{PartitionSink, PartitionWriter};
use compactor_sstable::data::cell::{Cell, Liveness, NO_TTL, Span};
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::{DeletionTime, NO_DELETION_TIME};
use compactor_sstable::partitioner::{KeyHash, Partitioner};

use crate::{Error, Result};

/// Rows, markers and partitions after which the observer is called.
const STEPS_PER_REPORT: u32 = 1024;
/// Columns that any of the tables has.
const MOST_COLUMNS: usize = 8;

/// Output of a generator.
pub(super) struct Output<'a, O> {
    writer: &'a mut PartitionWriter<O>,
    observer: &'a mut dyn Observer,
    steps: u32,
    /// Bytes, rows and partitions of earlier SSTables.
    before: [u64; 3],
}

/// A row under construction. Reused from row to row.
#[derive(Debug, Default)]
pub(super) struct RowBuffer {
    /// Append a value here, then call [`RowBuffer::end_cell`].
    pub(super) values: Vec<u8>,
    /// Serialized clustering.
    pub(super) clustering: Vec<u8>,
    row: MergedRow,
    /// Times of the cells that have none of their own.
    times: Cell,
    cells: usize,
    /// End of the last cell in the values.
    end: usize,
}

/// When a cell was written.
#[derive(Clone, Copy, Debug)]
pub(super) enum CellTimes {
    /// As its row was.
    OfRow,
    At(i64),
    /// It is a tombstone.
    Deleted(DeletionTime),
}

impl RowBuffer {
    /// Begins a row that is nothing but its cells, which have times of their own.
    pub(super) fn begin(&mut self) {
        self.values.clear();
        self.clustering.clear();
        self.row.reset(MOST_COLUMNS);
        self.times = Cell::default();
        (self.cells, self.end) = (0, 0);
    }

    /// Makes it a row as INSERT leaves it: cells are as old as it is, and expire with it.
    pub(super) fn insert(&mut self, liveness: Liveness) {
        self.row.liveness = liveness;
        let expires_s = liveness.local_expiration_time;
        self.times = times(liveness.timestamp, expires_s, liveness.ttl);
    }

    /// Begins a static row: it has no liveness of its own, its cells are of this `timestamp`.
    pub(super) fn begin_static(&mut self, timestamp: i64) {
        self.begin();
        self.times = times(timestamp, NO_DELETION_TIME, NO_TTL);
    }

    /// Makes it a row that is deleted.
    pub(super) fn delete(&mut self, deletion: DeletionTime) {
        self.row.deletion = deletion;
    }

    /// Makes the bytes appended to the values since the last call the cell of `column`.
    pub(super) fn end_cell(&mut self, column: u32) {
        self.end_cell_at(column, CellTimes::OfRow);
    }

    /// As [`RowBuffer::end_cell`], of a cell with these times. A tombstone drops the value.
    pub(super) fn end_cell_at(&mut self, column: u32, times: CellTimes) {
        let cell = self.cell(0, times);
        self.row.put_cell(column, cell);
    }

    /// Begins a complex column, whose elements come next.
    pub(super) fn begin_column(&mut self, column: u32, deletion: DeletionTime) {
        self.row.begin_complex(column, deletion);
    }

    /// Ends an element of the current column: the bytes appended to the values since the last call, of which the
    /// first `path_len` are its path and the rest its value, which is discarded for a tombstone.
    pub(super) fn end_element(&mut self, path_len: usize, times: CellTimes) {
        let cell = self.cell(path_len, times);
        self.row.push_element(cell);
    }

    fn cell(&mut self, path_len: usize, written: CellTimes) -> Cell {
        let (path_start, start) = (self.end, self.end + path_len);
        let times = match written {
            CellTimes::OfRow => self.times,
            CellTimes::At(timestamp) => times(timestamp, NO_DELETION_TIME, NO_TTL),
            CellTimes::Deleted(deletion) => {
                self.values.truncate(start);
                let seconds = deletion.local_deletion_time;
                times(deletion.marked_for_delete_at, seconds, NO_TTL)
            }
        };
        self.end = self.values.len();
        self.cells += 1;
        let span = |start: usize, end: usize| Span::new(start as u32, (end - start) as u32);
        Cell {
            path: span(path_start, start),
            value: span(start, self.end),
            ..times
        }
    }
}

/// A cell with these times, and without path and value.
fn times(timestamp: i64, local_deletion_time: i64, ttl: i32) -> Cell {
    Cell {
        timestamp,
        local_deletion_time,
        ttl,
        ..Cell::default()
    }
}

impl<'a, O: PartitionSink> Output<'a, O> {
    /// Writes to `writer`. The observer is notified of the counts of earlier SSTables (`before`: bytes,
    /// rows, partitions) and this one together.
    pub(super) fn new(
        writer: &'a mut PartitionWriter<O>,
        observer: &'a mut dyn Observer,
        before: [u64; 3],
    ) -> Output<'a, O> {
        Output {
            writer,
            observer,
            steps: 0,
            before,
        }
    }

    /// Uncompressed bytes of this SSTable so far.
    pub(super) fn position(&self) -> u64 {
        self.writer.position()
    }

    pub(super) fn start_partition(&mut self, key: &[u8]) {
        let hash: KeyHash = Partitioner::Murmur3.hash_key(key);
        self.writer.start_partition(key, hash, DeletionTime::LIVE);
    }

    pub(super) fn add_row(&mut self, row: &RowBuffer) -> Result<()> {
        self.write(false, row)
    }

    pub(super) fn add_static_row(&mut self, row: &RowBuffer) -> Result<()> {
        self.write(true, row)
    }

    fn write(&mut self, is_static: bool, row: &RowBuffer) -> Result<()> {
        let guess = row.values.len() + 8 + 4 * row.cells;
        let row_of = |_| &row.values[..];
        self.writer
            .add_row(is_static, &row.clustering, &row.row, row_of, guess)?;
        self.step()
    }

    /// Writes a bound of a range tombstone with one clustering value, framed as `values`.
    pub(super) fn add_bound(
        &mut self,
        kind: Kind,
        values: &[u8],
        deletion: DeletionTime,
    ) -> Result<()> {
        let mut bound = vec![kind as u8];
        bound.extend_from_slice(&1u16.to_be_bytes());
        bound.extend_from_slice(values);
        let (close, open) = if kind.is_open() {
            (DeletionTime::LIVE, deletion)
        } else {
            (deletion, DeletionTime::LIVE)
        };
        self.writer.add_marker(kind, &bound, &close, &open)?;
        self.step()
    }

    pub(super) fn end_partition(&mut self) -> Result<()> {
        self.writer.end_partition()?;
        self.step()
    }

    #[inline]
    fn step(&mut self) -> Result<()> {
        self.steps += 1;
        if self.steps < STEPS_PER_REPORT {
            return Ok(());
        }
        self.steps = 0;
        let [bytes, rows, partitions] = self.before;
        self.observer.progress(
            bytes + self.writer.position(),
            rows + self.writer.rows(),
            partitions + self.writer.partitions(),
        );
        if self.observer.is_cancelled() {
            return Err(Error::Cancelled);
        }
        Ok(())
    }
}

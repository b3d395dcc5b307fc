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
    row: MergedRow,
}

/// A row under construction: values first, cells when it is written. Reused from row to row.
#[derive(Debug, Default)]
pub(super) struct RowBuffer {
    /// Append a value here, then call [`RowBuffer::end_cell`].
    pub(super) values: Vec<u8>,
    columns: Vec<PendingColumn>,
    cells: Vec<PendingCell>,
    /// Serialized clustering.
    pub(super) clustering: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct PendingColumn {
    index: u32,
    is_complex: bool,
    /// Deletion of a complex column.
    deletion: DeletionTime,
    first_cell: usize,
}

/// Path and value lie side by side.
#[derive(Clone, Copy, Debug)]
struct PendingCell {
    path_start: usize,
    start: usize,
    end: usize,
    times: CellTimes,
}

impl PendingCell {
    /// Returns the cell as it is written in a row with this liveness.
    fn written(&self, liveness: &Liveness) -> Cell {
        let (timestamp, local_deletion_time, ttl) = match self.times {
            CellTimes::OfRow => (
                liveness.timestamp,
                liveness.local_expiration_time,
                liveness.ttl,
            ),
            CellTimes::At(timestamp) => (timestamp, NO_DELETION_TIME, NO_TTL),
            CellTimes::Deleted(deletion) => (
                deletion.marked_for_delete_at,
                deletion.local_deletion_time,
                NO_TTL,
            ),
        };
        let span = |start: usize, end: usize| Span::new(start as u32, (end - start) as u32);
        Cell {
            timestamp,
            local_deletion_time,
            ttl,
            path: span(self.path_start, self.start),
            value: span(self.start, self.end),
            version: 0,
        }
    }
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
    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.columns.clear();
        self.cells.clear();
        self.clustering.clear();
    }

    /// Makes the bytes appended to the values since the last call the cell of `column`.
    pub(super) fn end_cell(&mut self, column: u32) {
        self.end_cell_at(column, CellTimes::OfRow);
    }

    /// As [`RowBuffer::end_cell`], of a cell with these times. A tombstone drops the value.
    pub(super) fn end_cell_at(&mut self, column: u32, times: CellTimes) {
        self.push_column(column, false, DeletionTime::LIVE);
        self.end_element(0, times);
    }

    /// Begins a complex column, whose elements come next.
    pub(super) fn begin_column(&mut self, column: u32, deletion: DeletionTime) {
        self.push_column(column, true, deletion);
    }

    fn push_column(&mut self, index: u32, is_complex: bool, deletion: DeletionTime) {
        self.columns.push(PendingColumn {
            index,
            is_complex,
            deletion,
            first_cell: self.cells.len(),
        });
    }

    /// Ends an element of the current column: the bytes appended to the values since the last call, of which the
    /// first `path_len` are its path and the rest its value, which is discarded for a tombstone.
    pub(super) fn end_element(&mut self, path_len: usize, times: CellTimes) {
        let path_start = self.cells.last().map_or(0, |cell| cell.end);
        let start = path_start + path_len;
        if matches!(times, CellTimes::Deleted(_)) {
            self.values.truncate(start);
        }
        self.cells.push(PendingCell {
            path_start,
            start,
            end: self.values.len(),
            times,
        });
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
            row: MergedRow::default(),
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

    /// Writes a row whose cells are as old as it is and expire with it.
    pub(super) fn add_row(&mut self, buffer: &RowBuffer, liveness: Liveness) -> Result<()> {
        self.write(false, buffer, liveness, DeletionTime::LIVE)
    }

    /// Writes the static row: it has no liveness of its own, its cells are of this `timestamp`.
    pub(super) fn add_static_row(&mut self, buffer: &RowBuffer, timestamp: i64) -> Result<()> {
        self.write(
            true,
            buffer,
            Liveness::new(timestamp, NO_TTL, NO_DELETION_TIME),
            DeletionTime::LIVE,
        )
    }

    /// Writes a row without liveness, whose cells all have times of their own.
    pub(super) fn add_updated_row(&mut self, buffer: &RowBuffer) -> Result<()> {
        self.write(false, buffer, Liveness::EMPTY, DeletionTime::LIVE)
    }

    /// Writes a row that is nothing but deleted.
    pub(super) fn add_deleted_row(
        &mut self,
        buffer: &RowBuffer,
        deletion: DeletionTime,
    ) -> Result<()> {
        self.write(false, buffer, Liveness::EMPTY, deletion)
    }

    fn write(
        &mut self,
        is_static: bool,
        buffer: &RowBuffer,
        liveness: Liveness,
        deletion: DeletionTime,
    ) -> Result<()> {
        let row = &mut self.row;
        row.reset(MOST_COLUMNS);
        row.liveness = if is_static { Liveness::EMPTY } else { liveness };
        row.deletion = deletion;
        let next = buffer.columns.iter().skip(1).map(|next| next.first_cell);
        let ends = next.chain([buffer.cells.len()]);
        for (column, end) in buffer.columns.iter().zip(ends) {
            let cells = &buffer.cells[column.first_cell..end];
            if column.is_complex {
                row.begin_complex(column.index, column.deletion);
            }
            for cell in cells {
                let cell = cell.written(&liveness);
                match column.is_complex {
                    true => row.push_element(cell),
                    false => row.put_cell(column.index, cell),
                }
            }
        }
        let guess = buffer.values.len() + 8 + 4 * buffer.cells.len();
        let row_of = |_| &buffer.values[..];
        self.writer
            .add_row(is_static, &buffer.clustering, row, row_of, guess)?;
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

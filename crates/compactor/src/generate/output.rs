//! Rows on their way into a partition writer.

use compactor_engine::Error as EngineError;
use compactor_engine::observer::Observer;
use compactor_engine::partition_writer::{BlockOutput, PartitionWriter};
use compactor_engine::row_merge::{MergedColumn, MergedRow};
use compactor_engine::sstable_index::SstableIndex;
use compactor_sstable::data::cell::{CellView, Liveness, NO_TTL};
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::{DeletionTime, NO_DELETION_TIME};
use compactor_sstable::partitioner::{KeyHash, Partitioner};

use crate::error::Result;

/// Rows, markers and partitions after which the observer is called.
const STEPS_PER_REPORT: u32 = 1024;

/// What a generator writes to.
pub(super) struct Output<'a, B, I> {
    writer: &'a mut PartitionWriter<B, I>,
    observer: &'a mut dyn Observer,
    steps: u32,
    bytes_before: u64,
    rows_before: u64,
    partitions_before: u64,
    recycled: MergedRow<'static>,
}

/// A row under construction: values first, cells when it is written. Reused from row to row.
#[derive(Debug, Default)]
pub(super) struct RowBuffer {
    /// Append a value here, then call [`RowBuffer::end_cell`].
    pub(super) values: Vec<u8>,
    cells: Vec<PendingCell>,
    /// Serialized clustering.
    pub(super) clustering: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct PendingCell {
    column: u32,
    start: usize,
    end: usize,
    times: CellTimes,
}

/// When a cell was written.
#[derive(Clone, Copy, Debug)]
enum CellTimes {
    /// As its row was.
    OfRow,
    At(i64),
    /// It is a tombstone.
    Deleted(DeletionTime),
}

impl RowBuffer {
    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.cells.clear();
        self.clustering.clear();
    }

    /// Makes what was appended to the values since the last call the cell of `column`.
    pub(super) fn end_cell(&mut self, column: u32) {
        self.push(column, CellTimes::OfRow);
    }

    /// As [`RowBuffer::end_cell`], of a cell with a timestamp of its own.
    pub(super) fn end_cell_at(&mut self, column: u32, timestamp: i64) {
        self.push(column, CellTimes::At(timestamp));
    }

    /// Drops what was appended to the values since the last call, and makes the cell of `column` a
    /// tombstone.
    pub(super) fn end_tombstone(&mut self, column: u32, deletion: DeletionTime) {
        self.values.truncate(self.end());
        self.push(column, CellTimes::Deleted(deletion));
    }

    fn push(&mut self, column: u32, times: CellTimes) {
        self.cells.push(PendingCell {
            column,
            start: self.end(),
            end: self.values.len(),
            times,
        });
    }

    /// Where the values of the cells so far end.
    fn end(&self) -> usize {
        self.cells.last().map_or(0, |cell| cell.end)
    }
}

impl<'a, B: BlockOutput, I: SstableIndex> Output<'a, B, I> {
    /// Writes to `writer`. The observer hears of the counts of earlier SSTables (`before`: bytes,
    /// rows, partitions) and this one together.
    pub(super) fn new(
        writer: &'a mut PartitionWriter<B, I>,
        observer: &'a mut dyn Observer,
        before: (u64, u64, u64),
    ) -> Output<'a, B, I> {
        Output {
            writer,
            observer,
            steps: 0,
            bytes_before: before.0,
            rows_before: before.1,
            partitions_before: before.2,
            recycled: empty_row(),
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
        let mut row: MergedRow<'_> = std::mem::replace(&mut self.recycled, empty_row());
        row.liveness = if is_static { Liveness::EMPTY } else { liveness };
        row.deletion = deletion;
        for (index, cell) in buffer.cells.iter().enumerate() {
            let (timestamp, local_deletion_time, ttl) = match cell.times {
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
            row.cells.push(CellView {
                timestamp,
                local_deletion_time,
                ttl,
                path: &[],
                value: &buffer.values[cell.start..cell.end],
            });
            row.columns.push(MergedColumn {
                index: cell.column,
                deletion: DeletionTime::LIVE,
                first_cell: index,
                cell_count: 1,
            });
        }
        let guess = buffer.values.len() + 8 + 4 * buffer.cells.len();
        self.writer
            .add_row(is_static, &buffer.clustering, &row, guess)?;
        self.recycled = recycle(row);
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
        self.observer.progress(
            self.bytes_before + self.writer.position(),
            self.rows_before + self.writer.rows(),
            self.partitions_before + self.writer.partitions(),
        );
        if self.observer.is_cancelled() {
            return Err(EngineError::Cancelled.into());
        }
        Ok(())
    }
}

fn empty_row<'a>() -> MergedRow<'a> {
    MergedRow {
        liveness: Liveness::EMPTY,
        deletion: DeletionTime::LIVE,
        is_shadowable: false,
        columns: Vec::new(),
        cells: Vec::new(),
        made_counters: Vec::new(),
        contexts: Default::default(),
    }
}

/// Empties the row and frees it of its lifetime. A vector collected from its own `IntoIter` is the
/// same allocation: there is none per row.
fn recycle<'b>(mut row: MergedRow<'_>) -> MergedRow<'b> {
    row.columns.clear();
    row.cells.clear();
    MergedRow {
        columns: row.columns,
        cells: row.cells.into_iter().map(|_| unreachable!()).collect(),
        ..empty_row()
    }
}

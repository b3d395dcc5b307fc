//! Rows that nothing is merged into, transcoded as they are read.

use compactor_sstable::Error as FormatError;
use compactor_sstable::data::cell::CellView;
use compactor_sstable::data::columns::{PresentColumns, write_subset};
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::encode::{RowFrame, RowShape};

use super::{BlockOutput, Name, PartitionWriter, note_liveness};
use crate::cursor::RowRef;
use crate::error::{Error, Result};
use crate::purge::{Purged, Purger};
use crate::sstable_index::SstableIndex;

impl<B: BlockOutput, I: SstableIndex> PartitionWriter<B, I> {
    /// Writes a row that no other version and no deletion but its own touches, cell by cell as it is read,
    /// without collecting it first. `map` gives each input column's index in the output. Returns
    /// false, with nothing written, where the row needs more care than that: where `purger` would
    /// change something in it, above all.
    ///
    /// # Errors
    /// Damage in the row, relative to its first byte, or those of a full block.
    pub fn transcode_row(
        &mut self,
        row: &RowRef<'_>,
        map: &[u32],
        purger: &Purger,
    ) -> Result<bool, TranscodeError> {
        let begin = self.begin_unfiltered();
        let previous_size = self.position() - self.start - self.previous;
        let layout = &*self.layout;
        let (out, collector) = (&mut self.out, &mut self.collector);
        let mut body = row.body()?;
        if purger.purge_liveness(body.liveness) != body.liveness
            || purger.purge_deletion(body.deletion) != body.deletion
        {
            return Ok(false);
        }
        let is_kept = |cell: &CellView<'_>| matches!(purger.purge_cell(*cell), Purged::Kept(_));
        let present = body.present().remaining();
        let has_all_columns = present == layout.regular_columns.len();
        let shape = RowShape {
            is_static: false,
            liveness: body.liveness,
            deletion: body.deletion,
            is_shadowable: body.is_shadowable,
            has_complex_deletion: false,
            has_all_columns,
        };
        let clustering = row.clustering_bytes();
        let pending_seconds = &mut self.pending_seconds;
        pending_seconds.clear();
        // As a cell that stays as it is, but whose row may yet be rolled back and written in another way: with
        // the same timestamps and TTLs, but counted once.
        let mut note_cell = |cell: &CellView<'_>| {
            collector.update_timestamp(cell.timestamp);
            collector.update_ttl(cell.ttl);
            pending_seconds.push(cell.local_deletion_time);
        };
        let frame = RowFrame::begin(out, &shape, clustering, previous_size, row.body_len());
        layout.put_body_start(out, &shape);
        if !has_all_columns {
            let columns = body.present().clone();
            let mapped = PresentMapped { columns, map };
            write_subset(out, layout.regular_columns.len(), mapped);
        }
        let mut cells = 0;
        while let Some(index) = body.next_column()? {
            let input_column = body.column(index);
            let output_index = map.get(index).map_or(usize::MAX, |i| *i as usize);
            // Contexts of counters may have to be changed.
            let plain = layout
                .regular_columns
                .get(output_index)
                .filter(|c| !c.is_counter);
            let Some(column) = plain else {
                out.truncate(begin);
                return Ok(false);
            };
            if column.is_complex {
                let (_, count) = body.complex_header()?;
                if count == 0 {
                    out.truncate(begin);
                    return Ok(false);
                }
                layout.put_complex_header(out, false, &DeletionTime::LIVE, count);
                let mut previous: Option<CellView<'_>> = None;
                for _ in 0..count {
                    let cell = body.complex_cell()?;
                    let in_order = match (&previous, &cell) {
                        (Some(before), Some(cell)) => column
                            .cql_type
                            .compare_paths(before.path, cell.path)
                            .is_lt(),
                        (_, cell) => cell.is_some(),
                    };
                    let Some(cell) = cell.filter(|cell| in_order && is_kept(cell)) else {
                        out.truncate(begin);
                        return Ok(false);
                    };
                    layout.put_cell(out, column, &shape.liveness, &cell);
                    note_cell(&cell);
                    previous = Some(cell);
                    cells += 1;
                }
            } else {
                let Some(cell) = body.simple_cell(input_column)?.filter(is_kept) else {
                    out.truncate(begin);
                    return Ok(false);
                };
                layout.put_cell(out, column, &shape.liveness, &cell);
                note_cell(&cell);
                cells += 1;
            }
        }
        if cells == 0 && shape.liveness.is_empty() && shape.deletion.is_live() {
            // Nothing at all: Cassandra's reader skips such a row.
            out.truncate(begin);
            return Ok(false);
        }
        frame.end(out);
        note_liveness(collector, &shape.liveness);
        collector.update_deletion_time(&shape.deletion);
        collector.add_cells(cells);
        for seconds in pending_seconds.drain(..) {
            collector.update_local_deletion_time(seconds);
        }
        self.rows += 1;
        collector.add_row(present as u64);
        let clustering_at = begin + 1;
        self.end_unfiltered(begin, Name::of_row(clustering_at, clustering.len()))
            .map_err(TranscodeError::Other)?;
        Ok(true)
    }
}

/// Why a row could not be transcoded.
#[derive(Debug)]
pub enum TranscodeError {
    /// Its bytes, relative to its first one.
    Row(FormatError),
    /// Something else.
    Other(Error),
}

impl From<FormatError> for TranscodeError {
    fn from(error: FormatError) -> TranscodeError {
        TranscodeError::Row(error)
    }
}

/// Input columns by their index in the output.
#[derive(Clone)]
struct PresentMapped<'a> {
    columns: PresentColumns<'a>,
    map: &'a [u32],
}

impl Iterator for PresentMapped<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let index = self.columns.next()?;
        self.map.get(index).map(|i| *i as usize)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.columns.remaining(), Some(self.columns.remaining()))
    }
}

impl ExactSizeIterator for PresentMapped<'_> {}

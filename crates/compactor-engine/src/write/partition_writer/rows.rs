//! Writing rows: merged ones, or unchanged copies.

use compactor_sstable::data::cell::{Cell, Liveness, NO_TTL};
use compactor_sstable::data::columns::write_subset;
use compactor_sstable::data::counter::Context;
use compactor_sstable::data::deletion_time::NO_DELETION_TIME;
use compactor_sstable::data::encode::{RowFrame, RowShape};
use compactor_sstable::data::parse::MAX_BODY_LEN;
use compactor_sstable::data::plain_row::PlainRow;
use compactor_sstable::statistics::MetadataCollector;

use super::{Name, PartitionWriter};
use crate::error::{Error, Result};
use crate::row::counter_merge::MERGED_VALUE;
use crate::row::merged_row::MergedRow;
use crate::row::purge::{PurgeOutcome, Purger};
use crate::write::partition_sink::PartitionSink;

impl<O: PartitionSink> PartitionWriter<O> {
    /// Writes a row. `clustering` is the serialized clustering, empty for the static row. `row_of` returns
    /// the bytes that contain the paths and values of a version's cells.
    ///
    /// # Errors
    /// Those of a full block, or a row that is longer than readers accept.
    #[inline]
    pub fn add_row<'r>(
        &mut self,
        is_static: bool,
        clustering: &[u8],
        row: &'r MergedRow,
        row_of: impl Fn(u32) -> &'r [u8],
        guessed_body_len: usize,
    ) -> Result<()> {
        let begin = self.out.len();
        let previous_size = if is_static {
            // A static row has no previous unfiltered.
            0
        } else {
            self.position() - self.start - self.previous
        };
        let layout = &*self.layout;
        let (out, collector) = (&mut self.out, &mut self.collector);
        let columns = layout.columns(is_static);
        let mut complex = row.complex().iter();
        let shape = RowShape {
            is_static,
            liveness: row.liveness,
            deletion: row.deletion,
            is_shadowable: row.is_shadowable,
            has_complex_deletion: complex.as_slice().iter().any(|c| !c.deletion.is_live()),
            has_all_columns: row.present().len() == columns.len(),
        };
        let frame = RowFrame::begin(out, &shape, clustering, previous_size, guessed_body_len);
        layout.put_body_start(out, &shape);
        if !shape.has_all_columns {
            write_subset(out, columns.len(), row.present());
        }
        note_liveness(collector, &row.liveness);
        collector.update_deletion_time(&row.deletion);
        let mut columns_set = 0;
        for index in row.present().iter() {
            let Some(column) = columns.get(index) else {
                continue;
            };
            if !column.is_complex {
                let Some(cell) = row.simple(index as u32) else {
                    continue;
                };
                let bytes = if column.is_counter {
                    note_counter(collector, row, cell, &row_of)
                } else {
                    row_of(cell.version)
                };
                layout.put_cell(out, column, &row.liveness, cell, bytes);
                collector.update_cell(cell.timestamp, cell.ttl, cell.local_deletion_time);
                columns_set += 1;
            } else if let Some(merged) = complex.next() {
                let cells = row.cells_of(merged);
                let has_deletion = shape.has_complex_deletion;
                layout.put_complex_header(out, has_deletion, &merged.deletion, cells.len());
                collector.update_deletion_time(&merged.deletion);
                for cell in cells {
                    let bytes = if column.is_counter {
                        note_counter(collector, row, cell, &row_of)
                    } else {
                        row_of(cell.version)
                    };
                    layout.put_cell(out, column, &row.liveness, cell, bytes);
                    collector.update_cell(cell.timestamp, cell.ttl, cell.local_deletion_time);
                }
                columns_set += u64::from(!cells.is_empty());
            }
        }
        let body_len = frame.end(out);
        if body_len > MAX_BODY_LEN {
            return Err(self.too_long(body_len));
        }
        collector.add_row(columns_set);
        if is_static {
            self.static_is_empty = false;
            self.header_len = self.position() - self.start;
            return Ok(());
        }
        let clustering_at = begin + 1 + usize::from(shape.flags().1.is_some());
        self.end_unfiltered(begin, Name::of_row(clustering_at, clustering.len()))
    }

    /// Cassandra's compaction fails as well (`DataOutputBuffer`).
    #[cold]
    fn too_long(&self, body_len: u64) -> Error {
        Error::refused(format!(
            "a row of the partition with key {} has {body_len} bytes when it is merged, and SSTables can hold \
             rows of {MAX_BODY_LEN} bytes; leave one of its SSTables out",
            crate::read::hex::hex(&self.key)
        ))
    }

    /// Writes a plain row of an SSTable with the output's columns unchanged, except for its times. Returns
    /// false, with nothing written, if `purger` would change it.
    ///
    /// # Errors
    /// Those of a full block.
    #[inline(always)]
    pub fn copy_row(&mut self, row: &PlainRow<'_>, purger: &Purger) -> Result<bool> {
        let liveness = row.liveness;
        if liveness.is_expiring() && !keeps_expiring(purger, &liveness) {
            return Ok(false);
        }
        let begin = self.out.len();
        let previous_size = self.position() - self.start - self.previous;
        self.layout.put_plain_row(&mut self.out, row, previous_size);
        note_liveness(&mut self.collector, &liveness);
        if liveness.is_expiring() {
            for _ in 0..row.expiring_cells {
                self.collector
                    .update_local_deletion_time(liveness.local_expiration_time);
            }
            if row.live_cells > 0 {
                self.collector.update_ttl(NO_TTL);
                self.collector.update_local_deletion_time(NO_DELETION_TIME);
            }
        }
        let cells = u64::from(row.live_cells) + u64::from(row.expiring_cells);
        self.collector.add_cells(cells);
        self.collector.add_row(cells);
        self.end_unfiltered(begin, Name::of_row(begin + 1, row.clustering_end - 1))?;
        Ok(true)
    }
}

/// Whether a liveness with a TTL is kept unchanged, and so are cells with the same times.
#[inline(always)]
fn keeps_expiring(purger: &Purger, liveness: &Liveness) -> bool {
    let Liveness {
        timestamp,
        ttl,
        local_expiration_time,
    } = *liveness;
    !purger.drops_liveness(liveness)
        && purger.purge_times(timestamp, local_expiration_time, ttl) == PurgeOutcome::Kept
}

#[inline(always)]
fn note_liveness(collector: &mut MetadataCollector, liveness: &Liveness) {
    if !liveness.is_empty() {
        let Liveness {
            timestamp,
            ttl,
            local_expiration_time,
        } = *liveness;
        collector.update_liveness(timestamp, ttl, local_expiration_time);
    }
}

/// Records whether a counter has legacy shards. `bytes` contain its value.
fn note_counter<'r>(
    collector: &mut MetadataCollector,
    row: &'r MergedRow,
    cell: &Cell,
    row_of: &impl Fn(u32) -> &'r [u8],
) -> &'r [u8] {
    let bytes = match cell.version {
        MERGED_VALUE => row.made(),
        version => row_of(version),
    };
    // Contexts were validated when they were read.
    if !cell.is_tombstone()
        && Context::parse(cell.value.of(bytes)).is_ok_and(|context| context.has_legacy_shards())
    {
        collector.set_legacy_counter_shards();
    }
    bytes
}

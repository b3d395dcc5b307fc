//! Plain rows, copied behind their times or put together of several.

use std::sync::Arc;

use compactor_sstable::data::cell::{CellView, Liveness, NO_TTL};
use compactor_sstable::data::deletion_time::{DeletionTime, NO_DELETION_TIME};
use compactor_sstable::data::encode::RowShape;
use compactor_sstable::data::plain_cells::PlainCells;
use compactor_sstable::data::plain_row::PlainRow;

use super::{BlockOutput, Name, PartitionWriter};
use crate::error::{Error, Result};
use crate::purge::{Purged, Purger};
use crate::sstable_index::SstableIndex;

impl<B: BlockOutput, I: SstableIndex> PartitionWriter<B, I> {
    /// Writes a plain row whose SSTable has the output's columns as it is, but for its times. Returns
    /// false, with nothing written, where `purger` would change something in it.
    ///
    /// # Errors
    /// Those of a full block.
    #[inline(always)]
    pub fn copy_row(&mut self, row: &PlainRow<'_>, purger: &Purger) -> Result<bool> {
        let liveness = row.liveness;
        if liveness.is_expiring() && !keeps_expiring(purger, &liveness) {
            return Ok(false);
        }
        let begin = self.begin_unfiltered();
        let previous_size = self.position() - self.start - self.previous;
        self.layout.put_plain_row(&mut self.out, row, previous_size);
        self.note_liveness(&liveness);
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
        self.rows += 1;
        self.collector.add_row(cells);
        self.end_unfiltered(begin, Name::of_row(begin + 1, row.clustering_end - 1))?;
        Ok(true)
    }

    /// Writes a row with the liveness of `newest`, the first of `versions`, and of each column the cell of
    /// the first that has it. As [`Layout::put_newest_cells`](compactor_sstable::data::layout::Layout::put_newest_cells)
    /// wants them.
    ///
    /// # Errors
    /// Those of a full block; internal where they are not.
    pub fn write_newest_cells(
        &mut self,
        newest: &PlainRow<'_>,
        versions: &mut [PlainCells<'_>],
    ) -> Result<()> {
        let layout = Arc::clone(&self.layout);
        let present = versions.iter().fold(0, |all, row| all | row.present());
        let shape = RowShape {
            is_static: false,
            liveness: newest.liveness,
            deletion: DeletionTime::LIVE,
            is_shadowable: false,
            has_complex_deletion: false,
            has_all_columns: present.count_ones() as usize == layout.regular_columns.len(),
        };
        let begin = self.begin_unfiltered();
        let clustering = newest.clustering();
        let frame = self.begin_row(&shape, clustering, newest.len);
        layout.put_body_start(&mut self.out, &shape);
        let collector = &mut self.collector;
        let Some(cells) = layout.put_newest_cells(&mut self.out, versions, |timestamp| {
            collector.update_timestamp(timestamp);
        }) else {
            return Err(Error::Internal("plain rows that are none".to_owned()));
        };
        frame.end(&mut self.out);
        self.note_liveness(&newest.liveness);
        self.collector.add_cells(u64::from(cells));
        self.rows += 1;
        self.collector.add_row(u64::from(cells));
        self.end_unfiltered(begin, Name::of_row(begin + 1, clustering.len()))
    }
}

/// Whether a liveness with a TTL stays as it is, and cells with the same times as well.
fn keeps_expiring(purger: &Purger, liveness: &Liveness) -> bool {
    let cell = CellView {
        timestamp: liveness.timestamp,
        local_deletion_time: liveness.local_expiration_time,
        ttl: liveness.ttl,
        path: &[],
        value: &[],
    };
    purger.purge_liveness(*liveness) == *liveness
        && matches!(purger.purge_cell(cell), Purged::Kept(_))
}

//! Plain rows, copied behind their times.

use compactor_sstable::data::cell::{CellView, Liveness, NO_TTL};
use compactor_sstable::data::deletion_time::NO_DELETION_TIME;
use compactor_sstable::data::plain_row::PlainRow;

use super::{BlockOutput, Name, PartitionWriter, note_liveness};
use crate::error::Result;
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
        self.rows += 1;
        self.collector.add_row(cells);
        self.end_unfiltered(begin, Name::of_row(begin + 1, row.clustering_end - 1))?;
        Ok(true)
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

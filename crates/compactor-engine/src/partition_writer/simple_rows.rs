//! Rows of simple columns, as their merge left them.

use compactor_sstable::data::columns::write_missing;
use compactor_sstable::data::encode::{RowFrame, RowShape};

use super::{BlockOutput, Name, PartitionWriter, note_liveness};
use crate::error::Result;
use crate::simple_merge::{SimpleMerger, SimpleRemains, SimpleVersion};
use crate::sstable_index::SstableIndex;

impl<B: BlockOutput, I: SstableIndex> PartitionWriter<B, I> {
    /// Writes what is left of a row, whose cells are those of `merger`; `clustering` is serialized.
    ///
    /// # Errors
    /// Those of a full block.
    #[inline(always)]
    pub(crate) fn write_simple_row(
        &mut self,
        clustering: &[u8],
        row: &SimpleRemains,
        merger: &SimpleMerger,
        versions: &[SimpleVersion<'_>],
        guessed_body_len: usize,
    ) -> Result<()> {
        let begin = self.begin_unfiltered();
        let previous_size = self.position() - self.start - self.previous;
        let layout = &*self.layout;
        let (out, collector) = (&mut self.out, &mut self.collector);
        let columns = &layout.regular_columns;
        let all = (1u64 << columns.len()) - 1;
        let shape = RowShape {
            is_static: false,
            liveness: row.liveness,
            deletion: row.deletion,
            is_shadowable: false,
            has_complex_deletion: false,
            has_all_columns: row.present == all,
        };
        let frame = RowFrame::begin(out, &shape, clustering, previous_size, guessed_body_len);
        layout.put_body_start(out, &shape);
        if !shape.has_all_columns {
            write_missing(out, all & !row.present);
        }
        note_liveness(collector, &row.liveness);
        collector.update_deletion_time(&row.deletion);
        let mut left = row.present;
        while left != 0 {
            let index = left.trailing_zeros() as usize;
            left &= left - 1;
            let (Some(column), Some((cell, bytes))) =
                (columns.get(index), merger.cell(index, versions))
            else {
                continue;
            };
            layout.put_simple_cell(out, column, &row.liveness, &cell, bytes);
            collector.update_cell(cell.timestamp, cell.ttl, cell.local_deletion_time);
        }
        frame.end(out);
        self.rows += 1;
        collector.add_row(u64::from(row.present.count_ones()));
        self.end_unfiltered(begin, Name::of_row(begin + 1, clustering.len()))
    }
}

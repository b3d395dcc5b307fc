//! Rows of one input that stand before those of all others, copied one after the other.

use compactor_sstable::data::deletion_time::DeletionTime;

use super::{PartitionMerger, STEPS_PER_REPORT};
use crate::error::Result;
use crate::read::window::BlockSource;
use crate::write::partition_writer::BlockOutput;
use crate::write::sstable_index::SstableIndex;

impl<S: BlockSource, B: BlockOutput, I: SstableIndex> PartitionMerger<S, B, I> {
    /// No unfiltered of these members of the group, from where they stand, has a lower order prefix: 0 if
    /// that cannot be said, and `None` if all are at the end of the partition.
    #[inline]
    pub(super) fn least_order_prefix(
        &self,
        group: &[u32],
        members: impl Iterator<Item = u32>,
    ) -> Option<u64> {
        let cursors = members.map(|member| &self.inputs[group[member as usize] as usize].cursor);
        cursors
            .filter_map(|cursor| match cursor.order_prefix() {
                None => cursor.clustering().map(|_| 0),
                prefix => prefix,
            })
            .min()
    }

    /// Copies rows of one input while they are plain, stand before all unfiltereds of this order prefix,
    /// and are newer than the deletion that is open. Returns whether there were any.
    pub(super) fn copy_run(
        &mut self,
        number: usize,
        limit: Option<u64>,
        active: DeletionTime,
    ) -> Result<bool> {
        let input = &mut self.inputs[number];
        let may_copy =
            input.may_copy_rows() && self.shadow.as_ref().is_none_or(|shadow| !shadow.is_here());
        let mut copied = 0;
        while may_copy
            && copied < STEPS_PER_REPORT
            && limit.is_none_or(|limit| input.cursor.order_prefix().is_some_and(|at| at < limit))
            && let Some(row) = input.cursor.plain_row()
            && (active.is_live() || active.marked_for_delete_at < row.liveness.timestamp)
            && self.writer.copy_row(&row, &self.purger)?
        {
            input.cursor.next_unfiltered()?;
            copied += 1;
        }
        self.counts.rows_read += u64::from(copied);
        self.steps += copied;
        Ok(copied > 0)
    }
}

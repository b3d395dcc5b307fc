//! Copying consecutive rows of one input that is ahead of all others.

use compactor_sstable::data::deletion_time::DeletionTime;

use super::{PartitionMerger, STEPS_PER_REPORT};
use crate::error::Result;
use crate::read::window::BlockSource;
use crate::write::partition_sink::PartitionSink;

impl<S: BlockSource, O: PartitionSink> PartitionMerger<S, O> {
    /// Lower bound of the memcomparable prefixes of these members' remaining unfiltereds: 0 if there is none, and
    /// `None` if all are at the end of the partition.
    #[inline]
    pub(super) fn least_memcomparable_prefix(
        &self,
        group: &[u32],
        members: impl Iterator<Item = u32>,
    ) -> Option<u64> {
        let cursors = members.map(|member| &self.inputs[group[member as usize] as usize].cursor);
        cursors
            .filter_map(|cursor| match cursor.memcomparable_prefix() {
                None => cursor.clustering().map(|_| 0),
                prefix => prefix,
            })
            .min()
    }

    /// Copies rows of one input while they are plain, sort before all unfiltereds with this prefix, and
    /// are newer than the open deletion. Returns whether any were copied.
    pub(super) fn copy_run(
        &mut self,
        number: usize,
        limit: Option<u64>,
        active: DeletionTime,
    ) -> Result<bool> {
        let input = &mut self.inputs[number];
        let may_copy = self.shadow.as_ref().is_none_or(|shadow| !shadow.is_here());
        let mut copied = 0;
        while may_copy
            && copied < STEPS_PER_REPORT
            && limit.is_none_or(|limit| {
                input
                    .cursor
                    .memcomparable_prefix()
                    .is_some_and(|at| at < limit)
            })
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

//! Merging range tombstone markers at one bound, under the deletions of overlapping SSTables.

use std::cmp::Ordering;

use compactor_sstable::data::deletion_time::DeletionTime;

use super::PartitionMerger;
use crate::error::Result;
use crate::merge::marker::{DeletionChange, write_marker};
use crate::read::window::BlockSource;
use crate::write::partition_sink::PartitionSink;

impl<S: BlockSource, O: PartitionSink> PartitionMerger<S, O> {
    /// Advances the overlapping SSTables to the position of this input.
    #[inline]
    pub(super) fn advance_shadow(&mut self, member: u32) -> Result<()> {
        match &mut self.shadow {
            Some(shadow) if shadow.is_here() => {
                let Some(at) = self.inputs[member as usize].cursor.clustering() else {
                    return Ok(());
                };
                shadow.advance(at, |bound, change| {
                    let (purger, counts) = (&self.purger, &mut self.counts.purged);
                    write_marker(&mut self.writer, purger, counts, bound, change)
                })
            }
            _ => Ok(()),
        }
    }

    /// Writes the marker that changes one open deletion to another, at the recorded bound; none if they are
    /// equal.
    pub(super) fn add_change(
        &mut self,
        side: Ordering,
        before: DeletionTime,
        after: DeletionTime,
    ) -> Result<()> {
        if before != after {
            return self.add_marker(side, before, after);
        }
        let reopened = match &mut self.shadow {
            Some(shadow) if shadow.is_here() => shadow.reopen_without_marker(),
            _ => None,
        };
        match reopened {
            Some(open) => self.write_marker(side, DeletionTime::LIVE, open),
            None => Ok(()),
        }
    }

    /// Writes a marker with these deletions after shadowing and purging, at the recorded bound.
    pub(super) fn add_marker(
        &mut self,
        side: Ordering,
        mut before: DeletionTime,
        mut after: DeletionTime,
    ) -> Result<()> {
        if let Some(shadow) = &mut self.shadow
            && shadow.is_here()
        {
            (before, after) = shadow.shadow_marker(after);
        }
        self.write_marker(side, before, after)
    }

    fn write_marker(
        &mut self,
        side: Ordering,
        before: DeletionTime,
        after: DeletionTime,
    ) -> Result<()> {
        let (purger, counts) = (&self.purger, &mut self.counts.purged);
        let (writer, bound) = (&mut self.writer, &mut self.bound);
        let change = DeletionChange {
            side,
            before,
            after,
        };
        write_marker(writer, purger, counts, bound, change)
    }
}

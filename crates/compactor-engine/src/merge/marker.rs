//! Range tombstone markers of a merge.

use std::cmp::Ordering;

use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;

use crate::error::Result;
use crate::row::purge::Purger;
use crate::row::purge_counts::PurgeCounts;
use crate::write::partition_writer::{BlockOutput, PartitionWriter};
use crate::write::sstable_index::SstableIndex;

/// An open range tombstone counts only where it supersedes the partition's deletion.
#[inline]
pub(crate) fn effective(open: DeletionTime, partition: DeletionTime) -> DeletionTime {
    if open.supersedes(&partition) {
        open
    } else {
        DeletionTime::LIVE
    }
}

/// One range tombstone gives way to another; either may be none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeletionChange {
    /// On which side of the rows at its bound.
    pub(crate) side: Ordering,
    pub(crate) before: DeletionTime,
    pub(crate) after: DeletionTime,
}

/// Writes what purging leaves of a marker. The kind of `bound` is yet to be set. A boundary stays one even
/// if both deletions are equal: writers before 3.11.4 leave such (CASSANDRA-14894).
pub(crate) fn write_marker<B: BlockOutput, I: SstableIndex>(
    writer: &mut PartitionWriter<B, I>,
    purger: &Purger,
    counts: &mut PurgeCounts,
    bound: &mut [u8],
    change: DeletionChange,
) -> Result<()> {
    let DeletionChange {
        side,
        before,
        after,
    } = change;
    let close = purger.purge_deletion(before);
    let open = purger.purge_deletion(after);
    counts.range_bounds += u64::from(close != before) + u64::from(open != after);
    let kind = match (close.is_live(), open.is_live(), side == Ordering::Less) {
        (true, true, _) => return Ok(()),
        (true, false, true) => Kind::InclStartBound,
        (true, false, false) => Kind::ExclStartBound,
        (false, true, true) => Kind::ExclEndBound,
        (false, true, false) => Kind::InclEndBound,
        (false, false, true) => Kind::ExclEndInclStartBoundary,
        (false, false, false) => Kind::InclEndExclStartBoundary,
    };
    if let Some(first) = bound.first_mut() {
        *first = kind as u8;
    }
    writer.add_marker(kind, bound, &close, &open)
}

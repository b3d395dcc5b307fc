//! Range tombstone markers of a merge.

use std::cmp::Ordering;

use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;

use crate::error::Result;
use crate::row::purge::Purger;
use crate::row::purge_counts::PurgeCounts;
use crate::write::partition_sink::PartitionSink;
use crate::write::partition_writer::PartitionWriter;

/// Returns the open range tombstone if it supersedes the partition deletion, otherwise a live deletion.
#[inline]
pub(crate) fn effective(open: DeletionTime, partition: DeletionTime) -> DeletionTime {
    if open.supersedes(&partition) {
        open
    } else {
        DeletionTime::LIVE
    }
}

/// Change from one open range tombstone to another; either may be live.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeletionChange {
    /// Side of the rows at its bound.
    pub(crate) side: Ordering,
    pub(crate) before: DeletionTime,
    pub(crate) after: DeletionTime,
}

/// Writes a marker after purging. The kind of `bound` is still to be set. A boundary is kept even if both
/// deletions are equal: writers before 3.11.4 wrote such boundaries (CASSANDRA-14894).
pub(crate) fn write_marker<O: PartitionSink>(
    writer: &mut PartitionWriter<O>,
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

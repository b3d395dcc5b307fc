//! Batches of trace events.

use std::ops::Range;

use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::partitioner::KeyHash;

use crate::read::batch::Batch;

/// An event of a [`DataTrace`](crate::read::DataTrace), apart from its key or clustering.
#[derive(Clone, Debug)]
pub enum TraceEvent {
    /// Start of a partition, with its key.
    Partition {
        /// Token and hashes of the key.
        hash: KeyHash,
        /// Position in the uncompressed data.
        position: u64,
        /// Partition deletion.
        deletion: DeletionTime,
    },
    /// A row or marker, with its serialized prefix without the kind.
    Unfiltered {
        /// Bytes of the partition that it occupies.
        at: Range<u64>,
        /// Kind of the row or marker.
        kind: Kind,
        /// Deletion that is open after it.
        open: DeletionTime,
    },
    /// End byte of the partition, at this position in it.
    EndOfPartition(u64),
}

/// Events of one input, in order, each with its key or serialized prefix.
pub type TraceBatch = Batch<TraceEvent>;

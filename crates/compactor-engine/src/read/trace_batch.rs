//! Batches of trace events, passed to another thread or buffered until their range is next in order.

use std::ops::Range;

use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::partitioner::KeyHash;

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

/// Events of one input, in order.
#[derive(Debug, Default)]
pub struct TraceBatch {
    /// Keys and prefixes of the events, consecutively.
    bytes: Vec<u8>,
    /// Each with the length of its key or prefix.
    events: Vec<(usize, TraceEvent)>,
}

impl TraceBatch {
    /// Memory that the batch occupies, bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() + size_of_val(&self.events[..])
    }

    /// Adds an event with its key or prefix.
    pub(crate) fn add(&mut self, bytes: &[u8], event: TraceEvent) {
        self.bytes.extend_from_slice(bytes);
        self.events.push((bytes.len(), event));
    }

    /// Takes the batch, and leaves an empty one of the same capacity.
    pub(crate) fn take(&mut self) -> TraceBatch {
        let next = TraceBatch {
            bytes: Vec::with_capacity(self.bytes.len()),
            events: Vec::with_capacity(self.events.len()),
        };
        std::mem::replace(self, next)
    }

    /// The events, in order, each with its key or serialized prefix.
    pub fn events(&self) -> impl Iterator<Item = (&[u8], &TraceEvent)> {
        let mut bytes = &self.bytes[..];
        self.events.iter().map(move |(len, event)| {
            let (taken, rest) = bytes.split_at((*len).min(bytes.len()));
            bytes = rest;
            (taken, event)
        })
    }
}

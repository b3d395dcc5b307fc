//! Batches of trace events, passed to another thread or buffered until their range is next in order.

use std::fmt;
use std::ops::Range;

use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::partitioner::KeyHash;

use crate::read::data_trace::DataTrace;

/// Bytes of events per batch.
const BATCH_BYTES: usize = 32 << 10;

/// An event of a [`DataTrace`], apart from its key or clustering.
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

    /// Takes the batch, and leaves an empty one of the same capacity.
    fn take(&mut self) -> TraceBatch {
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

/// A [`DataTrace`] that collects events into batches.
pub struct BatchedTrace<F> {
    batch: TraceBatch,
    submit: F,
}

impl<F> fmt::Debug for BatchedTrace<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("BatchedTrace");
        shown.field("batch", &self.batch).finish_non_exhaustive()
    }
}

impl<F: FnMut(TraceBatch)> BatchedTrace<F> {
    /// Creates a trace that calls `submit` with each batch.
    pub fn new(submit: F) -> BatchedTrace<F> {
        BatchedTrace {
            batch: TraceBatch::default(),
            submit,
        }
    }

    fn add(&mut self, bytes: &[u8], event: TraceEvent) {
        self.batch.bytes.extend_from_slice(bytes);
        self.batch.events.push((bytes.len(), event));
        if self.batch.len() >= BATCH_BYTES {
            (self.submit)(self.batch.take());
        }
    }
}

impl<F: FnMut(TraceBatch) + Send> DataTrace for BatchedTrace<F> {
    fn partition(
        &mut self,
        key: &[u8],
        hash: KeyHash,
        position: u64,
        deletion: DeletionTime,
    ) -> bool {
        let event = TraceEvent::Partition {
            hash,
            position,
            deletion,
        };
        self.add(key, event);
        true
    }

    fn unfiltered(&mut self, at: Range<u64>, kind: Kind, name: &[u8], open: DeletionTime) -> u64 {
        self.add(name, TraceEvent::Unfiltered { at, kind, open });
        // The consumer of the batch may need all events.
        0
    }

    fn end_partition(&mut self, end: u64) {
        self.add(&[], TraceEvent::EndOfPartition(end));
    }

    fn end(&mut self) {
        (self.submit)(self.batch.take());
    }
}

//! Batches of trace events, passed to another thread or buffered until their range is next in order.

use std::fmt;
use std::ops::Range;

use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::partitioner::KeyHash;

use crate::read::data_trace::DataTrace;

/// Bytes of events per batch.
const BATCH_BYTES: usize = 32 << 10;

/// An event of a [`DataTrace`].
#[derive(Clone, Debug)]
pub enum TraceEvent<'a> {
    /// Start of a partition.
    Partition {
        /// Partition key.
        key: &'a [u8],
        /// Token and hashes of the key.
        hash: KeyHash,
        /// Position in the uncompressed data.
        position: u64,
        /// Partition deletion.
        deletion: DeletionTime,
    },
    /// A row or marker.
    Unfiltered {
        /// Bytes of the partition that it occupies.
        at: Range<u64>,
        /// Kind of the row or marker.
        kind: Kind,
        /// Serialized prefix without the kind.
        name: &'a [u8],
        /// Deletion that is open after it.
        open: DeletionTime,
    },
    /// End byte of the partition, at this position in it.
    EndOfPartition(u64),
}

/// As [`TraceEvent`]. Keys and names are stored consecutively in the batch's bytes.
#[derive(Clone, Debug)]
enum KeptEvent {
    Partition {
        key_len: usize,
        hash: KeyHash,
        position: u64,
        deletion: DeletionTime,
    },
    Unfiltered {
        at: Range<u64>,
        kind: Kind,
        name_len: usize,
        open: DeletionTime,
    },
    EndOfPartition(u64),
}

/// Events of one input, in order.
#[derive(Debug, Default)]
pub struct TraceBatch {
    bytes: Vec<u8>,
    events: Vec<KeptEvent>,
}

impl TraceBatch {
    /// Memory that the batch occupies, bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() + self.events.len() * size_of::<KeptEvent>()
    }

    /// Takes the batch, and leaves an empty one of the same capacity.
    fn take(&mut self) -> TraceBatch {
        let next = TraceBatch {
            bytes: Vec::with_capacity(self.bytes.len()),
            events: Vec::with_capacity(self.events.len()),
        };
        std::mem::replace(self, next)
    }

    /// The events, in order.
    pub fn events(&self) -> impl Iterator<Item = TraceEvent<'_>> {
        let mut bytes = &self.bytes[..];
        let mut next = move |len: usize| {
            let (taken, rest) = bytes.split_at(len.min(bytes.len()));
            bytes = rest;
            taken
        };
        self.events.iter().map(move |event| match *event {
            KeptEvent::Partition {
                key_len,
                hash,
                position,
                deletion,
            } => TraceEvent::Partition {
                key: next(key_len),
                hash,
                position,
                deletion,
            },
            KeptEvent::Unfiltered {
                ref at,
                kind,
                name_len,
                open,
            } => TraceEvent::Unfiltered {
                at: at.clone(),
                kind,
                name: next(name_len),
                open,
            },
            KeptEvent::EndOfPartition(end) => TraceEvent::EndOfPartition(end),
        })
    }

    /// Passes the events to `trace`. `is_traced` is whether it asked for the current partition's rows; it carries
    /// over from batch to batch.
    pub(crate) fn replay(&self, trace: &mut dyn DataTrace, is_traced: &mut bool) {
        for event in self.events() {
            match event {
                TraceEvent::Partition {
                    key,
                    hash,
                    position,
                    deletion,
                } => *is_traced = trace.partition(key, hash, position, deletion),
                _ if !*is_traced => {}
                TraceEvent::Unfiltered {
                    at,
                    kind,
                    name,
                    open,
                } => {
                    trace.unfiltered(at, kind, name, open);
                }
                TraceEvent::EndOfPartition(end) => trace.end_partition(end),
            }
        }
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

impl<F: FnMut(TraceBatch, bool)> BatchedTrace<F> {
    /// Creates a trace that calls `submit` with each batch and whether it is the last.
    pub fn new(submit: F) -> BatchedTrace<F> {
        BatchedTrace {
            batch: TraceBatch::default(),
            submit,
        }
    }

    fn add(&mut self, bytes: &[u8], event: KeptEvent) {
        self.batch.bytes.extend_from_slice(bytes);
        self.batch.events.push(event);
        if self.batch.len() >= BATCH_BYTES {
            (self.submit)(self.batch.take(), false);
        }
    }
}

impl<F: FnMut(TraceBatch, bool) + Send> DataTrace for BatchedTrace<F> {
    fn partition(
        &mut self,
        key: &[u8],
        hash: KeyHash,
        position: u64,
        deletion: DeletionTime,
    ) -> bool {
        let event = KeptEvent::Partition {
            key_len: key.len(),
            hash,
            position,
            deletion,
        };
        self.add(key, event);
        true
    }

    fn unfiltered(&mut self, at: Range<u64>, kind: Kind, name: &[u8], open: DeletionTime) -> u64 {
        let event = KeptEvent::Unfiltered {
            at,
            kind,
            name_len: name.len(),
            open,
        };
        self.add(name, event);
        // The consumer of the batch may need all events.
        0
    }

    fn end_partition(&mut self, end: u64) {
        self.add(&[], KeptEvent::EndOfPartition(end));
    }

    fn end(&mut self) {
        (self.submit)(self.batch.take(), true);
    }
}

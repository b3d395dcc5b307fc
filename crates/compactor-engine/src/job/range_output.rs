//! Output of merging a range of partitions, to be appended to an SSTable: bytes, index entries and statistics
//! that do not depend on their position in it.
//!
//! Positions are relative to the range's first byte. A [`Splicer`](crate::job::splicer::Splicer) appends
//! ranges to an output one after the other; the output is the same to the byte as if one merge had written
//! it.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::partitioner::KeyHash;
use compactor_sstable::statistics::{MetadataCollector, TimeRun};

use crate::error::Result;
use crate::job::range_summary::RangeSummary;
use crate::read::batch::Batch;
use crate::read::data_trace::DataTrace;
use crate::read::trace_batch::{TraceBatch, TraceEvent};
use crate::write::index_part::IndexPart;
use crate::write::partition_sink::PartitionSink;

/// Bytes of trace events per batch.
const TRACE_BATCH_LEN: usize = 32 << 10;

/// Piece of a range's output.
#[derive(Debug)]
pub(crate) enum Piece {
    Block(RangeBlock),
    /// Events for the trace of an input.
    Trace(usize, TraceBatch),
    /// End of the range.
    End(Result<Box<RangeSummary>>),
}

/// Receiver of the output of ranges.
pub(crate) trait PieceSink: Debug + Send + Sync {
    /// Returns a buffer for the next block of a range.
    ///
    /// # Errors
    /// The merge has been stopped.
    fn take_buffer(&self, len: usize) -> Result<Vec<u8>>;

    /// Passes on the next piece of a range, which counts as `len` bytes.
    fn push(self: Arc<Self>, range: usize, piece: Piece, len: usize);
}

/// The next bytes of a range.
#[derive(Debug)]
pub(crate) struct RangeBlock {
    pub(crate) bytes: Vec<u8>,
    /// Entries of the partitions that end in it, each after the blocks of its partition's rows.
    pub(crate) index: Batch<IndexPart>,
    /// Local deletion times in it, in order.
    pub(crate) times: Vec<TimeRun>,
}

/// Output of a range, in blocks of `block_len` bytes.
#[derive(Debug)]
pub(crate) struct RangeOutput {
    pub(crate) merge: Arc<dyn PieceSink>,
    pub(crate) range: usize,
    pub(crate) block_len: usize,
}

impl PartitionSink for RangeOutput {
    fn block_len(&self) -> usize {
        self.block_len
    }

    fn take_buffer(&mut self) -> Result<Vec<u8>> {
        self.merge.take_buffer(self.block_len)
    }

    fn put_block(
        &mut self,
        block: Vec<u8>,
        index: Batch<IndexPart>,
        collector: &mut MetadataCollector,
    ) {
        let times = collector.take_times();
        if block.is_empty() && index.is_empty() && times.is_empty() {
            return;
        }
        let len = block.capacity() + index.occupied_bytes() + size_of_val(&times[..]);
        let block = RangeBlock {
            bytes: block,
            index,
            times,
        };
        // If the merge has been stopped, taking the next buffer fails.
        Arc::clone(&self.merge).push(self.range, Piece::Block(block), len);
    }
}

/// Listener that passes its events on in batches, as pieces of a range, until the previous ranges have ended.
#[derive(Debug)]
pub(crate) struct RangeTrace {
    input: usize,
    merge: Arc<dyn PieceSink>,
    range: usize,
    batch: TraceBatch,
}

impl RangeTrace {
    pub(crate) fn new(input: usize, merge: Arc<dyn PieceSink>, range: usize) -> RangeTrace {
        RangeTrace {
            input,
            merge,
            range,
            batch: TraceBatch::default(),
        }
    }

    fn add(&mut self, bytes: &[u8], event: TraceEvent) {
        self.batch.add([bytes], event);
        if self.batch.occupied_bytes() >= TRACE_BATCH_LEN {
            self.end();
        }
    }
}

impl DataTrace for RangeTrace {
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

    /// Passes the batch on. If the merge has been stopped, it ends elsewhere.
    fn end(&mut self) {
        let batch = self.batch.take();
        let len = batch.occupied_bytes();
        Arc::clone(&self.merge).push(self.range, Piece::Trace(self.input, batch), len);
    }
}

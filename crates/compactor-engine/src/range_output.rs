//! What the merge of a range of partitions comes to, on its way to an SSTable in which other partitions
//! come before: bytes, index entries and statistics that do not depend on where they will be.
//!
//! Positions count from the range's first byte. [`splice`](crate::partition_writer) adds ranges to an
//! output one behind the other; it is the same to the byte then as if one merge had written it.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use compactor_sstable::Format;
use compactor_sstable::big::index_info::PromotedIndexBuilder;
use compactor_sstable::bti::rows::{RowBlocks, SeparatedBlock};
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::partitioner::KeyHash;
use compactor_sstable::statistics::{MetadataCollector, TimeRun};
use compactor_sstable::types::CqlType;

use crate::byte_queue::ByteQueue;
use crate::cursor::DataTrace;
use crate::error::{Error, Result};
use crate::partition_writer::BlockOutput;
use crate::sstable_index::{IndexSettings, IndexedPartition, SstableIndex};

/// Bytes of index entries, or of what a trace is told, that are handed over at once.
const BATCH_BYTES: usize = 32 << 10;

/// Some of what a range comes to.
#[derive(Debug)]
pub(crate) enum Piece<E> {
    /// The next bytes of its partitions.
    Data(Vec<u8>),
    /// Its next index entries.
    Index(IndexBatch),
    /// Local deletion times in it, in their order.
    Times(Vec<TimeRun>),
    /// What the trace of an input is to be told next.
    Trace(usize, TraceBatch),
    /// There is no more.
    End(E),
}

/// Memory of blocks that were taken, for the next.
#[derive(Debug, Default)]
pub(crate) struct SpareBlocks {
    blocks: Mutex<Vec<Vec<u8>>>,
}

impl SpareBlocks {
    pub(crate) fn put(&self, mut block: Vec<u8>, most: usize) {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if blocks.len() < most {
            block.clear();
            blocks.push(block);
        }
    }

    fn take(&self) -> Vec<u8> {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        blocks.pop().unwrap_or_default()
    }
}

/// Takes the bytes of a range.
#[derive(Debug)]
pub(crate) struct RangeBlocks<E> {
    pub(crate) queue: Arc<ByteQueue<Piece<E>>>,
    pub(crate) spare: Arc<SpareBlocks>,
    pub(crate) block_len: usize,
}

impl<E> BlockOutput for RangeBlocks<E> {
    fn block_len(&self) -> usize {
        self.block_len
    }

    fn take_buffer(&mut self) -> Result<Vec<u8>> {
        if self.queue.is_closed() {
            return Err(Error::Cancelled);
        }
        let mut block = self.spare.take();
        // A row longer than a block made it grow: that memory is not kept.
        block.shrink_to(self.block_len + self.block_len / 4);
        block.reserve(self.block_len + self.block_len / 8);
        Ok(block)
    }

    fn put_block(&mut self, block: Vec<u8>) {
        if !block.is_empty() {
            let len = block.capacity();
            self.queue.push(Piece::Data(block), len);
        }
    }

    fn before_block(&mut self, collector: &mut MetadataCollector) {
        let times = collector.take_times();
        if !times.is_empty() {
            let len = std::mem::size_of_val(&times[..]);
            self.queue.push(Piece::Times(times), len);
        }
    }
}

/// Index entries, and blocks of rows before the entry of their partition. Keys, promoted indexes and
/// separators are in `bytes`, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct IndexBatch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) parts: Vec<IndexPart>,
}

/// A part of the index.
#[derive(Clone, Copy, Debug)]
pub(crate) enum IndexPart {
    /// A partition.
    Partition {
        hash: KeyHash,
        /// From the range's first byte.
        position: u64,
        deletion: DeletionTime,
        key_len: usize,
        /// Of its promoted index.
        promoted_len: usize,
        /// Of its rows, if these are in a trie.
        blocks: u32,
    },
    /// A block of a partition's rows.
    Block {
        separator_len: usize,
        offset: u64,
        open: DeletionTime,
    },
}

impl IndexBatch {
    fn len(&self) -> usize {
        self.bytes.len() + self.parts.len() * std::mem::size_of::<IndexPart>()
    }

    fn add_block(&mut self, block: SeparatedBlock<'_>) {
        self.bytes.extend_from_slice(block.separator);
        self.parts.push(IndexPart::Block {
            separator_len: block.separator.len(),
            offset: block.offset,
            open: block.open,
        });
    }
}

/// Builds what is inside the index entries of a range.
#[derive(Debug)]
pub(crate) struct RangeIndex<E> {
    rows: RowsOf,
    batch: IndexBatch,
    queue: Arc<ByteQueue<Piece<E>>>,
}

/// The rows of a partition, indexed in the format of the output.
#[derive(Debug)]
enum RowsOf {
    Big(PromotedIndexBuilder),
    Bti(Box<RowBlocks>),
}

impl<E> RangeIndex<E> {
    /// For an output of these settings.
    ///
    /// # Errors
    /// Clustering types that the format cannot index.
    pub(crate) fn new(
        settings: &IndexSettings<'_>,
        queue: Arc<ByteQueue<Piece<E>>>,
    ) -> Result<RangeIndex<E>> {
        let size = settings.column_index_size;
        let rows = match settings.version.format() {
            Format::Big => RowsOf::Big(PromotedIndexBuilder::new(settings.version, size)),
            Format::Bti => {
                let types = settings.header.clustering_types.iter();
                let types: Vec<CqlType> = types.map(|t| t.cql_type.clone()).collect();
                RowsOf::Bti(Box::new(RowBlocks::new(&types, size)?))
            }
        };
        Ok(RangeIndex {
            rows,
            batch: IndexBatch::default(),
            queue,
        })
    }

    fn hand_over(&mut self, at_least: usize) -> Result<()> {
        let len = self.batch.len();
        if len < at_least || len == 0 {
            return Ok(());
        }
        // The next will be about as long.
        let next = IndexBatch {
            bytes: Vec::with_capacity(self.batch.bytes.len()),
            parts: Vec::with_capacity(self.batch.parts.len()),
        };
        let batch = std::mem::replace(&mut self.batch, next);
        match self.queue.push(Piece::Index(batch), len) {
            true => Ok(()),
            false => Err(Error::Cancelled),
        }
    }

    /// Hands the last entries over.
    ///
    /// # Errors
    /// Nobody wants them any more.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.hand_over(0)
    }
}

impl<E> SstableIndex for RangeIndex<E> {
    #[inline]
    fn add_unfiltered(
        &mut self,
        start: u64,
        end: u64,
        kind: Kind,
        body: &[u8],
        open_marker: &DeletionTime,
    ) -> Result<u64> {
        match &mut self.rows {
            RowsOf::Big(promoted) => {
                Ok(promoted.add_unfiltered(start, end, kind, body, open_marker))
            }
            RowsOf::Bti(rows) => {
                let batch = &mut self.batch;
                let tell = |block: SeparatedBlock<'_>| {
                    batch.add_block(block);
                    Ok(())
                };
                let next = rows.add_unfiltered(start, end, kind, body, open_marker, tell)?;
                self.hand_over(BATCH_BYTES)?;
                Ok(next)
            }
        }
    }

    fn add_partition(&mut self, partition: &IndexedPartition<'_>) -> Result<bool> {
        let IndexedPartition {
            key,
            hash,
            position,
            header_len,
            deletion,
        } = *partition;
        let batch = &mut self.batch;
        let (mut promoted_len, mut blocks) = (0, 0);
        match &mut self.rows {
            RowsOf::Big(builder) => {
                let promoted = builder.finish(header_len, &deletion)?;
                promoted_len = promoted.len();
                batch.bytes.extend_from_slice(promoted);
            }
            RowsOf::Bti(rows) => {
                blocks = rows.finish(|block| {
                    batch.add_block(block);
                    Ok(())
                })?;
            }
        }
        batch.bytes.extend_from_slice(key);
        batch.parts.push(IndexPart::Partition {
            hash,
            position,
            deletion,
            key_len: key.len(),
            promoted_len,
            blocks,
        });
        self.hand_over(BATCH_BYTES)?;
        Ok(promoted_len > 0 || blocks >= 2)
    }
}

/// What a trace is to be told. Keys and clusterings are in `bytes`, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct TraceBatch {
    bytes: Vec<u8>,
    events: Vec<TraceEvent>,
}

#[derive(Clone, Debug)]
enum TraceEvent {
    Partition {
        hash: KeyHash,
        position: u64,
        deletion: DeletionTime,
        key_len: usize,
    },
    Unfiltered {
        at: Range<u64>,
        kind: Kind,
        open: DeletionTime,
        name_len: usize,
    },
    EndOfPartition(u64),
}

impl TraceBatch {
    fn len(&self) -> usize {
        self.bytes.len() + self.events.len() * std::mem::size_of::<TraceEvent>()
    }

    /// Tells `trace`; `is_traced` says whether it wants to be told of the current partition's rows, and
    /// goes on from batch to batch.
    pub(crate) fn tell(&self, trace: &mut dyn DataTrace, is_traced: &mut bool) {
        let mut bytes = &self.bytes[..];
        let mut next = |len: usize| {
            let (taken, rest) = bytes.split_at(len.min(bytes.len()));
            bytes = rest;
            taken
        };
        for event in &self.events {
            match event {
                TraceEvent::Partition {
                    hash,
                    position,
                    deletion,
                    key_len,
                } => *is_traced = trace.partition(next(*key_len), *hash, *position, *deletion),
                TraceEvent::Unfiltered {
                    at,
                    kind,
                    open,
                    name_len,
                } => {
                    let name = next(*name_len);
                    if *is_traced {
                        trace.unfiltered(at.clone(), *kind, name, *open);
                    }
                }
                TraceEvent::EndOfPartition(end) if *is_traced => trace.end_partition(*end),
                TraceEvent::EndOfPartition(_) => {}
            }
        }
    }
}

/// Remembers what the trace of an input is to be told, whose turn comes when the ranges before have
/// ended.
#[derive(Debug)]
pub(crate) struct RangeTrace<E> {
    input: usize,
    batch: TraceBatch,
    queue: Arc<ByteQueue<Piece<E>>>,
}

impl<E> RangeTrace<E> {
    pub(crate) fn new(input: usize, queue: Arc<ByteQueue<Piece<E>>>) -> RangeTrace<E> {
        RangeTrace {
            input,
            batch: TraceBatch::default(),
            queue,
        }
    }

    fn add(&mut self, event: TraceEvent) {
        self.batch.events.push(event);
        if self.batch.len() >= BATCH_BYTES {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let len = self.batch.len();
        let next = TraceBatch {
            bytes: Vec::with_capacity(self.batch.bytes.len()),
            events: Vec::with_capacity(self.batch.events.len()),
        };
        let batch = std::mem::replace(&mut self.batch, next);
        // If nobody wants it any more the merge is told so elsewhere.
        self.queue.push(Piece::Trace(self.input, batch), len);
    }
}

impl<E: std::fmt::Debug> DataTrace for RangeTrace<E> {
    fn partition(
        &mut self,
        key: &[u8],
        hash: KeyHash,
        position: u64,
        deletion: DeletionTime,
    ) -> bool {
        self.batch.bytes.extend_from_slice(key);
        self.add(TraceEvent::Partition {
            hash,
            position,
            deletion,
            key_len: key.len(),
        });
        true
    }

    fn unfiltered(&mut self, at: Range<u64>, kind: Kind, name: &[u8], open: DeletionTime) -> u64 {
        self.batch.bytes.extend_from_slice(name);
        self.add(TraceEvent::Unfiltered {
            at,
            kind,
            open,
            name_len: name.len(),
        });
        // Whoever is told later may want all.
        0
    }

    fn end_partition(&mut self, end: u64) {
        self.add(TraceEvent::EndOfPartition(end));
    }

    fn end(&mut self) {
        self.hand_over();
    }
}

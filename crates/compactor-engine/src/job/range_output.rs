//! What the merge of a range of partitions comes to, on its way to an SSTable in which other partitions
//! come before: bytes, index entries and statistics that do not depend on where they will be.
//!
//! Positions count from the range's first byte. A [`Splicer`](crate::job::splicer::Splicer) adds ranges to an
//! output one behind the other; it is the same to the byte then as if one merge had written it.

use std::cell::RefCell;
use std::fmt::Debug;
use std::rc::Rc;
use std::sync::Arc;

use compactor_sstable::Format;
use compactor_sstable::big::index_info::PromotedIndexBuilder;
use compactor_sstable::bti::rows::{RowBlocks, SeparatedBlock};
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::partitioner::KeyHash;
use compactor_sstable::statistics::{HyperLogLogPlus, MetadataCollector, TimeRun};
use compactor_sstable::types::CqlType;

use crate::error::Result;
use crate::job::range_summary::RangeSummary;
use crate::read::data_trace::DataTrace;
use crate::read::trace_batch::{BatchedTrace, TraceBatch};
use crate::write::format_index::IndexSettings;
use crate::write::partition_writer::BlockOutput;
use crate::write::sstable_index::{IndexedPartition, SstableIndex};

/// Some of what a range comes to.
#[derive(Debug)]
pub(crate) enum Piece {
    Block(RangeBlock),
    /// What the trace of an input is to be told next.
    Trace(usize, TraceBatch),
    /// There is no more.
    End(Result<Box<RangeSummary>>),
}

/// Takes what ranges come to.
pub(crate) trait PieceSink: Debug + Send + Sync {
    /// Memory for the next block of a range.
    ///
    /// # Errors
    /// The merge has been stopped.
    fn take_buffer(&self, len: usize) -> Result<Vec<u8>>;

    /// Hands over the next piece of a range, which takes so many bytes.
    fn push(self: Arc<Self>, range: usize, piece: Piece, len: usize);
}

/// The next bytes of a range.
#[derive(Debug)]
pub(crate) struct RangeBlock {
    pub(crate) bytes: Vec<u8>,
    /// Entries of the partitions that end in it.
    pub(crate) index: IndexBatch,
    /// Local deletion times in it, in their order.
    pub(crate) times: Vec<TimeRun>,
}

/// Takes the bytes of a range.
#[derive(Debug)]
pub(crate) struct RangeBlocks {
    pub(crate) merge: Arc<dyn PieceSink>,
    pub(crate) range: usize,
    pub(crate) block_len: usize,
    index: Rc<RefCell<IndexBatch>>,
    times: Vec<TimeRun>,
}

impl RangeBlocks {
    pub(crate) fn new(
        merge: Arc<dyn PieceSink>,
        range: usize,
        block_len: usize,
        index: &RangeIndex,
    ) -> RangeBlocks {
        RangeBlocks {
            merge,
            range,
            block_len,
            index: Rc::clone(&index.batch),
            times: Vec::new(),
        }
    }
}

impl BlockOutput for RangeBlocks {
    fn block_len(&self) -> usize {
        self.block_len
    }

    fn take_buffer(&mut self) -> Result<Vec<u8>> {
        self.merge.take_buffer(self.block_len)
    }

    fn put_block(&mut self, block: Vec<u8>) {
        let index = self.index.borrow_mut().take();
        let times = std::mem::take(&mut self.times);
        if block.is_empty() && index.parts.is_empty() && times.is_empty() {
            return;
        }
        let len = block.capacity() + index.len() + size_of_val(&times[..]);
        let block = RangeBlock {
            bytes: block,
            index,
            times,
        };
        // If nobody wants it any more the merge is told so with the next buffer.
        Arc::clone(&self.merge).push(self.range, Piece::Block(block), len);
    }

    fn before_block(&mut self, collector: &mut MetadataCollector) {
        self.times = collector.take_times();
    }
}

/// Takes bytes that nobody wants.
#[derive(Debug)]
pub(crate) struct DiscardBlocks {
    pub(crate) block_len: usize,
    pub(crate) spare: Vec<u8>,
}

impl BlockOutput for DiscardBlocks {
    fn block_len(&self) -> usize {
        self.block_len
    }

    fn take_buffer(&mut self) -> Result<Vec<u8>> {
        Ok(std::mem::take(&mut self.spare))
    }

    fn put_block(&mut self, mut block: Vec<u8>) {
        block.clear();
        self.spare = block;
    }
}

/// An index that nobody wants.
#[derive(Debug)]
pub(crate) struct DiscardIndex;

impl SstableIndex for DiscardIndex {
    fn add_unfiltered(
        &mut self,
        _start: u64,
        _end: u64,
        _kind: Kind,
        _body: &[u8],
        _open_marker: &DeletionTime,
    ) -> Result<u64> {
        Ok(u64::MAX)
    }

    fn add_partition(&mut self, _partition: &IndexedPartition<'_>) -> Result<bool> {
        Ok(false)
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
        /// By which keys are counted.
        cardinality_hash: u64,
        /// From the range's first byte.
        position: u64,
        len: u64,
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
        self.bytes.len() + self.parts.len() * size_of::<IndexPart>()
    }

    /// Leaves room for as much again.
    fn take(&mut self) -> IndexBatch {
        let next = IndexBatch {
            bytes: Vec::with_capacity(self.bytes.len()),
            parts: Vec::with_capacity(self.parts.len()),
        };
        std::mem::replace(self, next)
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
pub(crate) struct RangeIndex {
    rows: RowIndexBuilder,
    /// What goes with the next block.
    batch: Rc<RefCell<IndexBatch>>,
}

/// The rows of a partition, indexed in the format of the output.
#[derive(Debug)]
enum RowIndexBuilder {
    Big(PromotedIndexBuilder),
    Bti(Box<RowBlocks>),
}

impl RangeIndex {
    /// For an output of these settings.
    ///
    /// # Errors
    /// Clustering types that the format cannot index.
    pub(crate) fn new(settings: &IndexSettings<'_>) -> Result<RangeIndex> {
        let size = settings.column_index_size;
        let rows = match settings.version.format() {
            Format::Big => RowIndexBuilder::Big(PromotedIndexBuilder::new(settings.version, size)),
            Format::Bti => {
                let types = settings.header.clustering_types.iter();
                let types: Vec<CqlType> = types.map(|t| t.cql_type.clone()).collect();
                RowIndexBuilder::Bti(Box::new(RowBlocks::new(&types, size)?))
            }
        };
        Ok(RangeIndex {
            rows,
            batch: Rc::default(),
        })
    }
}

impl SstableIndex for RangeIndex {
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
            RowIndexBuilder::Big(promoted) => {
                Ok(promoted.add_unfiltered(start, end, kind, body, open_marker))
            }
            RowIndexBuilder::Bti(rows) => {
                let batch = &self.batch;
                let tell = |block: SeparatedBlock<'_>| {
                    batch.borrow_mut().add_block(block);
                    Ok(())
                };
                Ok(rows.add_unfiltered(start, end, kind, body, open_marker, tell)?)
            }
        }
    }

    fn add_partition(&mut self, partition: &IndexedPartition<'_>) -> Result<bool> {
        let IndexedPartition {
            key,
            hash,
            position,
            len,
            header_len,
            deletion,
        } = *partition;
        let batch = &mut *self.batch.borrow_mut();
        let (mut promoted_len, mut blocks) = (0, 0);
        match &mut self.rows {
            RowIndexBuilder::Big(builder) => {
                let promoted = builder.finish(header_len, &deletion)?;
                promoted_len = promoted.len();
                batch.bytes.extend_from_slice(promoted);
            }
            RowIndexBuilder::Bti(rows) => {
                blocks = rows.finish(|block| {
                    batch.add_block(block);
                    Ok(())
                })?;
            }
        }
        batch.bytes.extend_from_slice(key);
        batch.parts.push(IndexPart::Partition {
            hash,
            cardinality_hash: HyperLogLogPlus::hash(key),
            position,
            len,
            deletion,
            key_len: key.len(),
            promoted_len,
            blocks,
        });
        Ok(promoted_len > 0 || blocks >= 2)
    }
}

/// Remembers what the trace of an input is to be told, whose turn comes when the ranges before have ended.
pub(crate) fn buffered_trace(
    input: usize,
    merge: Arc<dyn PieceSink>,
    range: usize,
) -> Box<dyn DataTrace> {
    // The last of the range is not the last of the input.
    let submit = move |batch: TraceBatch, _| {
        let len = batch.len();
        // If nobody wants it any more the merge is told so elsewhere.
        Arc::clone(&merge).push(range, Piece::Trace(input, batch), len);
    };
    Box::new(BatchedTrace::new(submit))
}

//! `Rows.db`: from a clustering to a block of a wide partition.
//!
//! ```text
//! file    := (trie | entry)*                     one of each per partition of two blocks or more
//! entry   := bytes16 key | uvint data position | svint root - position after the key
//!          | uvint32 block count | DeletionTime of the partition
//! payload := signed offset in (bits & 7) bytes | [DeletionTime open at the block's start, if bits & 8]
//! ```
//!
//! A block ends with the unfiltered that makes it at least `column_index_size` long; offsets are relative to
//! the partition's first byte. The trie contains separators: an empty one for the first block; for each other
//! block the shortest bytes that are greater than the last clustering of the previous block and not greater
//! than its own first clustering. A separator after the last block leads to the end of the partition, before
//! its end byte, so that a lookup beyond all rows reads none.
//!
//! Unlike a BIG index, which stores the deletion open after a block, this one stores the deletion open at its
//! start.
//!
//! Source: `BtiFormatPartitionWriter`, `RowIndexWriter`, `RowIndexReader`, `TrieIndexEntry`.

use crate::bti::byte_comparable::append_prefix;
use crate::bti::paged_output::PagedOutput;
use crate::bti::partitions::{put_signed, signed_len};
use crate::bti::trie_write::{Payload, TrieWriter};
use crate::byte_sink::ByteSink;
use crate::data::clustering::{ClusteringComparator, Kind, ValueSpan, set_name};
use crate::data::deletion_time::DeletionTime;
use crate::error::{Error, Result};
use crate::types::CqlType;
use crate::version::Version;

mod read;

pub use read::{Block, Blocks, RowIndex};

/// Cassandra's default `column_index_size` for BTI.
pub const DEFAULT_COLUMN_INDEX_SIZE: u64 = 16 * 1024;

const FLAG_OPEN_MARKER: u8 = 8;
/// Version whose form of deletion times both versions of the format use.
const DELETION_TIME_VERSION: Version = Version::Da;
const DELETION_TIME_LEN: usize = 12;
/// Maximum length of an offset, which the format stores in three bits.
const MAX_OFFSET_LEN: usize = 7;

#[derive(Clone, Copy, Debug)]
struct BlockPayload {
    offset: i64,
    open: DeletionTime,
}

impl Payload for BlockPayload {
    fn encoded_len(&self) -> usize {
        signed_len(self.offset) + usize::from(!self.open.is_live()) * DELETION_TIME_LEN
    }

    fn bits(&self) -> u8 {
        signed_len(self.offset) as u8 | (u8::from(!self.open.is_live()) * FLAG_OPEN_MARKER)
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_signed(out, self.offset, signed_len(self.offset));
        if !self.open.is_live() {
            self.open.write(out, DELETION_TIME_VERSION);
        }
    }
}

/// Splits the rows of one partition after the other into blocks, and determines their separators.
#[derive(Debug)]
pub struct RowBlocks {
    types: Vec<CqlType>,
    comparator: ClusteringComparator,
    column_index_size: u64,

    /// The block being filled: whether there is one, its start, the deletion open there, its first and last
    /// clustering, each as in an `IndexInfo`.
    in_block: bool,
    block_start: u64,
    block_open: DeletionTime,
    first: Vec<u8>,
    last: Vec<u8>,
    end: u64,
    open_marker: DeletionTime,
    blocks: u32,

    /// Byte-comparable forms: the last clustering of the previous block, the last separator, and a buffer for
    /// another of each.
    max: Vec<u8>,
    separator: Vec<u8>,
    comparable: Vec<u8>,
    spans: Vec<ValueSpan>,
}

/// A block of rows to be added to the trie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeparatedBlock<'a> {
    /// Its separator.
    pub separator: &'a [u8],
    /// Offset from the partition's first byte.
    pub offset: u64,
    /// Deletion that is open at its start.
    pub open: DeletionTime,
}

impl RowBlocks {
    /// Creates a splitter for a table whose clustering columns have `clustering_types`. Blocks end with the
    /// unfiltered that reaches `column_index_size` bytes.
    ///
    /// # Errors
    /// Unsupported types.
    pub fn new(clustering_types: &[CqlType], column_index_size: u64) -> Result<RowBlocks> {
        Ok(RowBlocks {
            types: clustering_types.to_vec(),
            comparator: ClusteringComparator::new(clustering_types)?,
            column_index_size,
            in_block: false,
            block_start: 0,
            block_open: DeletionTime::LIVE,
            first: Vec::new(),
            last: Vec::new(),
            end: 0,
            open_marker: DeletionTime::LIVE,
            blocks: 0,
            max: Vec::new(),
            separator: Vec::new(),
            comparable: Vec::new(),
            spans: Vec::new(),
        })
    }

    /// Adds a row or marker that occupies `start..end` of the partition; calls `emit` with each block that ends
    /// with it.
    ///
    /// Its clustering is `kind` and `body`, the bytes that follow the kind in a serialized prefix: for a row,
    /// the clustering values as in Data.db; for a marker, count and values. `open_marker` is the deletion
    /// that is open after it, or [`DeletionTime::LIVE`].
    ///
    /// Returns a position in the partition: unfiltereds that end before it need not be added, except for the
    /// last one of the partition.
    ///
    /// # Errors
    /// A clustering at a block boundary that has no byte-comparable form, or is out of order; and those of
    /// `emit`.
    #[inline]
    pub fn add_unfiltered(
        &mut self,
        start: u64,
        end: u64,
        kind: Kind,
        body: &[u8],
        open_marker: &DeletionTime,
        emit: impl FnOnce(SeparatedBlock<'_>) -> Result<()>,
    ) -> Result<u64> {
        if !self.in_block {
            self.in_block = true;
            self.block_start = start;
            self.block_open = self.open_marker;
            set_name(&mut self.first, kind, body);
        }
        set_name(&mut self.last, kind, body);
        self.end = end;
        self.open_marker = *open_marker;
        if end - self.block_start >= self.column_index_size {
            self.close_block(emit)?;
            return Ok(end);
        }
        Ok(self.block_start.saturating_add(self.column_index_size))
    }

    fn close_block(&mut self, emit: impl FnOnce(SeparatedBlock<'_>) -> Result<()>) -> Result<()> {
        if self.blocks == 0 {
            self.separator.clear();
        } else {
            encode(
                &self.comparator,
                &self.types,
                &self.first,
                &mut self.spans,
                &mut self.comparable,
            )?;
            separator_beyond(&self.max, &self.comparable, &mut self.separator)?;
        }
        emit(SeparatedBlock {
            separator: &self.separator,
            offset: self.block_start,
            open: self.block_open,
        })?;
        encode(
            &self.comparator,
            &self.types,
            &self.last,
            &mut self.spans,
            &mut self.max,
        )?;
        self.blocks = self.blocks.saturating_add(1);
        self.in_block = false;
        Ok(())
    }

    /// Ends the partition and calls `emit` with the rest. Returns the number of blocks, which make an index
    /// if there are two or more; `emit` was then also called for the separator after the last. Ready for the
    /// next partition.
    ///
    /// # Errors
    /// As [`RowBlocks::add_unfiltered`].
    pub fn finish(&mut self, emit: impl FnMut(SeparatedBlock<'_>) -> Result<()>) -> Result<u32> {
        let told = self.emit_rest(emit);
        let blocks = std::mem::take(&mut self.blocks);
        self.in_block = false;
        self.open_marker = DeletionTime::LIVE;
        told.map(|()| blocks)
    }

    fn emit_rest(&mut self, mut emit: impl FnMut(SeparatedBlock<'_>) -> Result<()>) -> Result<()> {
        // The only block of a partition is not reported.
        if self.in_block && self.blocks > 0 {
            self.close_block(&mut emit)?;
        }
        if self.blocks < 2 {
            return Ok(());
        }
        nudge(&self.max, &self.separator, &mut self.comparable)?;
        emit(SeparatedBlock {
            separator: &self.comparable,
            offset: self.end,
            open: DeletionTime::LIVE,
        })
    }
}

/// Writer of `Rows.db`, one partition after the other, from blocks with known separators. The bytes are collected in
/// [`RowTries::output`], from which the caller takes them, also within a partition.
#[derive(Debug, Default)]
pub struct RowTries {
    out: PagedOutput,
    trie: TrieWriter<BlockPayload>,
    /// Whether blocks of the current partition are in the trie.
    has_blocks: bool,
}

impl RowTries {
    /// Output that has not been taken.
    pub fn output(&mut self) -> &mut PagedOutput {
        &mut self.out
    }

    /// Adds a block of the current partition.
    ///
    /// # Errors
    /// A partition that is too long for the format, or separators that do not ascend.
    pub fn add(&mut self, block: SeparatedBlock<'_>) -> Result<()> {
        let payload = payload(block.offset, block.open)?;
        self.has_blocks = true;
        self.trie.add(&mut self.out, block.separator, payload)
    }

    /// Ends the partition with this key at `data_position` of `Data.db`, with this number of blocks
    /// ([`RowBlocks::finish`]). Returns the position of its entry, or `None` if it has fewer than two blocks.
    /// Ready for the next partition.
    pub fn finish(
        &mut self,
        key: &[u8],
        data_position: u64,
        deletion: &DeletionTime,
        blocks: u32,
    ) -> Option<u64> {
        let entry = (blocks >= 2).then(|| {
            let root = self.trie.complete(&mut self.out);
            let entry = self.out.position();
            self.out.buffer().put_bytes16(key);
            let base = self.out.position();
            let out = self.out.buffer();
            out.put_uvint(data_position);
            out.put_svint(root as i64 - base as i64);
            out.put_uvint(u64::from(blocks));
            deletion.write(out, DELETION_TIME_VERSION);
            entry
        });
        if std::mem::take(&mut self.has_blocks) {
            self.trie.reset();
        }
        entry
    }
}

fn payload(offset: u64, open: DeletionTime) -> Result<BlockPayload> {
    match i64::try_from(offset) {
        Ok(offset) if signed_len(offset) <= MAX_OFFSET_LEN => Ok(BlockPayload { offset, open }),
        _ => Err(Error::unsupported(format!(
            "a partition of {offset} bytes or more"
        ))),
    }
}

fn encode(
    comparator: &ClusteringComparator,
    types: &[CqlType],
    name: &[u8],
    spans: &mut Vec<ValueSpan>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let prefix = comparator.parse_name(name, spans)?;
    out.clear();
    append_prefix(types, prefix, out)
}

/// Length of the common prefix.
fn common_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cold]
fn out_of_order() -> Error {
    Error::unsupported(
        "clusterings whose byte-comparable forms do not ascend, such as NaN of different bits; \
         BTI cannot index them, BIG can",
    )
}

/// Determines the shortest bytes that are greater than `max` and not greater than `min`: the common prefix of
/// both, and the next byte of `max` plus one (`ByteSource.separatorGt`).
///
/// # Errors
/// If `min` is not greater than `max`.
pub fn separator_beyond(max: &[u8], min: &[u8], separator: &mut Vec<u8>) -> Result<()> {
    let common = common_len(max, min);
    match (max.get(common), min.get(common)) {
        (Some(below), Some(above)) if below < above => {
            separator.clear();
            separator.extend_from_slice(&min[..common]);
            separator.push(below + 1);
            Ok(())
        }
        _ => Err(out_of_order()),
    }
}

/// Determines bytes that are greater than `max` and longer than its common prefix with `separator`, the last
/// one written (`RowIndexWriter.nudge`).
///
/// # Errors
/// If there are none.
pub fn nudge(max: &[u8], separator: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let common = common_len(max, separator);
    let full = max[common..]
        .iter()
        .take_while(|byte| **byte == 0xff)
        .count();
    let Some(byte) = max.get(common + full) else {
        return Err(out_of_order());
    };
    out.clear();
    out.extend_from_slice(&max[..common + full]);
    out.push(byte + 1);
    Ok(())
}

#[cfg(test)]
mod tests;

//! The promoted index: blocks of a wide partition.
//!
//! ```text
//! promoted  := uvint headerLength | DeletionTime | vint32 count | IndexInfo * count
//!              | count * i32 offset of each IndexInfo from the first
//! IndexInfo := prefix first | prefix last | uvint offset | svint (width - 65536)
//!              | u8 hasOpen | [DeletionTime of the range tombstone open after the block]
//! ```
//!
//! A block ends with the unfiltered that makes it at least `column_index_size` long. Offsets are relative to
//! the partition's first byte; the first block begins after the header (key, deletion, static row). The
//! remainder at the partition's end makes a last block, whose width includes the end byte, since Cassandra
//! writes that byte before it closes the block. A partition of a single block has no promoted index.
//!
//! Source: `IndexInfo.Serializer`, `RowIndexEntry`, `BigFormatPartitionWriter`.

use crate::byte_reader::ByteReader;
use crate::byte_sink::ByteSink;
use crate::data::clustering::{ClusteringComparator, Kind, ValueSpan, set_name};
use crate::data::deletion_time::DeletionTime;
use crate::error::{Error, Result};
use crate::version::Version;

/// Cassandra's default `column_index_size` for BIG.
pub const DEFAULT_COLUMN_INDEX_SIZE: u64 = 64 * 1024;
/// `IndexInfo.Serializer.WIDTH_BASE`, which does not depend on `column_index_size`.
const WIDTH_BASE: i64 = 64 * 1024;
/// Length of the end byte after a partition's last row or marker.
const END_OF_PARTITION_LEN: u64 = 1;
/// Minimum length of an `IndexInfo`: two prefixes of one byte, offset, width, presence byte.
const SHORTEST_INFO: usize = 5;

/// A parsed promoted index; blocks are parsed on demand.
#[derive(Clone, Copy, Debug)]
pub struct PromotedIndex<'a> {
    /// Length of key, deletion and static row, bytes.
    pub header_len: u64,
    /// Partition deletion.
    pub deletion: DeletionTime,
    infos: &'a [u8],
    offsets: &'a [[u8; 4]],
    version: Version,
    base: u64,
}

/// A block of a partition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IndexInfo<'a> {
    /// Serialized prefix, with its kind, of the first row or marker.
    pub first: &'a [u8],
    /// Serialized prefix of the last row or marker.
    pub last: &'a [u8],
    /// Offset of the block from the partition's first byte.
    pub offset: u64,
    /// Length of the block, bytes; a last block that is not full includes the end byte.
    pub width: u64,
    /// Deletion of the range tombstone that is open after the block.
    pub open_marker: Option<DeletionTime>,
}

impl<'a> PromotedIndex<'a> {
    /// Parses the promoted index of an entry, at offset `base` of Index.db.
    ///
    /// # Errors
    /// Corruption if lengths are inconsistent.
    pub fn parse(promoted: &'a [u8], version: Version, base: u64) -> Result<PromotedIndex<'a>> {
        let mut reader = ByteReader::with_base(promoted, base);
        let header_len = reader.uvint("promoted.header_length")?;
        let deletion = DeletionTime::read(&mut reader, version)?;
        let count_at = reader.offset();
        let count = reader.uvint_count(SHORTEST_INFO + 4, "promoted.count")?;
        // Asserted by `RowIndexEntry.Serializer.deserialize`.
        if count < 2 {
            return Err(Error::corrupt(
                "promoted.count",
                count_at,
                "2 blocks or more",
                count,
            ));
        }
        let base = reader.offset();
        let infos = reader.bytes(reader.remaining() - 4 * count, "promoted.blocks")?;
        let (offsets, _) = reader
            .bytes(4 * count, "promoted.offsets")?
            .as_chunks::<4>();
        if offsets[0] != [0; 4] {
            return Err(Error::corrupt(
                "promoted.offset",
                base + infos.len() as u64,
                "0 for the first block",
                u32::from_be_bytes(offsets[0]),
            ));
        }
        Ok(PromotedIndex {
            header_len,
            deletion,
            infos,
            offsets,
            version,
            base,
        })
    }

    /// Number of blocks.
    pub fn block_count(&self) -> usize {
        self.offsets.len()
    }

    /// Parses block `index`. `spans` is scratch space.
    ///
    /// # Errors
    /// Corruption, also for an index beyond the last block.
    pub fn block(
        &self,
        index: usize,
        comparator: &ClusteringComparator,
        spans: &mut Vec<ValueSpan>,
    ) -> Result<IndexInfo<'a>> {
        let start = self.info_offset(index)?;
        let end = if index + 1 < self.offsets.len() {
            self.info_offset(index + 1)?
        } else {
            self.infos.len()
        };
        let Some(bytes) = self.infos.get(start..end) else {
            return Err(Error::corrupt(
                "promoted.offset",
                self.base,
                format!("offsets that ascend up to {}", self.infos.len()),
                format!("{start} and {end}"),
            ));
        };
        let mut reader = ByteReader::with_base(bytes, self.base + start as u64);
        let first = prefix(&mut reader, bytes, comparator, spans)?;
        let last = prefix(&mut reader, bytes, comparator, spans)?;
        let offset = reader.uvint("index_info.offset")?;
        let width_at = reader.offset();
        let width = reader.svint("index_info.width")?.checked_add(WIDTH_BASE);
        let width = width.and_then(|width| u64::try_from(width).ok());
        let width = width.ok_or_else(|| {
            Error::corrupt("index_info.width", width_at, "a width of 0 or more", "less")
        })?;
        let has_open_marker = reader.bool("index_info.has_open_marker")?;
        let open_marker = has_open_marker
            .then(|| DeletionTime::read(&mut reader, self.version))
            .transpose()?;
        reader.expect_end("index_info", "the next block")?;
        Ok(IndexInfo {
            first,
            last,
            offset,
            width,
            open_marker,
        })
    }

    fn info_offset(&self, index: usize) -> Result<usize> {
        let stored = self.offsets.get(index).map(|raw| i32::from_be_bytes(*raw));
        stored
            .and_then(|offset| usize::try_from(offset).ok())
            .ok_or_else(|| {
                Error::corrupt(
                    "promoted.offset",
                    self.base,
                    format!("an offset of 0 or more for block {index}"),
                    format!("{stored:?}"),
                )
            })
    }
}

/// Returns the bytes of the next prefix of `reader`, which reads `bytes`.
fn prefix<'a>(
    reader: &mut ByteReader<'a>,
    bytes: &'a [u8],
    comparator: &ClusteringComparator,
    spans: &mut Vec<ValueSpan>,
) -> Result<&'a [u8]> {
    let start = reader.position();
    comparator.read_prefix(reader, spans)?;
    Ok(bytes.get(start..reader.position()).unwrap_or_default())
}

/// Builder of promoted indexes, one partition after the other, in reused buffers.
#[derive(Clone, Debug)]
pub struct PromotedIndexBuilder {
    version: Version,
    column_index_size: u64,
    /// Finished blocks, and the offset of each.
    infos: Vec<u8>,
    offsets: Vec<u32>,
    /// The block being filled: whether there is one, its start, and its first and last clustering.
    in_block: bool,
    block_start: u64,
    first: Vec<u8>,
    /// Empty while the block has only one clustering.
    last: Vec<u8>,
    end: u64,
    open_marker: DeletionTime,
    promoted: Vec<u8>,
}

impl PromotedIndexBuilder {
    /// Creates a builder of blocks that end with the unfiltered that reaches `column_index_size` bytes.
    pub fn new(version: Version, column_index_size: u64) -> PromotedIndexBuilder {
        PromotedIndexBuilder {
            version,
            column_index_size,
            infos: Vec::new(),
            offsets: Vec::new(),
            in_block: false,
            block_start: 0,
            first: Vec::new(),
            last: Vec::new(),
            end: 0,
            open_marker: DeletionTime::LIVE,
            promoted: Vec::new(),
        }
    }

    /// Adds a row or marker that occupies `start..end` of the partition.
    ///
    /// Its clustering is `kind` and `body`, the bytes that follow the kind in a serialized prefix: for a row,
    /// the clustering values as in Data.db; for a marker, count and values. `open_marker` is the deletion
    /// that is open after it, or [`DeletionTime::LIVE`].
    ///
    /// Returns a position in the partition: unfiltereds that end before it need not be added, except for the
    /// last one of the partition.
    #[inline]
    pub fn add_unfiltered(
        &mut self,
        start: u64,
        end: u64,
        kind: Kind,
        body: &[u8],
        open_marker: &DeletionTime,
    ) -> u64 {
        if !self.in_block {
            self.in_block = true;
            self.block_start = start;
            set_name(&mut self.first, kind, body);
            self.last.clear();
        } else {
            set_name(&mut self.last, kind, body);
        }
        self.end = end;
        self.open_marker = *open_marker;
        if end - self.block_start >= self.column_index_size {
            self.close_block();
            return end;
        }
        self.block_start.saturating_add(self.column_index_size)
    }

    fn close_block(&mut self) {
        // An offset of more than 31 bits is refused in `finish`.
        self.offsets
            .push(u32::try_from(self.infos.len()).unwrap_or(u32::MAX));
        self.infos.put_slice(&self.first);
        self.infos.put_slice(if self.last.is_empty() {
            &self.first
        } else {
            &self.last
        });
        self.infos.put_uvint(self.block_start);
        self.infos
            .put_svint((self.end - self.block_start) as i64 - WIDTH_BASE);
        self.infos.put_bool(!self.open_marker.is_live());
        if !self.open_marker.is_live() {
            self.open_marker.write(&mut self.infos, self.version);
        }
        self.in_block = false;
    }

    /// Ends the partition and returns its promoted index, empty if it has fewer than two blocks. The builder
    /// is then ready for the next partition.
    ///
    /// # Errors
    /// Unsupported if the index exceeds 2 GiB, which the format cannot represent.
    pub fn finish(&mut self, header_len: u64, deletion: &DeletionTime) -> Result<&[u8]> {
        // The only block of a partition is not written.
        if self.in_block && !self.offsets.is_empty() {
            self.end += END_OF_PARTITION_LEN;
            self.close_block();
        }
        self.in_block = false;
        self.promoted.clear();
        if self.offsets.len() >= 2 {
            self.promoted.put_uvint(header_len);
            deletion.write(&mut self.promoted, self.version);
            self.promoted.put_uvint(self.offsets.len() as u64);
            self.promoted.put_slice(&self.infos);
            for &offset in &self.offsets {
                self.promoted.put_u32(offset);
            }
        }
        self.infos.clear();
        self.offsets.clear();
        if i32::try_from(self.promoted.len()).is_err() {
            return Err(Error::unsupported(format!(
                "a partition whose row index has {} bytes; raise column_index_size",
                self.promoted.len()
            )));
        }
        Ok(&self.promoted)
    }
}

#[cfg(test)]
mod tests;

//! Blocks of one `Data.db`: which stored bytes each has, and how they are decoded.
//!
//! A block is a run of whole chunks. It is read with one request that covers exactly its stored bytes, so
//! that it can be decoded alone.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

use compactor_io::{Extent, lock};
use compactor_sstable::Component;
use compactor_sstable::compression::chunk::ChunkDecompressor;
use compactor_sstable::compression::crc32_run::Crc32Run;
use compactor_sstable::compression::info::{CompressionInfo, StoredChunk};
use compactor_sstable::compression::{CRC_LEN, crc32};

use crate::error::{Error, Result};
use crate::read::encoding::Encoding;
use crate::read::reading::DecodeOptions;
use crate::read::window::Block;

/// Buffers that all readers of a file recycle.
#[derive(Debug, Default)]
pub(crate) struct Recycled {
    /// No more than were in use at a time.
    blocks: Mutex<Vec<Block>>,
    /// Decompressors with their working memory, as many as were in use concurrently.
    decompressors: Mutex<Vec<ChunkDecompressor>>,
}

/// A decoded block and the checksum of its stored bytes.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) block: Block,
    pub(crate) stored: Crc32Run,
}

/// Blocks of a range of the uncompressed bytes of a `Data.db`. The first begins with the unit that contains the start
/// of the range; the last ends with the range.
#[derive(Debug)]
pub(crate) struct StoredBlocks {
    encoding: Arc<Encoding>,
    units_per_block: u64,
    /// [`DecodeOptions::headroom`].
    headroom: usize,
    /// Uncompressed bytes to read, and the unit that contains the first of them.
    range: Range<u64>,
    first_unit: u64,
    recycled: Arc<Recycled>,
}

impl StoredBlocks {
    pub(crate) fn new(
        encoding: Arc<Encoding>,
        recycled: Arc<Recycled>,
        range: Range<u64>,
        options: DecodeOptions,
    ) -> StoredBlocks {
        let unit = encoding.unit().max(1);
        let end = range.end.min(encoding.data_len());
        let range = range.start.min(end)..end;
        StoredBlocks {
            units_per_block: (options.block_len as u64 / unit).max(1),
            headroom: options.headroom,
            first_unit: range.start / unit,
            range,
            encoding,
            recycled,
        }
    }

    /// Number of blocks.
    pub(crate) fn count(&self) -> u64 {
        if self.range.is_empty() {
            return 0;
        }
        let end = self.range.end.div_ceil(self.encoding.unit().max(1));
        (end - self.first_unit).div_ceil(self.units_per_block)
    }

    /// Bytes before the range in the first block.
    pub(crate) fn lead_len(&self) -> usize {
        (self.range.start % self.encoding.unit().max(1)) as usize
    }

    /// End of the range.
    pub(crate) fn end(&self) -> u64 {
        self.range.end
    }

    /// Whether the range is all of the file.
    pub(crate) fn is_whole_file(&self) -> bool {
        self.range == (0..self.encoding.data_len())
    }

    /// Keeps the buffer of a block for another one.
    pub(crate) fn recycle(&self, block: Block) {
        // A window that grew for a long row returns an oversized buffer, which is freed.
        let usual = self.encoding.unit() * self.units_per_block + self.headroom as u64;
        if (1..=2 * usual).contains(&(block.bytes.capacity() as u64)) {
            lock(&self.recycled.blocks).push(block);
        }
    }

    /// Units of block `index`.
    fn units(&self, index: u64) -> Range<u64> {
        let first = self.first_unit + index * self.units_per_block;
        let end = self.range.end.div_ceil(self.encoding.unit().max(1));
        first..(first + self.units_per_block).min(end)
    }

    /// File offset and length of the stored bytes of block `index`.
    pub(crate) fn stored_range(&self, index: u64) -> Result<(u64, usize)> {
        let unit = self.encoding.unit();
        let units = self.units(index);
        let (start, end) = match &*self.encoding {
            Encoding::Compressed { info, .. } => {
                let first = self.chunk(info, units.start)?;
                // The digest includes empty chunks after the last one.
                let end = if units.end == info.chunk_count() as u64 {
                    info.file_len
                } else {
                    self.chunk(info, units.end)?.offset
                };
                (first.offset, end)
            }
            Encoding::Plain { len, .. } => (units.start * unit, (units.end * unit).min(*len)),
        };
        let len = usize::try_from(end - start)
            .map_err(|_| Error::Internal(format!("a block of {} stored bytes", end - start)))?;
        Ok((start, len))
    }

    /// Number of stored bytes of block `index`, from `offset` on, that belong to the previous range.
    fn foreign_len(&self, index: u64, offset: u64) -> usize {
        let unit = self.encoding.unit().max(1);
        if index > 0 || self.range.start.is_multiple_of(unit) {
            return 0;
        }
        let end = match &*self.encoding {
            Encoding::Compressed { info, .. } => self
                .chunk(info, self.first_unit)
                .map_or(offset, |chunk| chunk.offset + chunk.stored_len),
            Encoding::Plain { len, .. } => ((self.first_unit + 1) * unit).min(*len),
        };
        (end - offset) as usize
    }

    fn chunk(&self, info: &CompressionInfo, index: u64) -> Result<StoredChunk> {
        info.chunk(index as usize)
            .ok_or_else(|| Error::Internal(format!("chunk {index} beyond the last")))
    }

    /// Decodes block `index` of the file at `path` from the bytes of `extent`.
    pub(crate) fn decode(&self, index: u64, extent: &Extent, path: &Path) -> Result<Decoded> {
        let (offset, len) = self.stored_range(index)?;
        let start = offset.checked_sub(extent.offset()).map(|at| at as usize);
        let stored = start.and_then(|at| extent.get(at..at + len));
        let stored = stored.ok_or_else(|| Error::internal("a block beyond what was read"))?;
        let mut block = lock(&self.recycled.blocks).pop().unwrap_or_default();
        let Range {
            start: first,
            end: last,
        } = self.units(index);
        let foreign = self.foreign_len(index, offset);
        let mut digest = Crc32Run::default();
        match &*self.encoding {
            Encoding::Compressed { info, decompressor } => {
                let chunk_len = u64::from(info.params.chunk_len);
                let data_end = (last * chunk_len).min(info.data_len);
                block.resize(self.headroom, (data_end - first * chunk_len) as usize);
                let recycled = lock(&self.recycled.decompressors).pop();
                let mut decompressor = recycled.unwrap_or_else(|| decompressor.clone());
                let mut out = &mut block.bytes[self.headroom..];
                for index in first..last {
                    let chunk = self.chunk(info, index)?;
                    let at = (chunk.offset - offset) as usize;
                    let bytes = &stored[at..at + chunk.stored_len as usize];
                    let (target, rest) = out.split_at_mut(chunk.raw_len as usize);
                    let crc = decompressor
                        .decompress(bytes, chunk.offset, target)
                        .map_err(|e| e.with_file(path, Component::Data))?;
                    if at >= foreign {
                        digest.append_chunk(crc, (bytes.len() - CRC_LEN) as u64);
                    }
                    out = rest;
                }
                if last == info.chunk_count() as u64 && self.range.end == info.data_len {
                    let empty = &stored[(info.content_end() - offset) as usize..];
                    digest.append(crc32(empty), empty.len() as u64);
                }
                lock(&self.recycled.decompressors).push(decompressor);
            }
            Encoding::Plain { crc, .. } => {
                match crc {
                    Some(file) => {
                        for (i, chunk) in stored.chunks(file.chunk_len as usize).enumerate() {
                            let crc = file
                                .check(first as usize + i, chunk)
                                .map_err(|e| e.with_file(path, Component::Data))?;
                            if i * file.chunk_len as usize >= foreign {
                                digest.append(crc, chunk.len() as u64);
                            }
                        }
                    }
                    None => {
                        let own = stored.get(foreign..).unwrap_or_default();
                        digest.append(crc32(own), own.len() as u64);
                    }
                }
                block.resize(self.headroom, stored.len());
                block.bytes[self.headroom..].copy_from_slice(stored);
            }
        }
        // The bytes of its last unit after the range belong to the next range.
        let start = first * self.encoding.unit();
        let len = self.range.end.saturating_sub(start);
        block.truncate(usize::try_from(len).unwrap_or(usize::MAX));
        Ok(Decoded {
            block,
            stored: digest,
        })
    }
}

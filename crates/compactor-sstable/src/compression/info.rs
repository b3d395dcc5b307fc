//! CompressionInfo.db: compressor, chunk length and the offset of each chunk.
//!
//! ```text
//! utf16 compressor | i32 n | n * (utf16 key, utf16 value)
//! | i32 chunkLength | [i32 maxCompressedLength] | i64 dataLength
//! | i32 chunkCount | chunkCount * i64 offset | [compression dictionary]
//! ```
//!
//! Chunks in excess of those that the data length requires are empty ones at the end. If a compaction opened
//! its output early (`SSTableRewriter.switchWriter`, `SortedTableWriter.openFinalEarly`), the buffer is empty
//! when `CompressedSequentialWriter.doPrepare` flushes it, which adds an empty chunk. No reader uses them
//! (`CompressionMetadata.chunkFor`), but they are included in the digest and in the compression ratio.
//!
//! Source: `CompressionMetadata.open`, `CompressionMetadata.Writer`, `CompressionParams`.

use std::sync::Arc;

use crate::byte_reader::ByteReader;
use crate::byte_sink::ByteSink;
use crate::compression::codec::Codec;
use crate::compression::dictionary::CompressionDictionary;
use crate::compression::{CRC_LEN, MAX_CHUNK_LEN};
use crate::error::{Error, Result};
use crate::version::Version;

/// Maximum compressed length with which no chunk is stored raw.
pub const NO_MAX_COMPRESSED_LEN: u32 = i32::MAX as u32;

/// `CompressionParams.CRC_CHECK_CHANCE`, a separate table option since 3.0.
const CRC_CHECK_CHANCE: &str = "crc_check_chance";

/// Compression parameters of a Data.db.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompressionParams {
    /// Class name of the compressor, as stored.
    pub compressor: String,
    /// The compressor's own options, in file order.
    pub options: Vec<(String, String)>,
    /// Uncompressed length of every chunk but the last; a power of two.
    pub chunk_len: u32,
    /// Payload length from which a chunk is stored raw; [`NO_MAX_COMPRESSED_LEN`] for never.
    pub max_compressed_len: u32,
}

impl CompressionParams {
    /// Creates parameters of a codec without options that never stores raw chunks.
    pub fn new(codec: Codec, chunk_len: u32) -> CompressionParams {
        CompressionParams {
            compressor: codec.name().to_owned(),
            options: codec.options(),
            chunk_len,
            max_compressed_len: NO_MAX_COMPRESSED_LEN,
        }
    }

    /// Returns the parameters for an SSTable of a version. Releases before 6.0 do not have
    /// `ZstdDictionaryCompressor`; without a dictionary its chunks are those of `ZstdCompressor`.
    #[must_use]
    pub fn for_version(mut self, version: Version) -> CompressionParams {
        let has_class = matches!(version, Version::Pa | Version::Ea);
        if let Some(package) = self.compressor.strip_suffix("ZstdDictionaryCompressor")
            && !has_class
        {
            self.compressor = format!("{package}ZstdCompressor");
            self.options.retain(|(name, _)| name == "compression_level");
        }
        self
    }

    /// Returns the parameters for another file: without `crc_check_chance`, which concerns reading. It is
    /// among the options of old files, and Cassandra 6 refuses it there
    /// (`CompressionParams.createCompressor`).
    pub fn for_output(&self) -> CompressionParams {
        let mut params = self.clone();
        if self.odd_max_compressed_len().is_some() {
            params.max_compressed_len = NO_MAX_COMPRESSED_LEN;
        }
        params.options.retain(|(name, _)| name != CRC_CHECK_CHANCE);
        params
    }

    /// Returns the parameters with another chunk length, and the same `min_compress_ratio`, up to the rounding of the
    /// maximum compressed length.
    #[must_use]
    pub fn with_chunk_len(mut self, chunk_len: u32) -> CompressionParams {
        if self.max_compressed_len != NO_MAX_COMPRESSED_LEN {
            let scaled = u64::from(self.max_compressed_len) * u64::from(chunk_len);
            let scaled = scaled.div_ceil(u64::from(self.chunk_len.max(1)));
            self.max_compressed_len = u32::try_from(scaled)
                .map_or(NO_MAX_COMPRESSED_LEN, |len| len.min(NO_MAX_COMPRESSED_LEN));
        }
        self.chunk_len = chunk_len;
        self
    }

    /// Returns the maximum compressed length if it exceeds the chunk length, which no writer produces.
    /// Cassandra opens the file nevertheless: only `CompressionParams.validate` checks it, and only that of a
    /// table.
    pub fn odd_max_compressed_len(&self) -> Option<u32> {
        let len = self.max_compressed_len;
        (len > self.chunk_len && len != NO_MAX_COMPRESSED_LEN).then_some(len)
    }

    /// Codec of the compressor.
    ///
    /// # Errors
    /// Unsupported, naming the codec.
    pub fn codec(&self) -> Result<Codec> {
        Codec::from_name(&self.compressor, &self.options)
    }

    /// Returns the maximum compressed length for the table option `min_compress_ratio`
    /// (`CompressionParams.calcMaxCompressedLength`).
    pub fn max_compressed_len_for_ratio(chunk_len: u32, min_compress_ratio: f64) -> u32 {
        // A ratio of 0 divides to infinity, which the minimum converts to "never".
        let limit = (f64::from(chunk_len) / min_compress_ratio)
            .min(f64::from(i32::MAX))
            .ceil();
        (limit as u32).min(NO_MAX_COMPRESSED_LEN)
    }
}

/// Content of CompressionInfo.db.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompressionInfo {
    /// Compression parameters.
    pub params: CompressionParams,
    /// Uncompressed length of the content.
    pub data_len: u64,
    /// Length of Data.db.
    pub file_len: u64,
    /// Position in Data.db of each chunk's first byte, including empty chunks at the end.
    pub chunk_offsets: Vec<u64>,
    /// Dictionary with which chunks were compressed (Cassandra 6). Never written.
    pub dictionary: Option<Arc<CompressionDictionary>>,
    /// Bytes of the file after the offsets, which Cassandra does not read before 6.0 (`CompressionMetadata.open`).
    /// Never written.
    pub unread_len: usize,
}

/// Position and length of a chunk that has content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredChunk {
    /// Position in Data.db.
    pub offset: u64,
    /// Length in Data.db, including the trailing CRC.
    pub stored_len: u64,
    /// Uncompressed length, at least 1.
    pub raw_len: u32,
}

impl CompressionInfo {
    /// Creates the description of a file that is being written.
    pub fn new(params: CompressionParams) -> CompressionInfo {
        CompressionInfo {
            params,
            data_len: 0,
            file_len: 0,
            chunk_offsets: Vec::new(),
            dictionary: None,
            unread_len: 0,
        }
    }

    /// Adds the next chunk; `stored_len` includes its CRC.
    pub fn push_chunk(&mut self, raw_len: u32, stored_len: u32) {
        self.chunk_offsets.push(self.file_len);
        self.file_len += u64::from(stored_len);
        self.data_len += u64::from(raw_len);
    }

    /// Payload bytes of all chunks, without CRCs, divided by uncompressed bytes: the ratio in Statistics.db.
    pub fn compression_ratio(&self) -> f64 {
        let crcs = (self.chunk_offsets.len() * CRC_LEN) as u64;
        (self.file_len - crcs.min(self.file_len)) as f64 / self.data_len as f64
    }

    /// Parses the file and validates it against the length of Data.db.
    ///
    /// # Errors
    /// Corruption if bytes are missing or inconsistent; unsupported if a compression dictionary of another
    /// kind follows.
    pub fn parse(bytes: &[u8], version: Version, file_len: u64) -> Result<CompressionInfo> {
        let mut reader = ByteReader::new(bytes);
        let compressor = reader.utf16_string("compression_info.compressor")?;
        let option_count = reader.i32_count(4, "compression_info.option_count")?;
        let option = |_| {
            let key = reader.utf16_string("compression_info.option_name")?;
            Ok((key, reader.utf16_string("compression_info.option_value")?))
        };
        let options = (0..option_count).map(option).collect::<Result<_>>()?;
        let chunk_len = reader.i32_from(1, "compression_info.chunk_length")?;
        if !chunk_len.is_power_of_two() || chunk_len > MAX_CHUNK_LEN {
            return Err(Error::corrupt(
                "compression_info.chunk_length",
                reader.offset() - 4,
                format!("a power of two up to {MAX_CHUNK_LEN}"),
                chunk_len,
            ));
        }
        let max_compressed_len = if version.has_max_compressed_length() {
            reader.i32_from(1, "compression_info.max_compressed_length")?
        } else {
            NO_MAX_COMPRESSED_LEN
        };
        let data_len_at = reader.offset();
        let data_len = reader.u64("compression_info.data_length")?;
        let count_at = reader.offset();
        let chunk_count = reader.i32_count(8, "compression_info.chunk_count")?;
        let wanted = data_len.div_ceil(u64::from(chunk_len));
        if data_len == 0 || i64::try_from(data_len).is_err() {
            return Err(Error::corrupt(
                "compression_info.data_length",
                data_len_at,
                "a positive number",
                data_len as i64,
            ));
        }
        if (chunk_count as u64) < wanted {
            return Err(Error::corrupt(
                "compression_info.chunk_count",
                count_at,
                format!("{wanted} chunks of {chunk_len} bytes for a data length of {data_len}"),
                chunk_count,
            ));
        }
        let chunk_offsets = offsets(&mut reader, chunk_count, wanted, file_len)?;
        let (dictionary, unread_len) = match reader.remaining() {
            left if left > 0 && version.has_compression_dictionary() => (
                Some(Arc::new(CompressionDictionary::parse(&mut reader)?)),
                0,
            ),
            left => (None, left),
        };
        let info = CompressionInfo {
            params: CompressionParams {
                compressor,
                options,
                chunk_len,
                max_compressed_len,
            },
            data_len,
            file_len,
            chunk_offsets,
            dictionary,
            unread_len,
        };
        info.check_stored_lengths()?;
        Ok(info)
    }

    /// Refuses chunks that are much longer than their content, which no codec produces: readers would
    /// allocate memory for them.
    fn check_stored_lengths(&self) -> Result<()> {
        let chunk_len = u64::from(self.params.chunk_len);
        let limit = chunk_len + chunk_len / 4 + 4096;
        for (index, chunk) in (0..).map_while(|index| self.chunk(index)).enumerate() {
            if chunk.stored_len > limit {
                return Err(Error::corrupt(
                    "compression_info.chunk_offset",
                    chunk.offset,
                    format!("chunk {index} of at most {limit} stored bytes"),
                    chunk.stored_len,
                ));
            }
        }
        let empty_len = self.file_len - self.content_end();
        if empty_len > limit {
            return Err(Error::corrupt(
                "compression_info.chunk_offset",
                self.content_end(),
                format!(
                    "at most {limit} stored bytes in {} empty chunks after the content",
                    self.empty_chunk_count()
                ),
                empty_len,
            ));
        }
        Ok(())
    }

    /// Number of chunks that have content.
    pub fn chunk_count(&self) -> usize {
        self.data_len.div_ceil(u64::from(self.params.chunk_len)) as usize
    }

    /// Number of empty chunks after them.
    pub fn empty_chunk_count(&self) -> usize {
        self.chunk_offsets.len() - self.chunk_count()
    }

    /// Position in Data.db after the last chunk that has content; empty chunks take up the rest.
    pub fn content_end(&self) -> u64 {
        let first_empty = self.chunk_offsets.get(self.chunk_count());
        first_empty.copied().unwrap_or(self.file_len)
    }

    /// Returns chunk `index` if it has content.
    #[inline]
    pub fn chunk(&self, index: usize) -> Option<StoredChunk> {
        let offset = *self.chunk_offsets.get(index)?;
        let end = self
            .chunk_offsets
            .get(index + 1)
            .copied()
            .unwrap_or(self.file_len);
        let start = index as u64 * u64::from(self.params.chunk_len);
        let left = self.data_len.checked_sub(start).filter(|left| *left > 0)?;
        let raw_len = left.min(u64::from(self.params.chunk_len)) as u32;
        Some(StoredChunk {
            offset,
            stored_len: end - offset,
            raw_len,
        })
    }

    /// Most bytes of the file between the starts of two chunks, of which every `chunks`th is considered, or between the
    /// last of them and the end.
    pub fn longest_run(&self, chunks: usize) -> u64 {
        let starts = self.chunk_offsets.iter().step_by(chunks.max(1));
        let ends = starts.clone().skip(1).chain([&self.file_len]);
        let lens = starts.zip(ends).map(|(start, end)| end - start);
        lens.max().unwrap_or(0)
    }

    /// Index of the chunk that holds a position of the uncompressed content.
    #[inline]
    pub fn chunk_index_of(&self, position: u64) -> u64 {
        position >> self.params.chunk_len.trailing_zeros()
    }

    /// Appends the file's bytes.
    ///
    /// # Errors
    /// Unsupported if the version cannot represent it: no chunk at all, more than 2^31 chunks, a maximum
    /// compressed length before `na`.
    pub fn write(&self, out: &mut Vec<u8>, version: Version) -> Result<()> {
        let count = i32::try_from(self.chunk_offsets.len())
            .ok()
            .filter(|&count| count > 0);
        let Some(count) = count else {
            return Err(Error::unsupported(format!(
                "a compressed file of {} chunks",
                self.chunk_offsets.len()
            )));
        };
        out.put_utf16_string(&self.params.compressor);
        out.put_i32(self.params.options.len() as i32);
        for (key, value) in &self.params.options {
            out.put_utf16_string(key);
            out.put_utf16_string(value);
        }
        out.put_u32(self.params.chunk_len);
        if version.has_max_compressed_length() {
            out.put_u32(self.params.max_compressed_len);
        } else if self.params.max_compressed_len != NO_MAX_COMPRESSED_LEN {
            return Err(Error::unsupported(format!(
                "a maximum compressed length in version {version}"
            )));
        }
        out.put_i64(self.data_len as i64);
        out.put_i32(count);
        out.reserve(8 * self.chunk_offsets.len());
        for &offset in &self.chunk_offsets {
            out.put_i64(offset as i64);
        }
        Ok(())
    }
}

/// Offsets ascend from 0. A chunk has a checksum, and one with content at least another byte.
fn offsets(
    reader: &mut ByteReader<'_>,
    count: usize,
    with_content: u64,
    file_len: u64,
) -> Result<Vec<u64>> {
    const NAME: &str = "compression_info.chunk_offset";
    let mut offsets = Vec::with_capacity(count);
    let mut lowest = 0;
    for index in 0..count {
        let shortest = CRC_LEN as u64 + u64::from((index as u64) < with_content);
        let at = reader.offset();
        let offset = reader.u64(NAME)?;
        let fits = offset
            .checked_add(shortest)
            .is_some_and(|end| end <= file_len);
        if (index == 0 && offset != 0) || offset < lowest || !fits {
            let expected = match index {
                0 => "0".to_owned(),
                _ => format!("between {lowest} and {}", file_len.saturating_sub(shortest)),
            };
            return Err(Error::corrupt(
                NAME,
                at,
                format!("chunk {index} at {expected} (Data.db has {file_len} bytes)"),
                offset,
            ));
        }
        lowest = offset + shortest;
        offsets.push(offset);
    }
    Ok(offsets)
}

#[cfg(test)]
mod tests;

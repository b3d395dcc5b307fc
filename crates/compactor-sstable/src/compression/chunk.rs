//! Chunks of a compressed Data.db.
//!
//! ```text
//! chunk := payload | u32 CRC32(payload)
//! ```
//!
//! The payload is the compressed form of up to `chunkLength` bytes, or those bytes themselves if compression
//! did not pay off. The payload's length alone determines which.
//!
//! Source: `CompressedSequentialWriter.flushData`, `CompressedChunkReader`.

use std::fmt;
use std::sync::Arc;

use lz4_flex::block::CompressTable;

use crate::compression::codec::Codec;
use crate::compression::dictionary::CompressionDictionary;
use crate::compression::info::{CompressionInfo, CompressionParams};
use crate::compression::{CRC_LEN, crc32};
use crate::error::{Error, Result};

const LZ4_LENGTH_LEN: usize = 4;

/// Result of compressing a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLengths {
    /// Length of the payload, bytes.
    pub payload_len: u32,
    /// Length of payload and CRC: that of the chunk in Data.db.
    pub stored_len: u32,
    /// CRC32 of the payload.
    pub crc: u32,
}

/// Compressor of chunks, one after the other, without an allocation for each.
pub struct ChunkCompressor {
    state: CompressorState,
    codec: Codec,
    max_compressed_len: usize,
}

/// State that a codec keeps between chunks.
enum CompressorState {
    /// Hash table with 16-bit entries for chunks shorter than 64 KiB, with 32-bit ones for others.
    Lz4(Box<CompressTable>),
    Snappy(Box<snap::raw::Encoder>),
    Deflate(Box<flate2::Compress>),
    Zstd(Box<zstd::bulk::Compressor<'static>>),
    Noop,
}

impl fmt::Debug for ChunkCompressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkCompressor")
            .field("codec", &self.codec)
            .field("max_compressed_len", &self.max_compressed_len)
            .finish_non_exhaustive()
    }
}

impl ChunkCompressor {
    /// Creates a compressor with these parameters.
    ///
    /// # Errors
    /// Unsupported, naming the codec.
    pub fn new(params: &CompressionParams) -> Result<ChunkCompressor> {
        let codec = params.codec()?;
        let state = match codec {
            Codec::Lz4 => CompressorState::Lz4(Box::new(if params.chunk_len < 65_535 {
                CompressTable::small()
            } else {
                CompressTable::large()
            })),
            Codec::Snappy => CompressorState::Snappy(Box::new(snap::raw::Encoder::new())),
            Codec::Deflate => CompressorState::Deflate(Box::new(flate2::Compress::new(
                flate2::Compression::default(),
                true,
            ))),
            Codec::Zstd { level } => CompressorState::Zstd(Box::new(zstd_compressor(level)?)),
            Codec::Noop => CompressorState::Noop,
        };
        let max_compressed_len = params.max_compressed_len as usize;
        Ok(ChunkCompressor {
            state,
            codec,
            max_compressed_len,
        })
    }

    /// Length of the buffer that [`compress_into`](Self::compress_into) needs for `raw_len` bytes.
    pub fn max_stored_len(&self, raw_len: usize) -> usize {
        self.codec.max_compressed_len(raw_len).max(raw_len) + CRC_LEN
    }

    /// Appends a chunk to `out`.
    ///
    /// # Errors
    /// None in practice: the codecs fail only if the buffer is too short.
    pub fn compress(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Result<ChunkLengths> {
        let start = out.len();
        out.resize(start + self.max_stored_len(raw.len()), 0);
        let lengths = self.compress_into(raw, &mut out[start..]);
        out.truncate(
            start
                + lengths
                    .as_ref()
                    .map_or(0, |lengths| lengths.stored_len as usize),
        );
        lengths
    }

    /// Writes a chunk to the start of `out`, which has at least [`max_stored_len`](Self::max_stored_len)
    /// bytes.
    ///
    /// # Errors
    /// Unsupported if `out` is too short.
    pub fn compress_into(&mut self, raw: &[u8], out: &mut [u8]) -> Result<ChunkLengths> {
        let max_stored_len = self.max_stored_len(raw.len());
        let Some(out) = out.get_mut(..max_stored_len) else {
            return Err(Error::unsupported(format!(
                "compressing {} bytes into less than {max_stored_len}",
                raw.len()
            )));
        };
        let mut payload_len = self.state.compress(raw, out)?;
        if payload_len >= self.max_compressed_len {
            // Only the last chunk can be shorter than the maximum. It is padded with zeros, so that its
            // length still indicates that it is raw.
            payload_len = raw.len().max(self.max_compressed_len);
            out[..raw.len()].copy_from_slice(raw);
            out[raw.len()..payload_len].fill(0);
        }
        let crc = crc32(&out[..payload_len]);
        out[payload_len..payload_len + CRC_LEN].copy_from_slice(&crc.to_be_bytes());
        Ok(ChunkLengths {
            payload_len: payload_len as u32,
            stored_len: (payload_len + CRC_LEN) as u32,
            crc,
        })
    }
}

/// Level and content checksum as set by Cassandra.
fn zstd_compressor(level: i32) -> Result<zstd::bulk::Compressor<'static>> {
    let failed = |e| Error::unsupported(format!("Zstd: {e}"));
    let mut compressor = zstd::bulk::Compressor::new(level).map_err(failed)?;
    compressor.include_checksum(true).map_err(failed)?;
    Ok(compressor)
}

impl CompressorState {
    /// Compresses into `out`, which is long enough, and returns the payload's length.
    fn compress(&mut self, raw: &[u8], out: &mut [u8]) -> Result<usize> {
        match self {
            CompressorState::Lz4(table) => {
                let (prefix, block) = out.split_at_mut(LZ4_LENGTH_LEN);
                prefix.copy_from_slice(&(raw.len() as u32).to_le_bytes());
                let len = lz4_flex::block::compress_into_with_table(raw, block, table)
                    .map_err(|error| Error::unsupported(format!("LZ4: {error}")))?;
                Ok(LZ4_LENGTH_LEN + len)
            }
            CompressorState::Snappy(encoder) => encoder
                .compress(raw, out)
                .map_err(|error| Error::unsupported(format!("Snappy: {error}"))),
            CompressorState::Deflate(stream) => {
                stream.reset();
                match stream.compress(raw, out, flate2::FlushCompress::Finish) {
                    Ok(flate2::Status::StreamEnd) => Ok(stream.total_out() as usize),
                    Ok(_) => Err(Error::unsupported(
                        "Deflate: no room for the end of the stream",
                    )),
                    Err(error) => Err(Error::unsupported(format!("Deflate: {error}"))),
                }
            }
            CompressorState::Zstd(compressor) => compressor
                .compress_to_buffer(raw, out)
                .map_err(|error| Error::unsupported(format!("Zstd: {error}"))),
            CompressorState::Noop => {
                out[..raw.len()].copy_from_slice(raw);
                Ok(raw.len())
            }
        }
    }
}

/// Validates and decompresses chunks.
pub struct ChunkDecompressor {
    codec: Codec,
    max_compressed_len: usize,
    dictionary: Option<Arc<CompressionDictionary>>,
    /// Created for the first chunk that needs it.
    deflate: Option<Box<flate2::Decompress>>,
    zstd: Option<Box<zstd::bulk::Decompressor<'static>>>,
}

impl fmt::Debug for ChunkDecompressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkDecompressor")
            .field("codec", &self.codec)
            .field("max_compressed_len", &self.max_compressed_len)
            .field("dictionary", &self.dictionary)
            .finish_non_exhaustive()
    }
}

impl Clone for ChunkDecompressor {
    /// The clone allocates working memory of its own when it is needed.
    fn clone(&self) -> Self {
        ChunkDecompressor {
            codec: self.codec,
            max_compressed_len: self.max_compressed_len,
            dictionary: self.dictionary.clone(),
            deflate: None,
            zstd: None,
        }
    }
}

impl ChunkDecompressor {
    /// Creates a decompressor with these parameters, without a dictionary.
    ///
    /// # Errors
    /// Unsupported, naming the codec.
    pub fn new(params: &CompressionParams) -> Result<ChunkDecompressor> {
        Ok(ChunkDecompressor {
            codec: params.codec()?,
            max_compressed_len: params.max_compressed_len as usize,
            dictionary: None,
            deflate: None,
            zstd: None,
        })
    }

    /// Creates a decompressor for a file. An embedded dictionary is used whatever compressor the file names
    /// (`CompressionMetadata.resolveCompressor`).
    ///
    /// # Errors
    /// Unsupported, naming the codec.
    pub fn for_file(info: &CompressionInfo) -> Result<ChunkDecompressor> {
        let mut decompressor = ChunkDecompressor::new(&info.params)?;
        if let Some(dictionary) = &info.dictionary {
            decompressor.codec = Codec::Zstd { level: 0 };
            decompressor.dictionary = Some(Arc::clone(dictionary));
        }
        Ok(decompressor)
    }

    /// Decompresses the chunk `stored` (payload and CRC), at `offset` of Data.db, into `out`, whose length is
    /// exactly that of the chunk's content. Returns the CRC32 of the payload.
    ///
    /// # Errors
    /// Corruption if the CRC does not match or the content is not `out.len()` bytes.
    pub fn decompress(&mut self, stored: &[u8], offset: u64, out: &mut [u8]) -> Result<u32> {
        let (payload, computed) = check_crc(stored, offset)?;
        if payload.len() >= self.max_compressed_len {
            raw(payload, offset, out)?;
            return Ok(computed);
        }
        match self.codec {
            Codec::Lz4 => lz4(payload, offset, out)?,
            Codec::Snappy => snappy(payload, offset, out)?,
            Codec::Deflate => self.inflate(payload, offset, out)?,
            Codec::Zstd { .. } => self.unzstd(payload, offset, out)?,
            Codec::Noop => raw(payload, offset, out)?,
        }
        Ok(computed)
    }

    fn inflate(&mut self, payload: &[u8], offset: u64, out: &mut [u8]) -> Result<()> {
        let stream = self
            .deflate
            .get_or_insert_with(|| Box::new(flate2::Decompress::new(true)));
        stream.reset(true);
        let wanted = out.len();
        let status = stream.decompress(payload, out, flate2::FlushDecompress::Finish);
        let found = stream.total_out() as usize;
        match status {
            Ok(flate2::Status::StreamEnd) => check_len("chunk.deflate", offset, wanted, found),
            // More content than fits, or a truncated stream.
            Ok(_) => Err(bad_stream(
                "chunk.deflate",
                offset,
                wanted,
                "another length",
            )),
            Err(error) => Err(bad_stream("chunk.deflate", offset, wanted, error)),
        }
    }

    fn unzstd(&mut self, payload: &[u8], offset: u64, out: &mut [u8]) -> Result<()> {
        let wanted = out.len();
        let bad = |error: std::io::Error| bad_stream("chunk.zstd", offset, wanted, error);
        let decompressor = match &mut self.zstd {
            Some(decompressor) => decompressor,
            none => {
                let made = match &self.dictionary {
                    Some(dictionary) => {
                        zstd::bulk::Decompressor::with_dictionary(&dictionary.bytes)
                    }
                    None => zstd::bulk::Decompressor::new(),
                };
                none.insert(Box::new(made.map_err(bad)?))
            }
        };
        let found = decompressor
            .decompress_to_buffer(payload, out)
            .map_err(bad)?;
        check_len("chunk.zstd", offset, wanted, found)
    }
}

fn check_len(structure: &'static str, offset: u64, wanted: usize, found: usize) -> Result<()> {
    if wanted == found {
        return Ok(());
    }
    let found = format!("{found} bytes");
    Err(bad_stream(structure, offset, wanted, found))
}

#[cold]
fn bad_stream(
    structure: &'static str,
    offset: u64,
    wanted: usize,
    found: impl fmt::Display,
) -> Error {
    Error::corrupt(
        structure,
        offset,
        format!("{wanted} bytes of content"),
        found,
    )
}

fn snappy(payload: &[u8], offset: u64, out: &mut [u8]) -> Result<()> {
    let wanted = out.len();
    let bad = |error: snap::Error| bad_stream("chunk.snappy", offset, wanted, error);
    let claimed = snap::raw::decompress_len(payload).map_err(bad)?;
    check_len("chunk.snappy", offset, wanted, claimed)?;
    let found = snap::raw::Decoder::new()
        .decompress(payload, out)
        .map_err(bad)?;
    check_len("chunk.snappy", offset, wanted, found)
}

/// Validates the CRC of the chunk `stored`, at `offset` of Data.db, and returns its payload with that CRC32.
/// Every error about a chunk has the chunk's own offset.
///
/// # Errors
/// Corruption if the CRC does not match.
pub fn check_crc(stored: &[u8], offset: u64) -> Result<(&[u8], u32)> {
    let Some((payload, crc)) = stored.split_last_chunk::<CRC_LEN>() else {
        return Err(Error::corrupt(
            "chunk",
            offset,
            "a payload and 4 bytes of CRC",
            format!("{} bytes", stored.len()),
        ));
    };
    // Reading the payload first brings the CRC after it into the cache.
    let computed = crc32(payload);
    let stored_crc = u32::from_be_bytes(*crc);
    if stored_crc == computed {
        Ok((payload, computed))
    } else {
        Err(bad_crc(offset, payload.len(), stored_crc, computed))
    }
}

fn raw(payload: &[u8], offset: u64, out: &mut [u8]) -> Result<()> {
    match payload.get(..out.len()) {
        Some(content) => {
            out.copy_from_slice(content);
            Ok(())
        }
        None => Err(Error::corrupt(
            "chunk.raw_length",
            offset,
            format!("{} bytes", out.len()),
            payload.len(),
        )),
    }
}

fn lz4(payload: &[u8], offset: u64, out: &mut [u8]) -> Result<()> {
    let Some((prefix, block)) = payload.split_first_chunk::<LZ4_LENGTH_LEN>() else {
        return Err(Error::corrupt(
            "chunk.lz4_length",
            offset,
            "4 bytes of length",
            format!("{} bytes", payload.len()),
        ));
    };
    let claimed = u32::from_le_bytes(*prefix) as usize;
    if claimed != out.len() {
        return Err(bad_stream("chunk.lz4_length", offset, out.len(), claimed));
    }
    match lz4_flex::block::decompress_into(block, out) {
        Ok(len) if len == claimed => Ok(()),
        Ok(len) => Err(bad_stream("chunk.lz4_block", offset, claimed, len)),
        Err(error) => Err(Error::corrupt(
            "chunk.lz4_block",
            offset,
            "an LZ4 block",
            error,
        )),
    }
}

#[cold]
fn bad_crc(offset: u64, payload_len: usize, stored: u32, computed: u32) -> Error {
    Error::corrupt(
        "chunk.crc",
        offset,
        format!("{computed:08x}, the CRC32 of the {payload_len} bytes before its checksum"),
        format!("{stored:08x}"),
    )
}

#[cfg(test)]
mod tests {
    use compactor_testkit::Random;

    use super::*;
    use crate::compression::info::NO_MAX_COMPRESSED_LEN;

    fn params(codec: Codec, chunk_len: u32, max_compressed_len: u32) -> CompressionParams {
        CompressionParams {
            max_compressed_len,
            ..CompressionParams::new(codec, chunk_len)
        }
    }

    fn noise(len: usize) -> Vec<u8> {
        Random::new(1).bytes(len)
    }

    fn round_trip(params: &CompressionParams, raw: &[u8]) -> ChunkLengths {
        let mut out = vec![0xee; 3];
        let lengths = ChunkCompressor::new(params)
            .unwrap()
            .compress(raw, &mut out)
            .unwrap();
        assert_eq!(out.len(), 3 + lengths.stored_len as usize);
        assert_eq!(lengths.stored_len, lengths.payload_len + 4);
        let mut back = vec![0; raw.len()];
        let mut decompressor = ChunkDecompressor::new(params).unwrap();
        decompressor.decompress(&out[3..], 0, &mut back).unwrap();
        assert_eq!(back, raw);
        lengths
    }

    #[test]
    fn chunk_written_by_cassandra() {
        // LZ4 of 4096 equal bytes starts with the length, little-endian.
        let params = params(Codec::Lz4, 4096, NO_MAX_COMPRESSED_LEN);
        let mut out = Vec::new();
        ChunkCompressor::new(&params)
            .unwrap()
            .compress(&[7; 4096], &mut out)
            .unwrap();
        assert_eq!(out[..4], [0x00, 0x10, 0x00, 0x00]);
        assert_eq!(
            out[out.len() - 4..],
            crc32(&out[..out.len() - 4]).to_be_bytes()
        );
    }

    /// The last chunk of a file that Cassandra 3.x wrote.
    #[test]
    fn chunk_without_content() {
        let params = params(Codec::Lz4, 65536, NO_MAX_COMPRESSED_LEN);
        let stored = [0, 0, 0, 0, 0, 0xc6, 0x22, 0xf7, 0x1d];
        ChunkDecompressor::new(&params)
            .unwrap()
            .decompress(&stored, 0, &mut [])
            .unwrap();
    }

    #[test]
    fn lengths_and_codecs() {
        for codec in [
            Codec::Lz4,
            Codec::Snappy,
            Codec::Deflate,
            Codec::Zstd { level: 3 },
            Codec::Zstd { level: -7 },
            Codec::Noop,
        ] {
            for chunk_len in [4096, 16384, 65536, 1 << 18] {
                let params = params(codec, chunk_len, NO_MAX_COMPRESSED_LEN);
                for len in [1, 2, 100, chunk_len as usize - 1, chunk_len as usize] {
                    round_trip(&params, &noise(len));
                    round_trip(&params, &vec![3; len]);
                }
            }
        }
    }

    #[test]
    fn chunks_that_do_not_shrink_are_stored_raw() {
        let params = params(Codec::Lz4, 4096, 3414);
        assert_eq!(round_trip(&params, &noise(4096)).payload_len, 4096);
        // A short last chunk is stored raw and padded, and stays below the maximum if it shrinks.
        assert_eq!(round_trip(&params, &noise(3413)).payload_len, 3414);
        assert_eq!(round_trip(&params, &noise(3000)).payload_len, 3000 + 4 + 13);
        assert!(round_trip(&params, &[1; 4096]).payload_len < 100);
        let mut padded = Vec::new();
        ChunkCompressor::new(&params)
            .unwrap()
            .compress(&noise(3410), &mut padded)
            .unwrap();
        assert_eq!(padded[3410..3414], [0; 4]);
    }

    #[test]
    fn reuse_leaves_nothing_behind() {
        let params = params(Codec::Lz4, 65536, NO_MAX_COMPRESSED_LEN);
        let mut compressor = ChunkCompressor::new(&params).unwrap();
        let mut decompressor = ChunkDecompressor::new(&params).unwrap();
        let mut out = Vec::new();
        for round in 0..50usize {
            let raw: Vec<u8> = (0..65536 - round * 1000)
                .map(|i| (i % (7 + round)) as u8)
                .collect();
            out.clear();
            compressor.compress(&raw, &mut out).unwrap();
            let mut back = vec![0; raw.len()];
            decompressor.decompress(&out, 0, &mut back).unwrap();
            assert_eq!(back, raw);
        }
    }

    #[test]
    fn damage_is_found() {
        let params = params(Codec::Lz4, 4096, NO_MAX_COMPRESSED_LEN);
        let raw: Vec<u8> = (0..2000u32)
            .flat_map(|i| (i * i).to_be_bytes())
            .take(4096)
            .collect();
        let mut good = Vec::new();
        ChunkCompressor::new(&params)
            .unwrap()
            .compress(&raw, &mut good)
            .unwrap();
        let mut decompressor = ChunkDecompressor::new(&params).unwrap();
        let mut out = vec![0; 4096];
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            let error = decompressor
                .decompress(&bad, 100, &mut out)
                .unwrap_err()
                .to_string();
            assert!(error.contains("chunk.crc"), "{error}");
        }
        for len in 0..good.len() {
            assert!(decompressor.decompress(&good[..len], 0, &mut out).is_err());
        }
        // A length other than that in the chunk index.
        assert!(decompressor.decompress(&good, 0, &mut out[..4095]).is_err());
    }

    proptest::proptest! {
        #[test]
        fn hostile_payloads_with_a_valid_crc(
            mut stored in proptest::collection::vec(0u8.., 0..300),
            len in 0usize..5000,
            claim: bool,
        ) {
            if claim && stored.len() >= 4 {
                stored[..4].copy_from_slice(&(len as u32).to_le_bytes());
            }
            let crc = crc32(&stored);
            stored.extend_from_slice(&crc.to_be_bytes());
            let mut out = vec![0; len];
            for codec in [
            Codec::Lz4,
            Codec::Snappy,
            Codec::Deflate,
            Codec::Zstd { level: 3 },
            Codec::Zstd { level: -7 },
            Codec::Noop,
        ] {
                for max in [NO_MAX_COMPRESSED_LEN, 100] {
                    let params = params(codec, 4096, max);
                    let _ = ChunkDecompressor::new(&params).unwrap().decompress(&stored, 0, &mut out);
                }
            }
        }

        #[test]
        fn any_bytes_round_trip(raw in proptest::collection::vec(0u8..4, 1..9000), max in 1u32..9000) {
            round_trip(&params(Codec::Lz4, 8192, max), &raw);
        }
    }
}

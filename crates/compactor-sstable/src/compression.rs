//! CompressionInfo.db, the chunks of a compressed Data.db, and CRC.db of an uncompressed one.

pub mod chunk;
pub mod codec;
pub mod crc32_run;
pub mod crc_file;
pub mod dictionary;
pub mod info;

pub use chunk::{ChunkCompressor, ChunkDecompressor, ChunkLengths};
pub use codec::Codec;
pub use crc_file::{CrcFile, CrcFileWriter};
pub use crc32_run::Crc32Run;
pub use dictionary::CompressionDictionary;
pub use info::{CompressionInfo, CompressionParams, StoredChunk};

/// Length of the CRC32 that follows each chunk.
pub const CRC_LEN: usize = 4;

/// Maximum chunk length accepted. Cassandra sets no limit; tables use 4 KiB to 1 MiB, and a longer chunk
/// length indicates damage.
pub const MAX_CHUNK_LEN: u32 = 128 * 1024 * 1024;

/// CRC32 (IEEE) as Cassandra uses it everywhere (`java.util.zip.CRC32`).
#[inline]
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

//! Stored form of `Data.db`.

use compactor_sstable::compression::chunk::ChunkDecompressor;
use compactor_sstable::compression::crc_file::CrcFile;
use compactor_sstable::compression::info::CompressionInfo;

/// Stored form of the data.
#[derive(Debug)]
pub enum Encoding {
    /// Compressed chunks, each with its checksum.
    Compressed {
        /// Chunk offsets.
        info: CompressionInfo,
        /// Decompressor for the file's codec.
        decompressor: ChunkDecompressor,
    },
    /// Uncompressed data, with the checksums of `CRC.db` where that component exists.
    Plain {
        /// Checksums, one per chunk of `chunk_len` bytes.
        crc: Option<CrcFile>,
        /// Length of `Data.db`.
        len: u64,
    },
}

impl Encoding {
    /// Uncompressed length of the file.
    pub fn data_len(&self) -> u64 {
        match self {
            Encoding::Compressed { info, .. } => info.data_len,
            Encoding::Plain { len, .. } => *len,
        }
    }

    /// Uncompressed bytes that are validated and decoded as a unit.
    pub(crate) fn unit(&self) -> u64 {
        match self {
            Encoding::Compressed { info, .. } => u64::from(info.params.chunk_len),
            Encoding::Plain { crc: Some(crc), .. } => u64::from(crc.chunk_len),
            Encoding::Plain { crc: None, .. } => 4096,
        }
    }
}

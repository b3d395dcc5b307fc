//! A compression dictionary embedded in CompressionInfo.db (Cassandra 6).
//!
//! ```text
//! u8 kind (0 = Zstd) | i64 id | i32 length | bytes | u32 CRC32C(kind, id little-endian, bytes)
//! ```
//!
//! Source: `CompressionDictionary.serialize`.

use crate::byte_reader::ByteReader;
use crate::error::{Error, Result};

const KIND_ZSTD: u8 = 0;

/// Dictionary with which every chunk of the file was compressed.
#[derive(Clone, PartialEq, Eq)]
pub struct CompressionDictionary {
    /// Id in the cluster.
    pub id: i64,
    /// Trained content.
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for CompressionDictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompressionDictionary")
            .field("id", &self.id)
            .field("len", &self.bytes.len())
            .finish()
    }
}

impl CompressionDictionary {
    /// Parses the bytes after the chunk offsets, up to the end of the file.
    ///
    /// # Errors
    /// Corruption if bytes are missing or left over, or the checksum does not match; unsupported for a kind
    /// other than Zstd.
    pub fn parse(reader: &mut ByteReader<'_>) -> Result<CompressionDictionary> {
        const NAME: &str = "compression_info.dictionary";
        let kind = reader.u8(NAME)?;
        if kind != KIND_ZSTD {
            return Err(Error::unsupported(format!(
                "a compression dictionary of kind {kind}; 0 (Zstd) is known"
            )));
        }
        let id = reader.i64(NAME)?;
        let bytes = reader.bytes32(NAME)?;
        let at = reader.offset();
        let stored = reader.u32(NAME)?;
        let found = checksum(id, bytes);
        if stored != found {
            return Err(Error::corrupt(
                "compression_info.dictionary_crc32c",
                at,
                format!("{found:08x}, the CRC32C of the dictionary"),
                format!("{stored:08x}"),
            ));
        }
        reader.expect_end("compression_info.end", "the end of the file")?;
        Ok(CompressionDictionary {
            id,
            bytes: bytes.to_vec(),
        })
    }
}

fn checksum(id: i64, bytes: &[u8]) -> u32 {
    let head = crc32c::crc32c_append(crc32c::crc32c(&[KIND_ZSTD]), &id.to_le_bytes());
    crc32c::crc32c_append(head, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::byte_sink::ByteSink;

    fn serialized() -> Vec<u8> {
        let mut out = vec![0];
        out.put_i64(7);
        out.put_bytes32(b"dictionary");
        out.put_u32(checksum(7, b"dictionary"));
        out
    }

    #[test]
    fn round_trip_and_damage() {
        let good = serialized();
        let parsed = CompressionDictionary::parse(&mut ByteReader::new(&good)).unwrap();
        assert_eq!((parsed.id, &parsed.bytes[..]), (7, &b"dictionary"[..]));
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(
                CompressionDictionary::parse(&mut ByteReader::new(&bad)).is_err(),
                "{at}"
            );
            assert!(CompressionDictionary::parse(&mut ByteReader::new(&good[..at])).is_err());
        }
    }
}

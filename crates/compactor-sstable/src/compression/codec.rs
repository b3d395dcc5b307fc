//! Codecs of the compressors that CompressionInfo.db may name.
//!
//! Source: the classes of `org.apache.cassandra.io.compress`.

use crate::error::{Error, Result};

const PACKAGE: &str = "org.apache.cassandra.io.compress.";
/// Cassandra's default Zstd level (`ZstdCompressorBase`).
pub const DEFAULT_ZSTD_LEVEL: i32 = 3;

/// Codec of chunks.
///
/// There is one variant for each codec that this project can both read and write. Settings that change the
/// compressed bytes are part of the variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Codec {
    /// `LZ4Compressor`: u32 **little-endian** uncompressed length, then one LZ4 block.
    ///
    /// Its options (`lz4_compressor_type`, `lz4_high_compressor_level`) only determine the effort of the
    /// encoder. Chunks are always written with the fast encoder; every reader accepts both.
    Lz4,
    /// `SnappyCompressor`: one raw Snappy block, which carries its length.
    Snappy,
    /// `DeflateCompressor`: a zlib stream at the default level.
    Deflate,
    /// `ZstdCompressor`, and `ZstdDictionaryCompressor` where there is no dictionary: one Zstd frame
    /// with a content checksum.
    Zstd {
        /// Option `compression_level`.
        level: i32,
    },
    /// `NoopCompressor`: bytes unchanged.
    Noop,
}

impl Codec {
    /// Returns the codec of a compressor class, by simple or qualified name, with its options.
    ///
    /// # Errors
    /// Unsupported, naming the codec, for those this project does not handle.
    pub fn from_name(name: &str, options: &[(String, String)]) -> Result<Codec> {
        match name.strip_prefix(PACKAGE).unwrap_or(name) {
            "LZ4Compressor" => Ok(Codec::Lz4),
            "SnappyCompressor" => Ok(Codec::Snappy),
            "DeflateCompressor" => Ok(Codec::Deflate),
            "ZstdCompressor" | "ZstdDictionaryCompressor" => Ok(Codec::Zstd {
                level: zstd_level(options)?,
            }),
            "NoopCompressor" => Ok(Codec::Noop),
            _ => Err(Error::unsupported(format!(
                "compression with {name}; supported are LZ4Compressor, SnappyCompressor, \
                 DeflateCompressor, ZstdCompressor, ZstdDictionaryCompressor and NoopCompressor"
            ))),
        }
    }

    /// Simple name of the class, as stored in CompressionInfo.db.
    pub fn name(self) -> &'static str {
        match self {
            Codec::Lz4 => "LZ4Compressor",
            Codec::Snappy => "SnappyCompressor",
            Codec::Deflate => "DeflateCompressor",
            Codec::Zstd { .. } => "ZstdCompressor",
            Codec::Noop => "NoopCompressor",
        }
    }

    /// Options that distinguish this codec from others of its class.
    pub fn options(self) -> Vec<(String, String)> {
        match self {
            Codec::Zstd { level } if level != DEFAULT_ZSTD_LEVEL => {
                vec![("compression_level".to_owned(), level.to_string())]
            }
            _ => Vec::new(),
        }
    }

    /// Maximum compressed length of `raw_len` bytes.
    pub fn max_compressed_len(self, raw_len: usize) -> usize {
        match self {
            Codec::Lz4 => 4 + lz4_flex::block::get_maximum_output_size(raw_len),
            Codec::Snappy => snap::raw::max_compress_len(raw_len),
            // zlib's `compressBound`, plus space for the encoder's last flush.
            Codec::Deflate => raw_len + (raw_len >> 10) + 64,
            Codec::Zstd { .. } => zstd::zstd_safe::compress_bound(raw_len) + 4,
            Codec::Noop => raw_len,
        }
    }
}

fn zstd_level(options: &[(String, String)]) -> Result<i32> {
    let Some((_, text)) = options.iter().find(|(key, _)| key == "compression_level") else {
        return Ok(DEFAULT_ZSTD_LEVEL);
    };
    let range = zstd::compression_level_range();
    match text.parse() {
        Ok(level) if range.contains(&level) => Ok(level),
        _ => Err(Error::unsupported(format!(
            "Zstd compression_level {text:?}; levels are {} to {}",
            range.start(),
            range.end()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for codec in [
            Codec::Lz4,
            Codec::Snappy,
            Codec::Deflate,
            Codec::Noop,
            Codec::Zstd { level: 3 },
            Codec::Zstd { level: -5 },
        ] {
            let options = codec.options();
            assert_eq!(Codec::from_name(codec.name(), &options).unwrap(), codec);
            let qualified = format!("{PACKAGE}{}", codec.name());
            assert_eq!(Codec::from_name(&qualified, &options).unwrap(), codec);
        }
        let error = Codec::from_name("com.x.Own", &[]).unwrap_err();
        assert!(matches!(error, Error::Unsupported(_)));
        assert!(error.to_string().contains("com.x.Own"), "{error}");
        let level = [("compression_level".to_owned(), "99".to_owned())];
        assert!(Codec::from_name("ZstdCompressor", &level).is_err());
    }
}

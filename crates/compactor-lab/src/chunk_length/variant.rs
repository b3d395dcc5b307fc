//! A way of storing the same rows: compressor and chunk length.

use std::fmt;

use compactor::OutputCompression;
use compactor_sstable::compression::codec::{Codec, DEFAULT_ZSTD_LEVEL};
use compactor_sstable::compression::info::CompressionParams;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// Compressor of chunks.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", parse_err_ty = String, parse_err_fn = no_compressor)]
pub enum Compressor {
    /// `LZ4Compressor`.
    Lz4,
    /// `SnappyCompressor`.
    Snappy,
    /// `DeflateCompressor`.
    Deflate,
    /// `ZstdCompressor` at level 3.
    Zstd,
    /// `NoopCompressor`: chunks with checksums, not compressed.
    Noop,
    /// None, and so no chunks: 4 KiB are read at a time.
    None,
}

impl Compressor {
    /// All of them.
    pub const ALL: &[Compressor] = Compressor::VARIANTS;

    /// Its name in options and tables.
    pub fn name(self) -> &'static str {
        self.into()
    }

    fn codec(self) -> Option<Codec> {
        Some(match self {
            Compressor::Lz4 => Codec::Lz4,
            Compressor::Snappy => Codec::Snappy,
            Compressor::Deflate => Codec::Deflate,
            Compressor::Zstd => Codec::Zstd {
                level: DEFAULT_ZSTD_LEVEL,
            },
            Compressor::Noop => Codec::Noop,
            Compressor::None => return None,
        })
    }
}

fn no_compressor(text: &str) -> String {
    let names: Vec<&str> = Compressor::ALL.iter().map(|c| c.name()).collect();
    format!(
        "`{text}` is no compressor: expected one of {}",
        names.join(", ")
    )
}

/// Compressor and chunk length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Variant {
    /// Compressor of chunks.
    pub compressor: Compressor,
    /// Uncompressed bytes of a chunk; `None` without chunks.
    pub chunk_length_bytes: Option<u32>,
}

impl Variant {
    /// Each compressor with each chunk length; what has no chunks once.
    pub fn all(compressors: &[Compressor], chunk_lengths_bytes: &[u32]) -> Vec<Variant> {
        let of = |&compressor: &Compressor| -> Vec<Variant> {
            let with = |chunk_length_bytes| Variant {
                compressor,
                chunk_length_bytes,
            };
            match compressor.codec() {
                None => vec![with(None)],
                Some(_) => (chunk_lengths_bytes.iter().map(|&len| with(Some(len)))).collect(),
            }
        };
        compressors.iter().flat_map(of).collect()
    }

    pub(crate) fn compression(self) -> OutputCompression {
        match (self.compressor.codec(), self.chunk_length_bytes) {
            (Some(codec), Some(len)) => {
                OutputCompression::Params(CompressionParams::new(codec, len))
            }
            _ => OutputCompression::None,
        }
    }
}

/// `lz4 16 KiB`, or `none`.
impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.chunk_length_bytes {
            None => f.pad(self.compressor.name()),
            Some(len) => f.pad(&format!(
                "{} {}",
                self.compressor,
                crate::report::units::bytes(f64::from(len))
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_compressor_with_each_length_and_none_once() {
        let all = Variant::all(&[Compressor::Lz4, Compressor::None], &[4096, 65536]);
        let names: Vec<String> = all.iter().map(Variant::to_string).collect();
        assert_eq!(names, ["lz4 4 KiB", "lz4 64 KiB", "none"]);
        for &compressor in Compressor::ALL {
            assert_eq!(compressor.name().parse(), Ok(compressor));
        }
        let error = "gzip".parse::<Compressor>().unwrap_err();
        assert!(
            error.contains("gzip") && error.contains("snappy"),
            "{error}"
        );
    }
}

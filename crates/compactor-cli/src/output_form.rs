//! Options of the commands that write SSTables: version, format and compression.

use compactor::catalog::Catalog;
use compactor::sstable::Version;
use compactor::sstable::compression::codec::{Codec, DEFAULT_ZSTD_LEVEL};
use compactor::sstable::compression::info::CompressionParams;
use compactor::sstable::schema::CompressionOptions;
use compactor::{Error, OutputCompression};

use crate::flags::ByteSize;

/// Cassandra's default since 4.0, bytes.
pub const DEFAULT_CHUNK_LENGTH: u32 = 16 << 10;

/// What the output is to look like.
#[derive(Debug, clap::Args)]
pub struct OutputForm {
    /// Version of the output: nb (Cassandra 4), oa (5), pa (6); in BTI format da (5), ea (6).
    /// Default: that of the newest release that wrote any input, from nb on.
    #[arg(long, help_heading = "Output", value_name = "VERSION")]
    pub sstable_version: Option<Version>,

    /// Format of the output. Default: that of --sstable-version, otherwise of the newest input.
    #[arg(long, help_heading = "Output", value_enum)]
    sstable_format: Option<SstableFormat>,

    /// Compression of the output. Default: schema.cql's, otherwise the newest input's.
    #[arg(long, help_heading = "Output", value_enum)]
    compression: Option<Compression>,

    /// Level of --compression zstd, -131072 to 22. Default: 3.
    #[arg(
        long,
        help_heading = "Output",
        value_name = "N",
        allow_negative_numbers = true
    )]
    compression_level: Option<i32>,

    /// Uncompressed bytes per chunk, a power of two such as 4KiB.
    #[arg(
        long,
        help_heading = "Output",
        value_name = "SIZE",
        allow_hyphen_values = true
    )]
    chunk_length: Option<ByteSize>,
}

impl OutputForm {
    /// Whether nothing is asked for but what the input is.
    pub fn is_as_input(&self) -> bool {
        self.sstable_version.is_none()
            && self.sstable_format.is_none()
            && self.compression.is_none()
            && self.chunk_length.is_none()
    }

    /// The format asked for.
    pub fn sstable_format(&self) -> Option<compactor::sstable::Format> {
        self.sstable_format.map(|format| match format {
            SstableFormat::Big => compactor::sstable::Format::Big,
            SstableFormat::Bti => compactor::sstable::Format::Bti,
        })
    }

    /// Compression by option, else by the schema, else that of the newest input.
    ///
    /// # Errors
    /// Options that do not go together, or a compressor of the schema that is not supported.
    pub fn compression(&self, catalog: &Catalog) -> anyhow::Result<OutputCompression> {
        let chunk_length = self.chunk_length.map(chunk_length).transpose()?;
        if self.compression_level.is_some() && self.compression != Some(Compression::Zstd) {
            return Err(Error::invalid("--compression-level needs --compression zstd").into());
        }
        let from_schema = catalog.schema.as_ref().and_then(|(path, table)| {
            table
                .options
                .compression
                .as_ref()
                .map(|compression| (path, compression))
        });
        let params = |codec: Codec, schema: Option<&CompressionOptions>| {
            let of_table = schema.and_then(|c| c.chunk_length);
            CompressionParams::new(
                codec,
                chunk_length.or(of_table).unwrap_or(DEFAULT_CHUNK_LENGTH),
            )
        };
        if let Some(choice) = self.compression {
            let Some(codec) = codec(choice, self.compression_level) else {
                if chunk_length.is_some() {
                    return Err(Error::invalid("--chunk-length needs a --compression").into());
                }
                return Ok(OutputCompression::None);
            };
            // Levels are checked where all options of compressors are.
            let params = params(codec, from_schema.map(|(_, c)| c));
            params.codec().map_err(|e| Error::invalid(e.to_string()))?;
            return Ok(OutputCompression::Params(params));
        }
        match from_schema {
            Some((_, compression)) if !compression.enabled => match chunk_length {
                None => Ok(OutputCompression::None),
                Some(_) => Err(Error::invalid(
                    "the table is not compressed (schema.cql); --chunk-length needs a --compression",
                )
                .into()),
            },
            Some((path, compression)) => {
                let class = compression.class.as_deref().unwrap_or("LZ4Compressor");
                let options: Vec<(String, String)> = compressor_options(compression);
                let codec = Codec::from_name(class, &options).map_err(|e| {
                    Error::invalid(format!(
                        "{}: {e}; choose one with --compression, Cassandra reads them all",
                        path.display()
                    ))
                })?;
                let mut params = params(codec, Some(compression));
                params.compressor = class.rsplit('.').next().unwrap_or(class).to_owned();
                params.options = options;
                if let Some(ratio) = compression.min_compress_ratio.filter(|r| *r > 0.0) {
                    params.max_compressed_len =
                        CompressionParams::max_compressed_len_for_ratio(params.chunk_len, ratio);
                }
                Ok(OutputCompression::Params(params))
            }
            None if chunk_length.is_some() => Ok(OutputCompression::Params(params(Codec::Lz4, None))),
            None => Ok(OutputCompression::AsNewestInput),
        }
    }
}

/// Format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum SstableFormat {
    /// Index.db and Summary.db; every Cassandra reads it.
    Big,
    /// Tries in Partitions.db and Rows.db; Cassandra 5.0 and later.
    Bti,
}

/// Compression of an SSTable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Compression {
    /// LZ4Compressor.
    Lz4,
    /// SnappyCompressor.
    Snappy,
    /// DeflateCompressor.
    Deflate,
    /// ZstdCompressor; see --compression-level.
    Zstd,
    /// NoopCompressor: chunks with checksums, not compressed.
    Noop,
    /// None; a CRC.db is written.
    None,
}

/// The codec; `None` for no compression.
pub fn codec(choice: Compression, level: Option<i32>) -> Option<Codec> {
    Some(match choice {
        Compression::Lz4 => Codec::Lz4,
        Compression::Snappy => Codec::Snappy,
        Compression::Deflate => Codec::Deflate,
        Compression::Zstd => Codec::Zstd {
            level: level.unwrap_or(DEFAULT_ZSTD_LEVEL),
        },
        Compression::Noop => Codec::Noop,
        Compression::None => return None,
    })
}

/// The options that are the compressor's own and go into CompressionInfo.db.
fn compressor_options(compression: &CompressionOptions) -> Vec<(String, String)> {
    const OF_THE_TABLE: [&str; 8] = [
        "class",
        "sstable_compression",
        "enabled",
        "chunk_length_in_kb",
        "chunk_length_kb",
        "chunk_length",
        "min_compress_ratio",
        "crc_check_chance",
    ];
    compression
        .all
        .iter()
        .filter(|(key, _)| !OF_THE_TABLE.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Checks a chunk length as Cassandra does: a power of two.
pub fn chunk_length(size: ByteSize) -> anyhow::Result<u32> {
    let valid = 1 << 10..=64 << 20;
    match u32::try_from(size.0) {
        Ok(bytes) if bytes.is_power_of_two() && valid.contains(&bytes) => Ok(bytes),
        _ => Err(Error::invalid(format!(
            "--chunk-length {size}: a power of two from 1KiB to 64MiB is needed, such as 16KiB"
        ))
        .into()),
    }
}

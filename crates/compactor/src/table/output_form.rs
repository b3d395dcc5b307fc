//! Version, format and compression of outputs.

use std::ops::RangeInclusive;

use compactor_engine::job::OutputCompression;
use compactor_sstable::compression::codec::Codec;
use compactor_sstable::compression::info::CompressionParams;
use compactor_sstable::schema::CompressionOptions;
use compactor_sstable::{Format, Version};

use super::Table;
use crate::MergeRequest;
use crate::{Error, Result};

/// Cassandra's default since 4.0, bytes.
pub const DEFAULT_CHUNK_LENGTH: u32 = 16 << 10;

/// Valid chunk lengths, bytes.
pub const CHUNK_LENGTHS: RangeInclusive<u32> = 1 << 10..=64 << 20;

/// How an output is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all; a `CRC.db` is written.
    None,
    /// By this codec.
    Codec(Codec),
}

/// Form of the outputs.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct OutputForm {
    /// Version of the output; `None` for that of the newest release that wrote any input, from `nb` on.
    pub version: Option<Version>,
    /// Format of the output; `None` for that of `version`, otherwise of the newest input.
    pub format: Option<Format>,
    /// Compression of the output; `None` for that of the schema, otherwise of the newest input.
    pub compression: Option<Compression>,
    /// Uncompressed bytes per chunk, a power of two from 1 KiB to 64 MiB; `None` for that of the schema. Without that,
    /// it is the newest input's if the compression is, and otherwise [`DEFAULT_CHUNK_LENGTH`].
    pub chunk_length: Option<u32>,
}

impl OutputForm {
    /// Refuses a form in which nothing would change.
    ///
    /// # Errors
    /// If all fields are `None`.
    pub fn refuse_no_change(&self) -> Result<()> {
        if self.version.is_none()
            && self.format.is_none()
            && self.compression.is_none()
            && self.chunk_length.is_none()
        {
            return Err(Error::invalid(
                "nothing to change: give --sstable-version, --sstable-format, --compression, \
                 --chunk-length or --strip-ttl",
            ));
        }
        Ok(())
    }

    /// Sets the form of a request's outputs, with the Bloom filter's false positive chance and the
    /// summary's interval of the schema.
    ///
    /// # Errors
    /// Settings that contradict one another, or a compressor of the schema that is not supported.
    pub(crate) fn apply(&self, table: &Table, request: &mut MergeRequest) -> Result<()> {
        if let (Some(version), Some(format)) = (self.version, self.format)
            && version.format() != format
        {
            return Err(Error::invalid(format!(
                "SSTable version {version} is one of format {}, not {}; choose one of them",
                version.format().name(),
                format.name()
            )));
        }
        if let Some(length) = self.chunk_length
            && !(length.is_power_of_two() && CHUNK_LENGTHS.contains(&length))
        {
            return Err(Error::invalid(format!(
                "a chunk length of {length} bytes: a power of two from 1KiB to 64MiB is needed, such as 16KiB \
                 (16KB is 16,000 bytes)"
            )));
        }
        request.version = self.version;
        request.format = self.format;
        request.compression = self.resolve_compression(table)?;
        if let Some(schema) = table.schema() {
            let options = &schema.options;
            request.bloom_filter_fp_chance = options.bloom_filter_fp_chance;
            if let Some(interval) = options.min_index_interval {
                request.min_index_interval = interval.max(1);
            }
        }
        Ok(())
    }

    fn resolve_compression(&self, table: &Table) -> Result<OutputCompression> {
        let of_schema = table.schema.as_ref().and_then(|(path, schema)| {
            let compression = schema.options.compression.as_ref()?;
            Some((path, compression))
        });
        match (self.compression, of_schema) {
            (Some(Compression::None), _) if self.chunk_length.is_some() => Err(Error::invalid(
                "--chunk-length does not apply to --compression none: leave one of them out, or name a compressor",
            )),
            (Some(Compression::None), _) => Ok(OutputCompression::None),
            (Some(Compression::Codec(codec)), of_schema) => {
                let params = self.params(codec, of_schema.map(|(_, options)| options));
                // Levels are checked where all options of compressors are.
                params.codec().map_err(|e| Error::invalid(e.to_string()))?;
                Ok(OutputCompression::Params(params))
            }
            (None, Some((_, options))) if !options.enabled => match self.chunk_length {
                None => Ok(OutputCompression::None),
                Some(_) => Err(Error::invalid(
                    "--chunk-length: the table is not compressed (schema.cql); name a compressor by --compression too",
                )),
            },
            (None, Some((path, options))) => {
                let class = options.class.as_deref().unwrap_or("LZ4Compressor");
                let own_options = compressor_options(options);
                let codec = Codec::from_name(class, &own_options).map_err(|e| {
                    Error::invalid(format!(
                        "{}: {e}; choose one with --compression, Cassandra reads them all",
                        path.display()
                    ))
                })?;
                let mut params = self.params(codec, Some(options));
                params.compressor = class.rsplit('.').next().unwrap_or(class).to_owned();
                params.options = own_options;
                if let Some(ratio) = options.min_compress_ratio.filter(|r| *r > 0.0) {
                    params.max_compressed_len =
                        CompressionParams::max_compressed_len_for_ratio(params.chunk_len, ratio);
                }
                Ok(OutputCompression::Params(params))
            }
            (None, None) => Ok(match self.chunk_length {
                Some(chunk_len) => OutputCompression::AsNewestInputInChunks(chunk_len),
                None => OutputCompression::AsNewestInput,
            }),
        }
    }

    fn params(&self, codec: Codec, schema: Option<&CompressionOptions>) -> CompressionParams {
        let of_schema = schema.and_then(|options| options.chunk_length);
        let chunk_length = self.chunk_length.or(of_schema);
        CompressionParams::new(codec, chunk_length.unwrap_or(DEFAULT_CHUNK_LENGTH))
    }
}

/// The compressor's own options, which CompressionInfo.db stores.
fn compressor_options(options: &CompressionOptions) -> Vec<(String, String)> {
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
    options
        .all
        .iter()
        .filter(|(key, _)| !OF_THE_TABLE.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

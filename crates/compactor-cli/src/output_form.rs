//! Options of the commands that write SSTables: version, format and compression.

use std::ops::RangeInclusive;

use compactor::table::CHUNK_LENGTHS;
use compactor::{Error, OutputForm};
use compactor_sstable::Version;
use compactor_sstable::compression::codec::{Codec, DEFAULT_ZSTD_LEVEL};

use crate::flags::ByteSize;
use crate::numbers::within;

/// Form of the outputs.
#[derive(Debug, clap::Args)]
pub struct OutputFormArgs {
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
    #[arg(long, help_heading = "Output", value_name = "N", value_parser = within(-131_072..=22))]
    compression_level: Option<i32>,

    /// Uncompressed bytes per chunk, a power of two such as 4KiB. Default: schema.cql's, otherwise the newest
    /// input's, or 16KiB with --compression.
    #[arg(
        long,
        help_heading = "Output",
        value_name = "SIZE",
        value_parser = within(CHUNK_LENGTH)
    )]
    chunk_length: Option<ByteSize>,
}

impl OutputFormArgs {
    /// The options as the library takes them.
    ///
    /// # Errors
    /// Options that contradict one another.
    pub fn form(&self) -> anyhow::Result<OutputForm> {
        if self.compression_level.is_some() && self.compression != Some(Compression::Zstd) {
            return Err(Error::invalid("--compression-level needs --compression zstd").into());
        }
        let mut form = OutputForm::default();
        form.version = self.sstable_version;
        form.format = self.sstable_format.map(|format| match format {
            SstableFormat::Big => compactor_sstable::Format::Big,
            SstableFormat::Bti => compactor_sstable::Format::Bti,
        });
        form.compression =
            self.compression
                .map(|choice| match codec(choice, self.compression_level) {
                    Some(codec) => compactor::Compression::Codec(codec),
                    None => compactor::Compression::None,
                });
        form.chunk_length = self.chunk_length.map(chunk_length);
        Ok(form)
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

/// Chunk lengths that may be asked for.
pub const CHUNK_LENGTH: RangeInclusive<ByteSize> =
    ByteSize(*CHUNK_LENGTHS.start() as u64)..=ByteSize(*CHUNK_LENGTHS.end() as u64);

/// A chunk length of that range.
pub fn chunk_length(size: ByteSize) -> u32 {
    u32::try_from(size.0).unwrap_or(u32::MAX)
}

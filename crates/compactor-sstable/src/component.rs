//! The components of an SSTable: files that share one descriptor.
//!
//! Source: `SSTableFormat.Components`, `BigFormat.Components`, `BtiFormat.Components`.

use std::fmt;

/// A component of an SSTable, identified by the part of its file name after the last `-`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Component {
    /// Partitions in token order, in chunks when compressed.
    Data,
    /// Partition index of the BIG format, with the promoted (row) index.
    Index,
    /// Sample of `Index.db`.
    Summary,
    /// Partition trie of the BTI format.
    Partitions,
    /// Row tries of the BTI format.
    Rows,
    /// Metadata: validation, compaction, stats, serialization header.
    Statistics,
    /// Bloom filter over partition keys.
    Filter,
    /// Compressor, chunk length and chunk offsets.
    CompressionInfo,
    /// Chunk checksums of an uncompressed `Data.db`.
    Crc,
    /// CRC32 of the whole `Data.db`, in ASCII decimal.
    Digest,
    /// List of the components.
    Toc,
}

impl Component {
    /// All components known to this project.
    pub const ALL: [Component; 11] = [
        Component::Data,
        Component::Index,
        Component::Summary,
        Component::Partitions,
        Component::Rows,
        Component::Statistics,
        Component::Filter,
        Component::CompressionInfo,
        Component::Crc,
        Component::Digest,
        Component::Toc,
    ];

    /// Part of the file name after the last `-`.
    pub fn file_suffix(self) -> &'static str {
        match self {
            Component::Data => "Data.db",
            Component::Index => "Index.db",
            Component::Summary => "Summary.db",
            Component::Partitions => "Partitions.db",
            Component::Rows => "Rows.db",
            Component::Statistics => "Statistics.db",
            Component::Filter => "Filter.db",
            Component::CompressionInfo => "CompressionInfo.db",
            Component::Crc => "CRC.db",
            Component::Digest => "Digest.crc32",
            Component::Toc => "TOC.txt",
        }
    }

    /// Returns the component with this file suffix; `None` if it is unknown.
    pub fn from_file_suffix(suffix: &str) -> Option<Component> {
        Component::ALL
            .into_iter()
            .find(|c| c.file_suffix() == suffix)
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.file_suffix())
    }
}

//! Cases in which ours is intentionally stricter than Cassandra's readers and verifier; LENIENCE.md of the facade has
//! the reasons.

use compactor_sstable::Component;

/// A changed component, and a refusal: component and structure. A structure that ends in a dot, or is empty, is a
/// prefix.
type Listed = (Component, &'static str, &'static str);

/// Refusals by a merge, a dump or `metadata` that are intended although Cassandra opens the SSTable, reads it to its
/// end and calls it sound.
const REFUSED: &[Listed] = &[
    // Statistics of another SSTable shift every timestamp.
    (Component::Statistics, "Statistics.db", "stats."),
    (Component::Statistics, "Data.db", "row."),
    (Component::Statistics, "Data.db", "partitions"),
    (Component::Statistics, "Data.db", "partition."),
    (Component::Statistics, "Data.db", "marker."),
    // Content with right checksums that the statistics do not cover: they might be another SSTable's.
    (Component::Data, "Data.db", "row."),
    (Component::Data, "Data.db", "marker."),
    (Component::Data, "Data.db", "partition.deletion"),
    (Component::Data, "Statistics.db", "stats."),
    // Content that ends before or after the last row.
    (Component::CompressionInfo, "Index.db", "index.position"),
    (
        Component::CompressionInfo,
        "Statistics.db",
        "stats.partition_sizes",
    ),
    (Component::CompressionInfo, "Data.db", "chunk."),
    // Offsets whose difference is a chunk's length only in the lower 32 bits, the ones that Cassandra computes with.
    (
        Component::CompressionInfo,
        "CompressionInfo.db",
        "compression_info.chunk_offset",
    ),
    // A trie with a pointer that leads nowhere, or to a missing row index: it cannot be read to its end.
    (Component::Partitions, "Partitions.db", "trie."),
    (Component::Partitions, "Rows.db", "row_index.entry"),
    // Before `oa` these decide where the SSTable is sorted among others.
    (Component::Summary, "Summary.db", "summary.first_key"),
    (Component::Summary, "Summary.db", "summary.last_key"),
    // A merge reads once, and cannot decide whether CRC.db or Data.db is damaged before it has read all.
    (Component::Crc, "Data.db", "chunk.crc"),
];

/// Damage that only verification reports: a node would not find rows, or not stream them.
const DAMAGE: &[Listed] = &[
    (Component::Filter, "Filter.db", ""),
    (Component::Summary, "Summary.db", ""),
    (Component::Crc, "CRC.db", ""),
    (Component::Crc, "Data.db", "chunk.crc"),
    (
        Component::CompressionInfo,
        "CompressionInfo.db",
        "compression_info.max_compressed_length",
    ),
    (Component::Index, "Index.db", "promoted."),
    (Component::Index, "Index.db", "index_info."),
    (Component::Rows, "Rows.db", ""),
    (
        Component::Partitions,
        "Partitions.db",
        "partition_index.first_key",
    ),
    (
        Component::Partitions,
        "Partitions.db",
        "partition_index.last_key",
    ),
    (
        Component::Partitions,
        "Partitions.db",
        "partition_index.key_count",
    ),
    (Component::Partitions, "Partitions.db", "index.key"),
    (Component::Partitions, "Rows.db", "index.key"),
    (Component::Data, "Data.db", "cell."),
    (Component::Statistics, "Data.db", "cell."),
    (Component::Data, "Data.db", "clustering."),
    (Component::Data, "Data.db", "partition.key"),
];

/// Whether a refusal of this kind is intended for an SSTable in which `changed` was changed.
#[must_use]
pub fn is_stricter_on_purpose(changed: Component, kind: &str) -> bool {
    is_listed(REFUSED, changed, kind)
}

/// Whether verification reports this as damage intentionally.
#[must_use]
pub fn is_stricter_in_verify(changed: Component, kind: &str) -> bool {
    is_listed(DAMAGE, changed, kind) || is_listed(REFUSED, changed, kind)
}

fn is_listed(kinds: &[Listed], changed: Component, kind: &str) -> bool {
    let Some((component, structure)) = kind.split_once(' ') else {
        return false;
    };
    kinds.iter().any(|(of, in_component, listed)| {
        let is_start = listed.is_empty() || listed.ends_with('.');
        *of == changed
            && *in_component == component
            && (structure == *listed || is_start && structure.starts_with(listed))
    })
}

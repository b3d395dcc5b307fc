//! Statistics.db: metadata of an SSTable.
//!
//! ```text
//! i32 count | [crc A] | count * (i32 type, i32 offset) | [crc B] | count * (component | [crc])
//! ```
//!
//! Checksums exist since version `na`. The four components are [`ValidationMetadata`],
//! [`CompactionMetadata`], [`StatsMetadata`] and [`SerializationHeader`].
//!
//! Source: `MetadataSerializer`, `MetadataType`, `ValidationMetadata`, `CompactionMetadata`.

mod container;

pub mod collector;
pub mod commit_log;
pub mod covered_clustering;
pub mod estimated_histogram;
pub mod header;
mod header_type;
pub mod hyper_log_log;
pub mod stats;
pub mod tombstone_histogram;

pub use collector::{CollectorSettings, Finish, MetadataCollector};
pub use commit_log::{CommitLogPosition, IntervalSet};
pub use covered_clustering::{ClusteringBound, CoveredClustering, CoveredClusteringTracker};
pub use estimated_histogram::EstimatedHistogram;
pub use header::{EncodingStats, HeaderColumn, SerializationHeader};
pub use header_type::HeaderType;
pub use hyper_log_log::HyperLogLogPlus;
pub use stats::StatsMetadata;
pub use tombstone_histogram::{TimeRun, TombstoneHistogram, TombstoneHistogramBuilder};

use crate::byte_reader::ByteReader;
use crate::byte_sink::ByteSink;
use crate::error::{Error, Result};
use crate::version::Version;

/// Raw bytes of a UUID, most significant first.
pub type UuidBytes = [u8; 16];

/// Content of Statistics.db.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// Partitioner and Bloom filter setting.
    pub validation: ValidationMetadata,
    /// Cardinality of the keys; absent if the writer omitted it.
    pub compaction: Option<CompactionMetadata>,
    /// Extremes, histograms and provenance.
    pub stats: StatsMetadata,
    /// Columns, types and delta bases of Data.db.
    pub header: SerializationHeader,
}

/// Settings that must agree with the node's configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidationMetadata {
    /// Partitioner class name.
    pub partitioner: String,
    /// Bloom filter false positive chance.
    pub bloom_filter_fp_chance: f64,
}

/// Data for sizing the Bloom filter of a compaction's output.
///
/// The bytes are not parsed here: they are needed only to estimate the number of keys, and damage in them
/// must not prevent reading the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionMetadata {
    /// Serialized `HyperLogLogPlus`.
    pub cardinality_bytes: Vec<u8>,
}

impl CompactionMetadata {
    /// Serializes an estimator.
    pub fn of(cardinality: &HyperLogLogPlus) -> CompactionMetadata {
        let mut cardinality_bytes = Vec::new();
        cardinality.write(&mut cardinality_bytes);
        CompactionMetadata { cardinality_bytes }
    }

    /// Parses the estimator of distinct partition keys.
    ///
    /// # Errors
    /// Corruption, or unsupported for settings that Cassandra does not use.
    pub fn cardinality(&self) -> Result<HyperLogLogPlus> {
        HyperLogLogPlus::parse(&self.cardinality_bytes)
    }
}

impl Statistics {
    /// Parses the file.
    ///
    /// # Errors
    /// Corruption if a checksum does not match, a component is missing or its bytes violate the format.
    pub fn parse(bytes: &[u8], version: Version) -> Result<Statistics> {
        let found = container::parse(bytes, version)?;
        let validation = {
            let mut reader = found.require(container::VALIDATION)?;
            ValidationMetadata {
                partitioner: reader.utf16_string("validation.partitioner")?,
                bloom_filter_fp_chance: reader.f64("validation.bloom_filter_fp_chance")?,
            }
        };
        let compaction = match found.get(container::COMPACTION) {
            Some(mut reader) => Some(CompactionMetadata {
                cardinality_bytes: reader.bytes32("compaction.cardinality")?.to_vec(),
            }),
            None => None,
        };
        let stats = StatsMetadata::parse(&mut found.require(container::STATS)?, version)?;
        let header = SerializationHeader::parse(&mut found.require(container::HEADER)?, version)?;
        Ok(Statistics {
            validation,
            compaction,
            stats,
            header,
        })
    }

    /// Appends the file's bytes, as Cassandra writes them.
    ///
    /// # Errors
    /// Unsupported if a length does not fit its field, or a user type has no keyspace.
    pub fn write(&self, out: &mut Vec<u8>, version: Version) -> Result<()> {
        if self.header.lacks_keyspace() {
            return Err(Error::unsupported(
                "a user type without a keyspace, whose name would be read as the keyspace: name it in the schema \
                 (CREATE TYPE keyspace.name, CREATE TABLE keyspace.name)",
            ));
        }
        let mut parts = Vec::with_capacity(4);
        let mut validation = Vec::new();
        if self.validation.partitioner.len() > usize::from(u16::MAX) / 3 {
            return Err(Error::unsupported(
                "a partitioner name of more than 21,845 bytes",
            ));
        }
        validation.put_utf16_string(&self.validation.partitioner);
        validation.put_f64(self.validation.bloom_filter_fp_chance);
        parts.push((container::VALIDATION, validation));
        if let Some(compaction) = &self.compaction {
            let mut bytes = Vec::new();
            bytes.put_bytes32(&compaction.cardinality_bytes);
            parts.push((container::COMPACTION, bytes));
        }
        let mut stats = Vec::new();
        self.stats.write(&mut stats, version)?;
        parts.push((container::STATS, stats));
        let mut header = Vec::new();
        self.header.write(&mut header);
        parts.push((container::HEADER, header));
        container::write(out, version, &parts)
    }
}

/// Reads a presence byte and, if set, a UUID.
fn read_optional_uuid(
    reader: &mut ByteReader<'_>,
    structure: &'static str,
) -> Result<Option<UuidBytes>> {
    let is_present = reader.bool(structure)?;
    is_present.then(|| reader.array(structure)).transpose()
}

fn write_optional_uuid(out: &mut Vec<u8>, uuid: Option<&UuidBytes>) {
    out.put_bool(uuid.is_some());
    if let Some(uuid) = uuid {
        out.put_slice(uuid);
    }
}

#[cfg(test)]
pub(crate) mod tests;

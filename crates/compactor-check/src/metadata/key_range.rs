//! The first and the last partition key.

use compactor_sstable::big::summary::Summary;
use compactor_sstable::partitioner::Partitioner;
use compactor_sstable::statistics::{Statistics, ValidationMetadata};
use compactor_sstable::types::CqlType;
use serde::Serialize;

/// A partition key at an end of the SSTable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KeyOfRange {
    /// Its token; `None` for partitioners other than Murmur3Partitioner.
    pub token: Option<i64>,
    /// Its token as `nodetool` shows it; `None` for partitioners that are not known.
    #[serde(skip)]
    pub token_text: Option<String>,
    /// The key as Cassandra prints it, parts of a composite one joined by `:`.
    pub key: String,
    /// Its bytes in hexadecimal digits.
    pub hex: String,
}

impl KeyOfRange {
    pub(super) fn of(
        key: &[u8],
        key_type: &CqlType,
        validation: &ValidationMetadata,
    ) -> KeyOfRange {
        let partitioner = Partitioner::from_class_name(&validation.partitioner).ok();
        KeyOfRange {
            token: partitioner
                .filter(|partitioner| *partitioner == Partitioner::Murmur3)
                .map(|partitioner| partitioner.token(key)),
            token_text: partitioner.map(|partitioner| partitioner.token_text(key)),
            key: key_type.describe(key),
            hex: compactor_engine::read::hex(key),
        }
    }
}

/// First and last key: of `Statistics.db` from `oa` on, of `Summary.db` before.
pub(super) fn of(
    statistics: &Statistics,
    summary: Option<&(u64, Summary)>,
) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let stats = &statistics.stats;
    let summary = summary.map(|(_, summary)| summary);
    (
        stats
            .first_key
            .clone()
            .or_else(|| summary.map(|s| s.first_key.clone())),
        stats
            .last_key
            .clone()
            .or_else(|| summary.map(|s| s.last_key.clone())),
    )
}

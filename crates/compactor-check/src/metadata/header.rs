//! Types, columns and delta bases of the serialization header.

use compactor_sstable::statistics::{HeaderColumn, HeaderType, SerializationHeader};
use serde::Serialize;

/// A type as a class name and in CQL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TypeName {
    /// Class with its parameters, as in the file.
    pub class: String,
    /// The same in CQL.
    pub cql: String,
}

/// A static or regular column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ColumnMetadata {
    /// Its name.
    pub name: String,
    /// Its type when the file was written.
    #[serde(rename = "type")]
    pub column_type: TypeName,
}

/// Base values of timestamps, local deletion times and TTLs in `Data.db` (`EncodingStats`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EncodingStatsMetadata {
    /// Microseconds since 1970, usually.
    pub min_timestamp: i64,
    /// Seconds since 1970.
    pub min_local_deletion_time: i64,
    /// Seconds.
    pub min_ttl: i32,
}

/// Types, columns and delta bases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HeaderMetadata {
    /// Delta bases.
    pub encoding_stats: EncodingStatsMetadata,
    /// Type of the partition key.
    pub key_type: TypeName,
    /// Types of the clustering columns, in order.
    pub clustering_types: Vec<TypeName>,
    /// Static columns in the order of the file.
    pub static_columns: Vec<ColumnMetadata>,
    /// Regular columns, likewise.
    pub regular_columns: Vec<ColumnMetadata>,
}

impl HeaderMetadata {
    pub(super) fn of(header: &SerializationHeader) -> HeaderMetadata {
        HeaderMetadata {
            encoding_stats: EncodingStatsMetadata {
                min_timestamp: header.encoding_stats.min_timestamp,
                min_local_deletion_time: header.encoding_stats.min_local_deletion_time,
                min_ttl: header.encoding_stats.min_ttl,
            },
            key_type: name_of(&header.key_type),
            clustering_types: header.clustering_types.iter().map(name_of).collect(),
            static_columns: header.static_columns.iter().map(column_of).collect(),
            regular_columns: header.regular_columns.iter().map(column_of).collect(),
        }
    }
}

fn name_of(header_type: &HeaderType) -> TypeName {
    TypeName {
        class: header_type.text.clone(),
        cql: header_type.cql_type.cql_name(),
    }
}

fn column_of(column: &HeaderColumn) -> ColumnMetadata {
    ColumnMetadata {
        name: String::from_utf8_lossy(&column.name).into_owned(),
        column_type: name_of(&column.column_type),
    }
}

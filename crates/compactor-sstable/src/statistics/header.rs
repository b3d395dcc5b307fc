//! Serialization header: columns, types and delta bases with which Data.db was written.
//!
//! ```text
//! header := EncodingStats | bytesV key type | uvint n, n * bytesV clustering type
//!           | uvint n, n * (bytesV name, bytesV type)     static columns
//!           | uvint n, n * (bytesV name, bytesV type)     regular columns
//! EncodingStats := uvint minTimestamp | vint32 minLocalDeletionTime | vint32 minTTL
//! ```
//!
//! The minima are relative to 2015-09-22T00:00:00Z.
//!
//! Source: `SerializationHeader.Serializer`, `EncodingStats`.

use crate::byte_reader::ByteReader;
use crate::byte_sink::ByteSink;
use crate::data::deletion_time::NO_DELETION_TIME;
use crate::data::layout::column_order;
use crate::error::{Error, Result};
use crate::statistics::header_type::HeaderType;
use crate::statistics::stats::{NO_TIMESTAMP, StatsMetadata};
use crate::types::CqlType;
use crate::version::Version;

/// Epoch of timestamps, microseconds since 1970.
pub const TIMESTAMP_EPOCH: i64 = 1_442_880_000_000_000;
/// Epoch of local deletion times, seconds since 1970.
pub const DELETION_TIME_EPOCH: i64 = 1_442_880_000;

/// Bases of the deltas of timestamps, local deletion times and TTLs in Data.db.
///
/// They are not the minima in [`StatsMetadata`]: a header is written before its rows are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EncodingStats {
    /// Minimum timestamp, usually microseconds since 1970.
    pub min_timestamp: i64,
    /// Minimum local deletion time, seconds since 1970.
    pub min_local_deletion_time: i64,
    /// Minimum TTL, seconds.
    pub min_ttl: i32,
}

impl Default for EncodingStats {
    /// `EncodingStats.NO_STATS`.
    fn default() -> Self {
        EncodingStats::new(NO_TIMESTAMP, NO_DELETION_TIME, 0)
    }
}

impl EncodingStats {
    /// Creates bases from minima, with the epochs in place of "none".
    ///
    /// The base of deletion times is in 2038 at most: Cassandra adds the stored number to its epoch in 32 bits
    /// (`EncodingStats.Serializer.deserialize`). Where everything that it writes is deleted or expires later, it reads
    /// expirations, whose sign it ignores (`Cell.decodeLocalDeletionTime`), but takes deletions for invalid.
    pub fn new(min_timestamp: i64, min_local_deletion_time: i64, min_ttl: i32) -> EncodingStats {
        EncodingStats {
            min_timestamp: if min_timestamp == NO_TIMESTAMP {
                TIMESTAMP_EPOCH
            } else {
                min_timestamp
            },
            min_local_deletion_time: if min_local_deletion_time == NO_DELETION_TIME {
                DELETION_TIME_EPOCH
            } else {
                min_local_deletion_time.min(i64::from(i32::MAX))
            },
            min_ttl,
        }
    }

    /// Returns the bases for the merge of SSTables with these statistics (`SerializationHeader.make`).
    ///
    /// As in Cassandra, an input without timestamps, whose minimum is "none", makes the overall minimum
    /// "none", while one without deletions does not.
    pub fn merge<'a>(inputs: impl IntoIterator<Item = &'a StatsMetadata>) -> EncodingStats {
        let minima = inputs
            .into_iter()
            .map(|stats| {
                (
                    stats.min_timestamp,
                    stats.min_local_deletion_time,
                    stats.min_ttl,
                )
            })
            .reduce(|a, b| (a.0.min(b.0), a.1.min(b.1), a.2.min(b.2)));
        minima.map_or_else(
            EncodingStats::default,
            |(timestamp, local_deletion_time, ttl)| {
                EncodingStats::new(timestamp, local_deletion_time, ttl)
            },
        )
    }

    pub(super) fn parse(reader: &mut ByteReader<'_>, version: Version) -> Result<EncodingStats> {
        const LOCAL_DELETION_TIME: &str = "header.min_local_deletion_time";
        const TTL: &str = "header.min_ttl";
        let timestamp = reader.uvint("header.min_timestamp")? as i64;
        let (min_local_deletion_time, min_ttl) = if version.has_wide_encoding_stats() {
            let from_epoch = reader.uvint(LOCAL_DELETION_TIME)? as i32;
            let seconds = from_epoch.wrapping_add(DELETION_TIME_EPOCH as i32);
            (i64::from(seconds), reader.uvint(TTL)? as i32)
        } else {
            let from_epoch = reader.vint32(LOCAL_DELETION_TIME)?;
            (
                i64::from(from_epoch) + DELETION_TIME_EPOCH,
                reader.vint32(TTL)?,
            )
        };
        Ok(EncodingStats {
            min_timestamp: timestamp.wrapping_add(TIMESTAMP_EPOCH),
            min_local_deletion_time,
            min_ttl,
        })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.put_uvint(self.min_timestamp.wrapping_sub(TIMESTAMP_EPOCH) as u64);
        out.put_vint32(
            self.min_local_deletion_time
                .wrapping_sub(DELETION_TIME_EPOCH) as i32,
        );
        out.put_vint32(self.min_ttl);
    }
}

/// A column of the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderColumn {
    /// Name, as raw bytes.
    pub name: Vec<u8>,
    /// Type when the file was written.
    pub column_type: HeaderType,
}

/// Columns, types and delta bases of a Data.db.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SerializationHeader {
    /// Delta bases.
    pub encoding_stats: EncodingStats,
    /// Partition key type; a `CompositeType` if there are several columns.
    pub key_type: HeaderType,
    /// Clustering types; descending ones are `ReversedType`.
    pub clustering_types: Vec<HeaderType>,
    /// Static columns: simple ones by name, then complex ones by name.
    pub static_columns: Vec<HeaderColumn>,
    /// Regular columns, in the same order.
    pub regular_columns: Vec<HeaderColumn>,
}

impl SerializationHeader {
    /// Whether every partition has a static row.
    pub fn has_static(&self) -> bool {
        !self.static_columns.is_empty()
    }

    /// Whether cells of some column are counter contexts.
    pub fn has_counters(&self) -> bool {
        self.column_types().any(CqlType::has_counter_cells)
    }

    /// Whether clusterings, or paths in a column, that compare equal may differ in their bytes.
    pub fn has_several_encodings(&self) -> bool {
        let clusterings = self.clustering_types.iter().map(|t| &t.cql_type);
        let paths = self.column_types().filter_map(CqlType::path_type);
        clusterings.chain(paths).any(CqlType::has_several_encodings)
    }

    /// Whether a column has a user type that is not stated to be frozen.
    pub fn has_multi_cell_user_types(&self) -> bool {
        let mut types = self.column_types();
        types.any(|cql_type| matches!(cql_type, CqlType::Udt(udt) if udt.multi_cell))
    }

    /// Freezes the user types of the key and of the clusterings, which are frozen whatever the text states.
    pub fn freeze_user_types_of_keys(&mut self) {
        self.key_type.freeze_user_types();
        for clustering_type in &mut self.clustering_types {
            clustering_type.freeze_user_types();
        }
    }

    /// Freezes the user types of the columns, and sorts these as that requires.
    pub fn freeze_user_types_of_columns(&mut self) {
        for columns in [&mut self.static_columns, &mut self.regular_columns] {
            for column in columns.iter_mut() {
                column.column_type.freeze_user_types();
            }
            columns.sort_by(|a, b| order(a).cmp(&order(b)));
        }
    }

    /// Whether a user type in it has no keyspace.
    pub(super) fn lacks_keyspace(&self) -> bool {
        let clusterings = self.clustering_types.iter().map(|t| &t.cql_type);
        let mut types = self.column_types().chain(clusterings);
        self.key_type.cql_type.lacks_keyspace() || types.any(CqlType::lacks_keyspace)
    }

    fn column_types(&self) -> impl Iterator<Item = &CqlType> {
        let columns = self.static_columns.iter().chain(&self.regular_columns);
        columns.map(|column| &column.column_type.cql_type)
    }

    pub(super) fn parse(
        reader: &mut ByteReader<'_>,
        version: Version,
    ) -> Result<SerializationHeader> {
        let encoding_stats = EncodingStats::parse(reader, version)?;
        let key_type = HeaderType::parse(reader, "header.key_type")?;
        let names = ["header.clustering_count", "header.clustering_type"];
        let clustering_types = HeaderType::parse_all(reader, names)?;
        let static_columns = parse_columns(reader, version)?;
        let regular_columns = parse_columns(reader, version)?;
        Ok(SerializationHeader {
            encoding_stats,
            key_type,
            clustering_types,
            static_columns,
            regular_columns,
        })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        self.encoding_stats.write(out);
        self.key_type.write(out);
        out.put_uvint(self.clustering_types.len() as u64);
        for clustering_type in &self.clustering_types {
            clustering_type.write(out);
        }
        for columns in [&self.static_columns, &self.regular_columns] {
            out.put_uvint(columns.len() as u64);
            for column in columns {
                out.put_bytes_v(&column.name);
                column.column_type.write(out);
            }
        }
    }
}

fn parse_columns(reader: &mut ByteReader<'_>, version: Version) -> Result<Vec<HeaderColumn>> {
    let count = reader.uvint_count(2, "header.column_count")?;
    let mut columns: Vec<(u64, HeaderColumn)> = Vec::with_capacity(count);
    for _ in 0..count {
        let at = reader.offset();
        let name = reader.bytes_v("header.column_name")?.to_vec();
        let column_type = HeaderType::parse(reader, "header.column_type")?;
        columns.push((at, HeaderColumn { name, column_type }));
    }
    // Rows refer to columns by their index in header order, whatever the order of the list: Cassandra reads
    // it into a set.
    if version.may_list_columns_in_any_order() {
        columns.sort_by(|(_, a), (_, b)| order(a).cmp(&order(b)));
    }
    for pair in columns.windows(2) {
        let [(_, previous), (at, column)] = pair else {
            continue;
        };
        if order(previous) >= order(column) {
            return Err(Error::corrupt(
                "header.column_name",
                *at,
                "columns in order: those of one cell by name, then complex ones by name, names that do not begin with \
                 an ASCII character first",
                format!(
                    "{} after {}",
                    column.name.escape_ascii(),
                    previous.name.escape_ascii()
                ),
            ));
        }
    }
    Ok(columns.into_iter().map(|(_, column)| column).collect())
}

fn order(column: &HeaderColumn) -> impl Ord {
    column_order(column.column_type.cql_type.is_multi_cell(), &column.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::CqlType;

    fn column(name: &str, cql_type: CqlType) -> HeaderColumn {
        HeaderColumn {
            name: name.as_bytes().to_vec(),
            column_type: HeaderType::new(cql_type),
        }
    }

    fn sample() -> SerializationHeader {
        SerializationHeader {
            encoding_stats: EncodingStats::new(1_700_000_000_000_000, 1_700_000_000, 3),
            key_type: HeaderType::new(CqlType::Int32),
            clustering_types: vec![HeaderType::new(CqlType::Utf8)],
            static_columns: vec![column("s", CqlType::Long)],
            regular_columns: vec![column("a", CqlType::Int32), column("b", CqlType::Utf8)],
        }
    }

    #[test]
    fn round_trip_and_truncation() {
        let header = sample();
        let mut out = Vec::new();
        header.write(&mut out);
        assert_eq!(
            SerializationHeader::parse(&mut ByteReader::new(&out), Version::Nb).unwrap(),
            header
        );
        for len in 0..out.len() {
            assert!(
                SerializationHeader::parse(&mut ByteReader::new(&out[..len]), Version::Nb).is_err()
            );
        }
    }

    #[test]
    fn none_is_stored_as_the_epoch() {
        let stats = EncodingStats::default();
        let mut out = Vec::new();
        stats.write(&mut out);
        assert_eq!(out, [0, 0, 0]);
        assert_eq!(
            EncodingStats::parse(&mut ByteReader::new(&out), Version::Nb).unwrap(),
            stats
        );
    }

    #[test]
    fn minima_before_the_epoch() {
        let stats = EncodingStats::new(-5, 1, 0);
        let mut out = Vec::new();
        stats.write(&mut out);
        assert_eq!(out.len(), 9 + 9 + 1);
        assert_eq!(
            EncodingStats::parse(&mut ByteReader::new(&out), Version::Nb).unwrap(),
            stats
        );
    }

    #[test]
    fn a_minimum_of_64_bits_is_cut_as_releases_before_4_do() {
        // Value that ScyllaDB writes if nothing is deleted: the maximum i64 minus the epoch.
        let mut out = vec![0];
        out.put_uvint((i64::MAX - DELETION_TIME_EPOCH) as u64);
        out.put_uvint(i64::MAX as u64);
        let parse = |version| EncodingStats::parse(&mut ByteReader::new(&out), version);
        let stats = parse(Version::Me).unwrap();
        assert_eq!((stats.min_local_deletion_time, stats.min_ttl), (-1, -1));
        assert!(parse(Version::Na).is_err());
    }

    #[test]
    fn columns_out_of_order_are_refused() {
        let mut header = sample();
        header.regular_columns.swap(0, 1);
        let mut out = Vec::new();
        header.write(&mut out);
        let parse = |version| SerializationHeader::parse(&mut ByteReader::new(&out), version);
        let error = parse(Version::Nb).unwrap_err();
        assert!(error.to_string().contains("a after b"), "{error}");
        assert_eq!(parse(Version::Mc).unwrap(), sample());

        header.regular_columns[1] = header.regular_columns[0].clone();
        out.clear();
        header.write(&mut out);
        let parsed = SerializationHeader::parse(&mut ByteReader::new(&out), Version::Mc);
        assert!(parsed.is_err(), "the same column twice");
    }
}

use super::*;
use crate::data::deletion_time::NO_DELETION_TIME;
use crate::partitioner::Partitioner;
use crate::statistics::stats::NO_TIMESTAMP;

/// Statistics of a collector without data.
pub(crate) fn of_nothing() -> Statistics {
    MetadataCollector::new(CollectorSettings::default()).finish(Finish {
        partitioner: Partitioner::Murmur3,
        bloom_filter_fp_chance: 0.01,
        compression_ratio: None,
        first_key: vec![1],
        last_key: vec![2],
        header: SerializationHeader {
            encoding_stats: EncodingStats::default(),
            key_type: HeaderType::new(crate::types::CqlType::Int32),
            clustering_types: Vec::new(),
            static_columns: Vec::new(),
            regular_columns: Vec::new(),
        },
    })
}

fn sample(version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    of_nothing().write(&mut out, version).unwrap();
    out
}

#[test]
fn merged_bases_are_minima_of_statistics() {
    let stats = |timestamp, ldt, ttl| StatsMetadata {
        min_timestamp: timestamp,
        min_local_deletion_time: ldt,
        min_ttl: ttl,
        ..of_nothing().stats
    };
    let (a, b) = (stats(20, NO_DELETION_TIME, 5), stats(10, 7, 9));
    assert_eq!(EncodingStats::merge([&a, &b]), EncodingStats::new(10, 7, 5));
    let unset = stats(NO_TIMESTAMP, NO_DELETION_TIME, 0);
    assert_eq!(EncodingStats::merge([&a, &unset]), EncodingStats::default());
    assert_eq!(EncodingStats::merge([]), EncodingStats::default());
    // More than Cassandra can read.
    let late = EncodingStats::merge([&stats(10, 3_200_000_000, 0)]);
    assert_eq!(late, EncodingStats::new(10, i64::from(i32::MAX), 0));
}

#[test]
fn user_types_without_a_keyspace_are_not_written() {
    let mut statistics = of_nothing();
    let schema = "CREATE TYPE u (a int); CREATE TABLE t (k frozen<list<frozen<u>>> PRIMARY KEY)";
    let schema = crate::schema::Schema::parse(schema).unwrap();
    let key_type = schema.only_table().unwrap().partition_key_type().unwrap();
    statistics.header.key_type = HeaderType::new(key_type);
    let error = statistics.write(&mut Vec::new(), Version::Oa).unwrap_err();
    assert!(
        error.to_string().contains("CREATE TYPE keyspace.name"),
        "{error}"
    );
}

#[test]
fn container_layout() {
    let bytes = sample(Version::Oa);
    assert_eq!(bytes[..4], [0, 0, 0, 4]);
    assert_eq!(
        bytes[4..8],
        crate::compression::crc32(&bytes[..4]).to_be_bytes()
    );
    // Types ascend; the first component follows the second checksum.
    assert_eq!(bytes[8..16], [0, 0, 0, 0, 0, 0, 0, 44]);
    let mut covered = bytes[..4].to_vec();
    covered.extend_from_slice(&bytes[8..40]);
    assert_eq!(
        bytes[40..44],
        crate::compression::crc32(&covered).to_be_bytes()
    );

    let bytes = sample(Version::Me);
    assert_eq!(bytes[4..12], [0, 0, 0, 0, 0, 0, 0, 36]);
}

#[test]
fn every_truncation_is_an_error() {
    for version in [Version::Me, Version::Nb, Version::Oa] {
        let bytes = sample(version);
        for len in 0..bytes.len() {
            assert!(
                Statistics::parse(&bytes[..len], version).is_err(),
                "{version} {len}"
            );
        }
    }
}

#[test]
fn every_flipped_bit_is_found_if_there_are_checksums() {
    let bytes = sample(Version::Oa);
    for at in 0..bytes.len() {
        for bit in [0, 7] {
            let mut bad = bytes.clone();
            bad[at] ^= 1 << bit;
            assert!(Statistics::parse(&bad, Version::Oa).is_err(), "{at}");
        }
    }
    let bytes = sample(Version::Me);
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 0x80;
        let _ = Statistics::parse(&bad, Version::Me);
    }
}

#[test]
fn contradictory_tables_of_contents() {
    let bytes = sample(Version::Me);
    let set = |at: usize, value: i32| {
        let mut bad = bytes.clone();
        bad[at..at + 4].copy_from_slice(&value.to_be_bytes());
        Statistics::parse(&bad, Version::Me)
            .unwrap_err()
            .to_string()
    };
    assert!(set(0, -1).contains("count"));
    assert!(set(0, i32::MAX).contains("count"));
    assert!(set(0, 0).contains("component VALIDATION"));
    assert!(set(4, 4).contains("0 to 3"));
    assert!(set(4, 1).contains("each type once"));
    assert!(set(8, 4).contains("toc.offset"));
    assert!(set(8, i32::MAX).contains("toc.offset"));
    assert!(set(16, i32::MIN).contains("toc.offset"));
}

#[test]
fn components_in_another_order_than_the_table_says() {
    // Releases before 4.0 list components in the order of a hash table.
    let bytes = sample(Version::Me);
    let mut shuffled = bytes.clone();
    for (to, from) in [3, 2, 0, 1].into_iter().enumerate() {
        shuffled[4 + 8 * to..][..8].copy_from_slice(&bytes[4 + 8 * from..][..8]);
    }
    let parse = |bytes| Statistics::parse(bytes, Version::Me).unwrap();
    // As text, since NaN is not equal to itself.
    let text = |bytes| format!("{:?}", parse(bytes));
    assert_eq!(text(&shuffled), text(&bytes));
}

#[test]
fn a_missing_cardinality_is_no_error() {
    let mut statistics = Statistics::parse(&sample(Version::Oa), Version::Oa).unwrap();
    statistics.compaction = None;
    let mut out = Vec::new();
    statistics.write(&mut out, Version::Oa).unwrap();
    assert_eq!(
        Statistics::parse(&out, Version::Oa).unwrap().compaction,
        None
    );
}

/// Ordinal and bytes of each component.
type Parts = Vec<(usize, Vec<u8>)>;

/// Components of files that Cassandra wrote, without the checksums, which would detect damage before it
/// reaches the parsers.
fn real_components() -> Vec<(Version, Parts)> {
    let files: [(Version, &[u8]); 3] = [
        (
            Version::Nb,
            include_bytes!("../../testdata/nb-statics/inputs/1/nb-1-big-Statistics.db"),
        ),
        (
            Version::Oa,
            include_bytes!("../../testdata/oa-range_nested/compacted/oa-1-big-Statistics.db"),
        ),
        (
            Version::Pa,
            include_bytes!("../../testdata/pa-complex_ties/inputs/1/pa-1-big-Statistics.db"),
        ),
    ];
    files
        .into_iter()
        .map(|(version, bytes)| {
            let found = container::parse(bytes, version).unwrap();
            let parts = (0..4).map(|ordinal| {
                let mut reader = found.require(ordinal).unwrap();
                (
                    ordinal,
                    reader.bytes(reader.remaining(), "all").unwrap().to_vec(),
                )
            });
            (version, parts.collect())
        })
        .collect()
}

fn parse_component(ordinal: usize, bytes: &[u8], version: Version) -> Result<()> {
    let mut reader = ByteReader::new(bytes);
    match ordinal {
        container::STATS => StatsMetadata::parse(&mut reader, version).map(drop),
        container::HEADER => SerializationHeader::parse(&mut reader, version).map(drop),
        container::COMPACTION => {
            let cardinality_bytes = reader.bytes32("cardinality")?.to_vec();
            let estimator = CompactionMetadata { cardinality_bytes }.cardinality()?;
            estimator.cardinality();
            Ok(())
        }
        _ => reader.utf16_string("partitioner").map(drop),
    }
}

#[test]
fn truncated_components() {
    for (version, parts) in real_components() {
        for (ordinal, bytes) in parts {
            parse_component(ordinal, &bytes, version).unwrap();
            // STATS of newer versions ends with unused padding.
            let padding = if ordinal == container::STATS && version.has_uint_deletion_time() {
                let stats = StatsMetadata::parse(&mut ByteReader::new(&bytes), version).unwrap();
                4 * stats.tombstone_drop_times.bins().len()
            } else {
                0
            };
            let end = match ordinal {
                container::VALIDATION => bytes.len() - 8,
                _ => bytes.len() - padding,
            };
            for len in 0..end {
                assert!(
                    parse_component(ordinal, &bytes[..len], version).is_err(),
                    "{ordinal} {len}"
                );
            }
        }
    }
}

#[test]
fn damaged_components_never_panic() {
    for (version, parts) in real_components() {
        for (ordinal, bytes) in parts {
            for at in 0..bytes.len() {
                for damage in [0x01, 0x80, 0xff, bytes[at], !bytes[at] & 0x7f] {
                    let mut bad = bytes.clone();
                    bad[at] ^= damage;
                    let _ = parse_component(ordinal, &bad, version);
                }
            }
        }
    }
}

use super::*;
use crate::data::clustering::Kind;
use crate::statistics::commit_log::CommitLogPosition;
use crate::statistics::header::EncodingStats;
use crate::statistics::header_type::HeaderType;
use crate::types::CqlType;
use crate::version::Version;

fn finish() -> Finish {
    Finish {
        partitioner: Partitioner::Murmur3,
        bloom_filter_fp_chance: 0.01,
        compression_ratio: None,
        first_key: b"a".to_vec(),
        last_key: b"b".to_vec(),
        header: SerializationHeader {
            encoding_stats: EncodingStats::default(),
            key_type: HeaderType::new(CqlType::Utf8),
            clustering_types: vec![HeaderType::new(CqlType::Int32)],
            static_columns: Vec::new(),
            regular_columns: Vec::new(),
        },
    }
}

#[test]
fn nothing_seen_leaves_the_defaults() {
    let stats = MetadataCollector::new(CollectorSettings::default())
        .finish(finish())
        .stats;
    assert_eq!(
        (stats.min_timestamp, stats.max_timestamp),
        (i64::MIN, i64::MAX)
    );
    assert_eq!(stats.min_local_deletion_time, NO_DELETION_TIME);
    assert_eq!(stats.max_local_deletion_time, NO_DELETION_TIME);
    assert_eq!((stats.min_ttl, stats.max_ttl), (0, 0));
    assert_eq!(stats.compression_ratio, -1.0);
    assert!(!stats.has_partition_level_deletions);
    assert_eq!(stats.covered_clustering.start.kind, Kind::ExclStartBound);
}

#[test]
fn live_cells_keep_the_table_from_expiring() {
    let mut collector = MetadataCollector::new(CollectorSettings::default());
    collector.update_cell(5, 60, 1000);
    collector.update_cell(9, 0, NO_DELETION_TIME);
    collector.update_deletion_time(&DeletionTime::LIVE);
    collector.update_deletion_time(&DeletionTime {
        marked_for_delete_at: 3,
        local_deletion_time: 130,
    });
    collector.add_row(2);
    collector.add_key(b"a");
    collector.add_partition(100);
    let stats = collector.finish(finish()).stats;
    assert_eq!((stats.min_timestamp, stats.max_timestamp), (3, 9));
    assert_eq!(stats.min_local_deletion_time, 130);
    assert_eq!(stats.max_local_deletion_time, NO_DELETION_TIME);
    assert_eq!((stats.min_ttl, stats.max_ttl), (0, 60));
    assert_eq!(stats.tombstone_drop_times.bins(), [(180, 1), (1020, 1)]);
    assert_eq!((stats.total_rows, stats.total_columns_set), (1, 2));
    assert_eq!(
        (
            stats.cells_per_partition.min(),
            stats.cells_per_partition.max()
        ),
        (2, 2)
    );
    assert_eq!(stats.partition_sizes.max(), 103);
    assert!(!stats.has_partition_level_deletions);
}

#[test]
fn partition_deletions_are_noted() {
    let mut collector = MetadataCollector::new(CollectorSettings::default());
    collector.update_partition_deletion(&DeletionTime::LIVE);
    assert!(!collector.has_partition_level_deletions);
    collector.update_partition_deletion(&DeletionTime {
        marked_for_delete_at: i64::MIN + 1,
        local_deletion_time: 0,
    });
    let stats = collector.finish(finish()).stats;
    assert!(stats.has_partition_level_deletions);
    assert_eq!(stats.max_timestamp, i64::MIN + 1);
}

#[test]
fn finished_statistics_round_trip_in_every_version() {
    let mut collector = MetadataCollector::new(CollectorSettings {
        level: 3,
        repaired_at: 77,
        pending_repair: Some([1; 16]),
        is_transient: true,
        originating_host_id: Some([2; 16]),
        commit_log_intervals: IntervalSet::single(
            CommitLogPosition {
                segment_id: 1,
                position: 2,
            },
            CommitLogPosition {
                segment_id: 3,
                position: 4,
            },
        ),
    });
    collector.update_cell(5, 60, 1000);
    collector.set_legacy_counter_shards();
    let mut statistics = collector.finish(finish());
    assert!(statistics.stats.token_space_coverage.is_nan());
    // NaN equals nothing.
    statistics.stats.token_space_coverage = 0.5;
    for version in Version::ALL {
        let mut out = Vec::new();
        statistics.write(&mut out, version).unwrap();
        let parsed = Statistics::parse(&out, version).unwrap();
        if version.has_key_range() {
            assert_eq!(parsed, statistics, "{version}");
        }
        assert_eq!(parsed.header, statistics.header);
        assert_eq!(
            parsed.stats.commit_log_intervals.upper_bound().segment_id,
            3
        );
        let mut again = Vec::new();
        parsed.write(&mut again, version).unwrap();
        assert_eq!(again, out, "{version}");
    }
}

fn input(host: Option<UuidBytes>, segment: i64, repaired_at: i64) -> StatsMetadata {
    let at = |segment_id| CommitLogPosition {
        segment_id,
        position: 0,
    };
    StatsMetadata {
        originating_host_id: host,
        repaired_at,
        commit_log_intervals: IntervalSet::single(at(segment), at(segment + 1)),
        ..MetadataCollector::new(CollectorSettings::default())
            .finish(finish())
            .stats
    }
}

#[test]
fn intervals_survive_only_with_a_common_host() {
    let host = Some([9; 16]);
    let (a, b) = (input(host, 1, 5), input(host, 10, 4));
    let settings = CollectorSettings::merge(&[&a, &b]).unwrap();
    assert_eq!(settings.originating_host_id, host);
    assert_eq!(settings.commit_log_intervals.intervals().len(), 2);
    assert_eq!(settings.repaired_at, 4);

    for other in [None, Some([8; 16])] {
        let settings = CollectorSettings::merge(&[&a, &input(other, 10, 4)]).unwrap();
        assert_eq!(settings.originating_host_id, None);
        assert!(settings.commit_log_intervals.is_empty());
    }
    let settings = CollectorSettings::merge(&[&input(None, 1, 0)]).unwrap();
    assert!(settings.commit_log_intervals.is_empty());
}

#[test]
fn repair_classes_do_not_mix() {
    let (repaired, unrepaired) = (input(None, 1, 5), input(None, 1, 0));
    let pending = StatsMetadata {
        pending_repair: Some([1; 16]),
        ..unrepaired.clone()
    };
    let transient = StatsMetadata {
        is_transient: true,
        ..unrepaired.clone()
    };
    for other in [&repaired, &pending, &transient] {
        let error = CollectorSettings::merge(&[&unrepaired, other]).unwrap_err();
        assert!(matches!(error, Error::Unsupported(_)), "{error}");
    }
    assert!(CollectorSettings::merge(&[&pending, &pending]).is_ok());
}

//! Statistics that are too narrow lose data and are damage; those that are too wide are notes.

use crate::support::damage::Copy;
use crate::support::sstable;
use compactor::NoObserver;
use compactor::verify::{Severity, VerifyOptions, VerifyReport, verify};
use compactor_io::{BackendKind, Io, IoOptions};
use compactor_sstable::Component;
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::NO_DELETION_TIME;
use compactor_sstable::statistics::stats::NO_COMPRESSION_RATIO;
use compactor_sstable::statistics::{CoveredClustering, Statistics};

type Edit = fn(&mut Statistics);

fn check(copy: &Copy) -> VerifyReport {
    let io = IoOptions {
        backend: BackendKind::Threads,
        ..IoOptions::default()
    };
    let io = Io::new(io).unwrap();
    verify(
        &io,
        &copy.data(),
        &VerifyOptions::default(),
        &mut NoObserver,
    )
    .unwrap()
}

/// Verifies a copy with changed statistics and correct checksums.
fn with(place: &str, edit: Edit) -> VerifyReport {
    let copy = Copy::of(&sstable(place));
    copy.edit_statistics(edit);
    check(&copy)
}

/// Each edit gives exactly one finding of that severity, and it names the field.
fn each(severity: Severity, edits: &[(&str, &str, Edit)]) {
    for (place, field, edit) in edits {
        let report = with(place, *edit);
        let of_severity: Vec<_> = report
            .findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .collect();
        assert_eq!(
            of_severity.len(),
            1,
            "{place} {field}: {:#?}",
            report.findings
        );
        assert_eq!(of_severity[0].structure, *field, "{place}");
        assert_eq!(of_severity[0].component, Component::Statistics);
        assert_eq!(
            report.is_damaged(),
            severity == Severity::Damage,
            "{place} {field}"
        );
    }
}

const RANGES: &str = "oa-range_nested/inputs/1";
const TTL: &str = "oa-ttl_ties/inputs/1";
const NB: &str = "nb-range_nested/inputs/1";
const WIDE: &str = "oa-wide_uncompressed/inputs/2";

#[test]
fn too_narrow_is_damage() {
    each(
        Severity::Damage,
        &[
            (RANGES, "stats.min_timestamp", |s| {
                s.stats.min_timestamp += 1
            }),
            (RANGES, "stats.max_timestamp", |s| {
                s.stats.max_timestamp -= 1
            }),
            (RANGES, "stats.min_local_deletion_time", |s| {
                s.stats.min_local_deletion_time += 1
            }),
            // Live data: Cassandra would drop the whole SSTable as expired.
            (RANGES, "stats.max_local_deletion_time", |s| {
                s.stats.max_local_deletion_time = 1_800_000_000;
            }),
            (TTL, "stats.max_local_deletion_time", |s| {
                s.stats.max_local_deletion_time -= 1
            }),
            (TTL, "stats.min_ttl", |s| s.stats.min_ttl += 1),
            (TTL, "stats.max_ttl", |s| s.stats.max_ttl -= 1),
            (NB, "stats.min_timestamp", |s| s.stats.min_timestamp += 1),
            (NB, "stats.max_local_deletion_time", |s| {
                s.stats.max_local_deletion_time = 1_800_000_000;
            }),
            (RANGES, "stats.covered_clustering.start", |s| {
                s.stats.covered_clustering.start.kind = Kind::ExclStartBound;
            }),
            (TTL, "stats.covered_clustering.end", |s| {
                s.stats.covered_clustering.end.kind = Kind::ExclEndBound;
            }),
            (WIDE, "stats.covered_clustering.end", |s| {
                s.stats.covered_clustering.end.values = vec![Some(vec![0, 0, 0, 198])];
            }),
            (NB, "stats.covered_clustering.start", |s| {
                s.stats.covered_clustering.start.values = vec![Some(vec![0, 0, 0, 1])];
            }),
            (RANGES, "stats.first_key", |s| {
                s.stats.first_key = Some(vec![0, 0, 0, 77])
            }),
            (RANGES, "stats.last_key", |s| {
                s.stats.last_key = s.stats.first_key.clone()
            }),
        ],
    );
}

#[test]
fn contradictions_without_the_content_are_damage() {
    each(
        Severity::Damage,
        &[
            (RANGES, "stats.level", |s| s.stats.level = -1),
            (RANGES, "stats.repaired_at", |s| s.stats.repaired_at = -1),
            (RANGES, "stats.partition_sizes", |s| {
                s.stats.partition_sizes.add(100)
            }),
        ],
    );
    let report = with(TTL, |s| s.stats.max_ttl = 1);
    assert!(
        report
            .findings
            .iter()
            .any(|f| f.structure == "stats.min_ttl"),
        "{report:#?}"
    );
}

#[test]
fn too_wide_is_a_note() {
    each(
        Severity::Note,
        &[
            (RANGES, "stats.min_timestamp", |s| {
                s.stats.min_timestamp -= 1
            }),
            (RANGES, "stats.max_timestamp", |s| {
                s.stats.max_timestamp += 1
            }),
            (RANGES, "stats.min_local_deletion_time", |s| {
                s.stats.min_local_deletion_time -= 1
            }),
            (TTL, "stats.max_local_deletion_time", |s| {
                s.stats.max_local_deletion_time = NO_DELETION_TIME;
            }),
            (TTL, "stats.min_ttl", |s| s.stats.min_ttl = 0),
            (RANGES, "stats.covered_clustering.start", |s| {
                s.stats.covered_clustering.start = CoveredClustering::all().start;
            }),
            (RANGES, "stats.covered_clustering.end", |s| {
                s.stats.covered_clustering.end = CoveredClustering::all().end;
            }),
            (RANGES, "stats.has_partition_level_deletions", |s| {
                s.stats.has_partition_level_deletions = true;
            }),
            (RANGES, "stats.total_rows", |s| s.stats.total_rows += 1),
            (RANGES, "stats.total_columns_set", |s| {
                s.stats.total_columns_set += 1
            }),
            (RANGES, "stats.cells_per_partition", |s| {
                s.stats.cells_per_partition.add(3)
            }),
        ],
    );
}

/// Sums over the data identify the statistics.
#[test]
fn sums_that_differ_from_the_data_are_damage() {
    each(
        Severity::Damage,
        &[
            (RANGES, "stats.compression_ratio", |s| {
                s.stats.compression_ratio = s.stats.compression_ratio.next_up();
            }),
            (NB, "stats.compression_ratio", |s| {
                s.stats.compression_ratio = NO_COMPRESSION_RATIO;
            }),
            (WIDE, "stats.compression_ratio", |s| {
                s.stats.compression_ratio = 0.5
            }),
            (RANGES, "stats.total_rows", |s| s.stats.total_rows -= 1),
            (RANGES, "stats.partition_sizes", |s| {
                let mut sizes = s.stats.partition_sizes.empty_like();
                (0..s.stats.partition_sizes.count()).for_each(|_| sizes.add(7));
                s.stats.partition_sizes = sizes;
            }),
        ],
    );
}

/// Cassandra's scrub leaves statistics of rows and chunks that no longer exist if it skips a partition.
#[test]
fn sums_of_a_scrub_are_notes() {
    let report = with(RANGES, |s| {
        s.stats.total_rows += 40;
        s.stats.compression_ratio *= 1.01;
    });
    assert!(!report.is_damaged(), "{report:#?}");
    assert_eq!(report.notes, 2, "{report:#?}");
}

#[test]
fn a_filter_for_another_fp_chance_is_a_note() {
    let report = with(RANGES, |s| s.validation.bloom_filter_fp_chance = 0.1);
    assert_eq!(report.findings.len(), 1, "{report:#?}");
    assert_eq!(report.findings[0].structure, "filter.hash_count");
    assert_eq!(report.findings[0].severity, Severity::Note);
}

#[test]
fn another_partitioner_is_not_supported() {
    let copy = Copy::of(&sstable(RANGES));
    let name = b"Murmur3Partitioner";
    copy.edit(Component::Statistics, |bytes| {
        let at = bytes
            .windows(name.len())
            .position(|window| window == name)
            .unwrap();
        bytes[at..at + name.len()].copy_from_slice(b"SomeothPartitioner");
    });
    copy.fix_statistics();
    let io = Io::new(IoOptions::default()).unwrap();
    let error = verify(
        &io,
        &copy.data(),
        &VerifyOptions::default(),
        &mut NoObserver,
    )
    .unwrap_err();
    assert_eq!(error.kind(), compactor::ErrorKind::Unsupported);
    assert!(error.to_string().contains("SomeothPartitioner"), "{error}");
}

/// The header's base makes every delta of 0 the value that only overflowed times decode to.
#[test]
fn deletion_times_that_overflowed_are_damage() {
    for (place, field) in [
        ("pa-complex_ties/inputs/1", "row.complex_deletion"),
        (WIDE, "marker.deletion"),
        (TTL, "row.local_expiration_time"),
    ] {
        let report = with(place, |s| {
            s.header.encoding_stats.min_local_deletion_time = -2
        });
        let finding = report
            .findings
            .iter()
            .find(|finding| finding.structure == field);
        let finding = finding.unwrap_or_else(|| panic!("{place} {field}: {report:#?}"));
        assert_eq!(finding.component, Component::Data);
        assert!(finding.found.contains("4294967294"), "{finding}");
    }
}

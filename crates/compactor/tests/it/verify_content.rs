//! Invalid rows with valid checksums.

use crate::support::damage::Copy;
use crate::support::sstable;
use compactor::merge::run_merge;
use compactor::verify::{Finding, VerifyOptions, VerifyReport, verify};
use compactor::{InputCheck, MergeJob, MergeRequest, NoObserver};
use compactor_io::{BackendKind, Io, IoOptions};
use compactor_sstable::Component;
use compactor_sstable::big::IndexReader;
use compactor_sstable::statistics::HeaderType;
use compactor_sstable::types::CqlType;

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

fn find(bytes: &[u8], wanted: &[u8]) -> usize {
    let mut places = bytes
        .windows(wanted.len())
        .enumerate()
        .filter(|(_, found)| *found == wanted);
    let (at, _) = places.next().unwrap();
    assert!(places.next().is_none(), "{wanted:02x?} is there twice");
    at
}

/// The only damage in a copy whose content was changed.
fn only_finding(place: &str, edit: impl FnOnce(&mut Vec<u8>)) -> Finding {
    let copy = Copy::of(&sstable(place));
    copy.edit_content(edit);
    let report = check(&copy);
    assert_eq!(report.damages, 1, "{report:#?}");
    report.findings[0].clone()
}

#[test]
fn a_value_that_is_invalid_for_its_type() {
    let mut at = 0;
    let finding = only_finding("nb-statics/inputs/1", |content| {
        at = find(content, b"\x02s5");
        content[at + 2] = 0xff;
    });
    assert_eq!(finding.structure, "cell.value");
    assert_eq!(finding.partition.as_deref(), Some("5"));
    assert!(
        finding.expected.contains("UTF8Type") && finding.expected.contains("s1"),
        "{finding}"
    );
    assert!(finding.found.contains("73ff"), "{finding}");
    // The position of the row in the first partition.
    assert!(finding.position.unwrap() < at as u64);
}

#[test]
fn paths_of_a_collection_that_do_not_ascend() {
    let finding = only_finding("pa-complex_ties/inputs/1", |content| {
        let at = find(content, &[4, 0, 0, 0, 2, 4, 0, 0, 0, 5]);
        content[at + 4] = 1;
    });
    assert_eq!(finding.structure, "row.cell.path");
    assert!(finding.expected.contains("00000001"), "{finding}");
    assert!(finding.found.contains("column m"), "{finding}");
}

#[test]
fn partitions_that_do_not_ascend() {
    let copy = Copy::of(&sstable("nb-statics/inputs/1"));
    let index = copy.read(Component::Index);
    let positions: Vec<usize> = IndexReader::new(&index)
        .map(|entry| entry.unwrap().position as usize)
        .collect();
    copy.edit_content(|content| {
        for at in 2..6 {
            content.swap(positions[1] + at, positions[3] + at);
        }
    });
    let report = check(&copy);
    let of = |structure: &str| report.findings.iter().any(|f| f.structure == structure);
    assert!(of("partition.key") && of("index.key"), "{report:#?}");
}

#[test]
fn rows_that_do_not_ascend() {
    let copy = Copy::of(&sstable("oa-ttl_ties/inputs/1"));
    // Flags and clustering of row 2 of the first partition become those of row 1.
    copy.edit_content(|content| {
        let row = |value: u8| [0, 0, 0, 0, value];
        let places: Vec<usize> = content
            .windows(5)
            .enumerate()
            .filter(|(at, window)| *at > 7 && *window == row(2))
            .map(|(at, _)| at)
            .collect();
        content[places[0] + 4] = 1;
    });
    let report = check(&copy);
    let found = report
        .findings
        .iter()
        .find(|f| f.structure == "unfiltered.clustering");
    assert!(found.is_some(), "{report:#?}");
    assert!(
        !report.content_complete && report.partitions_skipped == 1,
        "{report:#?}"
    );
}

#[test]
fn a_partition_deletion_that_contradicts_the_statistics() {
    let copy = Copy::of(&sstable("oa-range_nested/inputs/1"));
    let index = copy.read(Component::Index);
    let last = IndexReader::new(&index).last().unwrap().unwrap().position as usize;
    copy.edit_content(|content| {
        let deletion_at = last + 2 + 4;
        assert_eq!(content[deletion_at], 0x80);
        let mut deletion = i64::MAX.to_be_bytes().to_vec();
        deletion.extend_from_slice(&1_700_000_000u32.to_be_bytes());
        content.splice(deletion_at..=deletion_at, deletion);
    });
    let report = check(&copy);
    let damage: Vec<&str> = report
        .findings
        .iter()
        .map(|f| f.structure.as_str())
        .collect();
    assert!(
        damage.contains(&"stats.has_partition_level_deletions"),
        "{report:#?}"
    );
    // Nor does the maximum timestamp cover it.
    assert!(damage.contains(&"stats.max_timestamp") && report.stops_merge);
    let output = tempfile::tempdir().unwrap();
    let request = MergeRequest::new(vec![copy.data()], output.path());
    let job = MergeJob::open(Io::new(IoOptions::default()).unwrap(), request).unwrap();
    let error = run_merge(job, InputCheck::AllComponents, &mut NoObserver).unwrap_err();
    assert!(error.to_string().contains("partition.deletion"), "{error}");
}

/// A type of a header may be megabytes long, and each finding names it.
#[test]
fn long_types_are_cut_in_findings() {
    let copy = Copy::of(&sstable("nb-statics/inputs/1"));
    copy.edit_statistics(|statistics| {
        let columns = &mut statistics.header.static_columns;
        for column in (columns.iter_mut()).filter(|c| c.column_type.cql_type == CqlType::Utf8) {
            column.column_type =
                HeaderType::new(CqlType::Tuple(vec![CqlType::Int32; 10_000].into()));
        }
    });
    let report = check(&copy);
    let cut = |finding: &&Finding| {
        finding.expected.contains("Int32Type") && finding.expected.contains('…')
    };
    let finding = report.findings.iter().find(cut);
    let finding = finding.unwrap_or_else(|| panic!("{report:#?}"));
    assert!(finding.expected.len() < 200, "{finding}");
}

//! Damage in one place does not hide damage, or data, in another.

use crate::support;

use std::path::PathBuf;

use crate::support::damage::Copy;
use compactor::NoObserver;
use compactor::generate::{Amount, GenerateOptions, Shape, generate};
use compactor::verify::{Finding, VerifyOptions, VerifyReport, verify};
use compactor_io::{BackendKind, Io, IoOptions};
use compactor_sstable::compression::codec::Codec;
use compactor_sstable::compression::info::{CompressionInfo, CompressionParams};
use compactor_sstable::{Component, Version};

/// An SSTable of `rows` partitions, in chunks of 4 KiB.
fn key_value(directory: &std::path::Path, rows: u64, compressed: bool) -> PathBuf {
    let mut options = GenerateOptions::new(Shape::KeyValue, directory);
    options.amount = Amount::Rows(rows);
    options.sstables = 1;
    options.value_len = 100;
    options.compression = compressed.then(|| CompressionParams::new(Codec::Lz4, 4096));
    generate(IoOptions::default(), options, &mut NoObserver).unwrap();
    let mut found = support::find_sstables(directory);
    assert_eq!(found.len(), 1);
    found.remove(0)
}

fn check(copy: &Copy, options: &VerifyOptions) -> VerifyReport {
    let io = IoOptions {
        backend: BackendKind::Threads,
        ..IoOptions::default()
    };
    verify(
        &Io::new(io).unwrap(),
        &copy.data(),
        options,
        &mut NoObserver,
    )
    .unwrap()
}

fn of<'r>(report: &'r VerifyReport, structure: &str) -> Vec<&'r Finding> {
    report
        .findings
        .iter()
        .filter(|finding| finding.structure == structure)
        .collect()
}

#[test]
fn every_damaged_chunk_is_listed_and_the_rest_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let copy = Copy::of(&key_value(directory.path(), 1000, true));
    let options = VerifyOptions::default();
    let intact = check(&copy, &options);
    assert!(!intact.is_damaged() && intact.chunks > 20, "{intact:#?}");

    let data_len = copy.read(Component::Data).len() as u64;
    let info = copy.read(Component::CompressionInfo);
    let info = CompressionInfo::parse(&info, Version::Oa, data_len).unwrap();
    let last = info.chunk_count() - 1;
    // Two adjacent chunks, and the first and the last.
    let damaged = [0, 5, 6, 13, last];
    for index in damaged {
        let offset = info.chunk(index).unwrap().offset as usize;
        copy.flip(Component::Data, offset + 7, 3);
    }
    let report = check(&copy, &options);
    let offsets: Vec<u64> = of(&report, "chunk.crc")
        .iter()
        .map(|f| f.offset.unwrap())
        .collect();
    let wanted: Vec<u64> = damaged
        .iter()
        .map(|&i| info.chunk(i).unwrap().offset)
        .collect();
    assert_eq!(offsets, wanted, "{report:#?}");
    assert_eq!(report.chunks_damaged, damaged.len() as u64);
    // No other damage except the digest.
    assert_eq!(report.damages, damaged.len() as u64 + 1, "{report:#?}");
    assert_eq!(of(&report, "digest").len(), 1);
    assert_eq!(
        report.partitions + report.partitions_skipped,
        intact.partitions
    );
    assert!(
        report.partitions_skipped < intact.partitions / 4,
        "{report:#?}"
    );
    assert!(!report.content_complete);

    let mut quick = options;
    quick.quick = true;
    let report = check(&copy, &quick);
    assert_eq!(report.damages, damaged.len() as u64 + 1);
    assert_eq!(report.partitions, 0);
}

#[test]
fn more_findings_than_are_listed_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let copy = Copy::of(&key_value(directory.path(), 1000, true));
    copy.edit(Component::Data, |bytes| {
        bytes.iter_mut().step_by(100).for_each(|b| *b ^= 1)
    });
    let mut options = VerifyOptions::default();
    options.max_findings = 5;
    let report = check(&copy, &options);
    assert_eq!(report.findings.len(), 5);
    assert_eq!(report.chunks_damaged, report.chunks);
    assert_eq!(report.unlisted(), report.damages + report.notes - 5);
}

#[test]
fn damage_that_checksums_do_not_show_is_found_in_every_partition() {
    let directory = tempfile::tempdir().unwrap();
    let copy = Copy::of(&key_value(directory.path(), 400, false));
    let options = VerifyOptions::default();
    let intact = check(&copy, &options);
    assert!(!intact.is_damaged(), "{intact:#?}");
    let index = copy.read(Component::Index);
    let positions: Vec<u64> = compactor_sstable::big::IndexReader::new(&index)
        .map(|entry| entry.unwrap().position)
        .collect();
    // After key (2 + 8 bytes) and deletion (1): flags, size of the body.
    let damaged = [3, 77, 78, 200, 399];
    for partition in damaged {
        copy.edit(Component::Data, |bytes| {
            bytes[positions[partition] as usize + 12] = 0xf8
        });
    }
    copy.fix_crc_file();
    copy.fix_digest();
    let report = check(&copy, &options);
    let found: Vec<u64> = of(&report, "row.body_size")
        .iter()
        .map(|f| f.position.unwrap())
        .collect();
    let wanted: Vec<u64> = damaged
        .iter()
        .map(|&partition| positions[partition] + 12)
        .collect();
    assert_eq!(found, wanted, "{report:#?}");
    assert_eq!(report.damages, damaged.len() as u64, "{report:#?}");
    assert_eq!(report.partitions_skipped, damaged.len() as u64);
    assert_eq!(report.partitions, intact.partitions - damaged.len() as u64);
}

#[test]
fn a_truncated_data_file_is_read_up_to_its_end() {
    for compressed in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let copy = Copy::of(&key_value(directory.path(), 4000, compressed));
        let len = copy.read(Component::Data).len();
        copy.truncate(Component::Data, len / 2);
        let report = check(&copy, &VerifyOptions::default());
        assert!(report.is_damaged());
        assert!(
            (1000..=2040).contains(&report.partitions),
            "{compressed} {report:#?}"
        );
        assert_eq!(
            report.partitions + report.partitions_skipped,
            4000,
            "{compressed} {report:#?}"
        );
        assert!(report.damages < 8, "{compressed} {report:#?}");
    }
}

/// Exchanges the keys of two index entries: both lead to the wrong partition.
#[test]
fn wrong_index_entries_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let copy = Copy::of(&key_value(directory.path(), 300, true));
    let mut entries = Vec::new();
    copy.edit(Component::Index, |bytes| {
        let mut start = 0usize;
        while start < bytes.len() {
            let (_, len) =
                compactor_sstable::big::index::IndexEntry::try_parse(&bytes[start..], start as u64)
                    .unwrap()
                    .unwrap();
            entries.push(start);
            start += len;
        }
        let (a, b) = (entries[100], entries[200]);
        for at in 2..10 {
            bytes.swap(a + at, b + at);
        }
    });
    let report = check(&copy, &VerifyOptions::default());
    let offsets: Vec<u64> = of(&report, "index.key")
        .iter()
        .map(|f| f.offset.unwrap())
        .collect();
    for entry in [100, 200] {
        assert!(offsets.contains(&(entries[entry] as u64)), "{report:#?}");
    }
    assert_eq!(report.partitions, 300);
    assert!(report.content_complete);

    // One entry fewer.
    let copy = Copy::of(&key_value(&directory.path().join("again"), 300, true));
    let range = entries[150]..entries[151];
    copy.edit(Component::Index, |bytes| drop(bytes.drain(range)));
    let report = check(&copy, &VerifyOptions::default());
    let missing = of(&report, "index.entry");
    assert_eq!(missing.len(), 1, "{report:#?}");
    assert!(missing[0].partition.is_some());
    assert!(report.content_complete);

    // One entry more: the last one twice.
    let copy = Copy::of(&key_value(&directory.path().join("once more"), 300, true));
    let last = entries[299];
    copy.edit(Component::Index, |bytes| bytes.extend_from_within(last..));
    let report = check(&copy, &VerifyOptions::default());
    assert_eq!(of(&report, "index.entry").len(), 1, "{report:#?}");
}

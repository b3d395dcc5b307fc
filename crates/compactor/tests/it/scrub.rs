//! Undamaged rows are salvaged, and all others are reported.

use crate::support;

use std::path::Path;

use crate::support::damage::Copy;
use compactor::generate::{Amount, GenerateOptions, Shape, generate};
use compactor::scrub::LossKind;
use compactor::{ErrorKind, NoObserver, Observer, Table};
use compactor_engine::input::Scan;
use compactor_io::{IoOptions, ReadMode};
use compactor_sstable::statistics::Statistics;
use compactor_sstable::{Component, Version};
use compactor_testkit::{Random, campaign};

mod concurrent;
mod inherited;
mod salvaged;

use salvaged::{
    Item, check, chunk_offsets, data_of, generated, generated_with, io, items, scrubbed,
    scrubbed_with,
};

#[test]
fn nothing_is_lost_of_an_intact_sstable() {
    for data in support::testdata() {
        let scrubbed = scrubbed(&data);
        let report = &scrubbed.report;
        assert!(!report.is_lossy(), "{report:#?}");
        assert_eq!(report.bytes_lost, 0);
        assert_eq!(check(&items(&data), &scrubbed), 0, "{}", data.display());
    }
}

#[test]
fn damaged_chunks_cost_no_more_than_the_rows_in_them() {
    for (shape, rows) in [(Shape::KeyValue, 2000), (Shape::Wide, 20_000)] {
        let copy = generated(shape, rows, Version::Oa, Some(4096));
        let original = items(&copy.data());
        let offsets = chunk_offsets(&copy, Version::Oa);
        let count = offsets.len();
        assert!(count > 30, "{count} chunks");
        for index in [0, 7, 8, count / 2, count - 1] {
            copy.flip(Component::Data, offsets[index] + 9, 2);
        }
        for with_index in [true, false] {
            if !with_index {
                copy.remove(Component::Index);
            }
            let scrubbed = scrubbed(&copy.data());
            let lost = check(&original, &scrubbed);
            assert!(lost > 0, "{shape:?}");
            if with_index {
                // A block of 64 KiB, or the rest of it, for each of four damaged positions.
                assert!(
                    scrubbed.report.bytes_lost < 4 * (70 << 10),
                    "{:#?}",
                    scrubbed.report
                );
            } else if shape == Shape::KeyValue {
                assert!(lost < original.len() / 4, "{lost} of {}", original.len());
            }
        }
    }
}

#[test]
fn after_random_damage_every_intact_row_is_salvaged() {
    let mut random = Random::new(1);
    for (shape, rows, version, chunk) in [
        (Shape::KeyValue, 1500, Version::Nb, Some(4096)),
        (Shape::KeyValue, 1500, Version::Oa, None),
        (Shape::Wide, 6000, Version::Pa, Some(16384)),
        (Shape::Wide, 6000, Version::Oa, None),
        (Shape::TimeSeries, 3000, Version::Oa, Some(4096)),
    ] {
        let copy = generated(shape, rows, version, chunk);
        let original = items(&copy.data());
        let whole = copy.read(Component::Data);
        let index = copy.read(Component::Index);
        for _ in 0..6 {
            copy.write(Component::Data, &whole);
            copy.write(Component::Index, &index);
            for _ in 0..=random.index(4) {
                match random.index(3) {
                    0 => copy.flip(Component::Data, random.index(whole.len()), 5),
                    1 => {
                        let (at, len) = (random.index(whole.len()), random.index(9000));
                        copy.edit(Component::Data, |bytes| {
                            let end = (at + len).min(bytes.len());
                            bytes[at..end].fill(0);
                        });
                    }
                    _ => copy.flip(Component::Index, random.index(index.len()), 1),
                }
            }
            check(&original, &scrubbed(&copy.data()));
        }
    }
}

#[test]
fn an_index_that_is_damaged_too_gives_no_partition_another_key_or_deletion() {
    for version in [Version::Nb, Version::Oa] {
        let copy = generated(Shape::Wide, 3000, version, Some(4096));
        let original = items(&copy.data());
        let first_chunk = chunk_offsets(&copy, version)[0];
        copy.flip(Component::Data, first_chunk + 9, 2);
        let index = copy.read(Component::Index);
        let mut kept = 0;
        for at in (0..64).step_by(campaign::stride()) {
            for bit in [0x01, 0x80] {
                copy.write(Component::Index, &index);
                copy.edit(Component::Index, |bytes| bytes[at] ^= bit);
                let scrubbed = scrubbed(&copy.data());
                check(&original, &scrubbed);
                kept += usize::from(scrubbed.output.is_some());
            }
        }
        assert!(kept > 0, "{version}: nothing salvaged by an index");
    }
}

#[test]
fn a_truncated_file_is_salvaged_up_to_its_end() {
    for chunk in [Some(4096), None] {
        let copy = generated(Shape::KeyValue, 1000, Version::Oa, chunk);
        let original = items(&copy.data());
        let len = copy.read(Component::Data).len();
        copy.truncate(Component::Data, len * 2 / 3);
        let scrubbed = scrubbed(&copy.data());
        let report = &scrubbed.report;
        assert!(report.partitions_good > 500, "{report:#?}");
        assert!(report.partitions_lost > 200, "{report:#?}");
        let kept = scrubbed.output.as_deref().map(items).unwrap();
        assert_eq!(kept.len() as u64, report.partitions_good);
        assert!(
            kept.iter()
                .all(|(place, item)| original[place].text == item.text)
        );
    }
}

#[test]
fn other_components_are_rebuilt() {
    let copy = generated(Shape::Wide, 3000, Version::Oa, Some(4096));
    let original = items(&copy.data());
    for component in [Component::Filter, Component::Summary, Component::Toc] {
        copy.truncate(component, 3);
    }
    copy.write(Component::Digest, b"17");
    let index_len = copy.read(Component::Index).len();
    copy.truncate(Component::Index, index_len / 2);
    let half = scrubbed(&copy.data());
    assert_eq!(check(&original, &half), 0);
    assert!(!half.report.findings.is_empty());
    for component in [
        Component::Filter,
        Component::Summary,
        Component::Toc,
        Component::Digest,
        Component::Index,
    ] {
        copy.remove(component);
    }
    assert_eq!(check(&original, &scrubbed(&copy.data())), 0);
}

#[test]
fn damage_of_indispensable_components_is_reported() {
    for component in [Component::Statistics, Component::CompressionInfo] {
        let copy = generated(Shape::KeyValue, 10, Version::Oa, Some(4096));
        copy.truncate(component, 5);
        let Err(error) = scrubbed_with(&copy.data(), |_| {}) else {
            panic!("scrubbed without {component}");
        };
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        let text = error.to_string();
        assert!(text.contains(component.file_suffix()), "{text}");
        // The command adds the remedy, as for every damaged component.
        assert!(!text.contains("snapshot"), "{text}");
    }
}

#[test]
fn nothing_is_written_where_nothing_is_salvaged() {
    let copy = generated(Shape::KeyValue, 100, Version::Oa, Some(4096));
    copy.edit(Component::Data, |bytes| bytes.fill(0));
    let scrubbed = scrubbed(&copy.data());
    assert!(scrubbed.output.is_none());
    assert_eq!(scrubbed.report.partitions_lost, 100);
    assert!(scrubbed.report.is_lossy());
}

#[test]
fn a_dry_run_reports_the_same_and_writes_nothing() {
    let copy = generated(Shape::KeyValue, 1000, Version::Oa, Some(4096));
    copy.flip(Component::Data, 10_000, 1);
    let wet = scrubbed(&copy.data()).report;
    let dry = scrubbed_with(&copy.data(), |options| options.dry_run = true).unwrap();
    assert!(dry.output.is_none());
    assert_eq!(dry.report.losses, wet.losses);
}

/// Bytes, rows and partitions of each report of progress.
#[derive(Default)]
struct Recorded(Vec<[u64; 3]>);

impl Observer for Recorded {
    fn is_cancelled(&self) -> bool {
        false
    }

    fn progress(&mut self, read_bytes: u64, rows: u64, partitions: u64) {
        self.0.push([read_bytes, rows, partitions]);
    }
}

#[test]
fn progress_only_grows_and_ends_with_the_expected_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = GenerateOptions::new(Shape::Wide, directory.path());
    options.amount = Amount::Rows(60_000);
    options.sstables = 2;
    options.rows_per_partition = 100;
    let generated = generate(IoOptions::default(), options, &mut NoObserver).unwrap();
    let table = Table::open(&generated.table_directory).unwrap();
    let check = |expected_bytes: u64, Recorded(reports): Recorded| {
        assert!(reports.len() > 4, "{}", reports.len());
        for two in reports.windows(2) {
            let grows = (0..3).all(|field| two[0][field] <= two[1][field]);
            assert!(grows, "{two:?}");
        }
        assert_eq!(reports.last().unwrap()[0], expected_bytes);
    };

    let mut recorded = Recorded::default();
    let expected_bytes = table.scrub().expected_bytes_of_dry_run();
    let outcome = table.scrub().dry_run(None, &mut recorded).unwrap();
    assert_eq!(outcome.into_result().unwrap().len(), 2);
    check(expected_bytes, recorded);

    let mut recorded = Recorded::default();
    let expected_bytes = table.scrub().expected_bytes();
    let output = directory.path().join("scrubbed");
    let outcome = table.scrub().into(output, &mut recorded).unwrap();
    assert_eq!(outcome.into_result().unwrap().len(), 2);
    check(expected_bytes, recorded);
}

/// An unreadable row with valid checksums loses only the bytes from it to the next known position.
#[test]
fn an_unreadable_row_ends_what_is_open_and_no_more() {
    let mut open_cut = 0;
    for data in support::testdata() {
        let original = items(&data);
        let rows: Vec<&Item> = original
            .iter()
            .filter(|(place, item)| place.contains(" row ") && item.len >= 2)
            .map(|(_, item)| item)
            .collect();
        let step = rows.len().div_ceil(20).max(1) * campaign::stride();
        for row in rows.iter().step_by(step) {
            let copy = Copy::of(&data);
            let at = row.position as usize;
            // The extended flag of static rows.
            copy.edit_content(|content| content[at..at + 2].copy_from_slice(&[0x80, 0x01]));
            let scrubbed = scrubbed_with(&copy.data(), |o| o.skip_corrupted = true).unwrap();
            assert!(check(&original, &scrubbed) > 0);
            let losses = &scrubbed.report.losses;
            let is_cut = losses
                .iter()
                .any(|loss| loss.kind == LossKind::RangeTombstone && loss.bytes == 0);
            assert_eq!(is_cut, !row.open.is_live(), "{losses:#?}");
            open_cut += u32::from(is_cut);
        }
    }
    assert!(open_cut > 0, "no row below a range tombstone");
}

/// Partitions after damage are found by the partition index, without one by their content, however long their rows.
#[test]
fn large_rows_after_damage_are_salvaged() {
    for (version, removed) in [
        (Version::Da, None),
        (Version::Ea, Some(Component::Partitions)),
        (Version::Oa, Some(Component::Index)),
    ] {
        let copy = generated_with(Shape::KeyValue, 40, version, Some(16 << 10), 100_000);
        let original = items(&copy.data());
        if let Some(removed) = removed {
            copy.remove_and_unlist(removed);
        }
        let offsets = chunk_offsets(&copy, version);
        copy.flip(Component::Data, offsets[offsets.len() / 4] + 9, 2);
        let lost = check(&original, &scrubbed(&copy.data()));
        assert!((1..=2).contains(&lost), "{version}: {lost}");
    }
}

/// Positions of a partition index that belongs to other data are not used.
#[test]
fn a_foreign_partition_index_misleads_no_scrub() {
    let copy = generated(Shape::KeyValue, 1000, Version::Da, Some(4096));
    let other = generated_with(Shape::KeyValue, 900, Version::Da, Some(4096), 130);
    let original = items(&copy.data());
    for component in [Component::Partitions, Component::Rows] {
        copy.write(component, &other.read(component));
    }
    let offsets = chunk_offsets(&copy, Version::Da);
    copy.flip(Component::Data, offsets[offsets.len() / 4] + 9, 2);
    let lost = check(&original, &scrubbed(&copy.data()));
    assert!((1..200).contains(&lost), "{lost}");
}

#[test]
fn sstables_of_the_bti_format_are_salvaged_too() {
    for version in [Version::Da, Version::Ea] {
        let copy = generated(Shape::KeyValue, 1000, version, Some(4096));
        let original = items(&copy.data());
        assert_eq!(check(&original, &scrubbed(&copy.data())), 0);
        let offsets = chunk_offsets(&copy, version);
        copy.flip(Component::Data, offsets[offsets.len() / 2] + 9, 2);
        let lost = check(&original, &scrubbed(&copy.data()));
        assert!((1..200).contains(&lost), "{lost}");
    }
}

/// Any content with valid checksums ends in a result, not in a panic.
#[test]
fn content_that_is_wrong_never_leads_to_a_damaged_output() {
    let mut random = Random::new(7);
    for data in support::testdata() {
        let copy = Copy::of(&data);
        let whole = copy.read(Component::Data);
        let components: Vec<_> = [Component::CompressionInfo, Component::Crc]
            .into_iter()
            .filter(|c| copy.path(*c).exists())
            .map(|c| (c, copy.read(c)))
            .collect();
        for round in 0..campaign::cases(96) {
            copy.write(Component::Data, &whole);
            for (component, bytes) in &components {
                copy.write(*component, bytes);
            }
            copy.edit_content(|content| {
                for _ in 0..=round % 3 {
                    let at = random.index(content.len());
                    content[at] = content[at].wrapping_add(1 + random.index(255) as u8);
                }
            });
            match scrubbed_with(&copy.data(), |o| o.skip_corrupted = true) {
                Ok(_) => {}
                Err(error) => assert!(
                    matches!(error.kind(), ErrorKind::Refused | ErrorKind::Unsupported),
                    "{error}"
                ),
            }
        }
    }
}

#[test]
fn partitions_and_rows_out_of_order_are_brought_in_order() {
    let copy = generated(Shape::KeyValue, 50, Version::Oa, None);
    let original = items(&copy.data());
    let mut starts: Vec<usize> = {
        let mut scan = Scan::open(&io(), &copy.data(), ReadMode::Auto).unwrap();
        let mut starts = Vec::new();
        while scan.cursor().next_partition().unwrap() {
            starts.push(scan.cursor().partition_position() as usize);
            scan.cursor().next_unfiltered().unwrap();
            while scan.cursor().clustering().is_some() {
                scan.cursor().next_unfiltered().unwrap();
            }
        }
        starts
    };
    starts.push(copy.read(Component::Data).len());
    copy.edit_content(|content| {
        // The partitions from the twentieth on come first, and one is there twice.
        let first = content[..starts[20]].to_vec();
        let again = content[starts[30]..starts[31]].to_vec();
        content.drain(..starts[20]);
        content.extend_from_slice(&first);
        content.extend_from_slice(&again);
    });
    copy.remove(Component::Index);
    let scrubbed = scrubbed(&copy.data());
    let report = &scrubbed.report;
    assert_eq!(report.loss_count, 0, "{report:#?}");
    assert_eq!(report.partitions_out_of_order, 21);
    let kept = items(scrubbed.output.as_deref().unwrap());
    assert!(kept.keys().eq(original.keys()));
    assert!(
        kept.iter()
            .all(|(place, item)| original[place].text == item.text)
    );
}

#[test]
fn a_row_with_an_invalid_value_is_left_out_unless_values_are_not_validated() {
    let copy = Copy::of(&support::sstable("nb-statics/inputs/1"));
    let original = items(&copy.data());
    let (_, row) = original
        .iter()
        .find(|(place, _)| place.contains("row"))
        .unwrap();
    let (position, len) = (row.position as usize, row.len as usize);
    copy.edit_content(|content| content[position + len - 1] ^= 0xff);
    let _ = scrubbed(&copy.data());
}

/// A deletion whose time no version can store is left out, and nothing else.
#[test]
fn deletions_of_invalid_times_are_left_out() {
    let copy = Copy::of(&data_of(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/dump/nb_partition_deletions"),
    ));
    let original = items(&copy.data());
    let (_, deleted) = original
        .iter()
        .find(|(place, _)| place.ends_with("deletion"))
        .unwrap();
    // After the length of the key and the key, an int.
    let at = deleted.position as usize + 6;
    copy.edit_content(|content| content[at..at + 4].copy_from_slice(&[0xff, 0xff, 0xff, 0xfe]));
    let scrubbed = scrubbed(&copy.data());
    let losses = &scrubbed.report.losses;
    assert_eq!(losses.len(), 1, "{losses:#?}");
    assert_eq!(losses[0].kind, LossKind::PartitionDeletion);
    assert_eq!(losses[0].position, deleted.position);
    let kept = items(scrubbed.output.as_deref().unwrap());
    assert_eq!(kept.len() + 1, original.len());
}

#[test]
fn data_that_ends_before_the_end_of_its_last_partition_is_not_whole() {
    let copy = Copy::of(&support::sstable("oa-wide_uncompressed/inputs/2"));
    let original = items(&copy.data());
    copy.edit_content(|content| content.truncate(content.len() - 1));
    let scrubbed = scrubbed(&copy.data());
    assert_eq!(scrubbed.report.partitions_cut, 1);
    assert_eq!(scrubbed.report.losses.len(), 1);
    let kept = items(scrubbed.output.as_deref().unwrap());
    assert_eq!(kept.len(), original.len());
}

/// Times are distances from those in `Statistics.db`: with that of another SSTable all of them are wrong, though everything
/// can be read.
#[test]
fn statistics_that_the_data_contradicts_are_reported() {
    type Edit = fn(&mut Statistics);
    let edits: [(&str, Edit); 4] = [
        ("stats.compression_ratio", |s| {
            s.stats.compression_ratio *= 0.9
        }),
        ("stats.total_rows", |s| s.stats.total_rows -= 1),
        ("stats.min_timestamp", |s| {
            s.header.encoding_stats.min_timestamp -= 1_000;
        }),
        ("stats.max_timestamp", |s| {
            s.header.encoding_stats.min_timestamp += 1_000;
        }),
    ];
    for (field, edit) in edits {
        let copy = generated(Shape::KeyValue, 500, Version::Oa, Some(4096));
        assert!(!scrubbed(&copy.data()).report.is_lossy());
        copy.edit_statistics(edit);
        let report = scrubbed(&copy.data()).report;
        assert!(
            report.contradicts_statistics && report.is_lossy(),
            "{report:#?}"
        );
        assert_eq!(
            (report.loss_count, report.rows_good),
            (0, 500),
            "{report:#?}"
        );
        assert_eq!(report.findings[0].structure, field, "{report:#?}");
        assert!(report.output.is_some());
    }
    // What a scrub of a node that gave up a partition leaves.
    let copy = generated(Shape::KeyValue, 500, Version::Oa, Some(4096));
    copy.edit_statistics(|s| {
        s.stats.total_rows += 40;
        s.stats.compression_ratio *= 1.01;
    });
    assert!(!scrubbed(&copy.data()).report.is_lossy());
}

//! Damage of components that a node rebuilds or does not need is reported and does not stop a merge (LENIENCE.md).

use crate::support::damage::Copy;
use crate::support::{find_sstables, sstable};
use compactor::generate::{Amount, GenerateOptions, Shape, generate};
use compactor::merge::run_merge;
use compactor::verify::{VerifyOptions, VerifyReport, verify};
use compactor::{ErrorKind, InputCheck, MergeJob, MergeReport, MergeRequest, NoObserver, Scope};
use compactor_io::{BackendKind, Io, IoOptions};
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::NO_DELETION_TIME;
use compactor_sstable::statistics::{HeaderType, Statistics};
use compactor_sstable::types::CqlType;
use compactor_sstable::{Component, Version};

fn io() -> Io {
    Io::new(IoOptions {
        backend: BackendKind::Threads,
        ..IoOptions::default()
    })
    .unwrap()
}

fn merged(inputs: &[&Copy], scope: Scope) -> Result<MergeReport, compactor::Error> {
    let output = tempfile::tempdir().unwrap();
    let inputs = inputs.iter().map(|copy| copy.data()).collect();
    let mut request = MergeRequest::new(inputs, output.path());
    request.scope = scope;
    let job = MergeJob::open(io(), request)?;
    run_merge(job, InputCheck::AllComponents, &mut NoObserver)
}

fn verified(copy: &Copy) -> VerifyReport {
    let options = VerifyOptions::default();
    verify(&io(), &copy.data(), &options, &mut NoObserver).unwrap()
}

/// In both formats, compressed and not.
fn sstables() -> Vec<Copy> {
    let mut copies = ["nb-range_nested/inputs/1", "oa-wide_uncompressed/inputs/2"]
        .map(|place| Copy::of(&sstable(place)))
        .into_iter()
        .collect::<Vec<_>>();
    let output = tempfile::tempdir().unwrap();
    let mut request = MergeRequest::new(vec![copies[1].data()], output.path());
    request.version = Some(Version::Da);
    let job = MergeJob::open(io(), request).unwrap();
    let report = run_merge(job, InputCheck::AllComponents, &mut NoObserver).unwrap();
    copies.push(Copy::of(&report.outputs[0].data_path));
    copies
}

#[test]
fn missing_files_are_reported() {
    for original in sstables() {
        for component in [
            Component::Summary,
            Component::Filter,
            Component::Digest,
            Component::Crc,
            Component::Toc,
        ] {
            for is_listed in [true, false] {
                let copy = Copy::of(&original.data());
                if !copy.path(component).exists() {
                    continue;
                }
                if is_listed || component == Component::Toc {
                    copy.remove(component)
                } else {
                    copy.remove_and_unlist(component)
                }
                let report = merged(&[&copy], Scope::Unknown).unwrap();
                let [message] = &report.warnings[..] else {
                    panic!("{component}: {:?}", report.warnings);
                };
                assert!(
                    message.contains(component.file_suffix()) && message.contains("no such file"),
                    "{message}"
                );
                let report = verified(&copy);
                assert!(
                    !report.is_damaged() && report.content_complete,
                    "{report:#?}"
                );
                assert_eq!(report.notes, 1, "{report:#?}");
            }
        }
    }
}

/// One line for each kind of component, not for each input.
#[test]
fn of_many_inputs_only_the_first_is_named() {
    let copies = ["nb-range_nested/inputs/1", "nb-range_nested/inputs/2"]
        .map(|place| Copy::of(&sstable(place)));
    copies
        .iter()
        .for_each(|copy| copy.remove(Component::Filter));
    let report = merged(&[&copies[0], &copies[1]], Scope::Unknown).unwrap();
    let [message] = &report.warnings[..] else {
        panic!("{:?}", report.warnings);
    };
    assert!(message.contains("and 1 more inputs"), "{message}");
}

#[test]
fn a_missing_component_without_substitute_is_refused() {
    for original in sstables() {
        for component in [
            Component::Statistics,
            Component::CompressionInfo,
            Component::Index,
            Component::Partitions,
            Component::Rows,
        ] {
            let copy = Copy::of(&original.data());
            if !copy.path(component).exists() {
                continue;
            }
            copy.remove(component);
            let error = merged(&[&copy], Scope::Unknown).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{component}: {error}");
        }
    }
}

/// A merge writes a new index, filter and summary, and reads all of `Data.db`.
#[test]
fn damage_of_components_that_a_merge_does_not_need_is_reported() {
    for original in sstables() {
        for component in [Component::Summary, Component::Filter, Component::Crc] {
            let copy = Copy::of(&original.data());
            if !copy.path(component).exists() {
                continue;
            }
            copy.edit(component, |bytes| bytes.push(7));
            let report = merged(&[&copy], Scope::Unknown).unwrap();
            let [message] = &report.warnings[..] else {
                panic!("{component}: {:?}", report.warnings);
            };
            assert!(message.contains(component.file_suffix()), "{message}");
            // A node would rebuild an unreadable file, or not stream it.
            let report = verified(&copy);
            assert!(report.is_damaged() && !report.stops_merge, "{report:#?}");
        }
    }
}

/// If the filter lacks a key, tombstones that still shadow it would be purged.
#[test]
fn the_filter_of_an_overlapping_sstable_must_be_intact() {
    let input = Copy::of(&sstable("nb-range_nested/inputs/1"));
    let beside = Copy::of(&sstable("nb-range_nested/inputs/2"));
    let merged = |beside: &Copy| merged(&[&input], Scope::Overlapping(vec![beside.data()]));
    merged(&beside).unwrap();
    beside.edit(Component::Filter, |bytes| bytes[8..].fill(0));
    let error = merged(&beside).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains("Filter.db"), "{error}");
}

/// Merges a changed SSTable, and returns the message.
fn merge_message(copy: &Copy) -> String {
    merged(&[copy], Scope::Unknown).unwrap().warnings.join("\n")
}

/// A node rebuilds an unreadable summary; before `oa` it contains the first and last key.
#[test]
fn an_unreadable_summary_is_not_needed() {
    let copy = Copy::of(&sstable("nb-range_nested/inputs/1"));
    let len = copy.read(Component::Summary).len();
    for left in [len - 1, len / 2, 0] {
        copy.truncate(Component::Summary, left);
        assert!(
            merge_message(&copy).contains("Summary.db"),
            "{left} of {len}"
        );
    }
}

/// No reader before 6.0 reads the bytes after the offsets.
#[test]
fn bytes_after_the_chunk_offsets_are_not_read() {
    let copy = Copy::of(&sstable("nb-range_nested/inputs/1"));
    copy.edit(Component::CompressionInfo, |bytes| bytes.push(1));
    let message = merge_message(&copy);
    assert!(message.contains("CompressionInfo.db"), "{message}");
    let report = verified(&copy);
    assert_eq!((report.damages, report.notes), (0, 1), "{report:#?}");
}

/// Cassandra refuses such a value as a table option, but not in a file.
#[test]
fn a_maximum_beyond_the_chunk_is_never_reached() {
    let copy = Copy::of(&sstable("nb-range_nested/inputs/1"));
    copy.edit(Component::CompressionInfo, |bytes| {
        let at = bytes.windows(4).position(|b| b == [0x7f, 0xff, 0xff, 0xff]);
        bytes[at.unwrap() + 1] = 0xbf;
    });
    let message = merge_message(&copy);
    assert!(message.contains("maximum compressed length"), "{message}");
    let report = verified(&copy);
    assert!(report.is_damaged() && !report.stops_merge, "{report:#?}");
}

/// Nodes read them from `Statistics.db`.
#[test]
fn the_keys_in_the_footer_of_the_trie_are_not_used() {
    let copies = sstables();
    let copy = &copies[2];
    copy.edit(Component::Partitions, |bytes| {
        let end = bytes.len();
        let at: [u8; 8] = bytes[end - 24..end - 16].try_into().unwrap();
        bytes[u64::from_be_bytes(at) as usize + 2] ^= 1;
    });
    let message = merge_message(copy);
    assert!(message.contains("partition_index.first_key"), "{message}");
}

/// Cassandra uses it for estimates only.
#[test]
fn the_number_of_keys_in_the_footer_of_the_trie_is_not_trusted() {
    let copies = sstables();
    let copy = &copies[2];
    copy.edit(Component::Partitions, |bytes| {
        let at = bytes.len() - 9;
        bytes[at] ^= 1;
    });
    let message = merge_message(copy);
    assert!(message.contains("partition_index.key_count"), "{message}");
    let report = verified(copy);
    assert!(report.is_damaged() && !report.stops_merge, "{report:#?}");
}

/// A node would not find the key, but a merge looks up no key.
#[test]
fn a_trie_that_does_not_find_a_key_is_reported() {
    let copies = sstables();
    let trie = &copies[2];
    let len = trie.read(Component::Partitions).len();
    let mut message = 0;
    for at in 0..len - 24 {
        let copy = Copy::of(&trie.data());
        copy.edit(Component::Partitions, |bytes| bytes[at] ^= 1);
        if let Ok(report) = merged(&[&copy], Scope::Unknown) {
            let warnings = report.warnings.join("\n");
            assert!(warnings.contains("Partitions.db"), "{at}: {warnings}");
            message += usize::from(warnings.contains("index.key"));
        }
    }
    assert!(message > 0);
}

#[test]
fn a_digest_is_parsed_like_a_number_in_java() {
    let copy = Copy::of(&sstable("nb-range_nested/inputs/1"));
    copy.edit(Component::Digest, |bytes| {
        bytes.splice(0..0, *b"+00");
        bytes.extend_from_slice(b"\r\nData.db");
    });
    assert_eq!(merge_message(&copy), "");
}

/// A merge does not validate values.
#[test]
fn values_that_are_invalid_for_their_types_are_copied() {
    let copy = Copy::of(&sstable("nb-statics/inputs/1"));
    copy.edit_content(|bytes| {
        let at = bytes.windows(2).position(|value| value == b"s5");
        bytes[at.unwrap()] = 0xff;
    });
    let report = verified(&copy);
    assert!(report.is_damaged() && !report.stops_merge, "{report:#?}");
    merged(&[&copy], Scope::Unknown).unwrap();
}

/// Readable ones that do not cover all rows are accepted.
#[test]
fn unreadable_covered_clusterings_stop_a_merge() {
    let copy = Copy::of(&sstable("pa-range_nested/inputs/1"));
    copy.edit_statistics(|statistics| {
        let covered = &mut statistics.stats.covered_clustering;
        std::mem::swap(&mut covered.start, &mut covered.end);
    });
    let report = verified(&copy);
    assert!(report.is_damaged() && report.stops_merge, "{report:#?}");
    merged(&[&copy], Scope::Unknown).unwrap_err();
}

/// Cassandra reads any, but writes no others, and sizes in other buckets cannot be compared with those of the data.
#[test]
fn histograms_of_other_buckets_are_refused_by_all() {
    for copy in sstables() {
        copy.edit(Component::Statistics, |bytes| {
            let offset = 3311i64.to_be_bytes();
            let at = bytes.windows(8).position(|window| window == offset);
            bytes[at.unwrap()..][..8].copy_from_slice(&(1i64 << 40).to_be_bytes());
        });
        copy.fix_statistics();
        let report = verified(&copy);
        assert!(report.is_damaged() && report.stops_merge, "{report:#?}");
        assert_eq!(report.findings[0].structure, "stats.partition_sizes");
        let error = merged(&[&copy], Scope::Unknown).unwrap_err();
        assert!(error.to_string().contains("partition_sizes"), "{error}");
    }
}

/// A merge refuses an SSTable exactly if its verification says so.
#[test]
fn what_a_merge_does_not_read_does_not_stop_it() {
    type Edit = fn(&mut Statistics);
    const RANGES: &str = "oa-range_nested/inputs/1";
    let edits: &[(&str, &str, bool, Edit)] = &[
        (RANGES, "partition.key", false, |s| {
            s.header.key_type = HeaderType::new(CqlType::Long);
        }),
        (
            "oa-ttl_ties/inputs/1",
            "row.local_expiration_time",
            true,
            |s| {
                s.stats.max_local_deletion_time = NO_DELETION_TIME;
                s.header.encoding_stats.min_local_deletion_time = -2;
            },
        ),
        (RANGES, "stats.total_columns_set", false, |s| {
            s.stats.cells_per_partition.add(3);
            s.stats.total_columns_set += 1;
            s.stats.total_rows += 1;
        }),
        (RANGES, "stats.total_rows", true, |s| {
            s.stats.total_rows -= 1
        }),
        (RANGES, "stats.covered_clustering.start", false, |s| {
            s.stats.covered_clustering.start.kind = Kind::ExclStartBound;
        }),
    ];
    for (place, structure, stops, edit) in edits {
        let copy = Copy::of(&sstable(place));
        copy.edit_statistics(edit);
        let report = verified(&copy);
        assert!(report.is_damaged(), "{report:#?}");
        let found = report.findings.iter().find(|f| f.structure == *structure);
        let found = found.unwrap_or_else(|| panic!("{structure}: {report:#?}"));
        assert_eq!(found.stops_merge, *stops, "{report:#?}");
        assert_eq!(report.stops_merge, *stops, "{report:#?}");
        let merge = merged(&[&copy], Scope::Unknown);
        assert_eq!(merge.is_err(), *stops, "{structure}: {merge:?}");
    }
}

/// Their shards are merged, unlike other values.
#[test]
fn a_counter_that_is_no_context_stops_a_merge() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = GenerateOptions::new(Shape::Counters, directory.path());
    (options.amount, options.sstables) = (Amount::Rows(20), 1);
    generate(IoOptions::default(), options, &mut NoObserver).unwrap();
    let [data] = &find_sstables(directory.path())[..] else {
        panic!("not one SSTable");
    };
    let copy = Copy::of(data);
    copy.edit_content(|content| {
        // One global shard.
        let at = content.windows(4).position(|head| head == [0, 1, 0x80, 0]);
        content[at.unwrap() + 1] = 99;
    });
    let report = verified(&copy);
    assert!(report.is_damaged() && report.stops_merge, "{report:#?}");
    merged(&[&copy], Scope::Unknown).unwrap_err();
}

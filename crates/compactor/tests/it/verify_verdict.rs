//! A merge and a verification have one verdict: what a merge refuses is damage that verification reports as stopping one, and
//! what a merge accepts it merges to the rows of the intact files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::damage::Copy;
use crate::support::sstable;
use compactor::merge::run_merge;
use compactor::verify::{VerifyOptions, VerifyReport, verify};
use compactor::{
    ErrorKind, InputCheck, MergeJob, MergeRequest, NoObserver, OutputCompression, Scope,
};
use compactor_engine::input::{InputSstable, KeyRange};
use compactor_io::{BackendKind, Io, IoOptions, ReadMode, WriteMode};
use compactor_sstable::big::index::IndexReader;
use compactor_sstable::big::summary::Summary;
use compactor_sstable::compression::codec::Codec;
use compactor_sstable::compression::info::CompressionParams;
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::partitioner::Partitioner;
use compactor_sstable::statistics::Statistics;
use compactor_sstable::{Component, Version};
use compactor_testkit::campaign;

/// Runs merges and verifications of one SSTable.
struct Judge {
    io: Io,
    output: tempfile::TempDir,
}

/// Temporary directory, in memory if possible, since each output is synced.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// The two verdicts.
#[derive(Debug, PartialEq)]
enum Verdict {
    Sound,
    Damaged,
}

impl Judge {
    fn new() -> Judge {
        let options = IoOptions {
            backend: BackendKind::Threads,
            ..IoOptions::default()
        };
        Judge {
            io: Io::new(options).unwrap(),
            output: directory(),
        }
    }

    fn request(&self, inputs: &[&Path]) -> MergeRequest {
        let inputs = inputs.iter().map(|path| path.to_path_buf()).collect();
        let mut request = MergeRequest::new(inputs, self.output.path());
        request.read_mode = ReadMode::Buffered;
        request.write_mode = WriteMode::Buffered;
        request.threads = 1;
        request.memory_bytes = 4 << 20;
        request.now_s = 1_000_000_000;
        request
    }

    /// Returns the output's `Data.db`, or the merge's error.
    fn run(&self, request: MergeRequest) -> Result<PathBuf, compactor::Error> {
        let job = MergeJob::open(self.io.clone(), request)?;
        let report = run_merge(job, InputCheck::AllComponents, &mut NoObserver)?;
        Ok(report.outputs.into_iter().next().unwrap().data_path)
    }

    /// Returns the bytes of the rows of a merge of `input`.
    fn merged(&self, input: &Copy) -> Result<Vec<u8>, compactor::Error> {
        self.rows_of(self.request(&[&input.data()]))
    }

    fn rows_of(&self, mut request: MergeRequest) -> Result<Vec<u8>, compactor::Error> {
        request.compression = OutputCompression::None;
        let data = self.run(request)?;
        let bytes = fs::read(&data).unwrap();
        self.remove_outputs();
        Ok(bytes)
    }

    fn remove_outputs(&self) {
        for entry in fs::read_dir(self.output.path()).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
    }

    fn verified(&self, input: &Copy) -> Result<VerifyReport, compactor::Error> {
        let mut options = VerifyOptions::default();
        options.read_mode = ReadMode::Buffered;
        verify(&self.io, &input.data(), &options, &mut NoObserver)
    }

    /// Rewrites an SSTable with blocks of a few rows, so that its partitions have promoted indexes.
    fn with_blocks(&self, place: &str, compression: OutputCompression) -> Copy {
        let source = sstable(place);
        let mut request = self.request(&[&source]);
        request.version = Some(Version::Pa);
        request.column_index_size = Some(150);
        request.compression = compression;
        let made = self.run(request).unwrap();
        let copy = Copy::of(&made);
        self.remove_outputs();
        copy
    }
}

/// Number of changes, by outcome.
#[derive(Debug, Default)]
struct Counts {
    refused: u64,
    harmless: u64,
    /// Damage that does not stop a merge.
    ignored: u64,
    disagreements: Vec<String>,
}

impl Counts {
    fn judge(&mut self, judge: &Judge, copy: &Copy, rows: &[u8], what: impl Fn() -> String) {
        let verified = judge.verified(copy);
        let by_verify = match &verified {
            Ok(report) if !report.stops_merge => Verdict::Sound,
            _ => Verdict::Damaged,
        };
        let merged = judge.merged(copy);
        let by_merge = match &merged {
            Ok(bytes) => {
                assert!(bytes == rows, "{}: other rows", what());
                Verdict::Sound
            }
            Err(_) => Verdict::Damaged,
        };
        match (by_merge, by_verify) {
            (Verdict::Damaged, Verdict::Damaged) => self.refused += 1,
            (Verdict::Sound, Verdict::Sound) => {
                if verified.is_ok_and(|report| report.is_damaged()) {
                    self.ignored += 1;
                } else {
                    println!("harmless: {}", what());
                    self.harmless += 1;
                }
            }
            (by_merge, by_verify) => self.disagreements.push(format!(
                "{}: merge {by_merge:?}, verify {by_verify:?}\n  {:?}\n  {:?}",
                what(),
                merged.err().map(|e| e.to_string()),
                verified.map(|r| r
                    .findings
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>())
            )),
        }
    }
}

fn wide(judge: &Judge) -> [(&'static str, Copy); 2] {
    let mut lz4 = CompressionParams::new(Codec::Lz4, 1024);
    lz4.max_compressed_len = 1024;
    [
        (
            "compressed",
            judge.with_blocks("pa-range_nested/inputs/1", OutputCompression::Params(lz4)),
        ),
        (
            "uncompressed",
            judge.with_blocks("pa-range_nested/inputs/1", OutputCompression::None),
        ),
    ]
}

#[test]
fn of_flipped_bits() {
    let judge = Judge::new();
    let mut all = Counts::default();
    for (name, copy) in wide(&judge) {
        let rows = judge.merged(&copy).unwrap();
        assert!(judge.verified(&copy).unwrap().findings.is_empty());
        for component in copy.components() {
            let intact = copy.read(component);
            // A few bytes of components covered by a checksum; every byte of the others.
            let (step, masks): (usize, &[u8]) = match component {
                Component::Data => (intact.len() / 40, &[0x10]),
                Component::Statistics => (intact.len() / 60, &[0x01]),
                Component::Index => (1, &[0x01, 0x40]),
                Component::Toc | Component::Summary => (1, &[0x04]),
                _ => (1, &[0x01, 0x20]),
            };
            let mut counts = Counts::default();
            for at in (0..intact.len()).step_by(step.max(1) * campaign::stride()) {
                for mask in masks {
                    copy.edit(component, |bytes| bytes[at] ^= mask);
                    counts.judge(&judge, &copy, &rows, || {
                        format!(
                            "{name} {component} byte {at} of {}, mask {mask:02x}",
                            intact.len()
                        )
                    });
                    copy.write(component, &intact);
                }
            }
            println!(
                "{name} {component}, {} bytes: {} refused, {} ignored, {} harmless",
                intact.len(),
                counts.refused,
                counts.ignored,
                counts.harmless,
            );
            if component == Component::Index {
                assert_eq!(counts.harmless, 0, "{name}");
                assert!(counts.refused > 0 && counts.ignored > 0, "{name}");
            }
            if [Component::Filter, Component::Summary].contains(&component) {
                assert_eq!(counts.refused, 0, "{name}");
            }
            all.ignored += counts.ignored;
            all.refused += counts.refused;
            all.disagreements.append(&mut counts.disagreements);
        }
    }
    let least = if campaign::stride() == 1 {
        (400, 1100)
    } else {
        (40, 100)
    };
    assert!(all.refused > least.0 && all.ignored > least.1, "{all:?}");
    assert!(
        all.disagreements.is_empty(),
        "{}",
        all.disagreements.join("\n")
    );
}

type Edit = fn(&mut Statistics);

/// A `Statistics.db` of another SSTable of the table, where it can be distinguished from the right one.
#[test]
fn of_foreign_statistics() {
    let judge = Judge::new();
    let place = "pa-range_nested/inputs/1";
    let rows = judge.merged(&Copy::of(&sstable(place))).unwrap();
    let edits: [(&str, Edit); 4] = [
        ("other times, of a shorter span", |s| {
            s.header.encoding_stats.min_timestamp += 1000;
            s.stats.min_timestamp += 1000;
            s.stats.max_timestamp += 999;
        }),
        ("other partitions", |s| {
            let mut sizes = s.stats.partition_sizes.empty_like();
            (0..s.stats.partition_sizes.count()).for_each(|_| sizes.add(3));
            s.stats.partition_sizes = sizes;
        }),
        ("other chunks", |s| s.stats.compression_ratio /= 2.0),
        ("fewer rows", |s| s.stats.total_rows -= 1),
    ];
    let mut counts = Counts::default();
    for (what, edit) in edits {
        let copy = Copy::of(&sstable(place));
        copy.edit_statistics(edit);
        counts.judge(&judge, &copy, &rows, || what.to_owned());
    }
    assert!(
        counts.disagreements.is_empty(),
        "{}",
        counts.disagreements.join("\n")
    );
    assert_eq!(counts.refused, 4, "{counts:?}");
    // Statistics left by a scrub are not damage.
    let copy = Copy::of(&sstable(place));
    copy.edit_statistics(|s| {
        s.stats.total_rows += 40;
        s.stats.compression_ratio *= 1.01;
    });
    counts.judge(&judge, &copy, &rows, || "a scrub".to_owned());
    assert_eq!(counts.harmless, 1, "{counts:?}");
}

/// Each field of a `Statistics.db` that the content contradicts, with checksums that are right.
#[test]
fn of_statistics_that_the_content_contradicts() {
    const RANGES: &str = "oa-range_nested/inputs/1";
    const TTL: &str = "oa-ttl_ties/inputs/1";
    const NB_TTL: &str = "nb-statics/inputs/1";
    const NB: &str = "nb-range_nested/inputs/1";
    const WIDE: &str = "oa-wide_uncompressed/inputs/2";
    const BTI: &str = "oa-range_nested/inputs/2";
    let judge = Judge::new();
    let edits: [(&str, &str, Edit); 23] = [
        (RANGES, "min_timestamp", |s| s.stats.min_timestamp += 1),
        (RANGES, "max_timestamp", |s| s.stats.max_timestamp -= 1),
        (RANGES, "min_local_deletion_time", |s| {
            s.stats.min_local_deletion_time += 1;
        }),
        (RANGES, "max_local_deletion_time", |s| {
            s.stats.max_local_deletion_time = 1_800_000_000;
        }),
        (TTL, "max_local_deletion_time", |s| {
            s.stats.max_local_deletion_time -= 1;
        }),
        (TTL, "min_ttl", |s| s.stats.min_ttl += 1),
        (TTL, "max_ttl", |s| s.stats.max_ttl -= 1),
        (TTL, "min_ttl above max_ttl", |s| s.stats.max_ttl = 1),
        (RANGES, "ttl where there is none", |s| s.stats.min_ttl = 7),
        (RANGES, "covered_clustering.start, kind", |s| {
            s.stats.covered_clustering.start.kind = Kind::ExclStartBound;
        }),
        (TTL, "covered_clustering.end, kind", |s| {
            s.stats.covered_clustering.end.kind = Kind::ExclEndBound;
        }),
        (WIDE, "covered_clustering.end", |s| {
            s.stats.covered_clustering.end.values = vec![Some(vec![0, 0, 0, 198])];
        }),
        (NB, "covered_clustering.start", |s| {
            s.stats.covered_clustering.start.values = vec![Some(vec![0, 0, 0, 1])];
        }),
        (BTI, "covered_clustering, too many values", |s| {
            let covered = &mut s.stats.covered_clustering;
            covered.types = vec![covered.types[0].clone(); 2];
            covered.start.values = vec![Some(vec![0, 0, 0, 1]); 2];
        }),
        (RANGES, "first_key", |s| {
            s.stats.first_key = Some(vec![0, 0, 0, 77])
        }),
        (RANGES, "last_key", |s| {
            s.stats.last_key = s.stats.first_key.clone()
        }),
        (RANGES, "level", |s| s.stats.level = -1),
        (RANGES, "repaired_at", |s| s.stats.repaired_at = -1),
        (RANGES, "total_rows", |s| s.stats.total_rows = -1),
        (RANGES, "partition_sizes", |s| {
            s.stats.partition_sizes.add(100)
        }),
        (RANGES, "cardinality of other keys", |s| {
            let other = Statistics::parse(&of_many_keys(), Version::Oa).unwrap();
            s.compaction = other.compaction;
        }),
        (RANGES, "no cardinality", |s| {
            if let Some(compaction) = &mut s.compaction {
                compaction.cardinality_bytes.clear();
            }
        }),
        (NB_TTL, "min_timestamp", |s| s.stats.min_timestamp += 1),
    ];
    let mut counts = Counts::default();
    for (place, what, edit) in edits {
        let copy = Copy::of(&sstable(place));
        let rows = judge.merged(&copy).unwrap();
        copy.edit_statistics(edit);
        counts.judge(&judge, &copy, &rows, || format!("{place} {what}"));
    }
    assert!(
        counts.disagreements.is_empty(),
        "{}",
        counts.disagreements.join("\n")
    );
    // A wrong cardinality loses no data, and only reads of slices use covered clusterings.
    let found = (counts.refused, counts.harmless, counts.ignored);
    assert_eq!(found, (16, 2, 5), "{counts:?}");
}

/// A partition is deleted, in statistics that deny or state it.
#[test]
fn of_a_partition_deletion() {
    let judge = Judge::new();
    let copy = Copy::of(&sstable("oa-range_nested/inputs/1"));
    let index = copy.read(Component::Index);
    let mut reader = IndexReader::new(&index);
    let mut positions = Vec::new();
    while let Some(entry) = reader.next().transpose().unwrap() {
        positions.push(entry.position);
    }
    let last = *positions.last().unwrap() as usize;
    let mut end = 0;
    copy.edit_content(|content| {
        let mut deletion = 10i64.to_be_bytes().to_vec();
        deletion.extend_from_slice(&1_700_000_000u32.to_be_bytes());
        let deletion_at = last + 2 + 4;
        content.splice(deletion_at..=deletion_at, deletion);
        end = content.len() as u64;
    });
    positions.push(end);
    copy.edit_statistics(|s| {
        let mut sizes = s.stats.partition_sizes.empty_like();
        positions
            .windows(2)
            .for_each(|pair| sizes.add((pair[1] - pair[0]) as i64));
        s.stats.partition_sizes = sizes;
        s.stats.min_timestamp = s.stats.min_timestamp.min(10);
        s.stats.min_local_deletion_time = s.stats.min_local_deletion_time.min(1_700_000_000);
        s.stats.has_partition_level_deletions = true;
    });
    let mut counts = Counts::default();
    let rows = judge.merged(&copy).unwrap();
    counts.judge(&judge, &copy, &rows, || "stated".to_owned());
    copy.edit_statistics(|s| s.stats.has_partition_level_deletions = false);
    counts.judge(&judge, &copy, &rows, || "denied".to_owned());
    assert!(counts.disagreements.is_empty(), "{counts:#?}");
    // A merge reads all rows; reads of slices would miss them.
    assert_eq!((counts.ignored, counts.harmless), (1, 1), "{counts:#?}");
}

/// A `Statistics.db` of an SSTable with other keys, and many of them.
fn of_many_keys() -> Vec<u8> {
    fs::read(Copy::of(&sstable("oa-wide_uncompressed/inputs/2")).path(Component::Statistics))
        .unwrap()
}

/// An input whose statistics show only data past its grace is dropped without being read.
#[test]
fn nothing_is_dropped_because_of_foreign_statistics() {
    let judge = Judge::new();
    let expired = |s: &mut Statistics| {
        s.stats.min_local_deletion_time = 1;
        s.stats.max_local_deletion_time = 2;
    };
    let open = |copy: &Copy| {
        let mut request = judge.request(&[&copy.data()]);
        request.scope = Scope::Complete;
        request.gc_before_s = Some(1_000_000_000);
        MergeJob::open(judge.io.clone(), request).unwrap()
    };
    let run = |copy: &Copy| run_merge(open(copy), InputCheck::AllComponents, &mut NoObserver);
    for place in [
        "pa-range_nested/inputs/1",
        "nb-range_nested/inputs/1",
        "oa-wide_uncompressed/inputs/2",
    ] {
        let copy = Copy::of(&sstable(place));
        copy.edit_statistics(expired);
        assert_eq!(open(&copy).fully_expired().len(), 1, "{place}");
        assert!(run(&copy).unwrap().outputs.is_empty(), "{place}");
        // With another compression ratio it is read, and the contradiction is detected.
        copy.edit_statistics(|s| s.stats.compression_ratio = 0.123);
        assert!(open(&copy).fully_expired().is_empty(), "{place}");
        let error = run(&copy).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{place}: {error}");
        // With other partitions it is not read, but compared with the index.
        let copy = Copy::of(&sstable(place));
        copy.edit_statistics(|s| {
            expired(s);
            let mut sizes = s.stats.partition_sizes.empty_like();
            (0..s.stats.partition_sizes.count()).for_each(|_| sizes.add(3));
            s.stats.partition_sizes = sizes;
        });
        assert_eq!(open(&copy).fully_expired().len(), 1, "{place}");
        let error = run(&copy).unwrap_err().to_string();
        assert!(
            error.contains("Statistics.db") && error.contains("partition_sizes"),
            "{error}"
        );
    }
}

/// An input may be dropped unread depending on the SSTables of the table whose key range overlaps its own.
/// A wrong key range is detected.
#[test]
fn nothing_is_dropped_because_of_a_foreign_key_range() {
    let judge = Judge::new();
    let input = Copy::of(&sstable("nb-range_nested/inputs/1"));
    input.edit_statistics(|s| {
        s.stats.min_local_deletion_time = 1;
        s.stats.max_local_deletion_time = 2;
    });
    let open = |beside: &Copy| {
        let mut request = judge.request(&[&input.data()]);
        request.scope = Scope::Overlapping(vec![beside.data()]);
        request.gc_before_s = Some(1_000_000_000);
        MergeJob::open(judge.io.clone(), request).unwrap()
    };
    let is_dropped = |beside: &Copy| !open(beside).fully_expired().is_empty();
    let is_refused = |beside: &Copy| {
        let merged = run_merge(open(beside), InputCheck::AllComponents, &mut NoObserver);
        merged.unwrap_err().kind() == ErrorKind::Corrupt
    };
    let keys = (0..1000i32).map(|n| n.to_be_bytes().to_vec());
    let elsewhere = keys
        .min_by_key(|key| Partitioner::Murmur3.position(key))
        .unwrap();
    let honest = Copy::of(&sstable("pa-range_nested/inputs/2"));
    let liar = Copy::of(&sstable("pa-range_nested/inputs/2"));
    liar.edit_statistics(|s| {
        s.stats.first_key = Some(elsewhere.clone());
        s.stats.last_key = Some(elsewhere.clone());
    });
    assert!(!is_dropped(&honest));
    assert!(is_dropped(&liar) && is_refused(&liar));

    // The input's own Summary.db may be wrong as well.
    let path = input.path(Component::Summary);
    let intact = fs::read(&path).unwrap();
    let mut summary = Summary::parse(&intact, Version::Nb).unwrap();
    summary.first_key.clone_from(&elsewhere);
    summary.last_key.clone_from(&elsewhere);
    let mut foreign = Vec::new();
    summary.write(&mut foreign);
    fs::write(&path, foreign).unwrap();
    assert!(is_dropped(&honest) && is_refused(&honest));
    // Index.db is used instead of a damaged or missing Summary.db.
    fs::write(&path, &intact[..intact.len() - 3]).unwrap();
    assert!(!is_dropped(&honest) && is_dropped(&liar));
    input.remove_and_unlist(Component::Summary);
    assert!(!is_dropped(&honest) && is_dropped(&liar));
}

/// Cassandra rebuilds a missing `Summary.db` from `Index.db`.
#[test]
fn an_overlapping_sstable_needs_no_summary() {
    let judge = Judge::new();
    let input = Copy::of(&sstable("nb-range_nested/inputs/1"));
    let beside = Copy::of(&sstable("nb-range_nested/inputs/2"));
    let merged = || {
        let mut request = judge.request(&[&input.data()]);
        request.scope = Scope::Overlapping(vec![beside.data()]);
        request.gc_before_s = Some(2_000_000_000);
        judge.rows_of(request).unwrap()
    };
    let range = || {
        let opened = InputSstable::open(&judge.io, &beside.data(), ReadMode::Buffered).unwrap();
        KeyRange::of(&judge.io, &opened, ReadMode::Buffered).unwrap()
    };
    let (range_by_summary, by_summary) = (range(), merged());
    beside.remove_and_unlist(Component::Summary);
    assert_eq!(range(), range_by_summary);
    assert_ne!(range_by_summary.first(), range_by_summary.last());
    assert_eq!(merged(), by_summary);
}

#[test]
fn of_missing_truncated_and_exchanged_files() {
    let judge = Judge::new();
    let mut counts = Counts::default();
    let mut copies: Vec<(String, Copy)> = wide(&judge)
        .into_iter()
        .map(|(name, copy)| (name.to_owned(), copy))
        .collect();
    for place in [
        "nb-range_nested/inputs/1",
        "nb-range_nested/inputs/2",
        "nb-statics/inputs/1",
        "oa-ttl_ties/inputs/1",
        "nb-range_nested/inputs/3",
        "oa-range_nested/inputs/1",
        "oa-range_nested/inputs/2",
        "oa-wide_uncompressed/inputs/2",
        "pa-complex_ties/inputs/1",
        "pa-range_nested/inputs/3",
        "pa-incompressible_chunks/inputs/1",
    ] {
        copies.push((place.to_owned(), Copy::of(&sstable(place))));
    }
    for (name, copy) in &copies {
        let rows = judge.merged(copy).unwrap();
        for component in copy.components() {
            let intact = copy.read(component);
            let mut judge_it = |what: &str| {
                counts.judge(&judge, copy, &rows, || format!("{name} {component} {what}"));
            };
            if component != Component::Data {
                // Without its Data.db it is not an input.
                copy.remove(component);
                judge_it("missing");
            }
            for len in [0, intact.len() / 2, intact.len() - 1] {
                copy.write(component, &intact[..len]);
                judge_it(&format!("cut to {len}"));
                if component == Component::Index && len == 0 {
                    let error = judge.merged(copy).unwrap_err().to_string();
                    assert!(
                        error.contains("Index.db") && error.contains("empty"),
                        "{error}"
                    );
                }
            }
            for (other, from) in &copies {
                let version = |name: &str| name.split('-').next().map(str::to_owned);
                if version(other) != version(name) || !from.path(component).exists() {
                    continue;
                }
                copy.write(component, &from.read(component));
                judge_it(&format!("of {other}"));
            }
            copy.write(component, &intact);
        }
    }
    println!("{} refused, {} harmless", counts.refused, counts.harmless);
    assert!(counts.refused > 100);
    assert!(
        counts.disagreements.is_empty(),
        "{}",
        counts.disagreements.join("\n")
    );
}

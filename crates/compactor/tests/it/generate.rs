//! Generated SSTables: intact, reproducible, of the requested size, overlap and compressibility.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use compactor::generate::{Amount, GenerateOptions, GenerateReport, Shape, generate};
use compactor::merge::merge;
use compactor::verify::{VerifyOptions, verify};
use compactor::{ErrorKind, MergeReport, MergeRequest, NoObserver, Observer, Scope, Table};
use compactor_engine::input::Scan;
use compactor_io::{Io, IoOptions, ReadMode};
use compactor_sstable::Version;
use compactor_sstable::compression::codec::Codec;
use compactor_sstable::compression::info::CompressionParams;
use compactor_sstable::data::cell::Liveness;
use tempfile::TempDir;

use crate::support::files;

const NOW_S: i64 = 1_780_000_000;

fn options(shape: Shape, directory: &Path) -> GenerateOptions {
    let mut options = GenerateOptions::new(shape, directory);
    options.amount = Amount::Bytes(512 << 10);
    if shape != Shape::KeyValue {
        options.rows_per_partition = 200;
    }
    options.now_s = NOW_S;
    options.threads = 2;
    options
}

fn run(options: GenerateOptions) -> GenerateReport {
    generate(IoOptions::default(), options, &mut NoObserver).unwrap()
}

fn merge_all(report: &GenerateReport, output: &Path) -> MergeReport {
    let inputs = report
        .sstables
        .iter()
        .map(|s| s.data_path.clone())
        .collect();
    let mut request = MergeRequest::new(inputs, output);
    request.now_s = NOW_S;
    request.gc_before_s = Some(NOW_S - 60);
    request.scope = Scope::Complete;
    merge(request, &mut NoObserver).unwrap()
}

#[test]
fn every_shape_in_every_version_is_intact_and_merges() {
    for shape in Shape::ALL {
        for version in [Version::Nb, Version::Oa, Version::Pa] {
            let temp = TempDir::new().unwrap();
            let mut options = options(shape, temp.path());
            options.version = version;
            // The three versions also vary the other options.
            options.compression = match version {
                Version::Oa => None,
                _ => Some(CompressionParams::new(Codec::Lz4, 4096)),
            };
            let report = run(options);
            assert_eq!(report.sstables.len(), 3);
            let io = Io::new(IoOptions::default()).unwrap();
            for sstable in &report.sstables {
                let verify_options = VerifyOptions::default();
                let found =
                    verify(&io, &sstable.data_path, &verify_options, &mut NoObserver).unwrap();
                assert!(
                    found.findings.is_empty(),
                    "{shape:?} {version}: {:?}",
                    found.findings
                );
                assert_eq!(found.partitions, sstable.partitions);
                assert_eq!(found.rows, sstable.rows);
                let markers = found.range_tombstone_markers;
                assert_eq!(markers > 0, shape.has_sequence());
                let size = sstable.uncompressed_bytes as f64 / (512 << 10) as f64;
                assert!(
                    (0.85..1.15).contains(&size),
                    "{shape:?} {version}: {size} of what was asked"
                );
            }
            let merged = merge_all(&report, &temp.path().join("merged"));
            assert_eq!(merged.partitions_read, report.partitions);
            // Half of the partitions of each are in all three, the others in one.
            let of_each = report.sstables[0].partitions;
            let shared = (of_each as f64 * 0.5).round() as u64;
            let expected = [3 * (of_each - shared), 0, shared];
            assert_eq!(merged.merge_counts.unwrap(), expected);
            let purged = merged.purged;
            match shape {
                Shape::KeyValue => assert_eq!(purged.total, 0),
                Shape::TimeSeries => assert!(purged.expired > 0),
                _ => {
                    assert!(purged.row_deletions > 0 && purged.range_tombstone_bounds > 0);
                    assert_eq!(purged.cell_tombstones > 0, shape != Shape::Wide);
                    let has_collections = matches!(shape, Shape::Maps | Shape::Collections);
                    assert_eq!(purged.complex_deletions > 0, has_collections);
                }
            }
        }
    }
}

#[test]
fn equal_options_give_equal_bytes_and_another_seed_different_ones() {
    for shape in Shape::ALL {
        let temp = TempDir::new().unwrap();
        let of = |name: &str, threads, seed| {
            let mut options = options(shape, &temp.path().join(name));
            options.threads = threads;
            options.seed = seed;
            run(options)
        };
        let (a, b, c) = (of("a", 1, 5), of("b", 3, 5), of("c", 1, 6));
        assert_eq!(a.table_directory.file_name(), b.table_directory.file_name());
        assert_eq!(files(&a.table_directory), files(&b.table_directory));
        assert_ne!(a.table_directory.file_name(), c.table_directory.file_name());
        let data = |report: &GenerateReport| fs::read(&report.sstables[0].data_path).unwrap();
        assert_ne!(data(&a), data(&c));
    }
}

#[test]
fn compressibility_is_roughly_what_lz4_saves() {
    for (asked, expected) in [
        (0.0, 1.0),
        (0.25, 0.75),
        (0.5, 0.5),
        (0.75, 0.25),
        (1.0, 0.1),
    ] {
        let temp = TempDir::new().unwrap();
        let mut options = options(Shape::KeyValue, temp.path());
        options.compressibility = asked;
        options.sstables = 1;
        let ratio = run(options).compression_ratio;
        assert!(
            (ratio - expected).abs() < 0.05,
            "asked to save {asked}: ratio {ratio}"
        );
    }
}

#[test]
fn rows_are_counted_in_whole_partitions() {
    for (shape, rows_per_partition, static_rows) in [
        (Shape::KeyValue, 1, 0),
        (Shape::Wide, 30, 4),
        (Shape::Tombstones, 30, 4),
        (Shape::Maps, 30, 4),
        (Shape::Collections, 30, 4),
        (Shape::Counters, 30, 0),
        (Shape::TimeSeries, 30, 0),
    ] {
        let temp = TempDir::new().unwrap();
        let mut options = options(shape, temp.path());
        options.amount = Amount::Rows(100);
        options.rows_per_partition = rows_per_partition;
        options.range_tombstones = 0.0;
        let report = run(options);
        let rows = if rows_per_partition == 1 { 100 } else { 120 };
        for sstable in &report.sstables {
            assert_eq!(sstable.rows, rows + static_rows, "{shape:?}");
        }
    }
}

/// Liveness and values of each row, by partition key and serialized clustering.
type Rows = BTreeMap<(Vec<u8>, Vec<u8>), (Liveness, Vec<Vec<u8>>)>;

/// Liveness and cell values of every row, by key and clustering.
fn rows(path: &Path) -> Rows {
    let io = Io::new(IoOptions::default()).unwrap();
    let mut scan = Scan::open(&io, path, ReadMode::Buffered).unwrap();
    let cursor = scan.cursor();
    let mut rows = BTreeMap::new();
    while cursor.next_partition().unwrap() {
        let key = cursor.key().to_vec();
        loop {
            cursor.next_unfiltered().unwrap();
            if cursor.clustering().is_none() {
                break;
            }
            let Some(row) = cursor.row() else { continue };
            let content = row.read().unwrap();
            let liveness = content.start.liveness;
            let cells = content.columns().flat_map(|column| column.cells);
            let values = cells
                .map(|cell| cell.value.of(row.bytes).to_vec())
                .collect();
            rows.insert(
                (key.clone(), row.clustering_bytes().to_vec()),
                (liveness, values),
            );
        }
    }
    rows
}

#[test]
fn the_last_sstable_wins() {
    for shape in [Shape::KeyValue, Shape::TimeSeries] {
        let temp = TempDir::new().unwrap();
        let mut options = options(shape, temp.path());
        options.overlap = 1.0;
        options.expired = 0.0;
        let report = run(options);
        let merged = merge_all(&report, &temp.path().join("merged"));
        let [first, .., last] = &report.sstables[..] else {
            panic!("three SSTables")
        };
        let output = rows(&merged.outputs[0].data_path);
        assert!(
            output.len() as u64 == last.rows && output == rows(&last.data_path),
            "{shape:?}"
        );
        assert_ne!(output, rows(&first.data_path));
    }
}

#[test]
fn without_overlap_no_partition_is_in_two_sstables() {
    let temp = TempDir::new().unwrap();
    let mut options = options(Shape::Wide, temp.path());
    options.overlap = 0.0;
    let report = run(options);
    let merged = merge_all(&report, &temp.path().join("merged"));
    assert_eq!(merged.merge_counts.unwrap().iter().skip(1).sum::<u64>(), 0);
    assert_eq!(merged.partitions_written, report.partitions);
}

#[test]
fn the_requested_share_has_expired() {
    for expired in [0.0, 0.3, 1.0] {
        let temp = TempDir::new().unwrap();
        let mut options = options(Shape::TimeSeries, temp.path());
        options.expired = expired;
        // A multiple of the sixteen partitions of each sensor.
        options.amount = Amount::Rows(160 * 200);
        options.sstables = 1;
        let report = run(options);
        let rows = rows(&report.sstables[0].data_path);
        let gone = rows
            .values()
            .filter(|(liveness, _)| !liveness.is_live(NOW_S))
            .count();
        let share = gone as f64 / rows.len() as f64;
        assert!(
            (share - expired).abs() < 0.01,
            "asked for {expired}: {share}"
        );
        assert!(rows.values().all(|(liveness, _)| liveness.is_expiring()));
    }
}

#[test]
fn rows_are_updated_and_deleted_as_often_as_requested() {
    let temp = TempDir::new().unwrap();
    let mut options = options(Shape::Tombstones, temp.path());
    options.amount = Amount::Rows(20_000);
    options.sstables = 1;
    options.range_tombstones = 0.0;
    (options.deletions, options.updates, options.cell_tombstones) = (0.1, 0.4, 0.3);
    let report = run(options);
    let io = Io::new(IoOptions::default()).unwrap();
    let mut scan = Scan::open(&io, &report.sstables[0].data_path, ReadMode::Buffered).unwrap();
    let cursor = scan.cursor();
    let (mut rows, mut deleted, mut updated, mut cells, mut tombstones) = (0.0, 0.0, 0.0, 0.0, 0.0);
    while cursor.next_partition().unwrap() {
        cursor.next_unfiltered().unwrap();
        while let Some(row) = cursor.row() {
            let content = row.read().unwrap();
            let start = &content.start;
            rows += 1.0;
            deleted += f64::from(!start.deletion.is_live());
            updated += f64::from(start.deletion.is_live() && start.liveness.is_empty());
            for cell in content.columns().flat_map(|column| column.cells) {
                cells += 1.0;
                tombstones += f64::from(cell.is_tombstone());
            }
            cursor.next_unfiltered().unwrap();
        }
    }
    assert_eq!(rows, 20_000.0);
    for (share, asked) in [
        (deleted / rows, 0.1),
        (updated / (rows - deleted), 0.4),
        (tombstones / cells, 0.3),
    ] {
        assert!(
            (share - asked).abs() < 0.02,
            "{share} where {asked} was asked for"
        );
    }
}

/// Shards (id, clock and count) of each counter, by partition key, clustering and column.
type Counters = BTreeMap<(Vec<u8>, Vec<u8>, usize), BTreeMap<[u8; 16], (i64, i64)>>;

fn counters(path: &Path) -> Counters {
    let io = Io::new(IoOptions::default()).unwrap();
    let mut scan = Scan::open(&io, path, ReadMode::Buffered).unwrap();
    let cursor = scan.cursor();
    let mut counters = BTreeMap::new();
    while cursor.next_partition().unwrap() {
        let key = cursor.key().to_vec();
        cursor.next_unfiltered().unwrap();
        while let Some(row) = cursor.row() {
            let content = row.read().unwrap();
            assert!(
                content.start.liveness.is_empty(),
                "nothing but UPDATE counts"
            );
            for column in content.columns() {
                let place = (key.clone(), row.clustering_bytes().to_vec(), column.index);
                counters.insert(place, shards(column.cells[0].value.of(row.bytes)));
            }
            cursor.next_unfiltered().unwrap();
        }
    }
    counters
}

/// Shards of a context that has only global shards.
fn shards(context: &[u8]) -> BTreeMap<[u8; 16], (i64, i64)> {
    let (count, rest) = context.split_first_chunk::<2>().unwrap();
    let count = usize::from(u16::from_be_bytes(*count));
    let (header, rest) = rest.split_at(2 * count);
    for (index, element) in header.as_chunks::<2>().0.iter().enumerate() {
        assert_eq!(u16::from_be_bytes(*element), 0x8000 + index as u16);
    }
    let (found, cut) = rest.as_chunks::<32>();
    assert!(cut.is_empty() && found.len() == count);
    let ids: Vec<&[u8]> = found.iter().map(|shard| &shard[..16]).collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    let word = |bytes: &[u8]| i64::from_be_bytes(bytes.try_into().unwrap());
    found
        .iter()
        .map(|shard| {
            let id = shard[..16].try_into().unwrap();
            (id, (word(&shard[16..24]), word(&shard[24..])))
        })
        .collect()
}

#[test]
fn counters_of_several_sstables_are_merged() {
    let temp = TempDir::new().unwrap();
    let mut options = options(Shape::Counters, temp.path());
    options.overlap = 1.0;
    (options.deletions, options.range_tombstones) = (0.0, 0.0);
    options.cell_tombstones = 0.0;
    let report = run(options);
    let inputs = report.sstables.iter().map(|s| counters(&s.data_path));
    let mut expected = Counters::new();
    let (mut replaced, mut joined) = (0, 0);
    for (place, shards) in inputs.flatten() {
        assert!((1..=3).contains(&shards.len()));
        let known = expected.entry(place).or_default();
        let before = known.len();
        for (id, shard) in shards {
            if let Some(earlier) = known.insert(id, shard) {
                assert!(earlier.0 < shard.0, "a later SSTable's clock is later");
                replaced += 1;
            }
        }
        joined += usize::from(before > 0 && known.len() > before);
    }
    assert!(expected.values().all(|shards| shards.len() <= 3));
    // Neither case is rare.
    let few = expected.len() / 4;
    assert!(
        replaced > few && joined > few,
        "{replaced} and {joined} of {}",
        expected.len()
    );
    let merged = merge_all(&report, &temp.path().join("merged"));
    assert!(counters(&merged.outputs[0].data_path) == expected);
}

/// Paths of the elements of lists, by partition key and clustering, and whether each is a tombstone.
type Lists = BTreeMap<(Vec<u8>, Vec<u8>, Vec<u8>), bool>;

fn lists(path: &Path) -> Lists {
    let io = Io::new(IoOptions::default()).unwrap();
    let mut scan = Scan::open(&io, path, ReadMode::Buffered).unwrap();
    let cursor = scan.cursor();
    let mut lists = BTreeMap::new();
    while cursor.next_partition().unwrap() {
        let key = cursor.key().to_vec();
        loop {
            cursor.next_unfiltered().unwrap();
            if cursor.clustering().is_none() {
                break;
            }
            let Some(row) = cursor.row() else { continue };
            let content = row.read().unwrap();
            for found in content.columns() {
                if !found.deletion.is_live() {
                    let before = found.deletion.marked_for_delete_at + 1;
                    let liveness = content.start.liveness;
                    assert_eq!(before, liveness.timestamp, "a microsecond before");
                }
                if row.layout.regular_columns[found.index].name != b"events" {
                    continue;
                }
                for cell in found.cells {
                    let clustering = row.clustering_bytes().to_vec();
                    let path = cell.path.of(row.bytes).to_vec();
                    lists.insert((key.clone(), clustering, path), cell.is_tombstone());
                }
            }
        }
    }
    lists
}

#[test]
fn elements_of_lists_are_replaced_and_removed_by_the_next_sstable() {
    let temp = TempDir::new().unwrap();
    let mut options = options(Shape::Collections, temp.path());
    options.overlap = 1.0;
    let report = run(options);
    let inputs: Vec<Lists> = report
        .sstables
        .iter()
        .map(|s| lists(&s.data_path))
        .collect();
    assert!(inputs[0].values().all(|is_removed| !is_removed));
    for pair in inputs.windows(2) {
        let (mut set, mut removed) = (0, 0);
        for (place, is_removed) in &pair[1] {
            let path = &place.2;
            assert!(path.len() == 16 && path[6] >> 4 == 1 && path[8] >> 6 == 0b10);
            let is_known = usize::from(pair[0].contains_key(place));
            *if *is_removed { &mut removed } else { &mut set } += is_known;
        }
        assert!(set > 100 && removed > 20, "{set} set, {removed} removed");
    }
}

#[test]
fn the_generated_schema_describes_the_sstables() {
    let temp = TempDir::new().unwrap();
    let mut options = options(Shape::TimeSeries, temp.path());
    options.gc_grace_seconds = 77;
    options.ttl_s = 86_400;
    options.keyspace = "ks".to_owned();
    options.table = "readings".to_owned();
    let report = run(options);
    let found = Table::open(&report.table_directory).unwrap();
    let inputs: Vec<PathBuf> = report
        .sstables
        .iter()
        .map(|s| s.data_path.clone())
        .collect();
    assert_eq!(found.sstables(), inputs);
    let table = found.schema().unwrap();
    assert_eq!(
        (table.keyspace.as_deref(), table.name.as_str()),
        (Some("ks"), "readings")
    );
    let id: String = table
        .id
        .unwrap()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    assert!(
        report
            .table_directory
            .ends_with(format!("ks/readings-{id}"))
    );
    assert_eq!(table.options.gc_grace_seconds, Some(77));
    assert_eq!(table.options.default_time_to_live, Some(86_400));
    assert_eq!(
        table.options.compression.as_ref().unwrap().chunk_length,
        Some(16 << 10)
    );
    let names: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["sensor", "bucket", "at", "note", "reading"]);
}

struct Stop;

impl Observer for Stop {
    fn is_cancelled(&self) -> bool {
        true
    }

    fn progress(&mut self, _read_bytes: u64, _rows: u64, _partitions: u64) {}
}

/// Cancels after the second SSTable has been started.
struct StopInSecond {
    rows: u64,
    of_one: u64,
}

impl Observer for StopInSecond {
    fn is_cancelled(&self) -> bool {
        self.rows > self.of_one
    }

    fn progress(&mut self, _read_bytes: u64, rows: u64, _partitions: u64) {
        self.rows = rows;
    }
}

#[test]
fn an_incomplete_run_leaves_nothing() {
    let temp = TempDir::new().unwrap();
    let mut options = options(Shape::KeyValue, &temp.path().join("new"));
    options.amount = Amount::Rows(3000);
    let observers: [&mut dyn Observer; 2] = [
        &mut Stop,
        &mut StopInSecond {
            rows: 0,
            of_one: 3000,
        },
    ];
    for observer in observers {
        let error = generate(IoOptions::default(), options.clone(), observer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
    }
}

#[test]
fn existing_files_are_not_touched() {
    let temp = TempDir::new().unwrap();
    let report = run(options(Shape::KeyValue, temp.path()));
    let before = files(&report.table_directory);
    let again = options(Shape::KeyValue, temp.path());
    let error = generate(IoOptions::default(), again, &mut NoObserver).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("already exists"), "{error}");
    assert_eq!(files(&report.table_directory), before);
}

#[test]
fn invalid_options_are_refused() {
    type Change = fn(&mut GenerateOptions);
    let cases: [(Shape, Change, &str); 14] = [
        (Shape::KeyValue, |o| o.overlap = 1.5, "overlap 1.5"),
        (
            Shape::KeyValue,
            |o| o.compressibility = f64::NAN,
            "compressibility NaN",
        ),
        (Shape::Wide, |o| o.deletions = -0.1, "deletions -0.1"),
        (Shape::Tombstones, |o| o.updates = 1.1, "updates 1.1"),
        (
            Shape::Tombstones,
            |o| o.cell_tombstones = 2.0,
            "cell tombstones 2",
        ),
        (Shape::KeyValue, |o| o.sstables = 0, "number of SSTables 0"),
        (
            Shape::KeyValue,
            |o| o.rows_per_partition = 2,
            "one row per partition",
        ),
        (
            Shape::KeyValue,
            |o| o.keyspace = "Ks".to_owned(),
            "keyspace \"Ks\"",
        ),
        (
            Shape::KeyValue,
            |o| o.table = "../x".to_owned(),
            "table \"../x\"",
        ),
        (
            Shape::KeyValue,
            |o| o.first_timestamp_us = -1,
            "first timestamp -1",
        ),
        (
            Shape::Wide,
            |o| o.rows_per_partition = 1 << 30,
            "has room for",
        ),
        (Shape::TimeSeries, |o| o.ttl_s = 0, "TTL of 0 s"),
        (Shape::TimeSeries, |o| o.ttl_s = 5, "too few milliseconds"),
        (
            Shape::TimeSeries,
            |o| {
                o.version = Version::Nb;
                o.now_s = 2_147_000_000;
            },
            "for version nb",
        ),
    ];
    let temp = TempDir::new().unwrap();
    for (shape, change, message) in cases {
        let mut options = options(shape, &temp.path().join("x"));
        change(&mut options);
        let error = generate(IoOptions::default(), options, &mut NoObserver).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains(message), "{error}");
    }
    let mut options = options(Shape::KeyValue, &temp.path().join("x"));
    options.version = Version::Na;
    let error = generate(IoOptions::default(), options, &mut NoObserver).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
}

//! Compares `compactor::metadata` with the metadata that Cassandra's readers found in the same files.
//!
//! `testdata/dump` holds some; with `COMPACTOR_GOLDEN_DIR` set to a directory that the interop
//! crate's `interop-inputs` filled, all SSTables there are compared as well.

use std::path::{Path, PathBuf};
use std::{env, fs};

use compactor::metadata::{MetadataOptions, SstableMetadata, compression_ratio, read, text};
use compactor_io::{Io, IoOptions};
use compactor_sstable::types::CqlType;
use serde_json::{Value, json};

fn io() -> Io {
    Io::new(IoOptions::default()).expect("an I/O layer")
}

fn data_in(directory: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(directory).ok()?;
    let mut paths = entries.map(|entry| entry.expect("an entry").path());
    paths.find(|path| path.to_string_lossy().ends_with("-Data.db"))
}

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/dump")
}

fn case(io: &Io, name: &str, options: &MetadataOptions) -> SstableMetadata {
    let data = data_in(&testdata().join(name)).expect("a Data.db");
    read(io, &data, options).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Our metadata in the shape of `MetadataJson.java`, without the fields that it omits.
fn in_cassandras_shape(ours: &SstableMetadata) -> Value {
    let stats = &ours.stats;
    let or_max = |time: Option<i64>| time.unwrap_or(i64::MAX);
    let histogram = |found: &compactor::metadata::HistogramSummary| {
        let buckets = found.buckets.iter();
        buckets
            .map(|b| format!("{}:{} ", b.up_to.unwrap_or(-1), b.count))
            .collect::<String>()
    };
    let points = stats.tombstone_drop_times.points.iter();
    let drop_times: Vec<String> = points.map(|p| format!("{}:{}", p.at_s, p.count)).collect();
    let intervals = stats.commit_log_intervals.iter().map(|i| {
        let place = |p: compactor::metadata::CommitLogPlace| {
            format!(
                "CommitLogPosition(segmentId={}, position={})",
                p.segment_id, p.position
            )
        };
        format!("{}={}", place(i.start), place(i.end))
    });
    let columns = |columns: &[compactor::metadata::ColumnMetadata]| {
        let columns = columns
            .iter()
            .map(|c| json!({"name": c.name, "type": c.column_type.class}));
        columns.collect::<Vec<_>>()
    };
    let header = &ours.header;
    let mut shape = json!({
        "compaction": { "cardinality": ours.estimated_cardinality },
        "header": {
            "clustering_types":
                header.clustering_types.iter().map(|t| t.class.clone()).collect::<Vec<_>>(),
            "key_type": header.key_type.class,
            "min_local_deletion_time": header.encoding_stats.min_local_deletion_time,
            "min_timestamp": header.encoding_stats.min_timestamp,
            "min_ttl": header.encoding_stats.min_ttl,
            "regular_columns": columns(&header.regular_columns),
            "static_columns": columns(&header.static_columns),
        },
        "stats": {
            "cells_per_partition": histogram(&stats.cells_per_partition),
            "commit_log_intervals": format!("{{{}}}", intervals.collect::<Vec<_>>().join(", ")),
            "compression_ratio": stats.recorded_compression_ratio.unwrap_or(-1.0),
            // Before oa these are in Summary.db, which MetadataJson.java does not read.
            "first_key": ours.first.as_ref().filter(|_| ours.version != "nb").map(|k| &k.hex),
            "last_key": ours.last.as_ref().filter(|_| ours.version != "nb").map(|k| &k.hex),
            "has_legacy_counter_shards": stats.has_legacy_counter_shards,
            "has_partition_level_deletions": stats.has_partition_level_deletions,
            "is_transient": stats.is_transient,
            "max_local_deletion_time": or_max(stats.max_local_deletion_time),
            "max_timestamp": stats.max_timestamp,
            "max_ttl": stats.max_ttl,
            "min_local_deletion_time": or_max(stats.min_local_deletion_time),
            "min_timestamp": stats.min_timestamp,
            "min_ttl": stats.min_ttl,
            "originating_host_id": stats.originating_host_id,
            "partition_sizes": histogram(&stats.partition_sizes),
            "pending_repair": stats.pending_repair,
            "repaired_at": stats.repaired_at,
            "sstable_level": stats.sstable_level,
            "token_space_coverage": stats.token_space_coverage,
            "tombstone_drop_times": drop_times.join(" "),
            "total_columns_set": stats.total_columns_set,
            "total_rows": stats.total_rows,
        },
        "uncompressed_length": ours.uncompressed_bytes,
        "validation": {
            "bloom_filter_fp_chance": ours.bloom_filter_fp_chance,
            "partitioner": ours.partitioner,
        },
    });
    if let Some(compression) = &ours.compression {
        let max = compression.max_compressed_length.unwrap_or(i32::MAX as u32);
        shape["compression"] = json!({
            "chunk_length": compression.chunk_length,
            "chunks": compression.chunks,
            "compressor": compression.compressor,
            "data_length": compression.uncompressed_bytes,
            "max_compressed_length": max,
            "options": compression.options,
        });
    }
    shape
}

const UNKNOWN: &str = "(a long value)";

/// `INCL_START_BOUND["00000001",null]` as kind and values in our text.
fn bound_in_text(bound: &str, types: &[String]) -> (bool, Vec<Option<String>>) {
    let at = bound.find('[').expect("values");
    let values: Vec<Option<String>> = serde_json::from_str(&bound[at..]).expect("JSON");
    let values = values.into_iter().zip(types).map(|(value, class)| {
        value.map(|hex| {
            // Long values are replaced by a hash.
            if hex.starts_with("sha256:") {
                return UNKNOWN.to_owned();
            }
            let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
            let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
            CqlType::parse(class).expect("a type").describe(&bytes)
        })
    });
    (bound.starts_with("INCL"), values.collect())
}

fn compare(io: &Io, data: &Path, expected: &Path, differing: &mut Vec<String>) {
    let expected = fs::read_to_string(expected).expect("the expected metadata");
    let mut expected: Value = serde_json::from_str(&expected).expect("JSON");
    let ours = read(io, data, &MetadataOptions::new(0))
        .unwrap_or_else(|e| panic!("{}: {e}", data.display()));
    // Cassandra adds this delta in 32 bits (EncodingStats.Serializer), so that it shows seconds beyond
    // 2038 as ones before 1970; its cells are correct nevertheless.
    let base = &mut expected["header"]["min_local_deletion_time"];
    if base.as_i64().is_some_and(|seconds| seconds < 0) {
        *base = json!(base.as_i64().map(|seconds| seconds + (1 << 32)));
    }
    let stats = expected["stats"].as_object_mut().expect("stats");
    for name in ["cells_per_partition", "partition_sizes"] {
        // The number of buckets follows the slash; ours are the non-empty ones.
        let text = stats[name].as_str().expect("a histogram");
        stats[name] = json!(text.split('/').next());
    }
    let types: Vec<String> = ours
        .header
        .clustering_types
        .iter()
        .map(|t| t.class.clone())
        .collect();
    let mut bound = |name: &str| {
        let bound = stats.remove(name).expect("a bound");
        bound_in_text(bound.as_str().expect("a bound"), &types)
    };
    let (start, end) = (bound("covered_start"), bound("covered_end"));
    let found = match &ours.stats.covered_clusterings {
        Some(c) => [&c.start, &c.end].map(|b| (b.is_inclusive, b.values.clone())),
        None => [(true, Vec::new()), (true, Vec::new())],
    };
    for (found, expected) in found.into_iter().zip([start, end]) {
        let is_same = found.0 == expected.0
            && found.1.len() == expected.1.len()
            && found
                .1
                .iter()
                .zip(&expected.1)
                .all(|(a, b)| a == b || b.as_deref() == Some(UNKNOWN));
        if !is_same {
            differing.push(format!("{}: {found:?} for {expected:?}", data.display()));
        }
    }
    differences(
        &data.display().to_string(),
        &in_cassandras_shape(&ours),
        &expected,
        differing,
    );
}

fn differences(at: &str, found: &Value, expected: &Value, differing: &mut Vec<String>) {
    match (found, expected) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let at = format!("{at} {key}");
                let get = |map: &serde_json::Map<String, Value>| {
                    map.get(key).cloned().unwrap_or_else(|| json!("(nothing)"))
                };
                differences(&at, &get(a), &get(b), differing);
            }
        }
        (a, b) if a == b => {}
        // serde_json sometimes parses the last digit of a fraction wrong.
        (Value::Number(a), Value::Number(b))
            if a.is_f64()
                && a.as_f64()
                    .zip(b.as_f64())
                    .is_some_and(|(a, b)| (a - b).abs() < 1e-15) => {}
        (a, b) => differing.push(format!("{at}: found {a}, expected {b}")),
    }
}

#[test]
fn equals_cassandras_metadata_on_committed_files() {
    let io = io();
    let mut differing = Vec::new();
    let mut cases = 0;
    for entry in fs::read_dir(testdata()).expect("testdata") {
        let directory = entry.expect("an entry").path();
        if let Some(data) = data_in(&directory) {
            compare(&io, &data, &directory.join("metadata.json"), &mut differing);
            cases += 1;
        }
    }
    assert_eq!(cases, 10);
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

#[test]
fn equals_cassandras_metadata_on_all_golden_files() {
    let Some(root) = env::var_os("COMPACTOR_GOLDEN_DIR") else {
        return;
    };
    let io = io();
    let list = |path: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(path).into_iter().flatten();
        entries.map(|e| e.expect("an entry").path()).collect()
    };
    let (mut differing, mut cases) = (Vec::new(), 0);
    for scenario in list(Path::new(&root))
        .iter()
        .flat_map(|version| list(version))
    {
        let mut directories = list(&scenario.join("inputs"));
        directories.push(scenario.join("compacted"));
        for directory in directories {
            let expected = PathBuf::from(format!("{}.metadata.json", directory.display()));
            if let Some(data) = data_in(&directory).filter(|_| expected.exists()) {
                compare(&io, &data, &expected, &mut differing);
                cases += 1;
            }
        }
    }
    println!("{cases} SSTables compared");
    assert!(cases > 0, "no SSTables in COMPACTOR_GOLDEN_DIR");
    assert!(
        differing.is_empty(),
        "{} differ:\n{}",
        differing.len(),
        differing.join("\n")
    );
}

#[test]
fn droppable_tombstones_by_grace_and_clock() {
    let io = io();
    let droppable = |now_s, gc_grace_s| {
        let options = MetadataOptions {
            gc_grace_s,
            ..MetadataOptions::new(now_s)
        };
        case(&io, "oa_ttl_edges", &options)
            .stats
            .estimated_droppable_tombstones
    };
    // 27 expiring livenesses and cells by 1700000640; two partitions of 10 cells at most.
    assert_eq!(droppable(1_700_000_640, 0), Some(27.0 / 20.0));
    assert_eq!(
        droppable(1_700_000_640 + 864_000, 864_000),
        Some(27.0 / 20.0)
    );
    assert_eq!(droppable(1_700_000_640, 864_000), Some(0.0));
    let halfway = droppable(1_700_000_300, 0).expect("a ratio");
    assert!(0.0 < halfway && halfway < 27.0 / 20.0, "{halfway}");
}

#[test]
fn sizes_on_disk_and_in_memory() {
    let io = io();
    let found = case(&io, "oa_composite_key", &MetadataOptions::new(0));
    let directory = testdata().join("oa_composite_key");
    let len = |name: &str| {
        let path = directory.join(format!("oa-1-big-{name}"));
        fs::metadata(path).expect("a component").len()
    };
    for component in &found.components {
        assert_eq!(component.bytes, len(&component.name), "{}", component.name);
    }
    let names: Vec<&str> = found.components.iter().map(|c| c.name.as_str()).collect();
    let all = [
        "CompressionInfo.db",
        "Data.db",
        "Filter.db",
        "Index.db",
        "Statistics.db",
        "Summary.db",
    ];
    assert_eq!(names, all);
    assert_eq!(
        found.total_bytes,
        all.iter().map(|name| len(name)).sum::<u64>()
    );
    let compression = found.compression.as_ref().expect("compression");
    assert_eq!(compression.compressed_bytes, len("Data.db"));
    assert_eq!(
        compression.ratio,
        len("Data.db") as f64 / compression.uncompressed_bytes as f64
    );
    assert_eq!(
        (compression.chunks, compression.offsets_memory_bytes),
        (1, 8)
    );
    // Checksums of four bytes per chunk make the difference.
    let recorded = found.stats.recorded_compression_ratio.expect("a ratio");
    let without_crc = (len("Data.db") - 4) as f64 / compression.uncompressed_bytes as f64;
    assert_eq!(recorded, without_crc);
    let filter = found.bloom_filter.as_ref().expect("a filter");
    assert_eq!(
        (filter.file_bytes, filter.memory_bytes + 8),
        (len("Filter.db"), len("Filter.db"))
    );
    let summary = found.index_summary.as_ref().expect("a summary");
    // The stored form adds a header of 24 bytes and both keys with their lengths to what is kept in memory.
    let first = found.first.as_ref().expect("a key").hex.len() as u64 / 2;
    let last = found.last.as_ref().expect("a key").hex.len() as u64 / 2;
    assert_eq!(
        summary.memory_bytes,
        len("Summary.db") - 24 - (4 + first) - (4 + last)
    );
}

#[test]
fn compression_ratio_of_several_is_weighted_by_bytes() {
    let io = io();
    let options = MetadataOptions::new(0);
    let all = ["oa_composite_key", "nb_random_mixed_2"].map(|name| case(&io, name, &options));
    let compressed: u64 = all
        .iter()
        .filter_map(|s| s.compression.as_ref())
        .map(|c| c.compressed_bytes)
        .sum();
    let uncompressed: u64 = all.iter().filter_map(|s| s.uncompressed_bytes).sum();
    assert_eq!(
        compression_ratio(&all),
        Some(compressed as f64 / uncompressed as f64)
    );
    assert_eq!(compression_ratio(&[]), None);
}

#[test]
fn keys_of_old_versions_come_from_the_summary() {
    let io = io();
    let found = case(&io, "nb_partition_deletions", &MetadataOptions::new(0));
    let (first, last) = (found.first.expect("a key"), found.last.expect("a key"));
    assert!(first.token < last.token);
    assert!(first.key.parse::<i32>().is_ok(), "{}", first.key);
}

#[test]
fn text_has_the_names_of_sstablemetadata() {
    let io = io();
    let found = case(&io, "oa_ttl_edges", &MetadataOptions::new(1_700_000_640));
    let text = text::render_all(&[found.clone(), found]);
    for line in [
        "Partitioner: org.apache.cassandra.dht.Murmur3Partitioner",
        "Bloom Filter FP chance: 0.01",
        "Minimum timestamp: 1970-01-01T00:00:00.000010Z (10)",
        "SSTable min local deletion time: 2023-11-14T22:14:59Z (1700000099)",
        "TTL min: 99 (1 minute 39 seconds)",
        "First token: -4069959284402364209 (1)",
        "Covered clusterings: [0, 8]",
        "Estimated droppable tombstones: 1.35 (gc_grace_seconds 0)",
        "totalRows: 18",
        "   1700000520 (2023-11-14T22:22:00Z) |     9 ( 33) OOOOOOOOOOOOOOOOOOOOOOOOOOOOOO",
        "   50th      149",
        "ClusteringTypes: [org.apache.cassandra.db.marshal.Int32Type]",
        "RegularColumns: v:org.apache.cassandra.db.marshal.UTF8Type",
        "SSTables: 2",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "{line}\nin\n{text}"
        );
    }
}

#[test]
fn damage_names_the_component() {
    let io = io();
    let directory = tempfile::tempdir().expect("a directory");
    let is_needed = [
        ("Statistics.db", true),
        ("CompressionInfo.db", true),
        ("Filter.db", false),
        ("Summary.db", false),
    ];
    for (component, is_needed) in is_needed {
        for entry in fs::read_dir(testdata().join("oa_ttl_edges")).expect("testdata") {
            let path = entry.expect("an entry").path();
            fs::copy(
                &path,
                directory.path().join(path.file_name().expect("a name")),
            )
            .expect("copy");
        }
        let path = directory.path().join(format!("oa-1-big-{component}"));
        let bytes = fs::read(&path).expect("a component");
        fs::write(&path, &bytes[..bytes.len() - 1]).expect("a component");
        let data = directory.path().join("oa-1-big-Data.db");
        let message = match read(&io, &data, &MetadataOptions::new(0)) {
            Ok(metadata) => {
                assert!(!is_needed, "{component}");
                metadata.notes.join("\n")
            }
            Err(error) => {
                assert!(is_needed, "{error}");
                assert_eq!(error.kind(), compactor::ErrorKind::Corrupt, "{error}");
                error.to_string()
            }
        };
        assert!(message.contains(component), "{message}");
    }
    fs::remove_file(directory.path().join("oa-1-big-Statistics.db")).expect("removed");
    let data = directory.path().join("oa-1-big-Data.db");
    let error = read(&io, &data, &MetadataOptions::new(0)).expect_err("no Statistics.db");
    assert_eq!(error.kind(), compactor::ErrorKind::Corrupt, "{error}");
}

//! Random tables as real SSTables, merged by jobs: compared with the model, and with settings that must not
//! change a byte.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};

use compactor_engine::input::Scan;
use compactor_engine::job::{OutputCompression, OutputSplit, Scope, TombstoneOption};
use compactor_io::ReadMode;
use compactor_sstable::Version;
use compactor_sstable::compression::codec::Codec;
use compactor_sstable::compression::info::CompressionParams;
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::schema::{self, Table};
use compactor_sstable::types::CqlType;
use compactor_testkit::machine::disk_directory;

use crate::files::{
    contents, io, key_value_schema, key_value_source, key_value_sstables, merge_files, options,
    scan, sstables, write_sstable,
};
use crate::visible::{Visible, generate as generate_consistent, visible};
use compactor_testkit::campaign;
use compactor_testkit::model::case::{Case, PurgePlan, Source, moderate_case};
use compactor_testkit::model::choices::{Choices, check};
use compactor_testkit::model::decode::decode;
use compactor_testkit::model::engine::serialization_header;
use compactor_testkit::model::generate::TIMESTAMP;
use compactor_testkit::model::naive;
use compactor_testkit::model::table::{
    Base, Column, ColumnData, ColumnType, Header, Partition, Row, Schema, Unfiltered, hex,
};

fn compression(choices: &mut Choices) -> Option<CompressionParams> {
    let codec = choices.pick(&[Codec::Lz4, Codec::Snappy, Codec::Deflate, Codec::Noop]);
    let mut params = CompressionParams::new(codec, choices.pick(&[4096, 16_384, 1 << 20]));
    if choices.chance(40) {
        params.max_compressed_len =
            CompressionParams::max_compressed_len_for_ratio(params.chunk_len, 1.1);
    }
    choices.chance(75).then_some(params)
}

/// A merge of files equals the merge of their content: one, two and three inputs, compressed or not, with a
/// complete scope, with overlapping SSTables, or without purging.
#[test]
fn jobs_equal_the_model() {
    let directory = disk_directory();
    let io = io();
    let verify = |case: &Case| {
        let inputs = tempfile::tempdir_in(directory.path()).unwrap();
        let output = tempfile::tempdir_in(directory.path()).unwrap();
        let mut choices = Choices::from_seed(case.sources.len() as u64);
        let mut paths = Vec::new();
        for (number, source) in case.sources.iter().enumerate() {
            let compression = compression(&mut choices);
            let id = 100 - number as u32;
            paths.extend(write_sstable(
                inputs.path(),
                id,
                &case.schema,
                source,
                compression,
            ));
        }
        if paths.is_empty() {
            return Ok(());
        }
        let mut options = options(&paths, output.path());
        options.now_s = case.settings.now_s;
        options.column_index_size = Some(case.settings.column_index_size);
        options.compression = match compression(&mut choices) {
            Some(params) => OutputCompression::Params(params),
            None => OutputCompression::None,
        };
        options.version = Some(case.settings.output.version);
        options.strip_ttl = case.settings.strips_ttl;
        if let PurgePlan::All = case.purge {
            options.scope = Scope::Complete;
            options.gc_before_s = Some(case.settings.gc_before_s);
        }
        let outcome = merge_files(&io, options).map_err(|e| e.to_string())?;
        let read = |path: &Path| {
            let mut scan = Scan::open(&io, path, ReadMode::Buffered).unwrap();
            decode(&case.schema, scan.cursor()).map_err(|e| e.to_string())
        };
        let found = match outcome.outputs.first() {
            None => BTreeMap::new(),
            Some(written) => read(&written.descriptor.path(compactor_sstable::Component::Data))?,
        };
        // The deltas of the output are relative to its inputs' minima, which the model does not know.
        let expected = case.expected();
        for (key, partition) in &expected {
            let expected = naive::as_read(&case.schema, partition);
            match found
                .get(key)
                .map(|found| naive::as_read(&case.schema, found))
            {
                Some(found) if found == expected => {}
                found => {
                    let key = hex(&key.1);
                    return Err(format!("{key}: expected {expected:?}\nfound {found:?}"));
                }
            }
        }
        if case.settings.strips_ttl {
            let mut with_ttl = (0, 0);
            for path in &paths {
                let (cells, rows) = naive::count_ttl(&case.schema, &read(path)?);
                with_ttl = (with_ttl.0 + cells, with_ttl.1 + rows);
            }
            let purged = outcome.counts.purged;
            let stripped = (purged.stripped_cells, purged.stripped_rows);
            if stripped != with_ttl {
                return Err(format!("stripped {stripped:?} of {with_ttl:?}"));
            }
        }
        if found.len() != expected.len() {
            return Err(format!("{} partitions but {}", found.len(), expected.len()));
        }
        Ok(())
    };
    let generate = |choices: &mut Choices| {
        let mut case = moderate_case(choices, 3);
        if let PurgePlan::EvenBefore(_) = case.purge {
            case.purge = PurgePlan::Nothing;
        }
        // A job refuses to strip tables with counters.
        case.settings.strips_ttl &= !case.schema.columns.iter().any(Column::is_counter);
        case
    };
    check("jobs", 60, generate, verify, Case::simpler);
}

/// Threads, memory, readahead and the order in which inputs are given.
#[test]
fn settings_of_a_job_do_not_matter() {
    let directory = disk_directory();
    let io = io();
    let inputs = directory.path().join("inputs");
    let mut paths = key_value_sstables(&inputs, 3000, 700);
    let before = contents(&inputs);
    let mut choices = Choices::from_seed(campaign::first_seed());
    let mut first: Option<BTreeMap<PathBuf, Option<Vec<u8>>>> = None;
    for (threads, memory_bytes, readahead_bytes) in [
        (1, 64 << 20, None),
        (4, 1 << 20, None),
        (2, 256 << 10, Some(0)),
        (8, 1 << 16, Some(1)),
        (3, 8 << 20, Some(100_000)),
        (2, 0, None),
        (0, 2 << 20, Some(1 << 30)),
    ] {
        for at in (1..paths.len()).rev() {
            paths.swap(at, choices.below(at + 1));
        }
        let output = directory.path().join("output");
        let mut options = options(&paths, &output);
        options.threads = threads;
        options.memory_bytes = memory_bytes;
        options.readahead_bytes = readahead_bytes;
        merge_files(&io, options).unwrap();
        assert_eq!(sstables(&output).len(), 1);
        assert_eq!(scan(&sstables(&output)[0]).unwrap(), 3000);
        let files = contents(&output);
        std::fs::remove_dir_all(&output).unwrap();
        match &first {
            None => first = Some(files),
            Some(first) => {
                let names =
                    |files: &BTreeMap<PathBuf, _>| files.keys().cloned().collect::<Vec<_>>();
                assert_eq!(names(first), names(&files));
                for (name, bytes) in &files {
                    assert!(first[name] == *bytes, "{} differs", name.display());
                }
            }
        }
    }
    assert!(contents(&inputs) == before, "inputs have changed");
}

/// Merges some SSTables, with the others given as overlapping, and then the result with the others: the
/// visible data is that of all, whatever was removed because the others shadow it. Uses key ranges, Bloom
/// filters and statistics of real files, and inputs that are dropped without being read.
#[test]
fn jobs_purge_nothing_that_is_visible() {
    let directory = disk_directory();
    let io = io();
    let verify = |case: &Case| {
        let place = tempfile::tempdir_in(directory.path()).unwrap();
        let write = |sources: &[Source], name: &str, first: u32| -> Vec<PathBuf> {
            let at = place.path().join(name);
            (first..)
                .zip(sources)
                .filter_map(|(id, source)| write_sstable(&at, id, &case.schema, source, None))
                .collect()
        };
        let (inside, outside) = case.sources.split_at(case.sources.len().div_ceil(2));
        let (inside, outside) = (write(inside, "in", 1), write(outside, "out", 100));
        if inside.is_empty() {
            return Ok(());
        }
        let merge = |inputs: &[PathBuf], output: &str, scope: Scope, provided| {
            let mut options = options(inputs, &place.path().join(output));
            options.overlapping_tombstones = provided;
            options.strip_ttl = case.settings.strips_ttl;
            options.now_s = case.settings.now_s;
            options.gc_before_s = match scope {
                Scope::Unknown => None,
                _ => Some(case.settings.gc_before_s.min(case.settings.now_s)),
            };
            if scope == Scope::RestOfSet {
                let all = inside.iter().chain(&outside);
                // As users name directories.
                let spelled =
                    |path: &PathBuf| path.with_file_name(".").join(path.file_name().unwrap());
                all.for_each(|path| options.overlapping.name(&spelled(path)));
            }
            options.scope = scope;
            let outcome = merge_files(&io, options).map_err(|e| e.to_string())?;
            let descriptor = outcome
                .outputs
                .into_iter()
                .next()
                .map(|written| written.descriptor);
            Ok::<_, String>(descriptor.map(|d| d.path(compactor_sstable::Component::Data)))
        };
        let see = |path: Option<PathBuf>| {
            let Some(path) = path else {
                return Ok(Visible::new());
            };
            let mut scan = Scan::open(&io, &path, ReadMode::Buffered).unwrap();
            let table = decode(&case.schema, scan.cursor()).map_err(|e| e.to_string())?;
            Ok::<_, String>(visible(&table, case.settings.now_s))
        };
        let all: Vec<PathBuf> = inside.iter().chain(&outside).cloned().collect();
        let none = TombstoneOption::None;
        let expected = see(merge(&all, "kept", Scope::Unknown, none)?)?;
        let whole = see(merge(&all, "whole", Scope::Complete, none)?)?;
        if expected != whole {
            return Err(format!("the whole table: {}", differing(&expected, &whole)));
        }
        for provided in [none, TombstoneOption::Row, TombstoneOption::Cell] {
            let name = provided.name();
            let scope = Scope::Overlapping(outside.clone());
            let purged = merge(&inside, &format!("purged-{name}"), scope, provided)?;
            let of_set = format!("purged-of-set-{name}");
            let of_set = merge(&inside, &of_set, Scope::RestOfSet, provided)?;
            let bytes = |path: &Option<PathBuf>| path.as_ref().map(|path| fs::read(path).unwrap());
            if bytes(&purged) != bytes(&of_set) {
                return Err(format!(
                    "overlapping, {name}: differs if they are the rest of a set"
                ));
            }
            let later: Vec<PathBuf> = purged.into_iter().chain(outside.clone()).collect();
            if later.is_empty() {
                continue;
            }
            let joined = see(merge(
                &later,
                &format!("joined-{name}"),
                Scope::Unknown,
                none,
            )?)?;
            if expected != joined {
                return Err(format!(
                    "overlapping, {name}: {}",
                    differing(&expected, &joined)
                ));
            }
        }
        Ok(())
    };
    check(
        "visible jobs",
        40,
        generate_consistent,
        verify,
        Case::simpler,
    );
}

/// More inputs than memory or descriptors allow.
#[test]
fn many_inputs_in_little_memory() {
    let directory = disk_directory();
    let inputs = directory.path().join("inputs");
    let schema = key_value_schema();
    let paths: Vec<PathBuf> = (1..=70)
        .map(|id| {
            // Each partition is in three of them.
            let first = id as i32 * 10;
            let source = key_value_source(u64::from(id), first..first + 30, 400);
            write_sstable(&inputs, id, &schema, &source, None).unwrap()
        })
        .collect();
    let output = directory.path().join("output");
    let mut options = options(&paths, &output);
    options.memory_bytes = 1 << 20;
    let outcome = merge_files(&io(), options).unwrap();
    assert!(outcome.passes > 1);
    assert_eq!(outcome.counts.partitions_read, 70 * 30);
    assert_eq!(scan(&sstables(&output)[0]).unwrap(), 720);
}

/// Only versions before `oa` can represent partition deletions with negative timestamps, and only later ones times
/// after 2038: passes must use a version that can.
#[test]
fn passes_hold_deletions_before_1970_and_after_2038() {
    let directory = disk_directory();
    let inputs = directory.path().join("inputs");
    let schema = key_value_schema();
    let write = |id: u32, keys: Range<i32>, len, version, (timestamp, seconds)| {
        let mut source = key_value_source(u64::from(id), keys, len);
        source.header.version = version;
        for partition in source.table.values_mut() {
            partition.deletion = DeletionTime {
                marked_for_delete_at: timestamp,
                local_deletion_time: seconds,
            };
        }
        write_sstable(&inputs, id, &schema, &source, None).unwrap()
    };
    let early = |id: u32| write(id, 0..30, 40, Version::Nb, (-i64::from(id), 1000));
    let mut paths: Vec<PathBuf> = (1..=5).map(early).collect();
    let merge = |paths: &[PathBuf], name: &str, version, open_files| {
        let output = directory.path().join(name);
        let mut options = options(paths, &output);
        options.version = Some(version);
        options.open_files = open_files;
        let outcome = merge_files(&io(), options).unwrap();
        (outcome.passes, contents(&output))
    };
    let same = |paths: &[PathBuf], version| {
        let name = |passes: &str| format!("{version}-{}-{passes}", paths.len());
        let (one, expected) = merge(paths, &name("one"), version, None);
        let (several, found) = merge(paths, &name("several"), version, Some(0));
        assert!(one == 1 && several > 1);
        assert!(found == expected);
    };
    same(&paths, Version::Nb);
    // Data that a later deletion covers must be kept only until they meet, in the last pass.
    paths.push(write(6, 0..30, 400, Version::Nb, (1, 1000)));
    same(&paths, Version::Oa);
    // A small input of a later version is in the first pass.
    paths.push(write(7, 0..1, 40, Version::Oa, (1, 1000)));
    same(&paths, Version::Oa);

    let far = |id: u32| write(id, 0..30, 40, Version::Oa, (i64::from(id), 3_000_000_000));
    let mut paths: Vec<PathBuf> = (11..=15).map(far).collect();
    same(&paths, Version::Oa);
    paths.push(write(16, 0..30, 400, Version::Oa, (100, 1000)));
    same(&paths, Version::Nb);
}

/// The table of a model's SSTables; each of its columns may have been dropped, and added again.
fn with_drops(schema: &Schema, seed: u64) -> Table {
    let mut choices = Choices::from_seed(seed);
    let header = Header {
        version: Version::Oa,
        min_timestamp: 0,
        min_local_deletion_time: 0,
        min_ttl: 0,
        columns: (0..schema.columns.len()).collect(),
    };
    let header = serialization_header(schema, &header);
    let mut columns = vec!["k int".to_owned()];
    let (mut key, mut order) = (vec!["k".to_owned()], Vec::new());
    for (number, (column, header)) in
        (0..).zip(schema.clustering.iter().zip(&header.clustering_types))
    {
        let (base, direction) = match &header.cql_type {
            CqlType::Reversed(base) => (base.to_string(), "DESC"),
            base => (base.to_string(), "ASC"),
        };
        assert_eq!(column.is_reversed, direction == "DESC");
        columns.push(format!("n{number} {base}"));
        key.push(format!("n{number}"));
        order.push(format!("n{number} {direction}"));
    }
    let mut drops = String::new();
    for (of_kind, suffix) in [
        (&header.static_columns, " static"),
        (&header.regular_columns, ""),
    ] {
        for column in of_kind {
            let name = format!("\"{}\"", String::from_utf8_lossy(&column.name));
            let definition = format!("{name} {}{suffix}", column.column_type.cql_type);
            if choices.chance(30) {
                let at = TIMESTAMP - 1 + choices.below(6) as i64;
                drops += &format!("ALTER TABLE ks.t DROP {name} USING TIMESTAMP {at};");
                if choices.chance(50) {
                    drops += &format!("ALTER TABLE ks.t ADD {definition};");
                }
            }
            columns.push(definition);
        }
    }
    let order = if order.is_empty() {
        String::new()
    } else {
        format!(" WITH CLUSTERING ORDER BY ({})", order.join(", "))
    };
    let (columns, key) = (columns.join(", "), key.join(", "));
    let cql = format!(
        "CREATE TYPE ks.person (a int, b text, c bigint); \
         CREATE TABLE ks.t ({columns}, PRIMARY KEY ({key})){order}; {drops}"
    );
    let parsed = schema::Schema::parse(&cql);
    let parsed = parsed.unwrap_or_else(|error| panic!("{error}: {cql}"));
    parsed.only_table().unwrap().clone()
}

/// A merge in passes of two inputs writes what a merge in a single pass does, with the same counts: without counters and
/// shadowable deletions, for which the order of merges matters.
#[test]
fn passes_equal_a_single_pass() {
    let directory = disk_directory();
    let io = io();
    let verify = |(case, seed): &(Case, u64)| {
        let table = with_drops(&case.schema, *seed);
        let place = tempfile::tempdir_in(directory.path()).unwrap();
        let inputs = place.path().join("inputs");
        let written = (1..)
            .zip(&case.sources)
            .filter_map(|(id, source)| write_sstable(&inputs, id, &case.schema, source, None));
        let paths: Vec<PathBuf> = written.collect();
        if paths.is_empty() {
            return Ok(());
        }
        let merge = |name: &str, open_files| {
            let output = place.path().join(name);
            let mut options = options(&paths, &output);
            options.now_s = case.settings.now_s;
            options.strip_ttl = case.settings.strips_ttl;
            options.strict_liveness = seed.is_multiple_of(2);
            options.table = Some(table.clone());
            options.open_files = open_files;
            options.split = match seed % 3 {
                0 => OutputSplit::Count(NonZeroUsize::new(3).unwrap()),
                1 => OutputSplit::Tokens(vec![i64::MIN / 2, 0, i64::MAX / 2]),
                _ => OutputSplit::None,
            };
            if let PurgePlan::All = case.purge {
                options.scope = Scope::Complete;
                options.gc_before_s = Some(case.settings.gc_before_s);
            }
            // SSTables that have wholly expired are not read.
            let are_all_read = options.gc_before_s.is_none();
            let outcome = merge_files(&io, options).map_err(|e| e.to_string())?;
            if open_files.is_none() {
                assert_eq!(outcome.passes, 1);
            } else if are_all_read {
                assert_eq!(outcome.passes > 1, paths.len() > 2);
            }
            let counts = outcome.counts;
            let counts = (counts.rows_read, counts.markers_read, counts.purged);
            Ok::<_, String>((contents(&output), counts))
        };
        let (one, expected) = merge("one", None)?;
        let (several, found) = merge("several", Some(0))?;
        if found != expected {
            return Err(format!("counts {found:?}, not {expected:?}"));
        }
        let differing: Vec<_> = one
            .keys()
            .chain(several.keys())
            .filter(|name| one.get(*name) != several.get(*name))
            .collect();
        if differing.is_empty() {
            Ok(())
        } else {
            Err(format!("{differing:?} differ"))
        }
    };
    let generate = |choices: &mut Choices| {
        let mut case = loop {
            let case = moderate_case(choices, 5);
            let has_counters = case.schema.columns.iter().any(Column::is_counter);
            if case.sources.len() > 2 && !has_counters {
                break case;
            }
        };
        let tables = case.sources.iter_mut().map(|source| &mut source.table);
        for partition in tables.flat_map(|table| table.values_mut()) {
            partition.static_row.is_shadowable = false;
            for unfiltered in &mut partition.unfiltereds {
                if let Unfiltered::Row { row, .. } = unfiltered {
                    row.is_shadowable = false;
                }
            }
        }
        (case, choices.number())
    };
    check("passes", 400, generate, verify, |(case, seed), fails| {
        case.simpler(&mut |case| fails((case, *seed)))
    });
}

/// A table whose column `v` was dropped.
fn table_without_v() -> Table {
    let cql = "CREATE TABLE k.t (k int, c int, v blob, m map<int, int>, PRIMARY KEY (k, c)); \
               ALTER TABLE k.t DROP v USING TIMESTAMP 10;";
    let table = schema::Schema::parse(cql).unwrap();
    table.only_table().unwrap().clone()
}

/// Schema of SSTables of that table, `v` included.
fn schema_with_v() -> Schema {
    let mut schema = key_value_schema();
    schema.columns.push(Column {
        name: b"m".to_vec(),
        column_type: ColumnType::Map(Base::Int, Base::Int),
        is_static: false,
    });
    schema
}

const DELETED: DeletionTime = DeletionTime {
    marked_for_delete_at: 2,
    local_deletion_time: 1000,
};

/// Where several inputs have a partition, Cassandra drops boundaries with equal deletions, also if all data of the
/// others is that of a dropped column. A pass of those others must not remove the partition.
#[test]
fn passes_keep_partitions_of_dropped_data() {
    let directory = disk_directory();
    let inputs = directory.path().join("inputs");
    let schema = schema_with_v();
    // The first pass merges these two, which are the smallest.
    let mut paths: Vec<PathBuf> = (1..=2)
        .map(|id| {
            let source = key_value_source(u64::from(id), 0..30, 4);
            write_sstable(&inputs, id, &schema, &source, None).unwrap()
        })
        .collect();
    let live = DeletionTime::LIVE;
    let marker = |kind, n, close, open| Unfiltered::Marker {
        kind,
        bound: vec![Some(vec![0, 0, 0, n])],
        close,
        open,
    };
    let (start, end) = (
        marker(Kind::InclStartBound, 2, live, DELETED),
        marker(Kind::InclEndBound, 4, DELETED, live),
    );
    let boundary = marker(Kind::InclEndExclStartBoundary, 3, DELETED, DELETED);
    let mut with_boundary = key_value_source(3, 0..30, 4);
    for partition in with_boundary.table.values_mut() {
        partition.unfiltereds = vec![start.clone(), boundary.clone(), end.clone()];
    }
    paths.push(write_sstable(&inputs, 3, &schema, &with_boundary, None).unwrap());
    let lens = paths.iter().map(|path| fs::metadata(path).unwrap().len());
    assert_eq!(lens.clone().max(), lens.clone().next_back());
    for (passes, open_files) in [(1, None), (2, Some(0))] {
        let output = directory.path().join(format!("in {passes}"));
        let mut options = options(&paths, &output);
        options.table = Some(table_without_v());
        options.open_files = open_files;
        let outcome = merge_files(&io(), options).unwrap();
        assert_eq!(outcome.passes, passes);
        assert_eq!(outcome.counts.purged.of_dropped_columns, 60);
        let merged = read(&schema, &sstables(&output)[0]);
        assert_eq!(merged.len(), 30);
        for partition in merged.values() {
            assert_eq!(partition.unfiltereds, [start.clone(), end.clone()]);
        }
    }
}

/// Cassandra does not read rows with nothing but data of a dropped column: the row of another input is then the only
/// one, and keeps a deletion of its map that is no newer than its own.
#[test]
fn rows_of_dropped_data_are_not_merged() {
    let directory = disk_directory();
    let inputs = directory.path().join("inputs");
    let schema = schema_with_v();
    let map = ColumnData {
        deletion: DELETED,
        cells: Vec::new(),
    };
    let deleted = Unfiltered::Row {
        clustering: vec![Some(vec![0, 0, 0, 1])],
        row: Row {
            deletion: DELETED,
            columns: [(1, map)].into(),
            ..Row::empty()
        },
    };
    let dropped = key_value_source(1, 0..30, 4);
    let mut with_deletion = key_value_source(2, 0..30, 4);
    with_deletion.header.columns = vec![0, 1];
    for partition in with_deletion.table.values_mut() {
        partition.unfiltereds = vec![deleted.clone()];
    }
    let paths: Vec<PathBuf> = (1..)
        .zip([&dropped, &with_deletion])
        .map(|(id, source)| write_sstable(&inputs, id, &schema, source, None).unwrap())
        .collect();
    let output = directory.path().join("output");
    let mut options = options(&paths, &output);
    options.table = Some(table_without_v());
    let outcome = merge_files(&io(), options).unwrap();
    assert_eq!(outcome.counts.rows_read, 60);
    assert_eq!(outcome.counts.purged.of_dropped_columns, 30);
    let merged = read(&schema, &sstables(&output)[0]);
    assert_eq!(merged.len(), 30);
    for partition in merged.values() {
        assert_eq!(partition.unfiltereds, std::slice::from_ref(&deleted));
    }
}

/// The table of an SSTable that has all columns of the schema.
fn read(schema: &Schema, data: &Path) -> BTreeMap<(i64, Vec<u8>), Partition> {
    let mut scan = Scan::open(&io(), data, ReadMode::Buffered).unwrap();
    decode(schema, scan.cursor()).unwrap()
}

/// Concurrent merges into one directory: each writes an SSTable of its own or reports why not.
#[test]
fn merges_into_one_directory_at_the_same_time() {
    let directory = disk_directory();
    let paths = key_value_sstables(&directory.path().join("inputs"), 300, 300);
    let output = directory.path().join("output");
    let mut expected = None;
    for _ in 0..campaign::cases(5) {
        let results: Vec<_> = std::thread::scope(|scope| {
            let merge = || merge_files(&io(), options(&paths, &output)).map(|_| ());
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(merge)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let succeeded = results.iter().filter(|result| result.is_ok()).count();
        assert!(succeeded > 0, "{results:?}");
        let found = sstables(&output);
        assert_eq!(found.len(), succeeded, "{results:?}");
        for path in &found {
            let bytes = std::fs::read(path).unwrap();
            assert!(*expected.get_or_insert_with(|| bytes.clone()) == bytes);
            scan(path).unwrap();
        }
        let files = contents(&output);
        assert_eq!(files.len() % succeeded, 0, "{:?}", files.keys());
        assert!(files.values().all(Option::is_some), "{:?}", files.keys());
        std::fs::remove_dir_all(&output).unwrap();
    }
}

/// Rows that differ.
fn differing(expected: &Visible, found: &Visible) -> String {
    let places: BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    let lines = places.into_iter().filter_map(|place| {
        let (expected, found) = (expected.get(place), found.get(place));
        (expected != found).then(|| format!("{place:?}: {expected:?}\nbut {found:?}"))
    });
    lines.collect::<Vec<_>>().join("\n")
}

//! Merges with overlapping SSTables that are tombstone sources.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use compactor_engine::Error;
use compactor_engine::input::Scan;
use compactor_engine::job::{MergeJob, MergeOptions, Scope, TombstoneOption};
use compactor_io::ReadMode;
use compactor_sstable::Component;
use compactor_sstable::data::cell::Liveness;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::statistics::Statistics;
use compactor_sstable::statistics::stats::StatsMetadata;
use compactor_testkit::machine::disk_directory;

use crate::counter_maps::counter;
use crate::files::{
    contents, io, key_value_schema, key_value_source, merge_files, options, sstables, write_sstable,
};
use crate::regressions::live_cell;
use crate::visible;
use compactor_testkit::model::case::{Case, Source};
use compactor_testkit::model::choices::check;
use compactor_testkit::model::decode::decode;
use compactor_testkit::model::naive::{self, Purge};
use compactor_testkit::model::table::{
    Base, Column, ColumnData, ColumnType, Partition, Row, Schema, Table, Unfiltered, hex,
};

const OPTIONS: [TombstoneOption; 2] = [TombstoneOption::Row, TombstoneOption::Cell];

/// Writes a case's SSTables: those to merge, and one or two overlapping ones.
fn write(case: &Case, place: &Path) -> Option<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (inside, outside) = split(case);
    let files = |sources: &[Source], name: &str, first: u32| -> Vec<PathBuf> {
        let numbered = sources.iter().zip(first..);
        numbered
            .filter_map(|(source, id)| {
                write_sstable(&place.join(name), id, &case.schema, source, None)
            })
            .collect()
    };
    let (inside, outside) = (files(inside, "in", 1), files(outside, "out", 100));
    (!inside.is_empty()).then_some((inside, outside))
}

fn split(case: &Case) -> (&[Source], &[Source]) {
    let overlapping = (case.sources.len() / 2).min(2);
    case.sources.split_at(case.sources.len() - overlapping)
}

fn overlapping_options(
    option: TombstoneOption,
    inside: &[PathBuf],
    outside: &[PathBuf],
    output: &Path,
) -> MergeOptions {
    let mut options = options(inside, output);
    options.overlapping_tombstones = option;
    options.scope = Scope::Overlapping(outside.to_vec());
    options
}

/// No remaining cell or deletion of a column, row or partition is shadowed by the overlapping SSTables: each
/// would be kept if joined with their data. Except for the deletion of a column that is equal to that of a
/// partition or range, which is kept as in Cassandra (`ComplexColumnData.filter`).
#[test]
fn nothing_shadowed_is_left() {
    let directory = disk_directory();
    let io = io();
    let verify = |case: &Case| {
        let place = tempfile::tempdir_in(directory.path()).unwrap();
        let Some((inside, outside)) = write(case, place.path()) else {
            return Ok(());
        };
        let output = place.path().join("output");
        let options = overlapping_options(TombstoneOption::Cell, &inside, &outside, &output);
        let now_s = case.settings.now_s;
        let options = MergeOptions { now_s, ..options };
        merge_files(&io, options).map_err(|e| e.to_string())?;
        let mut tables: Vec<Table> = split(case).1.iter().map(Source::stored).collect();
        let mut left = Table::new();
        for path in sstables(&output) {
            let mut scan = Scan::open(&io, &path, ReadMode::Buffered).unwrap();
            left = decode(&case.schema, scan.cursor()).map_err(|e| e.to_string())?;
        }
        tables.push(left.clone());
        let joined = naive::merge(&case.schema, &tables, |_| Purge {
            now_s: i64::MIN,
            gc_before_s: i64::MIN,
            before: None,
        });
        for (key, partition) in &left {
            let nothing = Partition {
                deletion: DeletionTime::LIVE,
                static_row: Row::empty(),
                unfiltereds: Vec::new(),
            };
            let joined = joined.get(key).unwrap_or(&nothing);
            let fail = |what| {
                Err(format!(
                    "{}: {what}: {partition:?}\n{joined:?}",
                    hex(&key.1)
                ))
            };
            if !partition.deletion.is_live() && partition.deletion != joined.deletion {
                return fail("a deletion");
            }
            let mut over = vec![joined.deletion];
            over.extend(joined.unfiltereds.iter().filter_map(|u| match u {
                Unfiltered::Marker { open, .. } => Some(*open),
                Unfiltered::Row { .. } => None,
            }));
            if !is_within(&partition.static_row, Some(&joined.static_row), &over) {
                return fail("a static row");
            }
            for unfiltered in &partition.unfiltereds {
                let Unfiltered::Row { clustering, row } = unfiltered else {
                    continue;
                };
                let same = joined.unfiltereds.iter().find_map(|other| match other {
                    Unfiltered::Row {
                        clustering: at,
                        row,
                    } if at == clustering => Some(row),
                    _ => None,
                });
                if !is_within(row, same, &over) {
                    return fail("a row");
                }
            }
        }
        Ok(())
    };
    check("provided", 120, visible::generate, verify, Case::simpler);
}

/// Whether all of a row but its liveness, which no newer one shadows, is in another row or covered by a
/// deletion.
fn is_within(row: &Row, other: Option<&Row>, over: &[DeletionTime]) -> bool {
    let nothing = Row::empty();
    let other = other.unwrap_or(&nothing);
    (row.deletion.is_live() || row.deletion == other.deletion)
        && row.columns.iter().all(|(index, data)| {
            let other = other.columns.get(index);
            let is_left = |deletion| other.is_some_and(|other| other.deletion == deletion);
            let deletion = data.deletion;
            (deletion.is_live() || is_left(deletion) || over.contains(&deletion))
                && (data.cells.iter()).all(|c| other.is_some_and(|o| o.cells.contains(c)))
        })
}

/// Threads, memory, passes and the order in which SSTables are given do not matter.
#[test]
fn settings_do_not_matter() {
    let directory = disk_directory();
    let io = io();
    let verify = |case: &Case| {
        let place = tempfile::tempdir_in(directory.path()).unwrap();
        let Some((mut inside, mut outside)) = write(case, place.path()) else {
            return Ok(());
        };
        for option in OPTIONS {
            let mut first: Option<BTreeMap<PathBuf, Option<Vec<u8>>>> = None;
            for (threads, memory_bytes, open_files) in [
                (1, 64 << 20, None),
                (3, 1 << 16, None),
                (2, 4 << 20, Some(0)),
            ] {
                let output = place.path().join("output");
                let mut options = overlapping_options(option, &inside, &outside, &output);
                (options.threads, options.memory_bytes) = (threads, memory_bytes);
                options.open_files = open_files;
                options.now_s = case.settings.now_s;
                options.strip_ttl = case.settings.strips_ttl;
                options.gc_before_s = Some(case.settings.gc_before_s.min(options.now_s));
                merge_files(&io, options).map_err(|e| e.to_string())?;
                let files = contents(&output);
                if !files.is_empty() {
                    std::fs::remove_dir_all(&output).unwrap();
                }
                if *first.get_or_insert_with(|| files.clone()) != files {
                    return Err(format!("{}: {threads} threads", option.name()));
                }
                inside.reverse();
                outside.reverse();
            }
        }
        Ok(())
    };
    check("overlapping", 40, visible::generate, verify, Case::simpler);
}

/// Changes the fields of `Statistics.db` that a node changes in an existing SSTable.
fn rewrite_statistics(data: &Path, change: impl FnOnce(&mut StatsMetadata)) {
    let descriptor = Descriptor::parse(data).unwrap().descriptor;
    let path = descriptor.path(Component::Statistics);
    let bytes = std::fs::read(&path).unwrap();
    let mut statistics = Statistics::parse(&bytes, descriptor.version).unwrap();
    change(&mut statistics.stats);
    let mut written = Vec::new();
    statistics.write(&mut written, descriptor.version).unwrap();
    std::fs::write(&path, written).unwrap();
}

/// An SSTable that is given along with its own copy would remove its own deletions.
#[test]
fn a_copy_of_an_input_is_not_a_tombstone_source() {
    let directory = disk_directory();
    let schema = key_value_schema();
    let source = |seed| {
        let mut source = key_value_source(seed, 0..50, 40);
        for partition in source.table.values_mut() {
            partition.deletion = DeletionTime {
                marked_for_delete_at: compactor_testkit::model::generate::TIMESTAMP + 1000,
                local_deletion_time: 1000,
            };
        }
        source
    };
    let write = |name: &str, id, source: &Source| {
        let place = directory.path().join(name);
        write_sstable(&place, id, &schema, source, None).unwrap()
    };
    let input = write("in", 1, &source(1));
    let repaired = write("in", 2, &source(2));
    rewrite_statistics(&repaired, |stats| stats.repaired_at = 1_700_000_000_000);
    let copy = write("out", 1, &source(1));
    // Named as by `nodetool import`, and after a change of its level.
    let imported = write("out", 9, &source(1));
    let moved_up = write("up", 1, &source(1));
    rewrite_statistics(&moved_up, |stats| stats.level = 3);
    let of_the_other_job = write("out", 4, &source(2));
    let other = write("out", 5, &source(3));
    for (outside, sources) in [
        (copy, [0, 0]),
        (imported, [0, 0]),
        (moved_up, [0, 0]),
        (of_the_other_job, [0, 0]),
        (other, [1, 1]),
    ] {
        let output = directory.path().join("output");
        let inputs = [input.clone(), repaired.clone()];
        let what = outside.display().to_string();
        let options = overlapping_options(TombstoneOption::Row, &inputs, &[outside], &output);
        let jobs = MergeJob::open_groups(io(), options).unwrap();
        let found: Vec<usize> = jobs.iter().map(MergeJob::shadow_sources).collect();
        assert_eq!(found, sources, "{what}");
    }
}

/// All sources are read at the same time: without enough memory the merge reports an error.
#[test]
fn sources_need_memory() {
    let directory = disk_directory();
    let schema = key_value_schema();
    let paths: Vec<PathBuf> = (1..=12)
        .map(|id| {
            let source = key_value_source(u64::from(id), 0..20, 40);
            write_sstable(directory.path(), id, &schema, &source, None).unwrap()
        })
        .collect();
    let merge = |memory_bytes| {
        let output = directory.path().join("output");
        let mut options =
            overlapping_options(TombstoneOption::Cell, &paths[..1], &paths[1..], &output);
        options.memory_bytes = memory_bytes;
        merge_files(&io(), options)
    };
    let refused = merge(256 << 10).map(drop);
    assert!(
        matches!(&refused, Err(Error::InvalidInput(text)) if text.contains("memory")),
        "{refused:?}"
    );
    let merged = merge(8 << 20).unwrap();
    assert!(merged.counts.purged.shadowed > 0);
}

/// A counter in a map is removed if the overlapping SSTables have all of its shards, and more, also if it is a sum.
#[test]
fn counters_in_maps_are_removed_by_their_shards() {
    let schema = Schema {
        clustering: Vec::new(),
        columns: vec![Column {
            name: Vec::new(),
            column_type: ColumnType::Map(Base::Text, Base::Counter),
            is_static: false,
        }],
    };
    let directory = disk_directory();
    let write = |id, timestamp, counters: &[(&str, &[u8])]| {
        let cell = |(path, ids): &(&str, &[u8])| {
            let shards: Vec<_> = ids.iter().map(|id| (*id, 1, 1)).collect();
            live_cell(timestamp, path.as_bytes(), &counter(false, &shards))
        };
        let cells = counters.iter().map(cell).collect();
        let mut row = Row::empty();
        let deletion = DeletionTime::LIVE;
        row.columns = [(0, ColumnData { deletion, cells })].into();
        let clustering = Vec::new();
        let mut source = key_value_source(1, 0..1, 1);
        for partition in source.table.values_mut() {
            let (clustering, row) = (clustering.clone(), row.clone());
            partition.unfiltereds = vec![Unfiltered::Row { clustering, row }];
        }
        write_sstable(directory.path(), id, &schema, &source, None).unwrap()
    };
    let inputs = [
        write(
            1,
            10,
            &[
                ("a", &[1]),
                ("b", &[1, 2]),
                ("c", &[1]),
                ("d", &[1]),
                ("e", &[1]),
            ],
        ),
        write(2, 11, &[("d", &[2]), ("e", &[2])]),
    ];
    let outside = write(
        3,
        20,
        &[("a", &[1, 2]), ("b", &[1]), ("d", &[1]), ("e", &[1, 2, 3])],
    );
    let output = directory.path().join("output");
    let options = overlapping_options(TombstoneOption::Cell, &inputs, &[outside], &output);
    merge_files(&io(), options).unwrap();
    let mut scan = Scan::open(&io(), &sstables(&output)[0], ReadMode::Buffered).unwrap();
    let left = decode(&schema, scan.cursor()).unwrap();
    let rows = left.values().flat_map(Partition::rows);
    let cells = rows.flat_map(|row| row.columns.values().flat_map(|data| &data.cells));
    let paths: Vec<&[u8]> = cells.map(|cell| &cell.path[..]).collect();
    assert_eq!(paths, [b"b", b"c", b"d"]);
}

/// A single source is not merged, several are: a row that a partition deletion covers exists only in the
/// unmerged case, in which it removes a deletion of a column of the same age (`UnfilteredRowIterators.merge`,
/// `Rows.removeShadowedCells`, `ComplexColumnData.filter`).
#[test]
fn a_single_source_is_not_shadowed_by_its_own_deletions() {
    let deletion = DeletionTime {
        marked_for_delete_at: 16,
        local_deletion_time: 1000,
    };
    let schema = Schema {
        clustering: Vec::new(),
        columns: vec![Column {
            name: b"m".to_vec(),
            column_type: ColumnType::Set(Base::Int),
            is_static: false,
        }],
    };
    // A single source is read only if the merge has older data.
    let source = |of_partition: DeletionTime, with_row: bool, liveness: Liveness| {
        let cleared = Row {
            liveness,
            columns: BTreeMap::from([(
                0,
                ColumnData {
                    deletion,
                    cells: Vec::new(),
                },
            )]),
            ..Row::empty()
        };
        let row = Unfiltered::Row {
            clustering: Vec::new(),
            row: cleared,
        };
        let mut source = key_value_source(1, 0..1, 1);
        for partition in source.table.values_mut() {
            partition.deletion = of_partition;
            partition.unfiltereds = with_row.then(|| row.clone()).into_iter().collect();
        }
        source
    };
    let directory = disk_directory();
    let write = |name: &str, id, source: &Source| {
        let place = directory.path().join(name);
        write_sstable(&place, id, &schema, source, None).unwrap()
    };
    let input = write(
        "in",
        1,
        &source(DeletionTime::LIVE, true, Liveness::new(10, 0, 0)),
    );
    let with_row = write("out", 2, &source(deletion, true, Liveness::EMPTY));
    let without_row = write("out", 3, &source(deletion, false, Liveness::EMPTY));
    for (outside, left) in [
        (vec![with_row.clone()], 0),
        (vec![without_row.clone()], 1),
        (vec![with_row, without_row], 1),
    ] {
        let output = directory.path().join("output");
        let inputs = std::slice::from_ref(&input);
        let options = overlapping_options(TombstoneOption::Cell, inputs, &outside, &output);
        merge_files(&io(), options).unwrap();
        let found = sstables(&output);
        assert_eq!(found.len(), left, "{outside:?}");
        if left > 0 {
            std::fs::remove_dir_all(&output).unwrap();
        }
    }
}

//! TTLs removed by jobs: inputs that would be dropped unread, overlapping SSTables, passes, and refusals. What
//! happens to rows is compared with the model in the tests of random tables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use compactor_engine::Error;
use compactor_engine::job::{MergeJob, MergeOptions, Scope, TombstoneOption};
use compactor_sstable::Component;
use compactor_sstable::data::cell::Liveness;
use compactor_sstable::data::deletion_time::NO_DELETION_TIME;
use compactor_sstable::statistics::Statistics;
use compactor_sstable::statistics::stats::StatsMetadata;
use compactor_testkit::machine::disk_directory;
use compactor_testkit::model::case::Source;
use compactor_testkit::model::generate::NOW_S;
use compactor_testkit::model::table::{Base, Cell, Column, ColumnType, Schema, Unfiltered};

use crate::files::{
    contents, io, key_value_schema, key_value_source, merge_files, options, scan, sstables,
    write_sstable,
};

const TTL: i32 = 60;
/// Long before now and `gc_before_s`.
const EXPIRED_S: i64 = NOW_S - 10_000;
const GC_BEFORE_S: i64 = NOW_S - 1000;

/// Twenty partitions of one row, whose cells and livenesses have this timestamp and have expired.
fn expired(timestamp: i64) -> Source {
    expiring(timestamp, EXPIRED_S)
}

/// As [`expired`], with another expiration.
fn expiring(timestamp: i64, seconds: i64) -> Source {
    let mut source = changed(timestamp, |cell| {
        cell.ttl = TTL;
        cell.local_deletion_time = seconds;
    });
    for row in source.table.values_mut().flat_map(|p| &mut p.unfiltereds) {
        if let Unfiltered::Row { row, .. } = row {
            row.liveness = Liveness::new(timestamp, TTL, seconds);
        }
    }
    source
}

/// As [`expired`], with tombstones.
fn tombstones(timestamp: i64) -> Source {
    changed(timestamp, |cell| {
        cell.local_deletion_time = EXPIRED_S;
        cell.value.clear();
    })
}

fn changed(timestamp: i64, change: impl Fn(&mut Cell)) -> Source {
    let mut source = key_value_source(1, 0..20, 40);
    for row in source.table.values_mut().flat_map(|p| &mut p.unfiltereds) {
        if let Unfiltered::Row { row, .. } = row {
            for cell in row.columns.values_mut().flat_map(|data| &mut data.cells) {
                cell.timestamp = timestamp;
                change(cell);
            }
        }
    }
    source
}

fn write(directory: &Path, id: u32, source: &Source) -> PathBuf {
    write_sstable(directory, id, &key_value_schema(), source, None).unwrap()
}

fn stripping(inputs: &[PathBuf], output: &Path) -> MergeOptions {
    MergeOptions {
        strip_ttl: true,
        scope: Scope::Complete,
        gc_before_s: Some(GC_BEFORE_S),
        ..options(inputs, output)
    }
}

/// Statistics of the only SSTable of a directory.
fn statistics(directory: &Path) -> Statistics {
    let [data] = &sstables(directory)[..] else {
        panic!("{:?}", contents(directory).keys());
    };
    let descriptor = compactor_sstable::descriptor::Descriptor::parse(data).unwrap();
    let descriptor = descriptor.descriptor;
    let bytes = std::fs::read(descriptor.path(Component::Statistics)).unwrap();
    Statistics::parse(&bytes, descriptor.version).unwrap()
}

#[test]
fn data_without_ttl_is_live() {
    let directory = disk_directory();
    let inputs = [write(&directory.path().join("in"), 1, &expired(10))];
    let unread = stripping(&inputs, &directory.path().join("unread"));
    let unread = MergeOptions {
        strip_ttl: false,
        ..unread
    };
    let job = MergeJob::open(io(), unread).unwrap();
    assert_eq!((job.inputs().len(), job.fully_expired().len()), (0, 1));
    let output = directory.path().join("out");
    let outcome = merge_files(&io(), stripping(&inputs, &output)).unwrap();
    let purged = outcome.counts.purged;
    assert_eq!((purged.stripped_cells, purged.stripped_rows), (20, 20));
    assert_eq!((purged.total(), outcome.counts.rows_read), (0, 20));
    assert_eq!(scan(&sstables(&output)[0]).unwrap(), 20);
    let Statistics { stats, header, .. } = statistics(&output);
    let StatsMetadata {
        min_ttl,
        max_ttl,
        min_local_deletion_time,
        max_local_deletion_time,
        ..
    } = stats;
    assert_eq!((min_ttl, max_ttl, header.encoding_stats.min_ttl), (0, 0, 0));
    let seconds = [min_local_deletion_time, max_local_deletion_time];
    assert_eq!(seconds, [NO_DELETION_TIME; 2]);
    assert!(stats.tombstone_drop_times.bins().is_empty());
    // Stripped data equals data that never had a TTL, and stripping it again changes nothing.
    let mut live = expired(10);
    compactor_testkit::model::naive::strip_ttl(&mut live.table);
    let live = [write(&directory.path().join("live"), 1, &live)];
    let expected = directory.path().join("expected");
    merge_files(&io(), options(&live, &expected)).unwrap();
    let again = directory.path().join("again");
    // Rows that have not expired, which would be copied unchanged if TTLs were kept.
    let later = expiring(10, NOW_S + 1000);
    let later = [write(&directory.path().join("later"), 1, &later)];
    let output_of_later = directory.path().join("output of later");
    let outcome = merge_files(&io(), stripping(&later, &output_of_later)).unwrap();
    let purged = outcome.counts.purged;
    assert_eq!((purged.stripped_cells, purged.stripped_rows), (20, 20));
    let outcome = merge_files(&io(), stripping(&sstables(&output), &again)).unwrap();
    assert_eq!(outcome.counts.purged.stripped_cells, 0);
    let data = |directory: &Path| std::fs::read(&sstables(directory)[0]).unwrap();
    for output in [&output, &again, &output_of_later] {
        assert!(data(output) == data(&expected), "{}", output.display());
    }
}

/// Tombstones that shadow nothing else are dropped unread, but older data with a TTL counts, expired or not,
/// in an input or an overlapping SSTable.
#[test]
fn only_sstables_without_ttl_are_dropped_unread() {
    let directory = disk_directory();
    let place = directory.path();
    let tombstones = write(&place.join("in"), 1, &tombstones(20));
    let newer = write(&place.join("in"), 2, &expired(30));
    let older = write(&place.join("in"), 3, &expired(10));
    let dropped = |inputs: &[&PathBuf], outside: &[&PathBuf]| {
        let inputs: Vec<PathBuf> = inputs.iter().map(|path| (*path).clone()).collect();
        let mut options = stripping(&inputs, &place.join("out"));
        if !outside.is_empty() {
            options.scope = Scope::Overlapping(outside.iter().map(|p| (*p).clone()).collect());
        }
        let job = MergeJob::open(io(), options).unwrap();
        let paths = job.fully_expired().iter().map(|input| input.data_path());
        paths.collect::<Vec<_>>()
    };
    let those = std::slice::from_ref(&tombstones);
    assert_eq!(dropped(&[&tombstones], &[]), those);
    assert_eq!(dropped(&[&tombstones, &newer], &[]), those);
    assert_eq!(dropped(&[&tombstones], &[&newer]), those);
    assert_eq!(dropped(&[&tombstones, &older], &[]), [] as [PathBuf; 0]);
    assert_eq!(dropped(&[&tombstones], &[&older]), [] as [PathBuf; 0]);
    // Tombstones are still tombstones: the older cells are shadowed, and the tombstones are purged.
    let output = place.join("out");
    let outcome = merge_files(&io(), stripping(&[tombstones.clone(), older], &output)).unwrap();
    let purged = outcome.counts.purged;
    assert_eq!((purged.cell_tombstones, purged.stripped_cells), (20, 20));
    let stats = statistics(&output).stats;
    assert_eq!((stats.total_rows, stats.total_columns_set), (20, 0));
}

/// An overlapping SSTable with a copy of a cell, TTL included, does not remove it: two runs that rely on each
/// other for it would leave neither.
#[test]
fn a_copy_outside_with_a_ttl_removes_nothing() {
    let directory = disk_directory();
    let place = directory.path();
    let input = write(&place.join("in"), 1, &expired(10));
    // With data in another partition that is newer, without which it would not be read.
    let mut copy = expired(10);
    let newer = key_value_source(50, 30..31, 40);
    copy.table.extend(newer.table);
    let outside = write(&place.join("outside"), 2, &copy);
    let output = place.join("out");
    let options = MergeOptions {
        scope: Scope::Overlapping(vec![outside]),
        overlapping_tombstones: TombstoneOption::Cell,
        ..stripping(&[input], &output)
    };
    let outcome = merge_files(&io(), options).unwrap();
    let purged = outcome.counts.purged;
    assert_eq!((purged.shadowed, purged.stripped_cells), (0, 20));
    assert_eq!(statistics(&output).stats.total_columns_set, 20);
}

/// Of equal timestamps the greater value wins, in passes as well, and every TTL is counted once.
#[test]
fn passes_and_threads_do_not_matter() {
    let directory = disk_directory();
    let inputs = directory.path().join("in");
    let paths: Vec<PathBuf> = (1..=9)
        .map(|id| {
            let mut source = expired(10);
            for row in source.table.values_mut().flat_map(|p| &mut p.unfiltereds) {
                if let Unfiltered::Row { row, .. } = row {
                    let mut cells = row.columns.values_mut().flat_map(|data| &mut data.cells);
                    if let Some(cell) = cells.next() {
                        // The least value expires last.
                        cell.local_deletion_time = EXPIRED_S + i64::from(id);
                        cell.value = vec![100 - id as u8; 40];
                    }
                }
            }
            write(&inputs, id, &source)
        })
        .collect();
    let mut first: Option<BTreeMap<PathBuf, Option<Vec<u8>>>> = None;
    for (threads, open_files) in [(1, None), (2, None), (3, None), (8, None), (2, Some(0))] {
        let output = directory.path().join("out");
        let options = MergeOptions {
            threads,
            open_files,
            range_bytes: Some(1),
            ..stripping(&paths, &output)
        };
        let outcome = merge_files(&io(), options).unwrap();
        assert_eq!(outcome.passes > 1, open_files.is_some());
        let purged = outcome.counts.purged;
        let stripped = (purged.stripped_cells, purged.stripped_rows);
        assert_eq!(stripped, (180, 180), "{threads} threads, {open_files:?}");
        let data = std::fs::read(&sstables(&output)[0]).unwrap();
        let values = data.windows(40).filter(|window| **window == [99; 40]);
        assert_eq!(values.count(), 20);
        let files = contents(&output);
        assert!(*first.get_or_insert_with(|| files.clone()) == files);
        std::fs::remove_dir_all(&output).unwrap();
    }
}

#[test]
fn tables_with_counters_are_refused() {
    let directory = disk_directory();
    let schema = Schema {
        columns: vec![Column {
            name: b"v".to_vec(),
            column_type: ColumnType::Simple(Base::Counter),
            is_static: false,
        }],
        ..key_value_schema()
    };
    let deleted = tombstones(10);
    let input = write_sstable(directory.path(), 1, &schema, &deleted, None).unwrap();
    let refused = MergeJob::open(io(), stripping(&[input], &directory.path().join("out")));
    let refused = refused.map(drop);
    assert!(
        matches!(&refused, Err(Error::InvalidInput(text)) if text.contains("counters")),
        "{refused:?}"
    );
}

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use compactor::NoObserver;
use compactor::generate::{Amount, GenerateOptions, Shape, generate};
use compactor_engine::input::Scan;
use compactor_io::IoOptions;
use compactor_sstable::Version;

use super::*;
use crate::hot_set::HotSet;

fn generated(directory: &Path, shape: Shape, version: Version) -> Vec<PathBuf> {
    let mut options = GenerateOptions::new(shape, directory);
    options.version = version;
    options.sstables = 2;
    options.amount = Amount::Bytes(3 << 20);
    if shape == Shape::Wide {
        options.rows_per_partition = 5000;
    }
    let report = generate(IoOptions::default(), options, &mut NoObserver).unwrap();
    let paths = report.sstables.into_iter().map(|s| s.data_path);
    paths.collect()
}

/// Every row of an SSTable, read sequentially.
fn all_rows(io: &Io, path: &Path) -> Vec<(HotRow, u64)> {
    let mut scan = Scan::open(io, path, ReadMode::Buffered).unwrap();
    let cursor = scan.cursor();
    let mut rows = Vec::new();
    while cursor.next_partition().unwrap() {
        let (key, hash): (Box<[u8]>, _) = (cursor.key().into(), cursor.key_hash());
        cursor.next_unfiltered().unwrap();
        while cursor.clustering().is_some() {
            let position = cursor.position();
            if let Some(row) = cursor.row() {
                let clustering = row.head.clustering_start..row.head.clustering_end;
                let clustering: Box<[u8]> = row.bytes[clustering].into();
                rows.push((
                    HotRow {
                        key: key.clone(),
                        hash,
                        clustering: (!clustering.is_empty()).then_some(clustering),
                    },
                    position,
                ));
            }
            cursor.next_unfiltered().unwrap();
        }
    }
    rows
}

#[test]
fn every_row_is_found_where_a_scan_finds_it() {
    for (shape, versions) in [
        (Shape::KeyValue, [Version::Nb, Version::Oa, Version::Da]),
        (Shape::Wide, [Version::Nb, Version::Oa, Version::Ea]),
    ] {
        for version in versions {
            let directory = tempfile::tempdir().unwrap();
            let io = Io::new(IoOptions::default()).unwrap();
            let paths = generated(directory.path(), shape, version);
            let reader = PointReader::open(&io, &paths[0]).unwrap();
            let mut state = ReadState::default();
            let rows = all_rows(&io, &paths[0]);
            assert!(rows.len() > 2000, "{shape:?} {version}: {}", rows.len());
            // Not all: chunks are slow in a debug build.
            for (row, position) in rows.iter().step_by(13) {
                let found = reader.find(row, &mut state).unwrap();
                let RowFound::Row {
                    from,
                    position: at,
                    end,
                } = found
                else {
                    panic!("{shape:?} {version}: {found:?}");
                };
                assert_eq!(at, *position, "{shape:?} {version}");
                assert!(from <= at && at < end, "{shape:?} {version}");
            }
        }
    }
}

#[test]
fn missing_rows_are_not_found() {
    for version in [Version::Oa, Version::Da] {
        let directory = tempfile::tempdir().unwrap();
        let io = Io::new(IoOptions::default()).unwrap();
        let paths = generated(directory.path(), Shape::Wide, version);
        let reader = PointReader::open(&io, &paths[0]).unwrap();
        let mut state = ReadState::default();
        let mut in_filter = 0;
        for number in 0..1000u32 {
            let key: Box<[u8]> = [&[7; 4][..], &number.to_be_bytes()].concat().into();
            let row = HotRow {
                hash: reader.partitioner.hash_key(&key),
                key,
                clustering: None,
            };
            match reader.find(&row, &mut state).unwrap() {
                RowFound::NotInFilter => {}
                RowFound::NotInIndex => in_filter += 1,
                found => panic!("{found:?}"),
            }
        }
        // The chance is 1 percent, and a filter of few keys is coarse.
        assert!(in_filter < 100, "{in_filter}");
        let rows = all_rows(&io, &paths[0]);
        let mut row = rows[10].0.clone();
        // `seq` is an int: a value before all others.
        let mut clustering = row.clustering.clone().unwrap().to_vec();
        let len = clustering.len();
        clustering[len - 4..].copy_from_slice(&i32::MIN.to_be_bytes());
        row.clustering = Some(clustering.into());
        assert_eq!(reader.find(&row, &mut state).unwrap(), RowFound::NoRow);
    }
}

#[test]
fn a_hot_set_has_the_requested_size_and_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let io = Io::new(IoOptions::default()).unwrap();
    let paths = generated(directory.path(), Shape::KeyValue, Version::Oa);
    let readers: Vec<PointReader> = paths
        .iter()
        .map(|path| PointReader::open(&io, path).unwrap())
        .collect();
    let choose =
        |bytes, seed| HotSet::choose(&readers, bytes, seed, &AtomicBool::new(false)).unwrap();
    let hot = choose(500_000, 1);
    assert!((500_000..540_000).contains(&(hot.page_count() * 4096)));
    for row in &hot.rows {
        let found = readers.iter().map(|reader| {
            let mut state = ReadState::default();
            reader.find(row, &mut state).unwrap()
        });
        assert!(found.into_iter().any(|f| matches!(f, RowFound::Row { .. })));
    }
    // Rows are from the whole ring, and depend on the seed.
    let low = hot.rows.iter().filter(|row| row.hash.token < 0).count();
    assert!((low * 10 > hot.rows.len() * 2) && (low * 10 < hot.rows.len() * 8));
    assert_eq!(hot.rows, choose(500_000, 1).rows);
    assert_ne!(hot.rows, choose(500_000, 2).rows);
    // The rows have just been read.
    let resident = hot.resident().unwrap().hot;
    assert_eq!(resident.resident, resident.total);
    for path in &paths {
        compactor_io::drop_clean_pages(path).unwrap();
    }
    // On tmpfs nothing can be evicted.
    let dropped = hot.resident().unwrap().hot.resident;
    assert!(dropped == 0 || dropped == resident.total, "{dropped}");
    // A hot set larger than the data contains all rows.
    let all = choose(1 << 40, 1);
    assert!(all.page_count() > 500);
    assert_eq!(all.partitions, {
        let count = |path: &PathBuf| all_rows(&io, path).len() as u64;
        paths.iter().map(count).sum::<u64>()
    });
}

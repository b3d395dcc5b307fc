//! A scrub, and the comparison of its output with its input, row by row.

use crate::support::damage::Copy;
use compactor::NoObserver;
use compactor::generate::{Amount, GenerateOptions, Shape, generate};
use compactor::scrub::{LossKind, ScrubOptions, ScrubReport, scrub};
use compactor::verify::{VerifyOptions, verify};
use compactor_engine::input::Scan;
use compactor_engine::read;
use compactor_io::{BackendKind, Io, IoOptions, ReadMode};
use compactor_sstable::compression::codec::Codec;
use compactor_sstable::compression::info::{CompressionInfo, CompressionParams};
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::{Component, Version};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(super) fn io() -> Io {
    Io::new(IoOptions {
        backend: BackendKind::Threads,
        ..IoOptions::default()
    })
    .unwrap()
}

/// A row or partition deletion as it was read, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// Key, position in the partition and content.
    pub(super) text: String,
    /// The range tombstone open at it.
    pub(super) open: DeletionTime,
    pub(super) position: u64,
    pub(super) len: u64,
}

pub(super) fn row_text(row: &read::RowRef<'_>) -> String {
    let content = row.read().unwrap();
    let mut text = format!(
        "{} {:?} {:?}",
        read::hex(row.clustering_bytes()),
        content.start.liveness,
        content.start.deletion
    );
    for found in content.columns() {
        let column = &row.layout.columns(row.head.is_static())[found.index];
        text += &format!(" {}", String::from_utf8_lossy(&column.name));
        text += &format!(" {:?}", found.deletion);
        for cell in found.cells {
            let times = (cell.timestamp, cell.local_deletion_time, cell.ttl);
            let (path, value) = (cell.path.of(row.bytes), cell.value.of(row.bytes));
            text += &format!(" {times:?} {path:?} {value:?}");
        }
    }
    text
}

/// Rows, static rows and partition deletions by key and position.
pub(super) fn items(data: &Path) -> BTreeMap<String, Item> {
    let mut found = BTreeMap::new();
    let mut scan = Scan::open(&io(), data, ReadMode::Auto).unwrap();
    let cursor = scan.cursor();
    while cursor.next_partition().unwrap() {
        let key = read::hex(cursor.key());
        let deletion = cursor.partition_deletion();
        let mut add = |place: String, text: String, open, position, len| {
            let item = Item {
                text,
                open,
                position,
                len,
            };
            assert!(found.insert(place, item).is_none());
        };
        if !deletion.is_live() {
            let start = cursor.partition_position();
            let text = format!("{deletion:?}");
            add(
                format!("{key} deletion"),
                text,
                DeletionTime::LIVE,
                start,
                1,
            );
        }
        if let Some(row) = cursor.static_row()
            && !row.read().unwrap().start.is_empty()
        {
            let (at, len) = (cursor.position(), row.head.len as u64);
            let text = row_text(&row);
            add(format!("{key} static"), text, DeletionTime::LIVE, at, len);
        }
        let mut open = DeletionTime::LIVE;
        loop {
            cursor.next_unfiltered().unwrap();
            if let Some(row) = cursor.row() {
                let place = format!("{key} row {}", read::hex(row.clustering_bytes()));
                add(
                    place,
                    row_text(&row),
                    open,
                    cursor.position(),
                    row.head.len as u64,
                );
            } else if let Some(marker) = cursor.marker() {
                open = marker.open;
            } else {
                break;
            }
        }
    }
    found
}

pub(super) struct Scrubbed {
    pub(super) report: ScrubReport,
    pub(super) output: Option<PathBuf>,
    pub(super) _directory: tempfile::TempDir,
}

pub(super) fn scrubbed(data: &Path) -> Scrubbed {
    scrubbed_with(data, |_| {}).unwrap()
}

/// Scrubs, and verifies the output.
pub(super) fn scrubbed_with(
    data: &Path,
    change: impl FnOnce(&mut ScrubOptions),
) -> Result<Scrubbed, compactor::Error> {
    let directory = tempfile::tempdir().unwrap();
    let mut options = ScrubOptions::new(directory.path());
    options.max_losses = usize::MAX;
    change(&mut options);
    let io = io();
    let report = scrub(&io, data, &options, &mut NoObserver)?;
    let output = report.output.as_ref().map(|o| o.data_path.clone());
    if let Some(output) = &output {
        let checked = verify(&io, output, &VerifyOptions::default(), &mut NoObserver).unwrap();
        assert!(!checked.is_damaged(), "{:#?}", checked.findings);
    } else {
        let left = std::fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(left, 0, "nothing salvaged, and {left} files written");
    }
    Ok(Scrubbed {
        report,
        output,
        _directory: directory,
    })
}

/// Asserts that kept data is unchanged, and that all other data is in a reported loss.
pub(super) fn check(original: &BTreeMap<String, Item>, scrubbed: &Scrubbed) -> usize {
    let kept = scrubbed.output.as_deref().map(items).unwrap_or_default();
    let lost = |item: &Item| {
        scrubbed.report.losses.iter().any(|loss| {
            loss.position < item.position + item.len && item.position < loss.position + loss.bytes
        })
    };
    let losses = &scrubbed.report.losses;
    let lost_bounds = losses
        .iter()
        .any(|loss| loss.kind == LossKind::RangeTombstone && loss.bytes > 0);
    for (place, item) in &kept {
        let was = original
            .get(place)
            .unwrap_or_else(|| panic!("{place} was not there: {:#?}", scrubbed.report));
        assert_eq!(item.text, was.text, "{place}");
        // Unless bounds were inconsistent, the same data is deleted as before.
        assert!(
            item.open == was.open || (item.open.is_live() && lost_bounds),
            "{place}: {item:?}, was {was:?}"
        );
    }
    for (place, item) in original {
        assert_eq!(
            kept.contains_key(place),
            !lost(item),
            "{place}: {item:?} {:#?}",
            scrubbed.report
        );
    }
    assert_eq!(scrubbed.report.is_lossy(), scrubbed.report.loss_count > 0);
    original.len() - kept.len()
}

pub(super) fn generated(shape: Shape, rows: u64, version: Version, chunk: Option<u32>) -> Copy {
    generated_with(shape, rows, version, chunk, 100)
}

pub(super) fn generated_with(
    shape: Shape,
    rows: u64,
    version: Version,
    chunk: Option<u32>,
    value_len: u32,
) -> Copy {
    let directory = tempfile::tempdir().unwrap();
    let mut options = GenerateOptions::new(shape, directory.path());
    options.amount = Amount::Rows(rows);
    options.sstables = 1;
    options.value_len = value_len;
    if shape != Shape::KeyValue {
        options.rows_per_partition = 3000;
    }
    options.version = version;
    options.compression = chunk.map(|len| CompressionParams::new(Codec::Lz4, len));
    generate(IoOptions::default(), options, &mut NoObserver).unwrap();
    Copy::of(&data_of(directory.path()))
}

/// The only `Data.db` below a directory.
pub(super) fn data_of(directory: &Path) -> PathBuf {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.to_string_lossy().ends_with("-Data.db") {
                found.push(path);
            }
        }
    }
    assert_eq!(found.len(), 1);
    found.remove(0)
}

pub(super) fn chunk_offsets(copy: &Copy, version: Version) -> Vec<usize> {
    let len = copy.read(Component::Data).len() as u64;
    let info = copy.read(Component::CompressionInfo);
    let info = CompressionInfo::parse(&info, version, len).unwrap();
    info.chunk_offsets.iter().map(|o| *o as usize).collect()
}

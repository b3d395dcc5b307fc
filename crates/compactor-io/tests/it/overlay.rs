//! Overlay file systems, such as the root of a container: the pages of a file are those of another one below it.

use std::fs;

use compactor_io::{
    BackendKind, ReadMode, Support, WriteMode, WriterOptions, drop_clean_pages, probe, residency,
};
use compactor_testkit::io::io_on;
use compactor_testkit::machine::{Mount, disk_directory};
use compactor_testkit::{Need, skip_part};

use crate::support::content;

const MIB: usize = 1 << 20;

/// `cachestat` counts no page of such a file, so that a buffered merge seems to leave none in the cache.
#[test]
fn pages_of_a_file_on_an_overlay_are_counted() {
    let below = disk_directory();
    let Some(mount) = Mount::overlay(below.path()) else {
        return;
    };
    let path = mount.path().join("file");
    fs::write(&path, content(300_000)).unwrap();
    assert_eq!(residency(&path).unwrap().pages_resident, Some(74));
    let found = probe(mount.path()).unwrap();
    assert!(
        matches!(found.cachestat, Support::Fails(_)),
        "{:?}",
        found.cachestat
    );
    drop_clean_pages(&path).unwrap();
    assert_eq!(residency(&path).unwrap().pages_resident, Some(0));
}

/// `sync_file_range` does nothing there, so that all that was written stays dirty until the end, and pages of inputs
/// that are dirty are not dropped.
#[test]
fn pages_of_a_file_on_an_overlay_are_written_back() {
    let below = disk_directory();
    let Some(mount) = Mount::overlay(below.path()) else {
        return;
    };
    let io = io_on(BackendKind::Threads).unwrap();
    let bytes = content(32 * MIB);
    for mode in [WriteMode::Trickle, WriteMode::DontNeed] {
        let options = WriterOptions {
            buffer_bytes: MIB / 4,
            trickle_bytes: MIB as u64,
            ..WriterOptions::default()
        };
        let name = mode.name();
        let mut writer = io.create(&mount.path().join(name), mode, options).unwrap();
        writer.write_all(&bytes).unwrap();
        match residency(&below.path().join("upper").join(name))
            .unwrap()
            .dirty
        {
            // Two windows each ahead, being written and awaited, and the writes in flight.
            Some(dirty) => assert!(dirty <= 8 * 256, "{mode}: {dirty} pages are dirty"),
            None => skip_part(Need::PageCache, "the number of dirty pages is unknown"),
        }
        writer.finish().unwrap();
    }
    let path = mount.path().join("input");
    fs::write(&path, &bytes).unwrap();
    let input = io.open(&path, ReadMode::DontNeed).unwrap();
    input.read_all(u64::MAX).unwrap();
    input.evict();
    assert_eq!(residency(&path).unwrap().pages_resident, Some(0));
}

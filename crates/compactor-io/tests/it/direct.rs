//! Effects of the I/O modes on the page cache.

use std::fs;
use std::os::unix::fs::MetadataExt;

use compactor_io::{
    BackendKind, ReadMode, ResidencyMethod, WriteMode, WriterOptions, drop_clean_pages, residency,
};
use compactor_testkit::io::{BACKENDS, has_direct_io, io_on, is_unsupported};
use compactor_testkit::machine::disk_directory;
use compactor_testkit::{Need, skip};

use crate::support::{
    content, descriptor_flags, descriptors_of, has_o_direct, is_direct, write_file,
};

const MIB: usize = 1 << 20;

/// Number of pages in the page cache of a file owned by this process.
fn resident(path: &std::path::Path) -> u64 {
    residency(path).unwrap().pages_resident.unwrap()
}

/// A "direct" mode that uses the page cache.
#[test]
fn direct_files_have_o_direct_and_others_do_not() {
    let directory = disk_directory();
    if !has_direct_io(directory.path()) {
        return;
    }
    for backend in BACKENDS {
        let Some(io) = io_on(backend) else { continue };
        for mode in [
            WriteMode::Auto,
            WriteMode::Direct,
            WriteMode::Buffered,
            WriteMode::DontNeed,
        ] {
            let path = directory.path().join(format!("{backend}-{mode}"));
            let expected = matches!(mode, WriteMode::Auto | WriteMode::Direct);
            let mut writer = io.create(&path, mode, WriterOptions::default()).unwrap();
            assert_eq!(has_o_direct(writer.file()), expected, "{backend} {mode}");
            assert_eq!(writer.mode() == WriteMode::Direct, expected);
            writer.write_all(&content(3 * MIB)).unwrap();
            // With io_uring that includes the I/O thread's own descriptor.
            for descriptor in descriptors_of(&path) {
                assert_eq!(
                    is_direct(descriptor_flags(descriptor)),
                    expected,
                    "{backend} {mode}"
                );
            }
            writer.finish().unwrap();
        }
        for &mode in &ReadMode::ALL[..4] {
            let path = directory.path().join(format!("{backend}-direct"));
            let expected = matches!(mode, ReadMode::Auto | ReadMode::Direct);
            let input = io.open(&path, mode).unwrap();
            assert_eq!(input.mode() == ReadMode::Direct, expected);
            input.read_at(0, 10).unwrap();
            let descriptors = descriptors_of(&path);
            assert!(!descriptors.is_empty());
            for descriptor in descriptors {
                assert_eq!(
                    is_direct(descriptor_flags(descriptor)),
                    expected,
                    "{backend} {mode}"
                );
            }
        }
    }
}

/// Pages left in the cache by a mode that should leave none.
#[test]
fn direct_and_dontneed_writes_leave_no_page() {
    let directory = disk_directory();
    if !has_direct_io(directory.path()) {
        return;
    }
    for backend in BACKENDS {
        let Some(io) = io_on(backend) else { continue };
        for mode in [WriteMode::Direct, WriteMode::DontNeed] {
            // With tails: truncating a file within a block zeroes the rest of it through the cache.
            for len in [1, 4096, 5 * MIB, 33 * MIB + 1234] {
                let path = directory.path().join(format!("{backend}-{mode}-{len}"));
                let options = WriterOptions::default();
                write_file(&io, &path, mode, options, &content(len)).unwrap();
                let found = residency(&path).unwrap();
                assert_eq!(found.pages_total, (len as u64).div_ceil(4096));
                assert_eq!(resident(&path), 0, "{backend} {mode} {len}: {found:?}");
            }
        }
    }
}

/// As above, for reads; also that `buffered` does leave pages, since the check would otherwise prove nothing.
#[test]
fn direct_and_dontneed_reads_leave_no_page() {
    let directory = disk_directory();
    if !has_direct_io(directory.path()) {
        return;
    }
    let path = directory.path().join("file");
    let len = 33 * MIB + 1234;
    fs::write(&path, content(len)).unwrap();
    for backend in BACKENDS {
        let Some(io) = io_on(backend) else { continue };
        for mode in [ReadMode::Direct, ReadMode::DontNeed, ReadMode::Buffered] {
            drop_clean_pages(&path).unwrap();
            assert_eq!(resident(&path), 0);
            let input = io.open(&path, mode).unwrap();
            assert_eq!(input.read_all(u64::MAX).unwrap().len(), len);
            let before = residency(&path).unwrap();
            input.evict();
            let after = residency(&path).unwrap();
            match mode {
                ReadMode::Buffered => assert_eq!(after.pages_resident, Some(after.pages_total)),
                ReadMode::DontNeed => {
                    // Pages have already been dropped, except for the last few windows of 8 MiB.
                    assert!(
                        before.pages_resident.unwrap() < before.pages_total,
                        "{before:?}"
                    );
                    assert_eq!(after.pages_resident, Some(0), "{backend}: {after:?}");
                }
                _ => {
                    assert_eq!(before.pages_resident, Some(0), "{backend}: {before:?}");
                }
            }
        }
    }
}

/// `dontneed` dropping pages that it has not read, which others may need.
#[test]
fn dontneed_drops_only_what_was_read() {
    let directory = disk_directory();
    let path = directory.path().join("file");
    fs::write(&path, content(8 * MIB)).unwrap();
    let io = io_on(BackendKind::Threads).unwrap();
    // tmpfs never drops pages.
    drop_clean_pages(&path).unwrap();
    if resident(&path) != 0 {
        skip(Need::PageCache, "pages cannot be dropped");
        return;
    }
    let buffered = io.open(&path, ReadMode::Buffered).unwrap();
    buffered.read_all(u64::MAX).unwrap();
    let all = residency(&path).unwrap();
    assert_eq!(all.pages_resident, Some(all.pages_total));
    let input = io.open(&path, ReadMode::DontNeed).unwrap();
    input.read_at(2 * MIB as u64 + 5, MIB).unwrap();
    input.evict();
    let left = all.pages_total - resident(&path);
    // The kernel drops only whole folios within the range: those at its edges may remain.
    assert!(
        (1..=257).contains(&left),
        "{left} pages were dropped for 257 that were read"
    );
}

/// Kernel readahead for a `dontneed` reader, which then drops only the pages it has read.
#[test]
fn dontneed_reads_bring_in_nothing_else() {
    let directory = disk_directory();
    let path = directory.path().join("file");
    fs::write(&path, content(8 * MIB)).unwrap();
    for backend in BACKENDS {
        let Some(io) = io_on(backend) else { continue };
        drop_clean_pages(&path).unwrap();
        if resident(&path) != 0 {
            skip(Need::PageCache, "pages cannot be dropped");
            return;
        }
        let input = io.open(&path, ReadMode::DontNeed).unwrap();
        for start in [0, 65_536, 131_072, 1_000_000] {
            input.read_at(start, 65_536).unwrap();
        }
        input.evict();
        let found = residency(&path).unwrap();
        assert_eq!(found.pages_resident, Some(0), "{backend}: {found:?}");
    }
}

/// Forced write-back that happens only at the end, when other processes have already been affected.
#[test]
fn trickle_bounds_dirty_pages_and_dontneed_all_pages_while_writing() {
    let directory = disk_directory();
    if !has_direct_io(directory.path()) {
        return;
    }
    let bytes = content(64 * MIB);
    for backend in BACKENDS {
        let Some(io) = io_on(backend) else { continue };
        for mode in [WriteMode::Trickle, WriteMode::DontNeed] {
            let path = directory.path().join(format!("{backend}-{mode}"));
            let options = WriterOptions {
                trickle_bytes: 2 << 20,
                ..WriterOptions::default()
            };
            let mut writer = io.create(&path, mode, options).unwrap();
            writer.write_all(&bytes).unwrap();
            let found = residency(&path).unwrap();
            // Windows ahead, being written and awaited: each is at most two windows and the writes in flight.
            let bound = 3 * (2 * 2 + 5) * MIB as u64 / 4096;
            if let (Some(dirty), WriteMode::Trickle) = (found.dirty, mode) {
                assert!(dirty <= bound, "{backend} {mode}: {found:?}");
            }
            if mode == WriteMode::DontNeed {
                assert!(resident(&path) <= bound, "{backend} {mode}: {found:?}");
            }
            writer.finish().unwrap();
        }
    }
}

/// `dontcache` on kernels that support it: reads leave no pages, writes almost none.
#[test]
fn dontcache_leaves_next_to_nothing_or_is_refused_clearly() {
    let directory = disk_directory();
    let path = directory.path().join("file");
    let len = 16 * MIB;
    let io = io_on(BackendKind::Auto).unwrap();
    let options = WriterOptions::default();
    match write_file(&io, &path, WriteMode::DontCache, options, &content(len)) {
        Ok(written) => {
            assert_eq!(written.backend, BackendKind::Threads);
            assert_eq!(written.mode, WriteMode::DontCache);
        }
        Err(error) => {
            assert!(is_unsupported(&error), "{error}");
            assert!(error.to_string().contains("6.14"), "{error}");
            assert!(!path.exists());
            return;
        }
    }
    drop_clean_pages(&path).unwrap();
    let input = io.open(&path, ReadMode::DontCache).unwrap();
    assert_eq!(input.backend(), BackendKind::Threads);
    assert_eq!(input.read_all(u64::MAX).unwrap().len(), len);
    let found = residency(&path).unwrap();
    assert!(resident(&path) <= found.pages_total / 16, "{found:?}");
}

/// Reserved blocks that are never freed.
#[test]
fn preallocated_blocks_are_trimmed() {
    let directory = disk_directory();
    let io = io_on(BackendKind::Auto).unwrap();
    for mode in [WriteMode::Auto, WriteMode::Buffered] {
        for expected_len in [None, Some(1 << 30), Some(5)] {
            let path = directory.path().join(format!("{mode}-{expected_len:?}"));
            let options = WriterOptions {
                expected_len,
                ..WriterOptions::default()
            };
            write_file(&io, &path, mode, options, &content(3 * MIB + 1)).unwrap();
            let blocks_bytes = fs::metadata(&path).unwrap().blocks() * 512;
            assert!(
                blocks_bytes < 4 * MIB as u64,
                "{mode} {expected_len:?}: {blocks_bytes}"
            );
        }
    }
}

/// A count of resident pages in a unit other than pages.
#[test]
fn residency_counts_pages() {
    let directory = disk_directory();
    let path = directory.path().join("file");
    fs::write(&path, content(10 * 4096 + 1)).unwrap();
    let found = residency(&path).unwrap();
    assert_eq!((found.pages_total, found.pages_resident), (11, Some(11)));
    if found.method == ResidencyMethod::Cachestat {
        assert!(found.dirty.unwrap() <= 11);
    }
    let error = residency(&directory.path().join("none")).unwrap_err();
    assert_eq!(error.kind(), compactor_io::IoErrorKind::NotFound);
}

//! Reads beyond the end of a file, and limits.

use std::fs;

use compactor_io::{IoErrorKind, ReadMode, ReadaheadOptions, SequentialReader};
use compactor_testkit::io::{BACKENDS, io_on};
use compactor_testkit::machine::disk_directory;

use crate::support::content;

/// A truncated input that reads as zeroes, hangs, or returns an error without an offset.
#[test]
fn a_file_that_became_shorter_gives_unexpected_eof_with_its_offset() {
    let directory = disk_directory();
    for backend in BACKENDS {
        let Some(io) = io_on(backend) else { continue };
        for &mode in &ReadMode::ALL[..4] {
            for cut in [0, 1, 4095, 4096, 5000, 8191] {
                let path = directory.path().join("file");
                fs::write(&path, content(10_000)).unwrap();
                let input = io.open(&path, mode).unwrap();
                fs::File::options()
                    .write(true)
                    .open(&path)
                    .unwrap()
                    .set_len(cut)
                    .unwrap();
                let error = input.read_at(100, 9000).unwrap_err();
                assert_eq!(error.kind(), IoErrorKind::UnexpectedEof, "{error}");
                assert_eq!((error.offset(), error.length()), (Some(100), Some(9000)));
                let place = format!("the file ends at {cut},");
                if cut >= 100 || input.alignment() > 1 && mode == ReadMode::Direct {
                    assert!(
                        error.to_string().contains(&place),
                        "{backend} {mode} {error}"
                    );
                }
                let error = input.read_all(u64::MAX).unwrap_err();
                assert_eq!(error.kind(), IoErrorKind::UnexpectedEof, "{error}");
                // The remaining bytes can be read.
                let rest = input.read_at(0, cut as usize).unwrap();
                assert!(rest[..] == content(10_000)[..cut as usize]);
            }
        }
    }
}

/// An offset or length from a damaged file that overflows or allocates terabytes.
#[test]
fn absurd_offsets_and_lengths_are_refused_without_an_allocation() {
    let directory = disk_directory();
    let path = directory.path().join("file");
    fs::write(&path, content(10_000)).unwrap();
    for backend in BACKENDS {
        let Some(io) = io_on(backend) else { continue };
        let input = io.open(&path, ReadMode::Auto).unwrap();
        for (offset, len) in [
            (0, 10_001),
            (10_000, 1),
            (u64::MAX, 1),
            (u64::MAX, usize::MAX),
            (0, usize::MAX),
            (1 << 60, 1 << 60),
        ] {
            let error = input.read_at(offset, len).unwrap_err();
            assert_eq!(error.kind(), IoErrorKind::UnexpectedEof, "{offset} {len}");
            assert!(
                error.to_string().contains("the file ends at 10000"),
                "{error}"
            );
        }
        assert_eq!(io.pool().peak_bytes(), 0);
        assert!(input.read_at(10_000, 0).unwrap().is_empty());
    }
}

/// An offset that is truncated to 32 bits, and eviction that fails at holes.
#[test]
fn files_beyond_4_gib_with_holes_are_read_everywhere() {
    const GIB: u64 = 1 << 30;
    let directory = disk_directory();
    let path = directory.path().join("file");
    let len = 5 * GIB + 12_345;
    let portion = content(100_000);
    // Around 2 and 4 GiB, and at the end. The rest is a hole.
    let places = [0, 2 * GIB - 50_001, 4 * GIB - 3, len - 100_000];
    let file = fs::File::create(&path).unwrap();
    file.set_len(len).unwrap();
    for place in places {
        std::os::unix::fs::FileExt::write_all_at(&file, &portion, place).unwrap();
    }
    file.sync_all().unwrap();
    for backend in BACKENDS {
        let Some(io) = io_on(backend) else { continue };
        for mode in [ReadMode::Auto, ReadMode::Buffered, ReadMode::DontNeed] {
            let input = io.open(&path, mode).unwrap();
            assert_eq!(input.len(), len);
            for place in places {
                let found = input.read_at(place, portion.len()).unwrap();
                assert!(found[..] == portion[..], "{backend} {mode} {place}");
                let options = ReadaheadOptions {
                    request_bytes: 65_536,
                    depth: 4,
                };
                let end = (place + 20_000_000).min(len);
                let mut reader = SequentialReader::new(input.clone(), place..end, options);
                let mut bytes = Vec::new();
                while let Some(extent) = reader.next().unwrap() {
                    assert_eq!(extent.offset(), place + bytes.len() as u64);
                    bytes.extend_from_slice(&extent);
                }
                assert_eq!(bytes.len() as u64, end - place);
                assert!(bytes[..portion.len()] == portion[..], "{backend} {mode}");
                assert!(bytes[portion.len()..].iter().all(|&byte| byte == 0));
            }
            input.evict();
        }
    }
}

/// A read of a small component that reads a large file.
#[test]
fn read_all_respects_its_limit() {
    let directory = disk_directory();
    let path = directory.path().join("file");
    fs::write(&path, content(10_000)).unwrap();
    let io = io_on(BACKENDS[1]).unwrap();
    let input = io.open(&path, ReadMode::Auto).unwrap();
    assert_eq!(input.read_all(10_000).unwrap().len(), 10_000);
    let error = input.read_all(9_999).unwrap_err();
    assert_eq!(error.kind(), IoErrorKind::TooLarge);
    assert!(
        error.to_string().contains("10000 bytes, at most 9999"),
        "{error}"
    );
}

/// A reader that continues after an error, as if the previous extent were the last.
#[test]
fn a_reader_repeats_its_error() {
    let directory = disk_directory();
    let path = directory.path().join("file");
    fs::write(&path, content(100_000)).unwrap();
    let io = io_on(BACKENDS[1]).unwrap();
    let input = io.open(&path, ReadMode::Auto).unwrap();
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(50_000)
        .unwrap();
    let options = ReadaheadOptions {
        request_bytes: 8192,
        depth: 3,
    };
    let mut reader = SequentialReader::whole(input, options);
    let mut bytes = 0;
    let first = loop {
        match reader.next() {
            Ok(Some(extent)) => bytes += extent.len(),
            Ok(None) => panic!("no error after {bytes} bytes"),
            Err(error) => break error,
        }
    };
    assert_eq!(bytes, 49_152);
    assert_eq!(first.offset(), Some(49_152));
    assert_eq!(reader.next().unwrap_err().to_string(), first.to_string());
}

//! Reads that ask for what is not there, and limits.

use std::fs;

use compactor_io::{IoErrorKind, ReadMode, ReadaheadOptions, SequentialReader};

use crate::support::{BACKENDS, content, disk_directory, io_on};

/// A truncated input that reads as zeroes, hangs, or gives an error without a place.
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
                // What is still there can be read.
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
        assert_eq!(io.pool().gauge().peak_bytes(), 0);
        assert!(input.read_at(10_000, 0).unwrap().is_empty());
    }
}

/// A small-file read that swallows a large file.
#[test]
fn read_all_keeps_to_its_limit() {
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

/// A reader that goes on after an error, as if the extent before it were the last.
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

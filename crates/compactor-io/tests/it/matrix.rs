//! All modes on all backends transfer the same bytes.

use std::fs;

use compactor_io::{
    BackendKind, ReadMode, ReadaheadOptions, SequentialReader, WriteMode, WriterOptions,
};
use compactor_testkit::io::{BACKENDS, io_on, is_unsupported};
use compactor_testkit::machine::disk_directory;

use crate::support::{assert_same, content, write_file};

const MIB: usize = 1 << 20;

/// Around every boundary: empty, block, buffer, several buffers with a tail.
const LENGTHS: [usize; 12] = [
    0,
    1,
    4095,
    4096,
    4097,
    65_536,
    MIB - 1,
    MIB,
    MIB + 1,
    3 * MIB,
    5 * MIB + 4096,
    9 * MIB + 12_345,
];

/// `dontcache` is performed by the threads backend whatever `auto` prefers; `uring` refuses it, as another
/// test checks.
fn backend_for(backend: BackendKind, dontcache: bool) -> BackendKind {
    if dontcache && backend != BackendKind::Threads {
        BackendKind::Auto
    } else {
        backend
    }
}

/// Wrong bytes, lengths or old content of recycled buffers in any write mode.
#[test]
fn every_write_mode_on_every_backend_writes_the_same_bytes() {
    let directory = disk_directory();
    for backend in BACKENDS {
        for &mode in WriteMode::ALL {
            let Some(io) = io_on(backend_for(backend, mode == WriteMode::DontCache)) else {
                continue;
            };
            for len in LENGTHS {
                let bytes = content(len);
                let path = directory.path().join(format!("{backend}-{mode}-{len}"));
                // Small windows, so that write-back takes many steps.
                let options = WriterOptions {
                    trickle_bytes: 2 << 20,
                    ..WriterOptions::default()
                };
                let written = match write_file(&io, &path, mode, options, &bytes) {
                    Ok(written) => written,
                    Err(error) if is_unsupported(&error) => break,
                    Err(error) => panic!("{error}"),
                };
                let what = format!("{backend} {mode} {len}");
                assert_eq!(written.len, len as u64, "{what}");
                assert_ne!(written.mode, WriteMode::Auto, "{what}");
                assert_same(&fs::read(&path).unwrap(), &bytes, &what);
                fs::remove_file(&path).unwrap();
            }
            assert_eq!(io.pool().in_use_bytes(), 0, "{backend} {mode}");
        }
    }
}

/// Wrong bytes or lengths in any read mode, at any alignment of offset and length.
#[test]
fn every_read_mode_on_every_backend_reads_the_same_bytes() {
    let directory = disk_directory();
    let files: Vec<_> = LENGTHS
        .iter()
        .map(|&len| {
            let path = directory.path().join(len.to_string());
            fs::write(&path, content(len)).unwrap();
            (path, content(len))
        })
        .collect();
    for backend in BACKENDS {
        for &mode in ReadMode::ALL {
            let Some(io) = io_on(backend_for(backend, mode == ReadMode::DontCache)) else {
                continue;
            };
            for (path, bytes) in &files {
                let what = format!("{backend} {mode} {}", bytes.len());
                let input = match io.open(path, mode) {
                    Ok(input) => input,
                    Err(error) if is_unsupported(&error) => break,
                    Err(error) => panic!("{error}"),
                };
                assert_ne!(input.mode(), ReadMode::Auto);
                assert_eq!(input.len(), bytes.len() as u64, "{what}");
                assert_same(&input.read_all(u64::MAX).unwrap(), bytes, &what);
                let len = bytes.len();
                for (start, end) in [
                    (0, len),
                    (1, len),
                    (0, len.saturating_sub(1)),
                    (len / 3, len / 2),
                    (len.saturating_sub(1), len),
                    (len.saturating_sub(4097), len),
                    (len, len),
                    (4095.min(len), 4097.min(len)),
                ] {
                    let start = start.min(end);
                    let extent = input.read_at(start as u64, end - start).unwrap();
                    assert_eq!(extent.offset(), start as u64);
                    assert_same(
                        &extent,
                        &bytes[start..end],
                        &format!("{what} {start}..{end}"),
                    );
                }
            }
            assert_eq!(io.pool().in_use_bytes(), 0, "{backend} {mode}");
        }
    }
}

/// Readahead that loses, repeats or reorders extents, for request sizes that are not aligned to any boundary.
#[test]
fn readahead_gives_the_range_in_order_and_without_gaps() {
    let directory = disk_directory();
    let bytes = content(3 * MIB + 777);
    let path = directory.path().join("file");
    fs::write(&path, &bytes).unwrap();
    for backend in BACKENDS {
        let Some(io) = io_on(backend) else { continue };
        for mode in [ReadMode::Auto, ReadMode::Buffered, ReadMode::DontNeed] {
            for (request_bytes, depth) in [(1, 1), (4096, 3), (100_000, 2), (MIB, 8), (8 * MIB, 2)]
            {
                for range in [
                    0..u64::MAX,
                    5..1_000_001,
                    4096..8192,
                    7..7,
                    u64::MAX - 1..u64::MAX,
                ] {
                    let small = request_bytes == 1 && range.end > 10_000;
                    if small {
                        continue;
                    }
                    let input = io.open(&path, mode).unwrap();
                    let options = ReadaheadOptions {
                        request_bytes,
                        depth,
                    };
                    let mut reader = SequentialReader::new(input, range.clone(), options);
                    let end = (range.end as usize).min(bytes.len());
                    let start = (range.start as usize).min(end);
                    let mut found = Vec::new();
                    while let Some(extent) = reader.next().unwrap() {
                        assert_eq!(extent.offset(), (start + found.len()) as u64);
                        found.extend_from_slice(&extent);
                    }
                    assert!(reader.next().unwrap().is_none());
                    let what = format!("{backend} {mode} {range:?} {request_bytes}x{depth}");
                    assert_same(&found, &bytes[start..end], &what);
                }
            }
        }
    }
}

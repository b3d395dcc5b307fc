//! Full file systems.

use std::fs;
use std::path::Path;

use compactor_io::{BackendKind, IoErrorKind, IoOperation, WriteMode, WriterOptions};
use compactor_testkit::io::{BACKENDS, io_on};
use compactor_testkit::machine::{Mount, disk_directory};

use crate::support::content;

const MIB: usize = 1 << 20;

/// Writes until the file system is full: every mode must report it with an offset.
fn fill(directory: &Path, backend: BackendKind, mode: WriteMode) {
    let backend = match (backend, mode) {
        (BackendKind::Uring | BackendKind::TokioUring, WriteMode::DontCache) => BackendKind::Auto,
        _ => backend,
    };
    let Some(io) = io_on(backend) else { return };
    let path = directory.join("file");
    // The expected length exceeds the space: failing to reserve it is not a failure.
    let options = WriterOptions {
        expected_len: Some(1 << 30),
        ..WriterOptions::default()
    };
    let mut writer = match io.create(&path, mode, options) {
        Ok(writer) => writer,
        // tmpfs has no direct I/O; other tests report modes that this machine lacks.
        Err(error) if error.kind() == IoErrorKind::Unsupported => return,
        Err(error) => panic!("{error}"),
    };
    let portion = content(MIB);
    let mut failed = None;
    for _ in 0..200 {
        if let Err(error) = writer.write_all(&portion) {
            failed = Some(error);
            break;
        }
    }
    let error = match failed {
        Some(first) => {
            let error = writer.finish().unwrap_err();
            assert_eq!(error.to_string(), first.to_string());
            error
        }
        None => writer.finish().unwrap_err(),
    };
    fs::remove_file(&path).unwrap();
    assert!(error.is_no_space(), "{backend} {mode}: {error}");
    assert_eq!(error.kind(), IoErrorKind::NoSpace);
    assert_eq!(error.path(), path);
    assert!(error.to_string().contains("free space"), "{error}");
    if error.operation() == IoOperation::Write {
        assert!(error.offset().is_some(), "{error}");
    }
    assert_eq!(io.pool().in_use_bytes(), 0);
}

/// A full disk that is not recognised, or makes the run hang.
#[test]
fn a_full_tmpfs_gives_no_space() {
    let Some(mount) = Mount::tmpfs(8 << 20) else {
        return;
    };
    for backend in BACKENDS {
        for &mode in WriteMode::ALL {
            fill(mount.path(), backend, mode);
        }
    }
}

/// The same with real direct I/O and delayed allocation.
#[test]
fn a_full_ext4_gives_no_space() {
    let image = disk_directory();
    let Some(mount) = Mount::ext4(48 << 20, image.path()) else {
        return;
    };
    for backend in BACKENDS {
        for &mode in WriteMode::ALL {
            fill(mount.path(), backend, mode);
        }
    }
}

//! I/O that the machine may lack, and files for tests of I/O.

use std::path::Path;

use compactor_io::{BackendKind, Io, IoError, IoErrorKind, IoOptions, ReadMode};

use crate::skip::{Need, skip, skip_part};

/// All backends.
pub const BACKENDS: [BackendKind; 3] = [
    BackendKind::Uring,
    BackendKind::Threads,
    BackendKind::TokioUring,
];

/// Returns an `Io` on this backend, or `None` if io_uring is not permitted here.
///
/// # Panics
/// If the threads backend cannot be started.
#[track_caller]
pub fn io_on(backend: BackendKind) -> Option<Io> {
    io_with(IoOptions {
        backend,
        ..IoOptions::default()
    })
}

/// Returns an `Io` with these options, or `None` if they want io_uring, which is not permitted here.
///
/// # Panics
/// If another backend cannot be started.
#[track_caller]
pub fn io_with(options: IoOptions) -> Option<Io> {
    let backend = options.backend;
    match Io::new(options) {
        Ok(io) => Some(io),
        Err(error) if matches!(backend, BackendKind::Uring | BackendKind::TokioUring) => {
            skip_part(Need::IoUring, format!("{backend}: {error}"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Whether direct I/O works in this directory. If not, the test is reported as skipped.
///
/// # Panics
/// If the directory cannot be written.
#[track_caller]
pub fn has_direct_io(directory: &Path) -> bool {
    let path = directory.join("direct-works");
    std::fs::write(&path, [0; 4096]).expect("a file");
    let io = io_on(BackendKind::Threads).expect("threads");
    let result = io.open(&path, ReadMode::Direct);
    std::fs::remove_file(&path).expect("its removal");
    match result {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.kind(), IoErrorKind::Unsupported, "{error}");
            skip(Need::DirectIo, "no direct I/O in the directory for tests");
            false
        }
    }
}

/// Whether this error means that direct I/O or `RWF_DONTCACHE` is not supported here. If so, a part of the test is
/// reported as skipped.
#[track_caller]
pub fn is_unsupported(error: &IoError) -> bool {
    let is_unsupported = error.kind() == IoErrorKind::Unsupported;
    if is_unsupported {
        skip_unsupported(&error.to_string());
    }
    is_unsupported
}

/// Reports that a part of the test is skipped because of an error about direct I/O or `RWF_DONTCACHE`.
#[track_caller]
pub fn skip_unsupported(error: &str) {
    if error.contains("RWF_DONTCACHE") {
        skip_part(Need::DontCache, "no RWF_DONTCACHE here");
    } else {
        skip_part(Need::DirectIo, "no direct I/O in the directory for tests");
    }
}

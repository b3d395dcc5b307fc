//! Behaviour if direct I/O or a backend is not supported.

use std::fs;
use std::path::Path;

use compactor_io::residency;
use compactor_io::{
    BackendKind, Io, IoErrorKind, IoOptions, Mode, ReadMode, WriteMode, WriterOptions,
};
use compactor_testkit::io::{BACKENDS, io_on};
use compactor_testkit::machine::disk_directory;
use compactor_testkit::{Need, skip};
use tempfile::TempDir;

use crate::support::{content, write_file};

#[track_caller]
fn tmpfs_directory() -> Option<TempDir> {
    let shm = Path::new("/dev/shm");
    match TempDir::new_in(shm) {
        Ok(directory) => Some(directory),
        Err(error) => {
            skip(
                Need::Tmpfs,
                format!("no tmpfs in {}: {error}", shm.display()),
            );
            None
        }
    }
}

/// `auto` failing on tmpfs, not reporting it, or reporting it for every file.
#[test]
fn auto_falls_back_to_dontneed_and_reports_it_once_per_directory() {
    let Some(directory) = tmpfs_directory() else {
        return;
    };
    for backend in BACKENDS {
        let Some(io) = io_on(backend) else { continue };
        let subdirectory = directory.path().join(backend.name());
        fs::create_dir(&subdirectory).unwrap();
        for number in 0..3 {
            let path = subdirectory.join(number.to_string());
            let bytes = content(2_000_000);
            let written = write_file(
                &io,
                &path,
                WriteMode::Auto,
                WriterOptions::default(),
                &bytes,
            )
            .unwrap();
            assert_eq!(written.mode, WriteMode::DontNeed);
            let input = io.open(&path, ReadMode::Auto).unwrap();
            assert_eq!(input.mode(), ReadMode::DontNeed);
            assert!(input.read_all(u64::MAX).unwrap() == bytes);
        }
        let fallbacks = io.fallbacks();
        assert_eq!(fallbacks.len(), 2, "{fallbacks:?}");
        let (read, write) = (&fallbacks[0], &fallbacks[1]);
        assert_eq!(read.asked, Mode::Read(ReadMode::Auto));
        assert_eq!(read.used, Mode::Read(ReadMode::DontNeed));
        assert_eq!(write.used, Mode::Write(WriteMode::DontNeed));
        for fallback in fallbacks {
            assert_eq!(fallback.directory, subdirectory);
            assert_eq!(fallback.files, 3);
            assert!(fallback.to_string().contains("statx"), "{fallback}");
        }
    }
}

/// An explicit `direct` replaced by another mode, or a file left by the refusal.
#[test]
fn direct_is_refused_on_tmpfs() {
    let Some(directory) = tmpfs_directory() else {
        return;
    };
    let io = io_on(BackendKind::Auto).unwrap();
    let path = directory.path().join("file");
    let error = io
        .create(&path, WriteMode::Direct, WriterOptions::default())
        .unwrap_err();
    assert_eq!(error.kind(), IoErrorKind::Unsupported);
    assert_eq!(error.mode(), Some(Mode::Write(WriteMode::Direct)));
    assert!(
        error.to_string().contains("choose write mode auto"),
        "{error}"
    );
    assert!(!path.exists());
    fs::write(&path, "x").unwrap();
    let error = io.open(&path, ReadMode::Direct).unwrap_err();
    assert_eq!(error.kind(), IoErrorKind::Unsupported);
    assert!(
        error.to_string().contains(path.to_str().unwrap()),
        "{error}"
    );
    assert!(io.fallbacks().is_empty());
}

/// `dontcache` on tmpfs succeeding in another mode.
#[test]
fn dontcache_is_refused_on_tmpfs() {
    let Some(directory) = tmpfs_directory() else {
        return;
    };
    let io = io_on(BackendKind::Threads).unwrap();
    let path = directory.path().join("file");
    let error = io
        .create(&path, WriteMode::DontCache, WriterOptions::default())
        .unwrap_err();
    assert_eq!(error.kind(), IoErrorKind::Unsupported, "{error}");
    assert!(!path.exists());
    fs::write(&path, "x").unwrap();
    let error = io.open(&path, ReadMode::DontCache).unwrap_err();
    assert_eq!(error.kind(), IoErrorKind::Unsupported, "{error}");
}

/// Explicit `uring` silently using threads for `dontcache`.
#[test]
fn explicit_uring_refuses_dontcache_with_a_remedy() {
    let Some(io) = io_on(BackendKind::Uring) else {
        return;
    };
    let directory = disk_directory();
    let path = directory.path().join("file");
    let error = io
        .create(&path, WriteMode::DontCache, WriterOptions::default())
        .unwrap_err();
    assert_eq!(error.kind(), IoErrorKind::Unsupported);
    assert!(
        error.to_string().contains("choose backend auto or threads"),
        "{error}"
    );
    assert!(!path.exists());
    fs::write(&path, "x").unwrap();
    let error = io.open(&path, ReadMode::DontCache).unwrap_err();
    assert_eq!(error.kind(), IoErrorKind::Unsupported);
}

/// An output replacing an existing file.
#[test]
fn an_existing_file_is_not_overwritten() {
    let directory = disk_directory();
    let path = directory.path().join("file");
    fs::write(&path, "precious").unwrap();
    let io = io_on(BackendKind::Auto).unwrap();
    for &mode in WriteMode::ALL {
        let error = io
            .create(&path, mode, WriterOptions::default())
            .unwrap_err();
        assert_eq!(error.kind(), IoErrorKind::AlreadyExists);
    }
    assert_eq!(fs::read(&path).unwrap(), b"precious");
}

/// Directories, FIFOs, sockets, devices and missing files as inputs: a FIFO would wait forever.
#[test]
fn only_regular_files_are_opened() {
    let directory = disk_directory();
    let io = io_on(BackendKind::Auto).unwrap();
    let (fifo, socket) = (
        directory.path().join("fifo"),
        directory.path().join("socket"),
    );
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let device = std::path::Path::new("/dev/null");
    for (path, what) in [
        (directory.path(), "a directory"),
        (&fifo, "a FIFO"),
        (&socket, "a socket"),
        (device, "a device"),
    ] {
        for error in [
            io.open(path, ReadMode::Auto).unwrap_err(),
            residency(path).unwrap_err(),
        ] {
            assert_eq!(error.kind(), IoErrorKind::Unsupported);
            let text = error.to_string();
            assert!(
                text.contains(&format!("{what}, not a regular file")),
                "{text}"
            );
            assert!(text.contains(path.to_str().unwrap()), "{text}");
        }
    }
    let error = io
        .open(&directory.path().join("none"), ReadMode::Auto)
        .unwrap_err();
    assert_eq!(error.kind(), IoErrorKind::NotFound);
}

/// A named pipe whose opening waits for a writer.
#[test]
fn a_named_pipe_is_refused_without_waiting() {
    let directory = disk_directory();
    let path = directory.path().join("nb-1-big-Data.db");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let io = io_on(BackendKind::Threads).unwrap();
        let error = io.open(&path, ReadMode::Auto).unwrap_err();
        let _ = compactor_io::residency(&path);
        ended.send(error).unwrap();
    });
    let error = end
        .recv_timeout(std::time::Duration::from_secs(30))
        .unwrap();
    assert!(error.to_string().contains("not a regular file"), "{error}");
}

/// `auto` not finding the backend that works; explicit choices being ignored.
#[test]
fn the_backend_in_use_is_the_requested_one() {
    let threads = io_on(BackendKind::Threads).unwrap();
    assert_eq!(threads.backend_used().kind, BackendKind::Threads);
    assert_eq!(threads.backend_used().fallback_reason, None);
    let auto = Io::new(IoOptions::default()).unwrap();
    match io_on(BackendKind::Uring) {
        Some(uring) => {
            assert_eq!(uring.backend_used().kind, BackendKind::Uring);
            assert_eq!(auto.backend_used().kind, BackendKind::Uring);
        }
        None => {
            assert_eq!(auto.backend_used().kind, BackendKind::Threads);
            assert!(auto.backend_used().fallback_reason.is_some());
        }
    }
}

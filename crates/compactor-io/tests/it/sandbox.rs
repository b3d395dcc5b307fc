//! Sandboxes that refuse system calls, as container runtimes do (seccomp).
//!
//! A filter applies to the thread that installs it and to threads started by it: each test refuses calls to a
//! separate thread, and so to the I/O threads of the `Io` created there.
#![expect(unsafe_code, reason = "prctl has no safe wrapper for filters")]

use std::fs;
use std::io;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use compactor_io::{
    BackendKind, Io, IoErrorKind, IoOptions, ReadMode, ResidencyMethod, Support, WriteMode,
    WriterOptions, drop_clean_pages, probe, residency,
};
use compactor_testkit::io::{has_direct_io, io_on};
use compactor_testkit::machine::disk_directory;
use compactor_testkit::{Need, skip};

use crate::support::{content, write_file};

/// The same number on every architecture, as for all calls since 5.1.
const SYS_CACHESTAT: libc::c_long = 451;

/// Makes `calls` fail with `errno` permanently, on this thread and on those that it starts.
fn refuse(calls: &[libc::c_long], errno: i32) -> io::Result<()> {
    let instruction = |code: u32, jump_if_equal: u8, value: u32| libc::sock_filter {
        code: code as u16,
        jt: jump_if_equal,
        jf: 0,
        k: value,
    };
    // The number of the call is the first field of a filter's input.
    let mut program = vec![instruction(
        libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
        0,
        0,
    )];
    for (index, &call) in calls.iter().enumerate() {
        let to_refusal = (calls.len() - index) as u8;
        program.push(instruction(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            to_refusal,
            call as u32,
        ));
    }
    let give = libc::BPF_RET | libc::BPF_K;
    program.push(instruction(give, 0, libc::SECCOMP_RET_ALLOW));
    program.push(instruction(give, 0, libc::SECCOMP_RET_ERRNO | errno as u32));
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: plain numbers.
    let result = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel copies the program, of `len` instructions, during the call.
    let result = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const filter,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Runs a test on a thread to which calls are refused. A test that hangs fails.
fn without(calls: &[libc::c_long], errno: i32, test: impl FnOnce() + Send + 'static) {
    let calls = calls.to_vec();
    let (ended, end) = channel::<()>();
    // Named after the test, as which it is counted if it is skipped.
    let test_name = std::thread::current().name().unwrap_or("main").to_owned();
    let thread = std::thread::Builder::new().name(test_name);
    let run = move || {
        let _ended = ended;
        match refuse(&calls, errno) {
            Ok(()) => test(),
            Err(error) => skip(
                Need::Seccomp,
                format!("no filter can be installed: {error}"),
            ),
        }
    };
    let thread = thread.spawn(run).unwrap();
    let result = end.recv_timeout(Duration::from_secs(60));
    assert_eq!(result, Err(RecvTimeoutError::Disconnected), "it hangs");
    thread.join().unwrap();
}

fn copies(io: &Io, directory: &Path, read: ReadMode, write: WriteMode) -> (ReadMode, WriteMode) {
    let path = directory.join(format!("{read}-{write}"));
    let bytes = content(3_000_000);
    let written = write_file(io, &path, write, WriterOptions::default(), &bytes).unwrap();
    let input = io.open(&path, read).unwrap();
    assert!(input.read_all(u64::MAX).unwrap() == bytes);
    fs::remove_file(&path).unwrap();
    (input.mode(), written.mode)
}

/// A ring that can be created but not used: `auto` waiting forever, or a refusal without a reason.
#[test]
fn without_io_uring_auto_uses_threads_with_a_reason() {
    let cases = [
        (libc::SYS_io_uring_setup, libc::ENOSYS, "io_uring_setup"),
        (libc::SYS_io_uring_setup, libc::EPERM, "io_uring_setup"),
        (libc::SYS_io_uring_enter, libc::EPERM, "io_uring_enter"),
        (libc::SYS_io_uring_enter, libc::ENOSYS, "io_uring_enter"),
    ];
    for (call, errno, name) in cases {
        without(&[call], errno, move || {
            let io = Io::new(IoOptions::default()).unwrap();
            assert_eq!(io.backend_used().kind, BackendKind::Threads);
            let notes = io.notes();
            assert!(
                notes.len() == 1 && notes[0].contains(name) && notes[0].contains("os error"),
                "{notes:?}"
            );
            let directory = disk_directory();
            copies(&io, directory.path(), ReadMode::Auto, WriteMode::Auto);
            let error = Io::new(IoOptions {
                backend: BackendKind::Uring,
                ..IoOptions::default()
            })
            .unwrap_err();
            assert_eq!(error.kind(), IoErrorKind::Unsupported);
            assert!(error.to_string().contains(name), "{error}");
            assert!(error.to_string().contains("seccomp"), "{error}");
        });
    }
}

/// `auto` failing because it cannot determine whether direct I/O works.
#[test]
fn without_statx_auto_uses_dontneed_with_a_reason() {
    for errno in [libc::EPERM, libc::ENOSYS] {
        let directory = disk_directory();
        without(&[libc::SYS_statx], errno, move || {
            let io = Io::new(IoOptions::default()).unwrap();
            let used = copies(&io, directory.path(), ReadMode::Auto, WriteMode::Auto);
            assert_eq!(used, (ReadMode::DontNeed, WriteMode::DontNeed));
            let notes: Vec<_> = io.fallbacks().iter().map(ToString::to_string).collect();
            assert_eq!(notes.len(), 2, "{notes:?}");
            for note in &notes {
                assert!(
                    note.contains("statx") && note.contains("os error"),
                    "{note}"
                );
            }
            copies(
                &io,
                directory.path(),
                ReadMode::Buffered,
                WriteMode::Trickle,
            );
            let error = io
                .create(
                    &directory.path().join("direct"),
                    WriteMode::Direct,
                    WriterOptions::default(),
                )
                .unwrap_err();
            assert_eq!(error.kind(), IoErrorKind::Unsupported, "{error}");
            let found = probe(directory.path()).unwrap();
            assert!(matches!(found.direct, Support::Fails(_)), "{found:?}");
            assert_eq!(found.read.chosen, ReadMode::DontNeed);
        });
    }
}

/// An output that fails because an optional call is missing.
#[test]
fn optional_calls_may_be_missing() {
    let calls = [
        libc::SYS_sync_file_range,
        libc::SYS_fadvise64,
        libc::SYS_fallocate,
        libc::SYS_renameat2,
    ];
    for errno in [libc::EPERM, libc::ENOSYS] {
        let directory = disk_directory();
        without(&calls, errno, move || {
            let io = Io::new(IoOptions::default()).unwrap();
            for mode in [
                WriteMode::Auto,
                WriteMode::Buffered,
                WriteMode::Trickle,
                WriteMode::DontNeed,
            ] {
                copies(&io, directory.path(), ReadMode::Auto, mode);
                copies(&io, directory.path(), ReadMode::DontNeed, mode);
            }
            let (from, to) = (directory.path().join("from"), directory.path().join("to"));
            fs::write(&from, "x").unwrap();
            compactor_io::rename_no_replace(&from, &to).unwrap();
        });
    }
}

/// Wrong page counts, or none for files owned by this process.
#[test]
fn without_cachestat_page_counts_of_own_files_come_from_mincore() {
    for errno in [libc::EPERM, libc::ENOSYS] {
        let directory = disk_directory();
        without(&[SYS_CACHESTAT], errno, move || {
            let path = directory.path().join("file");
            fs::write(&path, content(10 * 4096)).unwrap();
            let found = residency(&path).unwrap();
            assert_eq!(found.method, ResidencyMethod::Mincore);
            assert_eq!(found.pages_resident, Some(found.pages_total));
            if has_direct_io(directory.path()) {
                drop_clean_pages(&path).unwrap();
                assert_eq!(residency(&path).unwrap().pages_resident, Some(0));
            }
            let probed = probe(directory.path()).unwrap();
            assert!(matches!(probed.cachestat, Support::Fails(_)), "{probed:?}");
            assert_eq!(probed.page_counts, Support::Works);
        });
    }
}

/// The calls refused above work here; otherwise the tests would prove nothing.
#[test]
fn a_filter_applies_only_to_its_thread() {
    without(&[libc::SYS_statx], libc::EPERM, || ());
    let directory = disk_directory();
    if has_direct_io(directory.path())
        && let Some(io) = io_on(BackendKind::Uring)
    {
        let used = copies(&io, directory.path(), ReadMode::Auto, WriteMode::Auto);
        assert_eq!(used, (ReadMode::Direct, WriteMode::Direct));
    }
}

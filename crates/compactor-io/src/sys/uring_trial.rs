//! Whether io_uring works in this process: a sandbox may allow to make a ring and forbid to use it.
#![expect(unsafe_code, reason = "submitting to a raw ring")]

use std::io;
use std::time::{Duration, Instant};

use io_uring::{IoUring, opcode};

/// An operation that does nothing completes while it is submitted. Whoever takes longer than this is
/// not worth waiting for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Makes a ring, submits an operation that does nothing, and awaits its completion.
///
/// # Errors
///
/// What the first step that fails reports, named.
pub(crate) fn try_ring() -> io::Result<()> {
    let mut ring = IoUring::new(2).map_err(|error| named("io_uring_setup", &error))?;
    // Came with the plain reads and writes that files need here (Linux 5.6).
    if !ring.params().is_feature_rw_cur_pos() {
        let message = "io_uring of this kernel has no IORING_OP_READ (Linux 5.6)";
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    let nothing = opcode::Nop::new().build();
    // SAFETY: the operation refers to no memory and no descriptor.
    let pushed = unsafe { ring.submission().push(&nothing) };
    pushed.map_err(|_| io::Error::other("a new ring has no room for an operation"))?;
    let started = Instant::now();
    let submitted = loop {
        match ring.submit() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => break result.map_err(|error| named("io_uring_enter", &error))?,
        }
    };
    if submitted != 1 {
        return Err(io::Error::other("io_uring_enter takes no operation"));
    }
    while started.elapsed() < PATIENCE {
        if let Some(completion) = ring.completion().next() {
            return match completion.result() {
                0.. => Ok(()),
                errno => Err(named(
                    "IORING_OP_NOP",
                    &io::Error::from_raw_os_error(-errno),
                )),
            };
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(io::Error::new(
        io::ErrorKind::TimedOut,
        "io_uring_enter takes operations, but does not complete them",
    ))
}

/// Names the call that failed.
pub(crate) fn named(call: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{call}: {error}"))
}

//! Trial of io_uring in this process: a sandbox may permit creating a ring but forbid using it.
#![expect(unsafe_code, reason = "submitting to a raw ring")]

use std::io;
use std::time::{Duration, Instant};

use io_uring::{IoUring, opcode};

/// Maximum time to wait for a no-op, which normally completes during submission.
const PATIENCE: Duration = Duration::from_secs(1);

/// Creates a ring, submits a no-op, and waits for its completion.
///
/// # Errors
///
/// The error of the first step that fails, with its name.
pub(crate) fn try_ring() -> io::Result<()> {
    let mut ring = IoUring::new(2).map_err(|error| named("io_uring_setup", &error))?;
    // Introduced together with the plain reads and writes that are needed here (Linux 5.6).
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

/// Adds the name of the failed call to an error.
pub(crate) fn named(call: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{call}: {error}"))
}

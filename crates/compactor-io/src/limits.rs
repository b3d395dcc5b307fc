//! Limits on what grows.

/// The most bytes of one operation. The kernel transfers at most 0x7ffff000 and io_uring's length
/// is 32 bits wide; larger transfers are made of several. A multiple of every alignment in use.
pub(crate) const OPERATION_BYTES_MAX: usize = 1 << 30;

/// How often in a row an operation is submitted again that was interrupted (`EINTR`), could not be
/// queued (`EAGAIN`) or made no progress. Beyond that something is broken, and saying so beats
/// spinning.
pub(crate) const ATTEMPTS_MAX: u32 = 100;

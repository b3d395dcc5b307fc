//! Limits on sizes and retries.

/// Maximum length of one operation, bytes. The kernel transfers at most 0x7ffff000 and io_uring's length is
/// 32 bits wide; larger transfers are split. A multiple of every alignment in use.
pub(crate) const OPERATION_BYTES_MAX: usize = 1 << 30;

/// Maximum number of consecutive retries of an operation that was interrupted (`EINTR`), could not be queued
/// (`EAGAIN`) or made no progress. Beyond that an error is reported instead of retrying forever.
pub(crate) const ATTEMPTS_MAX: u32 = 100;

//! Reservation of a file's blocks ahead of its writes, in large steps.
//!
//! Preallocation keeps a file in few extents while several grow concurrently, and allows direct writes to run
//! in parallel: a write that extends a file, or needs blocks, is serialised and leaves the fast path of
//! io_uring. It is only an optimisation: if it fails (no support, or not enough space), the writes continue without
//! it and report a full disk themselves. No step takes more than a small part of the free space: each of many files that
//! grow concurrently has one.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::process::Resource;

use crate::align::{DEFAULT_ALIGNMENT_U64, round_down, round_up};
use crate::sys::limit::limit_of;

/// Minimum and maximum bytes reserved in one step if the final length is unknown. In between, the reserved
/// length doubles.
const STEP_BYTES_MIN: u64 = 1 << 20;
const STEP_BYTES_MAX: u64 = 256 << 20;

/// Divisor of the free space: the quotient limits one step.
const PART_OF_FREE: u64 = 64;

/// Maximum bytes reserved in one step of a length that the caller only expects.
const EXPECTED_STEP_BYTES_MAX: u64 = 4 << 30;

/// State of the reservation of a file's blocks.
#[derive(Debug)]
pub(crate) struct Preallocation {
    reserved: u64,
    expected_len: Option<u64>,
    /// Whether the file's length is unchanged by the reservation. For direct writes it is extended, so that
    /// the writes need not extend the file. For buffered ones it is not: other processes see only the bytes
    /// written.
    keep_size: bool,
    /// `RLIMIT_FSIZE`, rounded down: reserving beyond it would raise a signal (`SIGXFSZ`) that ends the
    /// process, although the file itself may stay below.
    limit: u64,
    disabled: bool,
}

impl Preallocation {
    pub(crate) fn new(expected_len: Option<u64>, keep_size: bool) -> Preallocation {
        let limit = limit_of(Resource::Fsize).soft.unwrap_or(u64::MAX);
        let limit = round_down(limit, DEFAULT_ALIGNMENT_U64);
        Preallocation {
            reserved: 0,
            expected_len,
            keep_size,
            limit,
            disabled: false,
        }
    }

    /// Whether blocks may have been reserved that must be trimmed.
    pub(crate) fn may_have_reserved(&self) -> bool {
        self.reserved > 0
    }

    /// Reserves blocks at least up to `end`, if they are not reserved.
    pub(crate) fn reserve(&mut self, file: impl AsFd, end: u64) {
        if self.disabled || end <= self.reserved {
            return;
        }
        let from = self.reserved;
        let target = self.next_target(end, free_bytes(&file)).min(self.limit);
        if target < end.min(self.limit) {
            self.disabled = true;
            return;
        }
        if target <= from {
            return;
        }
        let flags = if self.keep_size {
            FallocateFlags::KEEP_SIZE
        } else {
            FallocateFlags::empty()
        };
        // Even a failed call may have reserved some blocks.
        self.reserved = target;
        loop {
            match fallocate(&file, flags, from, target - from) {
                Ok(()) => return,
                Err(Errno::INTR) => {}
                Err(_) => {
                    self.disabled = true;
                    return;
                }
            }
        }
    }

    /// End of the next step, at most `free / PART_OF_FREE` bytes after what is reserved.
    fn next_target(&self, end: u64, free: u64) -> u64 {
        let target = match self.expected_len {
            Some(expected) if expected >= end => {
                expected.min(end.saturating_add(EXPECTED_STEP_BYTES_MAX))
            }
            _ => end.saturating_add(end.clamp(STEP_BYTES_MIN, STEP_BYTES_MAX)),
        };
        let most = self.reserved.saturating_add(free / PART_OF_FREE);
        round_up(target, DEFAULT_ALIGNMENT_U64).min(round_down(most, DEFAULT_ALIGNMENT_U64))
    }
}

/// Free bytes of the file's file system; unlimited if it does not state them.
fn free_bytes(file: impl AsFd) -> u64 {
    rustix::fs::fstatvfs(file).map_or(u64::MAX, |found| {
        found.f_bavail.saturating_mul(found.f_frsize)
    })
}

/// Sets a file's length and frees the blocks reserved beyond it.
pub(crate) fn trim(file: impl AsFd, len: u64) -> io::Result<()> {
    loop {
        // Truncating a file to its current length also frees the blocks beyond it.
        match rustix::fs::ftruncate(&file, len) {
            Err(Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn steps_grow_with_the_file_and_stop_at_the_expected_length() {
        let unknown = Preallocation::new(None, true);
        assert_eq!(unknown.next_target(MIB / 2, u64::MAX), 3 * MIB / 2);
        assert_eq!(unknown.next_target(64 * MIB, u64::MAX), 128 * MIB);
        assert_eq!(unknown.next_target(1024 * MIB, u64::MAX), 1280 * MIB);
        let known = Preallocation::new(Some(100 * MIB - 1), true);
        assert_eq!(known.next_target(MIB, u64::MAX), 100 * MIB);
        // Other files may need the rest of the free space.
        assert_eq!(known.next_target(MIB, 640 * MIB), 10 * MIB);
        assert_eq!(unknown.next_target(MIB, 64 * MIB), MIB);
        // If an estimate is too small, it is no longer used.
        assert_eq!(known.next_target(101 * MIB, u64::MAX), 202 * MIB);
    }
}

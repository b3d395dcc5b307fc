//! `cachestat(2)`, Linux 6.5.
#![expect(
    unsafe_code,
    reason = "rustix and libc have no wrapper for this system call"
)]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Number of the system call: the same on every architecture except alpha, as for all calls since 5.1.
const SYS_CACHESTAT: libc::c_long = 451;

/// `struct cachestat` of uapi/linux/mman.h: counts of pages.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CacheStat {
    pub(crate) cached: u64,
    pub(crate) dirty: u64,
    pub(crate) writeback: u64,
    pub(crate) evicted: u64,
    pub(crate) recently_evicted: u64,
}

/// `struct cachestat_range` of uapi/linux/mman.h: a length of 0 extends to the end of the file.
#[repr(C)]
struct CacheStatRange {
    offset: u64,
    len: u64,
}

/// Counts the pages of a whole file that are in the page cache.
pub(crate) fn cachestat(file: impl AsFd) -> io::Result<CacheStat> {
    let range = CacheStatRange { offset: 0, len: 0 };
    let mut stat = CacheStat::default();
    // SAFETY: the descriptor is open while `file` is borrowed. The kernel reads 16 bytes at
    // `range` and writes 40 at `stat`; both are live locals of `repr(C)` types of those sizes, and
    // the kernel keeps neither pointer.
    let result = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_fd().as_raw_fd(),
            &raw const range,
            &raw mut stat,
            0 as libc::c_uint,
        )
    };
    if result == 0 {
        Ok(stat)
    } else {
        Err(io::Error::last_os_error())
    }
}

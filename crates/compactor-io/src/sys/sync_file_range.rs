//! `sync_file_range(2)`: write-back of a range of the page cache, without metadata.
#![expect(unsafe_code, reason = "rustix has no wrapper for this system call")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use super::overlay::is_on_overlay;

/// Starts write-back of the dirty pages of a range without waiting for it. Does nothing if the call is not
/// available.
pub(crate) fn start_writeback(file: impl AsFd, offset: u64, len: u64) -> io::Result<()> {
    match sync_file_range(file, offset, len, libc::SYNC_FILE_RANGE_WRITE) {
        Err(error) if is_missing(&error) => Ok(()),
        result => result,
    }
}

/// Writes back the dirty pages of a range and waits until none is dirty or being written. Does not make them
/// durable: the device's cache and the file's metadata are not synced. If the call is not available (in some
/// sandboxes) or does nothing (on an overlay file system), the whole file is synced instead.
pub(crate) fn write_back(file: impl AsFd, offset: u64, len: u64) -> io::Result<()> {
    if is_on_overlay(&file) {
        return Ok(rustix::fs::fdatasync(file)?);
    }
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    match sync_file_range(&file, offset, len, flags) {
        Err(error) if is_missing(&error) => Ok(rustix::fs::fdatasync(&file)?),
        result => result,
    }
}

/// The call needs no permission: `EPERM` comes from a sandbox that does not know it.
fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOSYS | libc::EOPNOTSUPP | libc::EPERM)
    )
}

fn sync_file_range(file: impl AsFd, offset: u64, len: u64, flags: libc::c_uint) -> io::Result<()> {
    let overflow = |_| io::Error::from_raw_os_error(libc::EOVERFLOW);
    let offset = i64::try_from(offset).map_err(overflow)?;
    let len = i64::try_from(len).map_err(overflow)?;
    loop {
        // SAFETY: the descriptor is open while `file` is borrowed; the other arguments are plain
        // numbers, which the kernel checks.
        let result = unsafe { libc::sync_file_range(file.as_fd().as_raw_fd(), offset, len, flags) };
        if result == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

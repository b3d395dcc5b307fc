//! Overlay file systems, on which two system calls succeed without an effect on a file's pages.

use std::os::fd::AsFd;

use rustix::fs::{FsWord, fstatfs};

/// `OVERLAYFS_SUPER_MAGIC` of uapi/linux/magic.h.
const OVERLAYFS_SUPER_MAGIC: FsWord = 0x794c_7630;

/// Whether a file is on an overlay file system, such as the root of a container. Its pages are those of a file below
/// it, whereas `cachestat` and `sync_file_range` refer to its own inode, which has none: the first counts no page, the
/// second writes none back. `fdatasync`, `posix_fadvise` and mappings affect the file below.
pub(crate) fn is_on_overlay(file: impl AsFd) -> bool {
    fstatfs(file).is_ok_and(|found| found.f_type == OVERLAYFS_SUPER_MAGIC)
}

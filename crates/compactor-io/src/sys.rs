//! System calls and flags that `rustix` does not provide.

pub(crate) mod cachestat;
pub(crate) mod limit;
pub(crate) mod mapping;
pub(crate) mod mincore;
pub(crate) mod overlay;
pub(crate) mod sync_file_range;
pub(crate) mod uring_trial;

use rustix::io::ReadWriteFlags;

/// `RWF_DONTCACHE` (Linux 6.14, uapi/linux/fs.h).
pub(crate) const RWF_DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

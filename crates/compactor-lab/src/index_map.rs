//! The index files of an SSTable, mapped as Cassandra maps them (`disk_access_mode:
//! mmap_index_only`, its default): a lookup goes through the page cache, and a page that was evicted
//! is read again.
#![expect(
    unsafe_code,
    reason = "a mapped file must not change, which only its owner can promise; madvise has no safe \
              wrapper"
)]

use std::path::Path;

use compactor::Result;
use compactor_io::MappedFile;
use rustix::mm::{Advice, madvise};

/// Maps a component of a complete SSTable.
///
/// # Errors
/// The system's.
pub(crate) fn map(path: &Path) -> Result<MappedFile> {
    // SAFETY: components of an SSTable never change once its `Data.db` is there: Cassandra and
    // compactor only ever create and remove them. That holds for what the experiment generates and
    // writes, and is what a user promises by naming an SSTable.
    Ok(unsafe { MappedFile::open(path) }?)
}

/// Makes the kernel read only the pages that are touched, without readahead. Has no effect if the system
/// refuses.
pub(crate) fn expect_random(file: &MappedFile) {
    // SAFETY: the range is that of a mapping that lives as long as `file`, and this advice leaves what is
    // in it alone.
    let _ = unsafe { madvise(file.as_ptr().cast_mut().cast(), file.len(), Advice::Random) };
}

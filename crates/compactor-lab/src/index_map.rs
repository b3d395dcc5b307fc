//! The index files of an SSTable, mapped as Cassandra maps them (`disk_access_mode:
//! mmap_index_only`, its default): a lookup goes through the page cache, and a page that was evicted
//! is read again.
#![expect(
    unsafe_code,
    reason = "a mapped file must not change, which only its owner can promise"
)]

use std::path::Path;

use compactor::Result;
use compactor::io::MappedFile;

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

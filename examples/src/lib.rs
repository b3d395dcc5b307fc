//! Shared by the example programs: data to work on where none is named.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use compactor::generate::{Amount, GenerateOptions, Shape, generate};
use tempfile::TempDir;

/// A new directory on a disk, removed when dropped. `TMPDIR` chooses where; without it `/var/tmp`,
/// since `/tmp` is a tmpfs on many systems, and a tmpfs *is* page cache.
///
/// # Errors
/// The system's.
pub fn directory_on_disk() -> std::io::Result<TempDir> {
    let parent = std::env::var_os("TMPDIR").map_or_else(|| "/var/tmp".into(), PathBuf::from);
    tempfile::tempdir_in(parent)
}

/// Makes a table of three SSTables that overlap, with row deletions and range tombstones, each of
/// about `bytes_each` uncompressed, and returns its directory.
///
/// # Errors
/// A failed write.
pub fn sample_table(directory: &Path, bytes_each: u64) -> Result<PathBuf, compactor::Error> {
    let mut options = GenerateOptions::new(Shape::Wide, directory);
    options.amount = Amount::Bytes(bytes_each);
    let io = compactor::IoOptions::default();
    let report = generate(io, options, &mut compactor::NoObserver)?;
    Ok(report.table_directory)
}

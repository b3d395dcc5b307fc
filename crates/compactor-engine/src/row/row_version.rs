//! One of the versions of a row that become one.

use compactor_sstable::Error as FormatError;
use compactor_sstable::data::row::RowRef;

/// One version of a row.
#[derive(Clone, Copy, Debug)]
pub struct Version<'a> {
    /// The row.
    pub row: RowRef<'a>,
    /// Index of each of its columns in the output header.
    pub map: &'a [u32],
}

/// The bytes of a version's row, from its first one on.
#[inline(always)]
pub(crate) fn row_bytes<'a>(versions: &[Version<'a>], number: u32) -> &'a [u8] {
    let version = versions.get(number as usize);
    version.map_or(&[], |version| version.row.bytes)
}

/// What was wrong with which of the versions.
#[derive(Debug)]
pub struct VersionError {
    /// Number of the version.
    pub number: usize,
    /// Offsets relative to that version's row.
    pub error: FormatError,
}

//! Version of a row in one input.

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

/// Bytes of a version's row, from its first byte on.
#[inline(always)]
pub(crate) fn row_bytes<'a>(versions: &[Version<'a>], number: u32) -> &'a [u8] {
    let version = versions.get(number as usize);
    version.map_or(&[], |version| version.row.bytes)
}

/// Error in a version of a row.
#[derive(Debug)]
pub struct VersionError {
    /// Number of the version.
    pub number: usize,
    /// The error, with offsets relative to that version's row.
    pub error: FormatError,
}

//! Reading a whole component into memory.

use std::path::Path;

use compactor_io::{Io, ReadMode};

use crate::error::Result;

/// Maximum length of a component that is read into memory: `CompressionInfo.db` of a 16 TiB table with 16 KiB
/// chunks is 8 GiB, so this is generous but finite.
const SMALL_COMPONENT_LIMIT: u64 = 8 << 30;

/// Reads a whole component.
///
/// # Errors
/// A failed read.
pub fn read_small(io: &Io, mode: ReadMode, path: &Path) -> Result<Vec<u8>> {
    let file = io.open(path, mode)?;
    let bytes = file.read_all(SMALL_COMPONENT_LIMIT)?;
    file.evict();
    Ok(bytes)
}

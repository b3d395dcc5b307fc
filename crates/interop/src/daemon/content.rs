//! The uncompressed content of a Data.db, chunk by chunk.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use compactor_sstable::compression::chunk::ChunkDecompressor;
use compactor_sstable::version::Version;

use crate::files;

/// Content of Data.db.
pub(crate) fn read(data: &Path, version: Version) -> Result<Vec<u8>> {
    let stored = fs::read(data)?;
    let Some(info) = files::compression(data, version)? else {
        return Ok(stored);
    };
    let mut decompressor = ChunkDecompressor::for_file(&info)?;
    let mut content = Vec::new();
    for index in 0..info.chunk_count() {
        let chunk = info.chunk(index).context("a chunk")?;
        let from = usize::try_from(chunk.offset)?;
        let bytes = stored
            .get(from..from + usize::try_from(chunk.stored_len)?)
            .context("a chunk beyond the end of Data.db")?;
        let at = content.len();
        content.resize(at + chunk.raw_len as usize, 0);
        decompressor.decompress(bytes, chunk.offset, &mut content[at..])?;
    }
    Ok(content)
}

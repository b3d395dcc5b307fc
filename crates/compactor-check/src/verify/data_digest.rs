//! Comparison of `Data.db` with `Digest.crc32`, to find the faulty one of two contradicting files.

use std::path::{Path, PathBuf};

use compactor_io::{Io, IoOptions, ReadMode, ReadaheadOptions, SequentialReader};
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::{Component, digest};

use crate::{Error, Result};

/// A `Data.db` and its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataDigest {
    /// `Data.db`.
    pub data_path: PathBuf,
    /// CRC32 of all its bytes.
    pub found: u32,
    /// CRC32 stated in `Digest.crc32`.
    pub stated: u32,
}

/// Reads the whole `Data.db` of the SSTable that `component` belongs to. Returns `None` if there is no SSTable, no
/// `Data.db`, or no readable digest.
///
/// # Errors
/// A failed read, or [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) once `is_cancelled` returns true.
pub fn digest_of_data(
    component: &Path,
    is_cancelled: impl Fn() -> bool,
) -> Result<Option<DataDigest>> {
    let Ok(file) = Descriptor::parse(component) else {
        return Ok(None);
    };
    let data_path = file.descriptor.path(Component::Data);
    let Some(stated) = std::fs::read(file.descriptor.path(Component::Digest))
        .ok()
        .and_then(|bytes| digest::parse(&bytes).ok())
    else {
        return Ok(None);
    };
    if !data_path.is_file() {
        return Ok(None);
    }
    let io = Io::new(IoOptions::default())?;
    let data = io.open(&data_path, ReadMode::Auto)?;
    let mut reader = SequentialReader::whole(data, ReadaheadOptions::default());
    let mut crc = crc32fast::Hasher::new();
    while let Some(extent) = reader.next()? {
        if is_cancelled() {
            return Err(Error::Cancelled);
        }
        crc.update(&extent);
    }
    Ok(Some(DataDigest {
        data_path,
        found: crc.finalize(),
        stated,
    }))
}

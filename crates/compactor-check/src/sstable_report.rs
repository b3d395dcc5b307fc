//! A written or read SSTable, as reports name it.

use std::path::{Path, PathBuf};

use compactor_engine::input::InputSstable;
use compactor_engine::write::WrittenSstable;
use compactor_sstable::Component;
use serde::Serialize;

/// One SSTable.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct SstableReport {
    /// Its `Data.db`. In JSON, bytes that are not UTF-8 are replaced.
    #[serde(serialize_with = "lossy")]
    pub data_path: PathBuf,
    /// Version.
    pub version: String,
    /// Bytes of all components.
    pub bytes: u64,
    /// Uncompressed bytes of `Data.db`.
    pub uncompressed_bytes: u64,
}

impl SstableReport {
    /// Report of an opened input.
    pub fn of_input(input: &InputSstable) -> SstableReport {
        SstableReport {
            data_path: input.data_path(),
            version: input.descriptor.version.to_string(),
            bytes: input.disk_len(),
            uncompressed_bytes: input.data_len(),
        }
    }

    /// Report of a published output.
    pub fn of_output(output: &WrittenSstable) -> SstableReport {
        SstableReport {
            data_path: output.descriptor.path(Component::Data),
            version: output.descriptor.version.to_string(),
            bytes: output.components.iter().map(|(_, len)| len).sum(),
            uncompressed_bytes: output.data_len,
        }
    }
}

/// Serializes the path of a file (`serialize_with`), with bytes that are not UTF-8 replaced, so that no file
/// name can make a report fail.
///
/// # Errors
/// Errors of the serializer.
pub fn lossy<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

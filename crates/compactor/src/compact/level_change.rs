//! Change of the level in the statistics of an output.
//!
//! Source: `MetadataSerializer.mutateLevel`.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use compactor_sstable::Component;
use compactor_sstable::statistics::Statistics;

use crate::run_record::descriptor_of;
use crate::{Error, Result};

/// Suffix of a new `Statistics.db` before it replaces the other.
const TEMPORARY: &str = "tmp";

/// Writes `Statistics.db` of an SSTable of this run again, with another level. It is durable, but for its directory,
/// when this returns.
///
/// # Errors
/// A failed read or write.
pub(super) fn set_level(data_path: &Path, level: i32) -> Result<()> {
    let descriptor = descriptor_of(data_path)?;
    let path = descriptor.path(Component::Statistics);
    let version = descriptor.version;
    let bytes = fs::read(&path).map_err(Error::file("read", &path))?;
    let mut statistics = Statistics::parse(&bytes, version)?;
    statistics.stats.level = level;
    let mut changed = Vec::with_capacity(bytes.len());
    statistics.write(&mut changed, version)?;
    let temporary = path.with_extension(TEMPORARY);
    let written = File::create_new(&temporary).and_then(|mut file| {
        file.write_all(&changed)?;
        file.sync_all()
    });
    written.map_err(Error::file("write", &temporary))?;
    fs::rename(&temporary, &path).map_err(Error::file("rename", &temporary))
}

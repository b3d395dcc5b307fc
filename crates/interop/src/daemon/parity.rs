//! Our merge of what a node flushed against the node's own compaction of the same.

use std::path::Path;

use anyhow::{Context, Result};
use compactor::io::{Io, IoOptions};
use compactor::metadata::MetadataOptions;
use compactor::sstable::version::Version;
use serde_json::Value;

use super::content;
use crate::parity::{Reader, differences_by};

/// Reads with our own library: the node may be down, and it has moved on.
struct Library(Version);

impl Reader for Library {
    fn content(&mut self, data: &Path) -> Result<Vec<u8>> {
        content::read(data, self.0)
    }

    fn metadata(&mut self, data: &Path) -> Result<Value> {
        let io = Io::new(IoOptions::default())?;
        let metadata = compactor::metadata::read(&io, data, &MetadataOptions::new(0))?;
        Ok(serde_json::json!({ "stats": serde_json::to_value(metadata)? }))
    }
}

/// Where the two are not the same, to the byte.
pub(crate) fn differences(theirs: &Path, ours: &Path) -> Result<Vec<String>> {
    let name = theirs.file_name().unwrap_or_default().to_string_lossy();
    let version = name.get(..2).context("a version")?;
    let version = version
        .parse()
        .map_err(|error| anyhow::anyhow!("{version}: {error}"))?;
    differences_by(&mut Library(version), version, theirs, ours, &[])
}
